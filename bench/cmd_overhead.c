/* `evenload overhead`: what recording costs. Trials as compare's, in turns, with control blocks that have the recorder
 * off and on; judged from the run's document. No gate: nothing is said here of one mode against another. */
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

static enum el_status show(struct el_campaign *c)
{
    json_t *document = el_overhead_document(c->run, c->store.dir);
    if (!document) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what recording costs");
    bool over = json_is_false(json_object_get(document, "holds"));
    if (over && c->exit_status == 0) c->exit_status = EL_EXIT_TRIAL;
    enum el_status status = EL_OK;
    if (c->options->json)
        status = el_print_json(document, stdout);
    else
        el_overhead_print(document, stdout);
    json_decref(document);
    return status;
}

enum el_status el_cmd_overhead(struct el_options *options, int *exit_status_p)
{
    struct el_campaign campaign;
    options->train.control = EL_CONTROL_RECORD;
    EL_TRY(check(options));
    el_runner_catch_signals();
    EL_TRY(el_campaign_begin(&campaign, EL_CMD_OVERHEAD, options));
    enum el_status status =
        el_campaign_measure(&campaign, false, "steps with and without the recorder, in turns in each launch");
    return el_end_campaign(&campaign, status, NULL, show, exit_status_p);
}
