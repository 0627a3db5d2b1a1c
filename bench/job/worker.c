/* Standard output and error are the rank's log. */
#include "bench/job/worker.h"

#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/options/options.h"
#include "bench/trial/trial.h"
#include "runtime/launch/launch.h"

/* The only place where a launcher's settings become a bootstrap: launch/ knows no communicators, comm/ reads no
 * environment. */
enum el_status el_join(const struct el_launch_place *place, double patience_s, struct el_bootstrap **bootstrap_p)
{
    if (!place->host) return el_bootstrap_open("mpi", bootstrap_p);
    const struct el_rendezvous rendezvous = {.rank = place->rank,
                                             .size = place->size,
                                             .host = place->host,
                                             .port = place->port,
                                             .n_ports = place->n_ports,
                                             .listener = place->listener,
                                             .token = place->token,
                                             .secret = place->secret,
                                             .patience_s = patience_s};
    return el_bootstrap_open_tcp(&rendezvous, bootstrap_p);
}

enum el_status el_join_environment(struct el_bootstrap **bootstrap_p)
{
    struct el_launch_place place;
    EL_TRY(el_launch_environment(el_launch_getenv, NULL, &place));
    return el_join(&place, 0, bootstrap_p);
}

enum el_status el_worker_join(struct el_worker *worker, bool several)
{
    return several ? el_join_environment(&worker->bootstrap) : el_bootstrap_open("self", &worker->bootstrap);
}

/* Arguments: RESULT REPEAT ORDER ID. */
static enum el_status work(struct el_worker *worker,
                           enum el_status (*part)(const struct el_job *job, json_t **document_p))
{
    enum { REPEAT = 1, ORDER, ID };
    struct el_trial_set set;
    char **argv = worker->arguments;
    EL_TRY(el_worker_join(worker, worker->options.procs > 1));
    el_bootstrap_set_timeout(worker->bootstrap, worker->options.train.comm_timeout_s);
    enum el_status status = el_trials_resolve(EL_CMD_RUN, &worker->options, &set);
    if (status == EL_OK && strcmp(set.trials->id, argv[ID])) {
        status = el_fail(EL_ERR_INTERNAL, "worker: trial %s became %s: was evenload built anew meanwhile?", argv[ID],
                         set.trials->id);
        el_trials_free(&set);
    }
    /* nobody waits for a rank that could not begin */
    enum el_status agreed = el_bootstrap_agree(worker->bootstrap, status);
    if (agreed == EL_OK) agreed = el_job_compare_checkpoints(worker->bootstrap, set.trials);
    if (agreed == EL_OK) {
        struct el_job job = {.trial = set.trials,
                             .dataset = set.dataset,
                             .bootstrap = worker->bootstrap,
                             .repeat = atoi(argv[REPEAT]),
                             .order = atoi(argv[ORDER])};
        agreed = part(&job, &worker->document);
    }
    if (status == EL_OK) el_trials_free(&set);
    return agreed;
}

enum el_status el_worker_measure(struct el_worker *worker)
{
    return work(worker, el_job_measure);
}

enum el_status el_worker_gate(struct el_worker *worker)
{
    return work(worker, el_job_gate);
}

static int end(struct el_worker *worker, enum el_status status)
{
    enum el_status written = worker->document ? el_write_json(worker->document, worker->arguments[0]) : EL_OK;
    if (written != EL_OK) status = written;
    if (status == EL_OK) return 0;
    fprintf(stderr, "evenload: %s\n", el_error_message());
    if (written == EL_OK && !worker->unwritten) return 1;
    return status == EL_ERR_NO_ROOM ? EL_WORKER_NO_ROOM : EL_WORKER_CANNOT_WRITE;
}

int el_worker_main(const struct el_worker_row *row, int argc, char **argv)
{
    struct el_worker *worker = calloc(1, sizeof *worker);
    if (!worker) return 1;
    while (row->kind && strcmp(row->kind, argc > 0 ? argv[0] : "")) row++;
    bool ours = row->kind && argc > row->n_fixed;
    enum el_status status = ours ? EL_OK : el_fail(EL_ERR_INVALID, "worker: started by evenload itself only");
    el_launch_rank_init();
    worker->arguments = argv + 1;
    if (status == EL_OK) {
        el_options_defaults(row->command, &worker->options);
        status = el_options_parse(row->command, argc - row->n_fixed, argv + row->n_fixed, &worker->options);
    }
    if (status == EL_OK) status = row->work(worker);
    int exit_status = end(worker, status);
    json_decref(worker->document);
    el_bootstrap_close(worker->bootstrap);
    free(worker);
    return exit_status;
}
