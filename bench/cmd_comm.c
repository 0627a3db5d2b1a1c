/* `evenload comm`: starts the ranks, or is a rank of the user's mpirun or torchrun. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/campaign/runner.h"
#include "bench/comm/wire.h"
#include "bench/commands.h"
#include "bench/machine/host.h"
#include "bench/page/page.h"
#include "bench/trial/trial.h"
#include "runtime/launch/launch.h"

static enum el_status check_given(const struct el_trial *trial)
{
    struct el_inject injects[EL_MEMBERS_MAX];
    EL_TRY(el_inject_parse(trial->inject, trial->n_devices, injects));
    return el_trial_check_comm(trial);
}

/* Resolves as ddp, for launching ranks and placing devices. */
static enum el_status resolve(struct el_options *options, struct el_trial *trial_p, struct el_wire_plan *plan_p)
{
    struct el_trial trial = {.timeout_s = options->timeout_s, .launcher = options->launcher, .tf32 = false};
    if (options->n_devices == 0) EL_TRY(el_devices_default(options->devices, &options->n_devices));
    if (el_backend_facts(options->devices[0].backend).simulated)
        return el_fail(EL_ERR_INVALID, "comm: simulated devices move nothing: give cpu, null or cuda devices");
    if (options->wire.overlap && !el_backend_facts(options->devices[0].backend).computes)
        return el_fail(EL_ERR_INVALID,
                       "--overlap on: %s devices compute nothing that could hide the communication: "
                       "give cpu or cuda devices",
                       options->devices[0].backend);
    EL_TRY(el_devices_check(options->devices, options->n_devices));
    trial.train = options->train;
    snprintf(trial.train.mode, sizeof trial.train.mode, "ddp");
    trial.train.n_devices = trial.n_devices = options->n_devices;
    trial.train.global_batch = trial.n_devices;
    memcpy(trial.devices, options->devices, sizeof trial.devices);
    trial.procs = strcmp(options->comm, "local") ? trial.n_devices : 1;
    snprintf(trial.comm, sizeof trial.comm, "%s", options->comm);
    snprintf(trial.inject, sizeof trial.inject, "%s", options->inject);
    EL_TRY(check_given(&trial));
    EL_TRY(el_wire_plan_make(options->action, &options->wire, trial.n_devices, plan_p));
    *trial_p = trial;
    return EL_OK;
}

static enum el_status check_memory(const struct el_trial *trial, const struct el_wire_plan *plan)
{
    bool links = false; /* a mailbox per partner */
    for (int c = 0; c < plan->n_curves; c++)
        links |= plan->curves[c].operation->verb == EL_COMM_SEND || plan->curves[c].operation->uneven;
    double wanted = (1.0 + (links ? plan->n - 1 : 0)) * (double)plan->sizes[plan->n_sizes - 1],
           free_bytes = el_host_free_bytes("");
    wanted = trial->n_devices * (wanted + 2.0 * (double)el_wire_memory_bytes(plan));
    if (el_trial_backend(trial).gpu || !(wanted > free_bytes)) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--maxbytes: %d ranks need %.0f MiB for data and results, %.0f MiB are free",
                   trial->n_devices, wanted / 1048576, free_bytes / 1048576);
}

static void say_next(const struct el_options *options, const json_t *document)
{
    struct el_options next = *options;
    bool several = json_array_size(json_object_get(document, "curves")) > 1;
    snprintf(next.wire.algorithms, sizeof next.wire.algorithms, "all");
    fputc('\n', stdout);
    if (several)
        printf("Next: %s run --mode ddp    (communication in a training step)\n", el_program_word());
    else
        el_say_next(EL_CMD_COMM, &next, "    (compare the algorithms)");
}

static enum el_status show(const struct el_options *options, const struct el_store *store, const json_t *document,
                           int *exit_status_p)
{
    const json_t *curves = json_object_get(document, "curves");
    size_t n = json_array_size(curves), absent = 0;
    EL_EACH(curve, curves) absent += !el_json_is(curve, "status", "ok");
    EL_TRY(el_printed_show("comm", options, store->dir, document));
    if (!options->json && !options->wire.csv && absent < n) say_next(options, document);
    if (absent == n) fprintf(stderr, "evenload: %s\n", el_json_text(json_array_get(curves, 0), "reason", "absent"));
    *exit_status_p = absent == n ? EL_EXIT_USE : el_wire_wrong(document) ? EL_EXIT_TRIAL : 0;
    return EL_OK;
}

static enum el_status show_two(const struct el_options *options, const json_t *document)
{
    if (options->wire.csv) return el_fail(EL_ERR_INVALID, "--csv is of one record: give --json");
    if (json_array_size(json_object_get(document, "rows")) == 0)
        return el_fail(EL_ERR_INVALID, "--from %s: these records have no operation and size in common",
                       options->wire.from);
    if (options->json) return el_print_json(document, stdout);
    el_wire_print_two(document, stdout);
    return EL_OK;
}

static enum el_status show_read(const struct el_options *options, int *exit_status_p)
{
    json_t *document;
    EL_TRY(el_wire_two(options->wire.from, &document));
    if (document) {
        enum el_status status = show_two(options, document);
        json_decref(document);
        return status;
    }
    EL_TRY(el_wire_from(options->wire.from, &document));
    if (options->json)
        el_print_json(document, stdout);
    else if (options->wire.csv)
        el_wire_csv(document, stdout);
    else
        el_wire_print(document, stdout);
    const bool lost = json_is_true(json_object_get(document, "cut")) || el_json_number(document, "lost_calls") > 0;
    *exit_status_p = el_wire_wrong(document) || lost ? EL_EXIT_TRIAL : 0;
    json_decref(document);
    return EL_OK;
}

