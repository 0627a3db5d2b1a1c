/* A job that lost a rank is started again, from its last checkpoint (--max-restarts). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/trial/events.h"
#include "bench/trial/trial.h"
#include "runtime/state/checkpoint.h"

static bool is_lost(const json_t *document)
{
    return el_json_is(document, "status", "failed") || el_json_is(document, "status", "timeout");
}

/* From its last checkpoint, if there is one; what was injected to end it has done so. */
static int64_t go_back(struct el_trial *trial)
{
    const int64_t step = el_checkpoint_last(trial->checkpoint);
    el_inject_drop_first_fall(trial->inject);
    if (step < 0) return 0;
    snprintf(trial->resume, sizeof trial->resume, "%s", trial->checkpoint);
    *trial->load = 0;
    return step;
}

enum el_status el_restart_measure(const struct el_runner *runner, const struct el_trial *given, int repeat, int order,
                                  json_t **document_p)
{
    struct el_trial trial = *given;
    json_t *restarts = json_array();
    enum el_status status;
    const int events = el_events_open(trial.checkpoint);
    for (int n = 1;; n++) {
        status = el_runner_measure(runner, &trial, repeat, order, document_p);
        el_events_add(events, "end", 0);
        if (status != EL_OK || el_runner_interrupted() || n > trial.max_restarts || !is_lost(*document_p)) break;
        const int64_t step = go_back(&trial);
        const char *reason = el_json_text(*document_p, "reason", "");
        el_text_line(stderr, "%s: restart %d of %d, from step %lld", reason, n, trial.max_restarts, (long long)step);
        json_array_append_new(restarts, json_pack("{s:s, s:I}", "reason", reason, "step", (json_int_t)step));
        json_decref(*document_p);
        *document_p = NULL;
        el_events_add(events, "restart", step);
    }
    if (events >= 0) close(events);
    if (*document_p && trial.max_restarts) el_json_put(*document_p, "restarts", json_incref(restarts));
    json_decref(restarts);
    return status;
}
