/* From what the agents told to verdicts: figures of devices among their kind, links among hosts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/fleet/judging.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"

static json_t *host_named(const struct el_fleet_judging *j, const char *name)
{
    EL_EACH(host, j->hosts)
        if (el_json_is(host, "name", name)) return host;
    return NULL;
}

/* By rank. */
static void place_devices(struct el_fleet_judging *j)
{
    EL_EACH(device, j->devices) {
        const json_t *agent =
            json_array_get(json_object_get(j->gathered, "agents"), (size_t)el_json_whole(device, "agent"));
        j->host_of[device_at.i] = -1;
        EL_EACH(host, j->hosts)
            if (el_json_is(host, "name", el_fleet_text(agent, "name"))) j->host_of[device_at.i] = (int)host_at.i;
    }
}

void el_fleet_accuse(json_t *host, double slower, const char *what)
{
    double before = el_json_number(host, "slower_pct");
    el_json_put_text(host, "verdict", "bad");
    if (100 * slower <= before && !json_is_null(json_object_get(host, "worst"))) return;
    el_json_put_real(host, "slower_pct", 100 * slower);
    el_json_put_text(host, "worst", what);
}

void el_fleet_cannot_tell(struct el_fleet_judging *j, const char *figure, const char *why)
{
    char text[240];
    snprintf(text, sizeof text, "%s: %s", figure, why);
    j->undecided = true;
    EL_EACH(reason, j->reasons)
        if (!strcmp(json_string_value(reason), text)) return;
    json_array_append_new(j->reasons, json_string(text));
}

void el_fleet_put_fault(struct el_fleet_judging *j, const char *kind, double slower, json_t *names)
{
    json_array_append_new(j->faults,
                          el_json_of(EL_KEY("kind", kind), EL_KEY("hosts", names), EL_KEY("slower_pct", 100 * slower)));
}

/* ---- hosts and devices ---- */

static void put_hosts(struct el_fleet_judging *j)
{
    EL_EACH(agent, json_object_get(j->gathered, "agents")) {
        json_t *host = host_named(j, el_fleet_text(agent, "name"));
        if (host && el_json_is(agent, "state", "measured")) continue;
        if (host) {
            json_object_set(host, "state", json_object_get(agent, "state"));
            json_object_set(host, "reason", json_object_get(agent, "reason"));
            continue;
        }
        json_array_append_new(
            j->hosts,
            el_json_of(EL_KEY("name", el_fleet_text(agent, "name")), EL_KEY("boot", el_fleet_text(agent, "boot")),
                       EL_KEY("group", json_incref(json_object_get(agent, "group"))), EL_KEY("ranks", json_array()),
                       EL_KEY("state", json_incref(json_object_get(agent, "state"))),
                       EL_KEY("reason", json_incref(json_object_get(agent, "reason"))), EL_KEY("devices", json_array()),
                       EL_KEY("slower_pct", 0.0), EL_KEY("worst", json_null()),
                       EL_KEY("retransmitted_pct", (double)NAN)));
    }
}

/* steps/s: what a rank computed in a step, without waiting. */
static json_t *step_rates(const struct el_fleet_judging *j, const json_t *device)
{
    json_t *rates = json_array();
    const json_t *step = json_object_get(j->document, "step");
    int64_t rank = el_json_whole(device, "in_step");
    const json_t *ms = json_array_get(json_object_get(step, "compute_ms"), rank < 0 ? SIZE_MAX : (size_t)rank);
    EL_EACH(value, ms)
        if (json_number_value(value) > 0) json_array_append_new(rates, el_json_real(1e3 / json_number_value(value)));
    return rates;
}

static void put_devices(struct el_fleet_judging *j)
{
    EL_EACH(device, j->devices) {
        json_t *host = json_array_get(j->hosts, (size_t)j->host_of[device_at.i]), *figures = json_object();
        const json_t *parts = json_object_get(device, "parts"), *by_itself = json_object_get(parts, "devices");
        const json_t *any = by_itself ? by_itself : json_object_get(parts, "links");
        for (int f = 0; f < EL_FLEET_DEVICE_FIGURES; f++) {
            const char *key = el_fleet_figures[f].key;
            char again[64];
            snprintf(again, sizeof again, "again.%s", key);
            json_t *rates = strcmp(key, "step") ? json_incref(json_object_get(by_itself, key)) : step_rates(j, device);
            double *values = NULL;
            size_t n = el_json_numbers(rates, &values);
            el_json_put(figures, key,
                        el_json_of(EL_KEY("rates", rates ? rates : json_array()),
                                   EL_KEY("again", json_incref(el_json_at(parts, again))),
                                   EL_KEY("median", n ? el_stats_median(values, n) : NAN),
                                   EL_KEY("slower_pct", (double)NAN), EL_KEY("bad", false)));
            free(values);
        }
        json_array_append_new(json_object_get(host, "ranks"), json_integer((json_int_t)device_at.i));
        json_array_append_new(
            json_object_get(host, "devices"),
            el_json_of(EL_KEY("rank", (int64_t)device_at.i), EL_KEY("name", el_fleet_text(device, "name")),
                       EL_KEY("uuid", el_json_filled(el_fleet_text(any, "uuid"))),
                       EL_KEY("model", el_json_filled(el_fleet_text(any, "model"))),
                       EL_KEY("core", el_json_count(el_json_whole(by_itself, "core"))),
                       EL_KEY("granted_pct", el_json_number(by_itself, "granted_pct")), EL_KEY("figures", figures),
                       EL_KEY("reason", json_incref(json_object_get(device, "reason"))), EL_KEY("wrong", json_null())));
    }
}