enum el_status el_cmd_comm_worker(struct el_worker *worker)
{
    struct el_trial trial;
    struct el_wire_plan plan;
    EL_TRY(resolve(&worker->options, &trial, &plan));
    EL_TRY(el_worker_join(worker, trial.procs > 1));
    const struct el_job job = {.trial = &trial, .bootstrap = worker->bootstrap};
    return el_wire_measure(&plan, &job, true, &worker->document);
}

/* Nobody supervises a user's job: after the time limit the rank ends itself, and its launcher the rest. */
static void expire(int number)
{
    static const char words[] = "evenload: the job did not end within --timeout\n";
    (void)number;
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0) _exit(EL_EXIT_USE);
    _exit(EL_EXIT_TRIAL);
}

static enum el_status take_part(struct el_options *options, struct el_bootstrap *bootstrap, json_t **document_p)
{
    struct el_trial trial;
    struct el_wire_plan plan;
    int size = el_bootstrap_size(bootstrap);
    enum el_status status = EL_OK;
    if (size > EL_MEMBERS_MAX) status = el_fail(EL_ERR_INVALID, "%d ranks: at most %d", size, EL_MEMBERS_MAX);
    if (options->n_devices && options->n_devices != size)
        status = el_fail(EL_ERR_INVALID, "--devices %d, but there are %d ranks: leave --devices out",
                         options->n_devices, size);
    if (!strcmp(options->comm, "local") && size > 1)
        status = el_fail(EL_ERR_INVALID, "--comm local is one process: start it without a launcher");
    EL_TRY(el_bootstrap_agree(bootstrap, status));
    if (!options->n_devices) EL_TRY(el_devices_of_ranks(bootstrap, options->devices));
    options->n_devices = size;
    EL_TRY(el_bootstrap_agree(bootstrap, resolve(options, &trial, &plan)));
    const struct el_job job = {.trial = &trial, .bootstrap = bootstrap};
    return el_wire_measure(&plan, &job, !options->quiet, document_p);
}

static enum el_status run_rank(struct el_options *options, const struct el_launch_place *place, int *exit_status_p)
{
    struct el_bootstrap *bootstrap = NULL;
    struct el_store store = {.locked = false};
    json_t *document = NULL;
    bool first = place->rank == 0;
    signal(SIGALRM, expire);
    alarm((unsigned)options->timeout_s + 1);
    enum el_status status = el_join(place, 0, &bootstrap);
    if (status == EL_OK) status = el_job_compare_options(bootstrap, EL_CMD_COMM, options);
    const bool same = status == EL_OK;
    if (same && first) status = el_store_create(options->out, "comm", &store);
    if (same) status = el_bootstrap_agree(bootstrap, status);
    if (status == EL_OK) status = take_part(options, bootstrap, &document);
    if (store.locked && !document) el_store_forget(&store);
    if (document) status = show(options, &store, document, exit_status_p);
    if (status != EL_OK && (first || (same && status != EL_ERR_PEER)))
        *exit_status_p = el_exit_failed(status); /* before the others end */
    else if (status != EL_OK)
        *exit_status_p = same ? EL_EXIT_TRIAL : EL_EXIT_USE;
    json_decref(document);
    el_bootstrap_close(bootstrap);
    return EL_OK;
}

static enum el_status launch(const struct el_store *store, const struct el_options *options,
                             const struct el_trial *trial, json_t **document_p)
{
    char path[EL_PATH_BYTES];
    const char *operation = *options->action ? options->action : "all_reduce";
    struct el_follow follow = {.gap_s = 0};
    el_store_path(store, path, "comm.json");
    el_store_path(store, follow.logs, "logs/comm");
    EL_TRY(el_follow_launch(&follow, store, trial, (const char *const[]){"worker", "comm", path, operation, NULL},
                            EL_CMD_COMM, options));
    return el_runner_interrupted() ? EL_OK : el_wire_read(path, document_p);
}

static enum el_status run_self(struct el_options *options, int *exit_status_p)
{
    struct el_store store;
    struct el_trial trial;
    struct el_wire_plan plan;
    json_t *document = NULL;
    EL_TRY(resolve(options, &trial, &plan));
    EL_TRY(check_memory(&trial, &plan));
    el_runner_catch_signals();
    EL_TRY(el_store_create(options->out, "comm", &store));
    enum el_status status = el_store_save_command(&store, EL_CMD_COMM, options);
    if (status == EL_OK) status = launch(&store, options, &trial, &document);
    if (!document) el_store_forget(&store);
    if (status == EL_OK && !document) *exit_status_p = el_exit_interrupted();
    if (document) status = show(options, &store, document, exit_status_p);
    json_decref(document);
    return status;
}

enum el_status el_cmd_comm(struct el_options *options, int *exit_status_p)
{
    struct el_launch_place place;
    bool rank;
    if (options->wire.from[0]) {
        if (options->action[0])
            return el_fail(EL_ERR_INVALID, "unexpected argument '%s': --from takes a list, as --from %s,%s",
                           options->action, options->wire.from, options->action);
        snprintf(options->dir, sizeof options->dir, "%s", options->wire.from);
        EL_TRY(el_options_check_records_alone("comm --from", options));
        return show_read(options, exit_status_p);
    }
    EL_TRY(el_takes_place(options, &place, &rank));
    EL_TRY(el_wire_take_flags(options, rank));
    return rank ? run_rank(options, &place, exit_status_p) : run_self(options, exit_status_p);
}
