/* The parent's side of a launch. */
#include "bench/campaign/runner.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/job/worker.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/trial/trial.h"
#include "runtime/base/process.h"
#include "runtime/comm/bootstrap.h"
#include "runtime/comm/mpi/module.h"
#include "runtime/comm/nccl/api.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/mpirun.h"

enum { VALUE_BYTES = 2048, TAIL_LINES = 5, TAIL_BYTES = 1200, REASON_BYTES = 700 };
enum { WORDS_MAX = 8 };

struct launch {
    const struct el_runner *runner;
    const struct el_trial *trial;
    int repeat, order;        /* EL_STORE_GATE for the gate */
    char path[EL_PATH_BYTES]; /* written by rank 0 */
    char log_dir[EL_PATH_BYTES];
    struct el_launch_result result;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

void el_runner_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}, hang_up;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, NULL, &hang_up);
    if (hang_up.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL); /* nohup's programs go on */
    signal(SIGPIPE, SIG_IGN);
}

bool el_runner_interrupted(void)
{
    return interrupted;
}

enum el_status el_runner_check_mpi(void)
{
    const struct el_mpi_module *module;
    char *path;
    EL_TRY(el_mpirun_find(&path));
    free(path);
    return el_mpi_module_open(&module);
}

static enum el_status check_mpirun(const struct el_trial *trial)
{
    EL_TRY(el_runner_check_mpi());
    return el_mpirun_check_files(trial->procs);
}

/* mpirun if present, since users' memory and transports are MPI's; on cuda devices our own, since NCCL needs no MPI. */
static enum el_status choose_launcher(const struct el_trial *trial, enum el_launch_by *by_p)
{
    bool mpi_comm = strcmp(trial->comm, "mpi") == 0;
    bool own = trial->launcher == EL_LAUNCHER_OWN;
    if (trial->launcher == EL_LAUNCHER_AUTO && !mpi_comm)
        own = el_trial_backend(trial).gpu || check_mpirun(trial) != EL_OK;
    *by_p = own ? EL_LAUNCH_BY_OWN : EL_LAUNCH_BY_MPIRUN;
    return own ? el_bootstrap_check_files(trial->procs) : check_mpirun(trial);
}

enum el_status el_runner_check_launcher(const struct el_trial *trial)
{
    enum el_launch_by by;
    return choose_launcher(trial, &by);
}

enum el_status el_runner_init(struct el_runner *runner, const struct el_store *store)
{
    *runner = (struct el_runner){.store = store};
    ssize_t length = readlink("/proc/self/exe", runner->program, sizeof runner->program - 1);
    if (length < 0) return el_fail_errno("/proc/self/exe");
    runner->program[length] = 0;
    return EL_OK;
}

static bool share_a_card(const struct el_trial *trial, int of_each)
{
    for (int i = 1; i < trial->n_devices; i++)
        for (int k = 0; k < i / of_each * of_each; k++)
            if (trial->devices[i].index == trial->devices[k].index) return true;
    return false;
}

const char *const *el_rank_environment(const char *mode)
{
    static const char *const messages[] = {"CUDA_MODULE_LOADING=EAGER", "CUDA_DEVICE_MAX_CONNECTIONS=32", NULL};
    static const char *const collectives[] = {"NCCL_LAUNCH_ORDER_IMPLICIT=1", NULL};
    return el_mode_cuts(mode) ? messages : collectives;
}

static const char *const *environment_of(const struct el_trial *trial)
{
    static const char *const threads[] = {"CUDA_MODULE_LOADING=EAGER", NULL};
    struct el_layout layout;
    el_layout_of(&trial->train, trial->procs, &layout);
    if (!el_trial_backend(trial).gpu) return NULL;
    if (layout.n_processes > 1) return el_rank_environment(trial->train.mode);
    return layout.n_workers > layout.n_processes && !share_a_card(trial, 1) ? threads : NULL;
}

void el_runner_environment(const struct el_trial *trial, const char *(*get)(void *context, const char *name),
                           const char *list[EL_RANK_VARIABLES])
{
    int n = 0;
    for (const char *const *row = environment_of(trial); row && *row; row++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*row, "="), *row);
        if (!get(NULL, name)) list[n++] = *row;
    }
    list[n] = NULL;
}

