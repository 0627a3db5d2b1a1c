/* The parent's side of a launch: arguments, log folder, time-out, and what to write when rank 0 did not. Processes are
 * runtime/launch's business. */
#include "bench/campaign/runner.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/campaign/arguments.h"
#include "bench/job/worker.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/trial/trial.h"
#include "runtime/comm/mpi/module.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/mpirun.h"

enum { VALUE_BYTES = 2048, TAIL_LINES = 5, TAIL_BYTES = 1200, REASON_BYTES = 700 };
enum { GATE = -1 }; /* in a repeat's place */

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

/* mpirun where it is there, as its ranks' memory and transports are what users have; on cuda devices our own, since
 * NCCL needs none of it. */
static enum el_status choose_launcher(const struct el_trial *trial, enum el_launch_by *by_p)
{
    bool mpi_comm = strcmp(trial->comm, "mpi") == 0;
    bool own = trial->launcher == EL_LAUNCHER_OWN;
    if (trial->launcher == EL_LAUNCHER_AUTO && !mpi_comm)
        own = strcmp(trial->devices[0].backend, "cuda") == 0 || check_mpirun(trial) != EL_OK;
    *by_p = own ? EL_LAUNCH_BY_OWN : EL_LAUNCH_BY_MPIRUN;
    return own ? EL_OK : check_mpirun(trial);
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

static bool have_cards_of_their_own(const struct el_trial *trial)
{
    for (int i = 1; i < trial->n_devices; i++)
        for (int k = 0; k < i; k++)
            if (trial->devices[i].index == trial->devices[k].index) return false;
    return strcmp(trial->devices[0].backend, "cuda") == 0;
}

const char *const *el_runner_environment(const struct el_trial *trial, const char *given)
{
    static const char *const eager[] = {"CUDA_MODULE_LOADING=EAGER", NULL};
    struct el_layout layout;
    el_layout_of(&trial->train, trial->procs, &layout);
    return layout.n_workers > layout.n_processes && !given && have_cards_of_their_own(trial) ? eager : NULL;
}

/* The trial as options of `run`: what the worker resolves again. */
static enum el_status add_options(struct el_arguments *arguments, const struct el_trial *trial)
{
    struct el_options options;
    el_trial_options(trial, &options);
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        char value[VALUE_BYTES];
        if (!(row->commands & EL_CMD_RUN)) continue;
        el_option_show(row, &options, value, sizeof value);
        if (!*value) continue;
        EL_TRY(el_arguments_add(arguments, "--%s", row->name));
        if (row->argument) EL_TRY(el_arguments_add(arguments, "%s", value));
    }
    return EL_OK;
}

static enum el_status add_all(struct el_arguments *arguments, const struct el_runner *runner,
                              const struct el_trial *trial, const char *result_path, int repeat, int order)
{
    EL_TRY(el_arguments_add(arguments, "%s", runner->program));
    EL_TRY(el_arguments_add(arguments, "worker"));
    EL_TRY(el_arguments_add(arguments, "%s", repeat == GATE ? "gate" : "measure"));
    EL_TRY(el_arguments_add(arguments, "%s", result_path));
    EL_TRY(el_arguments_add(arguments, "%d", repeat == GATE ? 0 : repeat));
    EL_TRY(el_arguments_add(arguments, "%d", order));
    EL_TRY(el_arguments_add(arguments, "%s", trial->id));
    return add_options(arguments, trial);
}

static bool on_tick(void *context, double elapsed_s)
{
    const struct el_runner *runner = context;
    if (runner->tick) runner->tick(runner->context, elapsed_s);
    return !interrupted;
}

/* Each launch's own, so that a later repeat leaves an earlier failure's words alone. */
static void log_folder(const struct el_runner *runner, const struct el_trial *trial, int repeat,
                       char log_dir[EL_PATH_BYTES])
{
    if (repeat == GATE)
        el_store_path(runner->store, log_dir, "logs/%s-gate", trial->id);
    else
        el_store_path(runner->store, log_dir, "logs/%s-%d", trial->id, repeat);
}

