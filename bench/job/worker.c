/* The launched process: reads its trial from its arguments, joins the others, does its part, and on rank 0 writes the
 * document. Its standard output and error are the rank's log. */
#include "bench/job/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/trial/trial.h"
#include "runtime/launch/launch.h"

/* The one place where what a launcher says becomes a bootstrap: launch/ knows no communicators, and comm/ reads no
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

enum { KIND = 1, RESULT, REPEAT, ORDER, ID, FIXED_ARGUMENTS };

static enum el_status work(char **argv, const struct el_options *options, struct el_bootstrap *bootstrap,
                           bool *written_p)
{
    struct el_trial_set set;
    json_t *document = NULL;
    enum el_status status = el_trials_resolve(EL_CMD_RUN, options, &set);
    if (status == EL_OK && strcmp(set.trials->id, argv[ID])) {
        status = el_fail(EL_ERR_INTERNAL, "worker: trial %s became %s: was evenload built anew meanwhile?", argv[ID],
                         set.trials->id);
        el_trials_free(&set);
    }
    /* Nobody may wait in the job for a rank that could not begin it. */
    enum el_status agreed = el_bootstrap_agree(bootstrap, status);
    if (agreed != EL_OK) {
        if (status == EL_OK) el_trials_free(&set);
        return agreed;
    }
    struct el_job job = {.trial = set.trials,
                         .dataset = set.dataset,
                         .bootstrap = bootstrap,
                         .repeat = atoi(argv[REPEAT]),
                         .order = atoi(argv[ORDER])};
    status = !strcmp(argv[KIND], "gate") ? el_job_gate(&job, &document) : el_job_measure(&job, &document);
    if (document) {
        enum el_status written = el_write_json(document, argv[RESULT]);
        *written_p = written == EL_OK;
        if (written != EL_OK) status = written;
    }
    json_decref(document);
    el_trials_free(&set);
    return status;
}

/* By the message that the writing left. */
int el_worker_end(enum el_status status, bool unwritten)
{
    const char *message = el_error_message();
    if (status == EL_OK) return 0;
    fprintf(stderr, "evenload: %s\n", message);
    if (!unwritten) return 1;
    bool no_room = strstr(message, strerror(ENOSPC)) || strstr(message, strerror(EDQUOT));
    return no_room ? EL_WORKER_NO_ROOM : EL_WORKER_CANNOT_WRITE;
}

int el_worker_main(int argc, char **argv)
{
    struct el_options *options = calloc(1, sizeof *options);
    struct el_bootstrap *bootstrap = NULL;
    enum el_status status = options ? EL_OK : el_fail_errno("worker");
    bool written = true;
    if (argc < FIXED_ARGUMENTS)
        status = el_fail(EL_ERR_INVALID, "worker: started by 'evenload run' and 'compare' only");
    el_launch_rank_init();
    if (status == EL_OK) {
        el_options_defaults(EL_CMD_RUN, options);
        status = el_options_parse(EL_CMD_RUN, argc - ID, argv + ID, options); /* the id where a command's name is */
    }
    if (status == EL_OK)
        status = options->procs > 1 ? el_join_environment(&bootstrap) : el_bootstrap_open("self", &bootstrap);
    if (status == EL_OK) status = work(argv, options, bootstrap, &written);
    int exit_status = el_worker_end(status, !written);
    el_bootstrap_close(bootstrap);
    free(options);
    return exit_status;
}