const char *el_runner_numbered(const struct el_trial *trial, const char *given)
{
    const struct el_nccl_api *api;
    if (trial->procs < 2 || strcmp(trial->comm, "nccl") != 0 || given) return NULL;
    if (!share_a_card(trial, trial->n_devices / trial->procs)) return NULL;
    return el_nccl_api_open(&api) == EL_OK && api->shares_cards() ? NULL : "NCCL_HOSTID=evenload-";
}

bool el_runner_may_pass(const json_t *document)
{
    const char *status = el_json_text(document, "status", "failed");
    return strcmp(status, "ok") != 0 && strcmp(status, "oom") != 0;
}

static bool on_tick(void *context, double elapsed_s)
{
    const struct el_runner *runner = context;
    if (runner->tick) runner->tick(runner->context, elapsed_s);
    return !interrupted && !(runner->leave && runner->leave(runner->of_leave));
}

static const char *last_words(const char *log_dir, int rank, char *text, size_t bytes)
{
    *text = 0;
    el_launch_log_tail(log_dir, rank, 1, text, bytes);
    text[strcspn(text, "\n")] = 0;
    return !strncmp(text, "evenload: ", strlen("evenload: ")) ? text + strlen("evenload: ") : NULL;
}

static enum el_status add_options(unsigned command, const struct el_options *options, char **argv)
{
    for (int inner = 0; inner < 2; inner++) /* an outer option's value comes before what is within it */
        for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
            char value[VALUE_BYTES], *text;
            el_option_show(row, options, value, sizeof value);
            if (!(row->commands & command) || !*value || el_option_is_within(row, command) != inner) continue;
            const struct el_option_within *within = el_option_within(row->name);
            if ((inner ? asprintf(&text, "--%s=%s=%s", within->in, within->key, value)
                       : asprintf(&text, row->argument ? "--%s=%s" : "--%s", row->name, value)) < 0)
                return el_fail(EL_ERR_HOST_MEMORY, "no memory for a worker's command line");
            *argv++ = text;
        }
    return EL_OK;
}

/* `words`: at most 7, ends with NULL. Blocking; ends early if interrupted. Errors: EL_ERR_ABSENT (no launcher),
 * EL_ERR_IO. */
static enum el_status start(const struct el_runner *runner, const struct el_trial *trial, const char *const *words,
                            unsigned command, const struct el_options *options, const char *log_dir,
                            struct el_launch_result *result_p)
{
    char *argv[WORDS_MAX + EL_OPTIONS_MAX + 1] = {(char *)(uintptr_t)runner->program}, **first = argv + 1;
    enum el_launch_by by = EL_LAUNCH_BY_OWN;
    if (trial->procs > 1) EL_TRY(choose_launcher(trial, &by));
    for (; *words; words++) {
        if (first - argv == WORDS_MAX) return el_fail(EL_ERR_INTERNAL, "a worker's command has too many words");
        *first++ = (char *)(uintptr_t)*words;
    }
    const char *environment[EL_RANK_VARIABLES];
    el_runner_environment(trial, el_launch_getenv, environment);
    struct el_launch_spec spec = {.argv = argv,
                                  .procs = trial->procs,
                                  .by = by,
                                  .log_dir = log_dir,
                                  .environment = environment,
                                  .numbered = el_runner_numbered(trial, getenv("NCCL_HOSTID")),
                                  .timeout_s = trial->timeout_s,
                                  .progress = on_tick,
                                  .context = (void *)(uintptr_t)runner};
    enum el_status status = add_options(command, options, first);
    if (status == EL_OK) status = el_launch_run(&spec, result_p);
    for (char **option = first; *option; option++) free(*option);
    return status;
}

/* The trial travels as options of `run`. */
static enum el_status run_launch(struct launch *launch)
{
    const struct el_trial *trial = launch->trial;
    struct el_options options;
    char repeat[16], order[16];
    const char *const words[] = {
        "worker", launch->repeat == EL_STORE_GATE ? "gate" : "measure", launch->path, repeat, order, trial->id, NULL};
    snprintf(repeat, sizeof repeat, "%d", launch->repeat);
    snprintf(order, sizeof order, "%d", launch->order);
    el_trial_options(trial, &options);
    options.train.products = trial->train.products; /* ranks do not try for themselves */
    return start(launch->runner, trial, words, EL_CMD_RUN, &options, launch->log_dir, &launch->result);
}