/* ---- soak ---- */

static void judge_wrong(struct el_fleet_judging *j)
{
    EL_EACH(device, j->devices) {
        json_t *wrong = el_json_at(device, "parts.soak.wrong"),
               *host = json_array_get(j->hosts, (size_t)j->host_of[device_at.i]);
        if (!json_is_object(wrong)) continue;
        EL_EACH(row, json_object_get(host, "devices"))
            if (el_json_whole(row, "rank") == (int64_t)device_at.i) json_object_set(row, "wrong", wrong);
        el_fleet_accuse(host, 1, "wrong results");
        el_json_put_real(host, "slower_pct", 0);
    }
    if (json_is_true(json_object_get(j->gathered, "no_majority")))
        el_fleet_cannot_tell(j, "soak",
                             "two devices computed different results, and no third one tells which is right");
    double passes = NAN, steps = 0;
    EL_EACH(device, j->devices) {
        double its = el_json_number(device, "parts.soak.passes");
        if (its > 0) passes = isnan(passes) ? its : fmin(passes, its);
        if (its > 0) steps += el_json_number(device, "parts.soak.steps");
    }
    el_json_put(j->document, "soak",
                isnan(passes) ? json_null() : el_json_of(EL_KEY("passes_at_least", passes), EL_KEY("steps", steps)));
}

/* ---- all of it ---- */

static int by_badness(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    static const char *const order[] = {"bad", "lost", "absent", "undecided", "good"};
    int places[2] = {0, 0};
    for (int i = 0; i < 5; i++) {
        if (el_json_is(x, "verdict", order[i])) places[0] = i;
        if (el_json_is(y, "verdict", order[i])) places[1] = i;
    }
    if (places[0] != places[1]) return places[0] - places[1];
    double by = el_json_number(y, "slower_pct") - el_json_number(x, "slower_pct");
    return by > 0 ? 1 : by < 0 ? -1 : strcmp(el_fleet_text(x, "name"), el_fleet_text(y, "name"));
}

/* The table's order: worst first, as places in `hosts`. */
static json_t *order_of(const struct el_fleet_judging *j)
{
    size_t n = json_array_size(j->hosts);
    json_t **list = calloc(n + 1, sizeof(json_t *)), *order = json_array();
    for (size_t i = 0; i < n && list; i++) list[i] = json_array_get(j->hosts, i);
    if (list) qsort(list, n, sizeof(json_t *), by_badness);
    for (size_t i = 0; i < n && list; i++)
        for (size_t k = 0; k < n; k++)
            if (json_array_get(j->hosts, k) == list[i]) json_array_append_new(order, json_integer((json_int_t)k));
    free(list);
    return order;
}

static void conclude(struct el_fleet_judging *j)
{
    bool bad = json_array_size(j->faults) > 0;
    EL_EACH(phase, json_object_get(j->document, "phases"))
        if (*el_fleet_text(phase, "reason")) {
            char text[320];
            snprintf(text, sizeof text, "phase %s failed: %s", el_fleet_text(phase, "name"),
                     el_fleet_text(phase, "reason"));
            json_array_append_new(j->reasons, json_string(text));
            j->undecided = true;
        }
    if (json_is_true(json_object_get(j->gathered, "interrupted"))) {
        json_array_append_new(j->reasons, json_string("it was interrupted"));
        j->undecided = true;
    }
    EL_EACH(host, j->hosts) {
        const char *state = el_fleet_text(host, "state");
        EL_EACH(device, json_object_get(host, "devices"))
            if (*el_fleet_text(device, "reason") && !el_json_is(host, "verdict", "bad")) {
                el_json_put_text(host, "verdict", "bad");
                el_json_put_text(host, "worst", "a device that failed");
            }
        if (strcmp(state, "measured")) el_json_put_text(host, "verdict", state);
        if (!json_object_get(host, "verdict")) el_json_put_text(host, "verdict", j->undecided ? "undecided" : "good");
        bad |= !el_json_is(host, "verdict", "good") && !el_json_is(host, "verdict", "undecided");
    }
    if (json_array_size(j->devices) > EL_MEMBERS_MAX && !json_is_true(json_object_get(j->gathered, "simulated")))
        json_array_append_new(j->reasons,
                              json_sprintf("no step was measured: ddp has at most %d devices", EL_MEMBERS_MAX));
    const char *verdict = bad ? "bad" : j->undecided ? "undecided" : "good";
    el_json_put_all(j->document, EL_KEY("verdict", verdict),
                    EL_KEY("exit_status", bad            ? 1
                                          : j->undecided ? 3
                                                         : 0),
                    EL_KEY("order", order_of(j)));
}

