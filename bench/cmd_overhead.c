/* `evenload overhead`: what recording costs. Trials as compare's, in turns, with control blocks that have the recorder
 * off and on; judged from the run's document. No gate: nothing is said here of one mode against another. */
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/overhead/overhead.h"
#include "bench/record/record.h"

static enum el_status check(const struct el_options *options)
{
    if (!strcmp(options->devices[0].backend, "sim"))
        return el_fail(EL_ERR_INVALID, "overhead: simulated devices do no work that recording could delay: give cpu or "
                                       "null devices");
    if (options->train.min_time_s <= 0)
        return el_fail(EL_ERR_INVALID, "overhead: --min-time 0 leaves no time to compare steps in: give more");
    return EL_OK;
}

static int show(const struct el_campaign *c)
{
    json_t *document = el_overhead_document(c->run, c->store.dir);
    if (!document) return el_exit_failed(el_fail(EL_ERR_HOST_MEMORY, "no memory for what recording costs"));
    int exit_status = el_campaign_exit_status(c);
    if (exit_status == 0 && json_is_false(json_object_get(document, "holds"))) exit_status = EL_EXIT_TRIAL;
    enum el_status status = EL_OK;
    if (c->options->json)
        status = el_print_json(document, stdout);
    else
        el_overhead_print(document, stdout);
    json_decref(document);
    return status == EL_OK ? el_exit_flush(exit_status) : el_exit_failed(status);
}

static int overhead(const struct el_options *options)
{
    struct el_campaign campaign;
    el_runner_catch_signals();
    enum el_status status = el_campaign_begin(&campaign, EL_CMD_OVERHEAD, options);
    if (status != EL_OK) return el_exit_failed(status);
    status = el_campaign_measure(&campaign, false, "steps with and without the recorder, in turns in each launch");
    int exit_status = status == EL_OK ? 0 : el_exit_failed(status);
    if (el_runner_interrupted()) {
        fprintf(stderr, "evenload: interrupted\n");
        exit_status = EL_EXIT_INTERRUPTED;
    } else if (status == EL_OK) {
        exit_status = show(&campaign);
    }
    el_campaign_end(&campaign);
    return exit_status;
}

int el_cmd_overhead(const struct el_options *asked, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct el_options *options = el_options_copy(asked);
    if (!options) return el_exit_failed(EL_ERR_HOST_MEMORY);
    options->train.control = EL_CONTROL_RECORD;
    enum el_status status = check(options);
    int exit_status = status == EL_OK ? overhead(options) : el_exit_failed(status);
    free(options);
    return exit_status;
}