static int speaker(const struct el_launch_result *result)
{
    return result->failed_rank < 0 ? 0 : result->failed_rank;
}

static void find_reason(const struct launch *launch, char reason[REASON_BYTES])
{
    const struct el_launch_result *result = &launch->result;
    char tail[TAIL_BYTES];
    const char *said =
        result->signal || result->timed_out ? NULL : last_words(launch->log_dir, speaker(result), tail, sizeof tail);
    snprintf(reason, REASON_BYTES, "%.600s", said ? said : result->ok ? "ended without a result" : result->reason);
}

/* On a full disk the worker's log may not have the reason. */
static enum el_status fail_unwritten(const struct launch *launch)
{
    char reason[REASON_BYTES];
    if (launch->result.exit_status == EL_WORKER_NO_ROOM)
        return el_fail(EL_ERR_IO, "%s could not be written: the disk is full, or the quota is used up", launch->path);
    find_reason(launch, reason);
    if (strstr(reason, launch->path)) return el_fail(EL_ERR_IO, "%s", reason);
    return el_fail(EL_ERR_IO, "%s could not be written: %s", launch->path, reason);
}

static void show_tail(const struct launch *launch)
{
    char tail[TAIL_BYTES], name[32] = "launcher";
    int rank = speaker(&launch->result);
    el_launch_log_tail(launch->log_dir, rank, TAIL_LINES, tail, sizeof tail);
    if (*tail)
        snprintf(name, sizeof name, "rank-%d", rank);
    else /* it could not begin, so its log is empty */
        el_launch_log_tail(launch->log_dir, -1, TAIL_LINES, tail, sizeof tail);
    if (*tail) el_text_line(stderr, "  last lines of %s/%s.log:", launch->log_dir, name);
    for (char *line = strtok(tail, "\n"); line; line = strtok(NULL, "\n")) el_text_line(stderr, "    %.200s", line);
}

static enum el_status launch_document(struct launch *launch, json_t **document_p)
{
    *document_p = NULL;
    el_store_repeat_path(launch->runner->store, launch->trial, launch->repeat, launch->path);
    el_store_log_path(launch->runner->store, launch->trial, launch->repeat, launch->log_dir);
    unlink(launch->path);
    EL_TRY(run_launch(launch));
    if (launch->result.cancelled) return EL_OK;
    *document_p = el_store_load_repeat(launch->runner->store, launch->trial, launch->repeat);
    int ended = launch->result.exit_status;
    bool unwritten = ended == EL_WORKER_CANNOT_WRITE || ended == EL_WORKER_NO_ROOM;
    return !*document_p && unwritten ? fail_unwritten(launch) : EL_OK;
}

/* A rank that was killed, or that was stuck, explains a failure better than what the others saw. */
static enum el_status note_end(const struct launch *launch, json_t *document)
{
    const struct el_launch_result *result = &launch->result;
    bool ok = strcmp(el_json_text(document, "status", "failed"), "ok") == 0;
    bool stuck = result->exit_status == EL_WORKER_STUCK;
    char reason[REASON_BYTES];
    if (result->ok || (!ok && !result->signal && !stuck)) return EL_OK;
    find_reason(launch, reason);
    if (ok)
        json_array_append_new(json_object_get(document, "warnings"),
                              json_sprintf("after its result: %s", result->reason));
    else
        json_object_set_new(document, "reason", json_string(reason));
    if (!ok && result->out_of_memory) json_object_set_new(document, "status", json_string("oom"));
    return el_write_json(document, launch->path);
}

/* `status`: of the launching. */
static const char *explain(const struct launch *launch, enum el_status status, char reason[REASON_BYTES])
{
    if (status != EL_OK) {
        snprintf(reason, REASON_BYTES, "%s", el_error_message());
        return "absent";
    }
    find_reason(launch, reason);
    show_tail(launch);
    if (launch->result.exit_status == EL_PROCESS_NO_MEMORY || launch->result.out_of_memory) return "oom";
    return launch->result.timed_out ? "timeout" : "failed";
}