static enum el_status launch(const struct el_runner *runner, const struct el_trial *trial, const char *result_path,
                             int repeat, int order, struct el_launch_result *result_p)
{
    struct el_arguments arguments = {.n = 0};
    char log_dir[EL_PATH_BYTES];
    enum el_launch_by by = EL_LAUNCH_BY_OWN;
    if (trial->procs > 1) EL_TRY(choose_launcher(trial, &by));
    log_folder(runner, trial, repeat, log_dir);
    struct el_launch_spec spec = {.argv = arguments.list,
                                  .procs = trial->procs,
                                  .by = by,
                                  .log_dir = log_dir,
                                  .environment = el_runner_environment(trial, getenv("CUDA_MODULE_LOADING")),
                                  .timeout_s = trial->timeout_s,
                                  .progress = on_tick,
                                  .context = (void *)runner};
    enum el_status status = add_all(&arguments, runner, trial, result_path, repeat, order);
    if (status == EL_OK) status = el_launch_run(&spec, result_p);
    el_arguments_free(&arguments);
    return status;
}

/* What the failed rank said last, or mpirun, or the launcher's own reason. */
static void find_reason(const struct el_runner *runner, const struct el_trial *trial, int repeat,
                        const struct el_launch_result *result, char *reason)
{
    char log_dir[EL_PATH_BYTES], tail[TAIL_BYTES] = "";
    log_folder(runner, trial, repeat, log_dir);
    if (!result->signal && !result->timed_out)
        el_launch_log_tail(log_dir, result->failed_rank < 0 ? 0 : result->failed_rank, 1, tail, sizeof tail);
    tail[strcspn(tail, "\n")] = 0;
    const char *said = strstr(tail, "evenload: ") == tail ? tail + strlen("evenload: ") : "";
    snprintf(reason, REASON_BYTES, "%.600s", *said ? said : result->reason);
}

static bool could_not_write(const struct el_launch_result *result)
{
    return result->exit_status == EL_WORKER_CANNOT_WRITE || result->exit_status == EL_WORKER_NO_ROOM;
}

/* In the worker's words, which name the file and the system's reason; on a full disk its log may lack them. */
static enum el_status fail_unwritten(const struct el_runner *runner, const struct el_trial *trial, int repeat,
                                     const struct el_launch_result *result, const char *path)
{
    char reason[REASON_BYTES];
    if (result->exit_status == EL_WORKER_NO_ROOM)
        return el_fail(EL_ERR_IO, "%s could not be written: the disk is full, or the quota is used up", path);
    find_reason(runner, trial, repeat, result, reason);
    if (strstr(reason, path)) return el_fail(EL_ERR_IO, "%s", reason);
    return el_fail(EL_ERR_IO, "%s could not be written: %s", path, reason);
}

/* The last lines of the logs to standard error, once a failed launch. */
static void show_tail(const struct el_runner *runner, const struct el_trial *trial, int repeat,
                      const struct el_launch_result *result)
{
    char log_dir[EL_PATH_BYTES], tail[TAIL_BYTES];
    char name[32] = "launcher";
    int rank = result->failed_rank < 0 ? 0 : result->failed_rank;
    log_folder(runner, trial, repeat, log_dir);
    el_launch_log_tail(log_dir, rank, TAIL_LINES, tail, sizeof tail);
    if (*tail)
        snprintf(name, sizeof name, "rank-%d", rank);
    else /* what could not begin has said nothing */
        el_launch_log_tail(log_dir, -1, TAIL_LINES, tail, sizeof tail);
    if (*tail) fprintf(stderr, "  last lines of %s/%s.log:\n", log_dir, name);
    for (char *line = strtok(tail, "\n"); line; line = strtok(NULL, "\n")) fprintf(stderr, "    %.200s\n", line);
}

