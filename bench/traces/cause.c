/* Where the lateness of the blamed rank arises. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/ranks.h"
#include "bench/traces/traces.h"
#include "profiles/causes.h"

#define WORTH 0.2 /* of the lateness: a part that is named */

static const char *const places[EL_CAUSE_PARTS] = {
    [EL_CAUSE_COMPUTE] = "kernels",
    [EL_CAUSE_COPIES] = "copies",
    [EL_CAUSE_PAUSE] = "Python's garbage collection",
    [EL_CAUSE_DATA] = "its wait for data",
    [EL_CAUSE_BACKWARD] = "backward",
    [EL_CAUSE_OPTIMIZER] = "what follows backward, up to the optimizer's end",
    [EL_CAUSE_FORWARD] = "forward",
    [EL_CAUSE_OTHER] = "the rest of the script",
    [EL_CAUSE_EARLIER] = "the collective before, which it left later",
};

/* The parts that are named, the largest first. */
static int order(const struct el_causes *causes, enum el_cause named[EL_CAUSE_PARTS])
{
    int n = 0;
    double most_s = 0;
    for (int p = 0; p < EL_CAUSE_PARTS; p++) most_s = fmax(most_s, causes->parts_s[p]);
    for (int p = 0; p < EL_CAUSE_PARTS; p++) {
        int at = n;
        if (!(causes->parts_s[p] >= fmin(most_s, WORTH * causes->late_s))) continue;
        for (n++; at > 0 && causes->parts_s[named[at - 1]] < causes->parts_s[p]; at--) named[at] = named[at - 1];
        named[at] = (enum el_cause)p;
    }
    return n;
}

static json_t *cause_json(const char *name, const struct el_causes *causes, bool device)
{
    enum el_cause named[EL_CAUSE_PARTS];
    char text[EL_RANKS_SENTENCE_BYTES] = "", figure[EL_FIGURE_BYTES];
    json_t *parts = json_object();
    const int n = order(causes, named);
    el_text_append(text, sizeof text, "The lateness of %s arises in ", name);
    for (int i = 0; i < n; i++) {
        const bool idle = device && named[i] >= EL_CAUSE_PAUSE && named[i] <= EL_CAUSE_OTHER;
        el_text_append(text, sizeof text, "%s%s%s (%s ms)",
                       i == 0      ? ""
                       : i + 1 < n ? ", "
                                   : " and ",
                       places[named[i]], idle ? " on its host" : "",
                       el_text_figure(1e3 * causes->parts_s[named[i]], figure));
    }
    for (int p = 0; p < EL_CAUSE_PARTS; p++)
        el_json_put_real(parts, el_cause_name((enum el_cause)p), 1e3 * causes->parts_s[p]);
    return el_json_of(EL_KEY("late_ms", 1e3 * causes->late_s), EL_KEY("steps", causes->n_steps),
                      EL_KEY("part", n ? el_cause_name(named[0]) : NULL), EL_KEY("parts_ms", parts),
                      EL_KEY("sentence", (const char *)text));
}

json_t *el_traces_parts(const struct el_step_parts *parts)
{
    json_t *json = json_object();
    for (int p = 0; p < EL_CAUSE_EARLIER; p++)
        el_json_put_real(json, el_cause_name((enum el_cause)p), 1e3 * parts->parts_s[p]);
    el_json_put_all(json, EL_KEY("wait", 1e3 * parts->wait_s), EL_KEY("transfer", 1e3 * parts->transfer_s));
    return json;
}

json_t *el_traces_cause(const struct el_traces *traces, int who)
{
    char name[EL_TRACES_NAME_BYTES];
    struct el_causes causes;
    const struct el_relation *relation = &traces->relation;
    if (who < 0 ||
        el_causes_find(traces->list, relation, (size_t)who, EL_RANKS_WORTH * relation->step_s, &causes) != EL_OK ||
        causes.n_steps == 0)
        return json_null();
    el_traces_name(traces, &relation->members[who], name);
    return cause_json(name, &causes, relation->members[who].device >= 0);
}