enum el_status el_runner_measure(const struct el_runner *runner, const struct el_trial *trial, int repeat, int order,
                                 json_t **document_p)
{
    struct launch launch = {.runner = runner, .trial = trial, .repeat = repeat, .order = order};
    char reason[REASON_BYTES];
    enum el_status status = launch_document(&launch, document_p);
    if (launch.result.cancelled || (status != EL_OK && status != EL_ERR_ABSENT)) return status;
    bool made = *document_p == NULL;
    if (made) {
        const char *word = explain(&launch, status, reason);
        *document_p = el_record_failed_repeat(trial, repeat, order, word, reason);
    }
    status = made ? el_write_json(*document_p, launch.path) : note_end(&launch, *document_p);
    if (status == EL_OK) return EL_OK;
    json_decref(*document_p);
    *document_p = NULL;
    return status;
}

enum el_status el_runner_gate(const struct el_runner *runner, const struct el_trial *trial, json_t **verdict_p)
{
    struct launch launch = {.runner = runner, .trial = trial, .repeat = EL_STORE_GATE};
    char reason[REASON_BYTES];
    enum el_status status = launch_document(&launch, verdict_p);
    if (*verdict_p || launch.result.cancelled || (status != EL_OK && status != EL_ERR_ABSENT)) return status;
    const char *word = explain(&launch, status, reason);
    *verdict_p = json_pack("{s:s, s:s}", "status", word, "reason", reason);
    return EL_OK;
}

/* ---- following a launch that is one long job ---- */

static bool hears(struct el_follow *follow)
{
    char line[TAIL_BYTES] = "";
    el_launch_log_tail(follow->logs, 0, 1, line, sizeof line);
    line[strcspn(line, "\n")] = 0;
    if (line[0] != '[' || !strcmp(line, follow->now)) return false;
    snprintf(follow->now, sizeof follow->now, "%.*s", (int)sizeof follow->now - 1, line);
    return true;
}

static void follow_tick(void *context, double elapsed_s)
{
    struct el_follow *follow = context;
    if (follow->quiet || !hears(follow)) return;
    if (!follow->terminal && follow->said_s > 0 && elapsed_s - follow->said_s < follow->gap_s) return;
    fprintf(stderr, follow->terminal ? "\r\033[K%.100s" : "%.100s\n", follow->now);
    follow->said_s = elapsed_s;
}

static enum el_status fail_launch(const struct el_follow *follow, const struct el_launch_result *result, int procs,
                                  const char *dir)
{
    char tail[TAIL_BYTES];
    const char *said = NULL;
    for (int r = result->failed_rank < 0 ? 0 : -1; r < procs && !said && !result->signal; r++)
        said = last_words(follow->logs, r < 0 ? result->failed_rank : r, tail, sizeof tail);
    if (result->exit_status == EL_WORKER_NO_ROOM)
        return el_fail(EL_ERR_IO,
                       "%s: what was measured could not be written: the disk is full, or the quota is used up", dir);
    const bool unwritten = result->exit_status == EL_WORKER_CANNOT_WRITE;
    return el_fail(unwritten ? EL_ERR_IO : EL_ERR_PEER, "%s%s", said ? said : result->reason,
                   result->timed_out ? " (--timeout)" : "");
}

enum el_status el_follow_launch(struct el_follow *follow, const struct el_store *store, const struct el_trial *trial,
                                const char *const *words, unsigned command, const struct el_options *options)
{
    struct el_runner runner;
    struct el_launch_result result = {.failed_rank = -1};
    EL_TRY(el_runner_init(&runner, store));
    runner.tick = follow_tick;
    runner.context = follow;
    follow->quiet = options->quiet;
    follow->terminal = isatty(STDERR_FILENO) == 1;
    enum el_status status = start(&runner, trial, words, command, options, follow->logs, &result);
    hears(follow);
    if (follow->terminal && !follow->quiet) fprintf(stderr, "\r\033[K");
    return status != EL_OK || result.cancelled || result.ok ? status
                                                            : fail_launch(follow, &result, trial->procs, store->dir);
}