/* A rank that was killed explains it better than what the others saw of it, if one of them could still write. */
static enum el_status blame_killed(const struct el_runner *runner, const struct el_trial *trial, int repeat,
                                   const struct el_launch_result *result, json_t *document)
{
    json_object_set_new(document, "reason", json_string(result->reason));
    return el_store_save_repeat(runner->store, trial, repeat, document);
}

/* The result was written, and then the job did not end well. */
static enum el_status warn_of_end(const struct el_runner *runner, const struct el_trial *trial, int repeat,
                                  const struct el_launch_result *result, json_t *document)
{
    if (strcmp(el_json_text(document, "status", "failed"), "ok"))
        return result->signal ? blame_killed(runner, trial, repeat, result, document) : EL_OK;
    json_array_append_new(json_object_get(document, "warnings"), json_sprintf("after its result: %s", result->reason));
    return el_store_save_repeat(runner->store, trial, repeat, document);
}

static const char *failure_of(const struct el_launch_result *result)
{
    return result->timed_out ? "timeout" : "failed";
}

/* The document of a launch that left none. `status`: of the launching itself, its message not yet taken. */
static enum el_status make_failed(const struct el_runner *runner, const struct el_trial *trial, int repeat, int order,
                                  enum el_status status, const struct el_launch_result *result, json_t **document_p)
{
    char reason[REASON_BYTES];
    if (status != EL_OK)
        snprintf(reason, sizeof reason, "%s", el_error_message());
    else if (result->ok)
        snprintf(reason, sizeof reason, "ended without a result");
    else
        find_reason(runner, trial, repeat, result, reason);
    const char *word = status == EL_OK ? failure_of(result) : "absent";
    json_t *document = el_record_failed_repeat(trial, repeat, order, word, reason);
    enum el_status saved = el_store_save_repeat(runner->store, trial, repeat, document);
    if (saved != EL_OK) {
        json_decref(document);
        return saved;
    }
    if (status == EL_OK) show_tail(runner, trial, repeat, result);
    *document_p = document;
    return EL_OK;
}

enum el_status el_runner_measure(const struct el_runner *runner, const struct el_trial *trial, int repeat, int order,
                                 json_t **document_p)
{
    struct el_launch_result result = {.ok = true};
    char path[EL_PATH_BYTES];
    *document_p = NULL;
    el_store_repeat_path(runner->store, trial, repeat, path);
    unlink(path);
    enum el_status status = launch(runner, trial, path, repeat, order, &result);
    if (status == EL_OK && result.cancelled) return EL_OK;
    if (status != EL_OK && status != EL_ERR_ABSENT) return status;
    json_t *document = status == EL_OK ? el_store_load_repeat(runner->store, trial, repeat) : NULL;
    if (!document && could_not_write(&result)) return fail_unwritten(runner, trial, repeat, &result, path);
    if (!document) return make_failed(runner, trial, repeat, order, status, &result, document_p);
    status = result.ok ? EL_OK : warn_of_end(runner, trial, repeat, &result, document);
    if (status == EL_OK)
        *document_p = document;
    else
        json_decref(document);
    return status;
}

enum el_status el_runner_gate(const struct el_runner *runner, const struct el_trial *trial, json_t **verdict_p)
{
    struct el_launch_result result = {.ok = true};
    char path[EL_PATH_BYTES], reason[REASON_BYTES];
    el_store_path(runner->store, path, "repeats/%s-gate.json", trial->id);
    unlink(path);
    *verdict_p = NULL;
    EL_TRY(launch(runner, trial, path, GATE, 0, &result));
    if (result.cancelled) return EL_OK;
    *verdict_p = json_load_file(path, 0, NULL);
    if (*verdict_p) return EL_OK;
    if (could_not_write(&result)) return fail_unwritten(runner, trial, GATE, &result, path);
    find_reason(runner, trial, GATE, &result, reason);
    show_tail(runner, trial, GATE, &result);
    *verdict_p = json_pack("{s:s, s:s}", "status", failure_of(&result), "reason", reason);
    return EL_OK;
}