/* Rank 0 of the phase wrote it: whoever has it. Numbers of that phase are kept, as later ones have others. */
static void take_step(struct el_fleet_judging *j)
{
    json_t *step = NULL;
    int64_t rank = 0;
    EL_EACH(device, j->devices) {
        json_t *its = el_json_at(device, "parts.step");
        if (!its) continue;
        if (json_object_size(its)) step = its;
        el_json_put(device, "in_step", json_integer(rank++));
    }
    el_json_put(j->document, "step", step ? json_incref(step) : json_null());
}

static void put_all_reduce(struct el_fleet_judging *j)
{
    EL_EACH(device, j->devices) {
        const json_t *its = el_json_at(device, "parts.links.all_reduce");
        double bytes = el_json_number(its, "bytes"), n = 0;
        json_t *rates = json_array();
        EL_EACH(other, j->devices) n += el_json_at(other, "parts.links") != NULL;
        EL_EACH(s, json_object_get(its, "s"))
            json_array_append_new(rates, el_json_real(2 * (n - 1) / n * bytes / json_number_value(s) * 1e-9));
        bool known = json_array_size(rates) > 0;
        if (known)
            el_json_put(
                j->document, "all_reduce",
                el_json_of(EL_KEY("bytes", bytes), EL_KEY("busbw_gb_per_s", json_incref(rates)),
                           EL_KEY("backend", el_fleet_text(el_json_at(device, "parts.links"), "backend")),
                           EL_KEY("message_bytes", el_json_number(el_json_at(device, "parts.links"), "bytes"))));
        json_decref(rates);
        if (known) return;
    }
    el_json_put(j->document, "all_reduce", json_null());
}

static void put_rounds(struct el_fleet_judging *j)
{
    int64_t rounds = el_json_whole(j->gathered, "rounds"), hosts = 0;
    EL_EACH(host, j->hosts) hosts += el_json_is(host, "state", "measured");
    int of = el_fleet_rounds((int)hosts);
    el_json_put(j->document, "rounds", el_json_of(EL_KEY("between", rounds), EL_KEY("of", of)));
}

enum el_status el_fleet_document(const struct el_options *options, json_t *gathered, const json_t *baseline,
                                 json_t **document_p)
{
    struct el_fleet_judging j = {.options = options,
                                 .gathered = gathered,
                                 .baseline = baseline,
                                 .hosts = json_array(),
                                 .devices = json_object_get(gathered, "devices"),
                                 .faults = json_array(),
                                 .peers = json_object(),
                                 .reasons = json_array()};
    char command[2 * EL_PATH_BYTES] = "evenload fleet";
    el_options_command_line(EL_CMD_FLEET, options, command, sizeof command);
    j.document =
        el_json_of(EL_KEY("schema", EL_FLEET_SCHEMA), EL_KEY("kind", "fleet"), EL_KEY("command", (const char *)command),
                   EL_KEY("environment", el_environment()), EL_KEY("repeats", options->repeats),
                   EL_KEY("simulated", json_boolean(json_is_true(json_object_get(gathered, "simulated")))),
                   EL_KEY("hosts", j.hosts), EL_KEY("links", json_array()), EL_KEY("within", json_array()),
                   EL_KEY("faults", j.faults), EL_KEY("peers", j.peers), EL_KEY("reasons", j.reasons),
                   EL_KEY("phases", json_incref(json_object_get(gathered, "phases"))));
    take_step(&j);
    put_hosts(&j);
    j.host_of = calloc(json_array_size(j.devices) + 1, sizeof *j.host_of);
    if (!j.host_of) return el_fail_errno("fleet");
    place_devices(&j);
    put_devices(&j);
    put_all_reduce(&j);
    put_rounds(&j);
    el_fleet_judge_devices(&j);
    el_fleet_judge_links(&j);
    el_fleet_judge_within(&j);
    el_fleet_judge_losses(&j);
    judge_wrong(&j);
    if (baseline) el_fleet_compare_then(&j);
    conclude(&j);
    free(j.host_of);
    json_decref(gathered);
    *document_p = j.document;
    return EL_OK;
}

bool el_fleet_is(const json_t *document)
{
    return el_json_is(document, "kind", "fleet") && el_json_whole(document, "schema") == EL_FLEET_SCHEMA;
}
