/* Doubts about the basis of simulated times. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/trial/machine.h"
#include "bench/verdict/verdict.h"

const json_t *el_verdict_prediction(const json_t *ok)
{
    EL_EACH(repeat, ok)
        if (json_is_object(json_object_get(repeat, "prediction"))) return json_object_get(repeat, "prediction");
    return NULL;
}

void el_verdict_simulated(struct el_verdict_case *c)
{
    char text[EL_MACHINE_TEXT_BYTES];
    const json_t *prediction = el_verdict_prediction(c->ok);
    if (!json_is_true(el_json_at(c->ok, "0.simulated"))) return;
    if (!prediction)
        el_verdict_say(c, "simulated: all times are virtual");
    else if (!el_json_text(prediction, "costs", NULL))
        el_verdict_say(c, "simulated: all times are virtual, by the rates of %s",
                       el_machine_text(json_object_get(prediction, "machine"), text));
    else
        el_verdict_say(
            c, "simulated: all times are virtual, from --costs %.80s; what was not measured has the rates of %s",
            el_json_text(prediction, "costs", "?"), el_machine_text(json_object_get(prediction, "machine"), text));
}

static const json_t *record_where(const struct el_verdict_case *c, bool (*is)(const json_t *record, const void *of),
                                  const void *of, size_t *n_p)
{
    const json_t *records = json_object_get(el_verdict_prediction(c->ok), "records"), *found = NULL;
    *n_p = 0;
    EL_EACH(record, records) {
        if (!is(record, of)) continue;
        if (!found) found = record;
        ++*n_p;
    }
    return found;
}

static bool is_doubted(const json_t *record, const void *of)
{
    (void)of;
    return el_json_text(record, "verdict", NULL) != NULL;
}

void el_verdict_costs_suspect(struct el_verdict_case *c)
{
    size_t n;
    const json_t *record = record_where(c, is_doubted, NULL, &n);
    if (!record) return;
    el_verdict_say(c, "%zu record%s of --costs %s %s; %.60s: %s", n, n == 1 ? "" : "s", n == 1 ? "is" : "are",
                   el_json_text(record, "verdict", "suspect"), el_json_text(record, "dir", "?"),
                   el_json_text(record, "reason", "it does not say why"));
}

static bool had_others(const json_t *record, const void *limit)
{
    return el_json_number(record, "others_pct") > *(const double *)limit;
}

void el_verdict_costs_others(struct el_verdict_case *c)
{
    size_t n;
    const json_t *record = record_where(c, had_others, &c->rule->limit, &n);
    if (!record) return;
    el_verdict_say(c,
                   "--costs %.60s was measured beside other work, which had up to %.0f %% of a rank's core: measure "
                   "it again",
                   el_json_text(record, "dir", "?"), el_json_number(record, "others_pct"));
}

static bool has_other_beside(const json_t *record, const void *devices)
{
    double beside = el_json_number(record, "beside");
    return beside > 0 && beside != *(const double *)devices - 1;
}

void el_verdict_costs_beside(struct el_verdict_case *c)
{
    size_t n;
    double devices = el_json_number(el_verdict_prediction(c->ok), "devices");
    const json_t *record = record_where(c, has_other_beside, &devices, &n);
    if (!record) return;
    double beside = el_json_number(record, "beside");
    el_verdict_say(c,
                   "--costs %.60s was measured beside %.0f device%s, and here %.0f devices work: record single with "
                   "--beside %.0f",
                   el_json_text(record, "dir", "?"), beside, beside == 1 ? "" : "s", devices, devices - 1);
}

static double share_pct(const struct el_verdict_case *c, const char *kind, const json_t **share_p)
{
    const json_t *prediction = el_verdict_prediction(c->ok);
    *share_p = json_object_get(prediction, kind);
    double pct = 100 * el_json_number(*share_p, "ms") / el_json_number(prediction, "all_ms");
    return isnan(pct) ? 0 : pct;
}

static const char *bytes_at(const json_t *object, const char *path, char text[EL_BYTES_TEXT])
{
    double bytes = el_json_number(object, path);
    return el_bytes_text(bytes > 0 && bytes < 1e18 ? (size_t)bytes : 0, text);
}

void el_verdict_costs_sizes(struct el_verdict_case *c)
{
    const json_t *share;
    char bytes[EL_BYTES_TEXT], low[EL_BYTES_TEXT], high[EL_BYTES_TEXT];
    double pct = share_pct(c, "outside", &share);
    if (!(pct > c->rule->limit)) return;
    el_verdict_say(c,
                   "%.0f %% of the predicted time is of sizes outside those of --costs, from the fitted latency and "
                   "bandwidth: '%.48s' of %s, measured with %s to %s",
                   pct, el_json_text(share, "op", "?"), bytes_at(share, "bytes", bytes),
                   bytes_at(share, "low_bytes", low), bytes_at(share, "high_bytes", high));
}

void el_verdict_costs_ranks(struct el_verdict_case *c)
{
    const json_t *share;
    if (!(share_pct(c, "other_ranks", &share) > 0)) return;
    el_verdict_say(c,
                   "'%.48s' of %.0f ranks was measured with %.0f: its time follows the algorithm's closed form "
                   "with the latency and bandwidth fitted there; contention of more ranks is not in it",
                   el_json_text(share, "op", "?"), el_json_number(share, "ranks"),
                   el_json_number(share, "measured_ranks"));
}

void el_verdict_costs_borrowed(struct el_verdict_case *c)
{
    const json_t *share;
    double pct = share_pct(c, "borrowed", &share);
    if (!(pct > c->rule->limit)) return;
    el_verdict_say(c,
                   "%.0f %% of the predicted time is of operations that were not measured, by others' times: '%.48s'",
                   pct, el_json_text(share, "op", "?"));
}

/* Without records all times are the machine's, which is reported already. */
void el_verdict_costs_rates(struct el_verdict_case *c)
{
    const json_t *share;
    double pct = share_pct(c, "by_rates", &share);
    if (!el_json_text(el_verdict_prediction(c->ok), "costs", NULL) || !(pct > c->rule->limit)) return;
    el_verdict_say(c, "%.0f %% of the predicted time was not measured, and has the machine's rates: '%.48s'", pct,
                   el_json_text(share, "op", "?"));
}
