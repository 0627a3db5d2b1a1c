/* A fleet of simulated hosts of one device: the same rounds and verdicts, in the runtime's virtual time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/fleet/fleet.h"
#include "bench/options/options.h"
#include "bench/trial/machine.h"
#include "runtime/base/rng.h"
#include "runtime/device/program.h"

enum { MESSAGE_BYTES = 16 << 20, ITEMS_MAX = 16, ANY = -1 };

struct fleet {
    struct el_options *options;
    struct el_machine machine;
    int n;
    struct el_device **devices;
    json_t **links; /* [n] */
    struct slow_link {
        int from, to; /* ANY */
        double ratio;
    } slow[ITEMS_MAX];
    struct slow_device {
        int at;
        double ratio;
    } stragglers[ITEMS_MAX];
    int n_slow, n_stragglers;
    double noise; /* standard deviation of each sample's logarithm */
    uint64_t drawn;
    double virtual_s;
};

/* ---- what is injected ---- */

static bool read_end(const char **at, int n, int *end_p)
{
    char *after;
    if (**at == '*') {
        *end_p = ANY;
        (*at)++;
        return true;
    }
    long value = strtol(*at, &after, 10);
    bool good = after != *at && value >= 0 && value < n;
    *at = after;
    *end_p = (int)value;
    return good;
}

static bool read_item(struct fleet *f, const char *item)
{
    const char *at = strchr(item, '=');
    char *end = NULL;
    if (!at++) return false;
    if (!strncmp(item, "noise=", 6)) {
        f->noise = strtod(at, &end) / 100;
        return end > at && *end == 0 && f->noise >= 0 && f->noise < 1;
    }
    if (!strncmp(item, "link=", 5) && f->n_slow < ITEMS_MAX) {
        struct slow_link *slow = &f->slow[f->n_slow++];
        if (!read_end(&at, f->n, &slow->from) || *at++ != '-' || !read_end(&at, f->n, &slow->to) || *at++ != ':')
            return false;
        slow->ratio = strtod(at, &end);
        return end > at && *end == 0 && slow->ratio > 0 && slow->ratio <= 1;
    }
    if (!strncmp(item, "straggler=", 10) && f->n_stragglers < ITEMS_MAX) {
        struct slow_device *slow = &f->stragglers[f->n_stragglers++];
        if (!read_end(&at, f->n, &slow->at) || *at++ != ':') return false;
        slow->ratio = strtod(at, &end);
        return end > at && *end == 0 && slow->ratio >= 1;
    }
    return false;
}

static enum el_status read_inject(struct fleet *f)
{
    char text[EL_PATH_BYTES], *rest = text;
    snprintf(text, sizeof text, "%s", f->options->inject);
    for (char *item; (item = strsep(&rest, ",")) && f->options->inject[0];)
        if (!read_item(f, item))
            return el_fail(
                EL_ERR_INVALID,
                "--inject %s: of %d simulated hosts: straggler=HOST:RATIO (1 or more), link=A-B:RATIO (up to 1; A or "
                "B may be *), noise=PCT",
                item, f->n);
    return EL_OK;
}

static double drawn(struct fleet *f)
{
    const struct el_rng_key key = {f->options->train.seed, EL_RNG_TEST, 0};
    double u = el_rng_uniform(&key, f->drawn, 0), v = el_rng_uniform(&key, f->drawn, 1);
    f->drawn++;
    return exp(f->noise * sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v));
}

static double ratio_of(const struct fleet *f, int from, int to)
{
    double ratio = 1;
    for (int i = 0; i < f->n_slow; i++)
        if ((f->slow[i].from == ANY || f->slow[i].from == from) && (f->slow[i].to == ANY || f->slow[i].to == to))
            ratio *= f->slow[i].ratio;
    return ratio;
}

/* ---- rounds ---- */

static enum el_status no_work(const struct el_call_args *args)
{
    (void)args;
    return EL_OK;
}

static enum el_status send(const struct fleet *f, struct el_program *program, int from, int to, int *id_p)
{
    const uint64_t bytes = (uint64_t)(MESSAGE_BYTES / ratio_of(f, from, to));
    const struct el_call_op op = {.head = {.label = "message", .phase = EL_PHASE_COMM, .sent_bytes = 2 * bytes},
                                  .op_class = EL_CLASS_COMM,
                                  .run = no_work,
                                  .bytes = (double)bytes,
                                  .messages = {.verb = "send",
                                               .algorithm = "direct",
                                               .rounds = 1,
                                               .largest_bytes = bytes,
                                               .total_bytes = bytes,
                                               .rank = from,
                                               .size = f->n,
                                               .partner = to}};
    return el_program_call(program, f->devices[from], EL_STREAM_COMPUTE, &op, id_p);
}

struct spans {
    struct fleet *fleet;
    const int *ids; /* [n]: of what each sends; -1 */
    const int *partners;
};

static void keep(void *context, const struct el_step_event *event)
{
    struct spans *spans = context;
    struct fleet *f = spans->fleet;
    for (int i = 0; i < f->n; i++) {
        json_t *rates = json_array();
        const struct el_span *span = spans->ids[i] < 0 ? NULL : &event->spans[spans->ids[i]];
        for (int k = 0; k < f->options->repeats && span; k++)
            json_array_append_new(
                rates, json_real((double)MESSAGE_BYTES / (double)(span->end_ns - span->begin_ns) * drawn(f)));
        if (span)
            json_array_append_new(f->links[i], el_json_of(EL_KEY("to", spans->partners[i]), EL_KEY("within", false),
                                                          EL_KEY("latency_us", 1e-3 * f->machine.network_latency_ns),
                                                          EL_KEY("gb_per_s", rates)));
        else
            json_decref(rates);
    }
    f->virtual_s += 1e-9 * (double)(event->whole.end_ns - event->whole.begin_ns);
}

static enum el_status run_round(struct fleet *f, int round, int *ids, int *partners)
{
    struct el_program *program = NULL;
    struct spans spans = {f, ids, partners};
    const struct el_probe probe = {.context = &spans, .spans = true, .wall_only = true, .step = keep};
    EL_TRY(el_program_create(&program));
    enum el_status status = EL_OK;
    for (int i = 0; i < f->n && status == EL_OK; i++) {
        partners[i] = el_fleet_partner(f->n, round, i);
        if (partners[i] < 0) ids[i] = -1;
        if (partners[i] < i) continue; /* the lower one of a pair sends first */
        status = send(f, program, i, partners[i], &ids[i]);
        if (status == EL_OK) status = el_program_wait(program, f->devices[partners[i]], EL_STREAM_COMPUTE, ids[i]);
        if (status == EL_OK) status = send(f, program, partners[i], i, &ids[partners[i]]);
    }
    if (status == EL_OK) status = el_program_end(program);
    if (status == EL_OK) status = el_program_run(program, 0, &probe);
    el_program_destroy(program);
    return status;
}

static enum el_status run_rounds(struct fleet *f)
{
    int all = el_fleet_rounds(f->n), fit = (int)fmax(1, floor(f->options->fleet.budget_s / EL_FLEET_ROUND_S));
    int wanted = f->options->fleet.rounds, *ids = calloc((size_t)f->n + 1, sizeof *ids);
    int *partners = calloc((size_t)f->n + 1, sizeof *partners);
    enum el_status status = ids && partners ? EL_OK : el_fail_errno("%d hosts", f->n);
    if (wanted == 0 || wanted > all) wanted = all;
    if (wanted > fit) wanted = fit;
    f->options->fleet.rounds = wanted;
    if (!f->options->quiet)
        fprintf(stderr, "%d simulated hosts: %d of %d rounds of pairs; of real ones at most %.0f s\n", f->n, wanted,
                all, wanted * EL_FLEET_ROUND_S);
    for (int k = 0; k < wanted && status == EL_OK; k++)
        status = run_round(f, el_fleet_round_of(f->n, wanted, k), ids, partners);
    free(ids);
    free(partners);
    return status;
}

/* ---- all of it ---- */

static enum el_status open_hosts(struct fleet *f)
{
    EL_TRY(el_machine_read(f->options->machine, &f->machine));
    if (!(f->machine.network_bytes_per_s > 0)) { /* no network is known: hosts are as far apart as devices */
        f->machine.network_bytes_per_s = f->machine.link_bytes_per_s;
        f->machine.network_latency_ns = f->machine.link_latency_ns;
    }
    f->machine.devices_per_host = 1;
    for (int i = 0; i < f->n; i++) {
        struct el_device_spec spec = {.backend = "sim", .index = i, .position = i, .machine = &f->machine};
        for (int k = 0; k < f->n_stragglers; k++)
            if (f->stragglers[k].at == i || f->stragglers[k].at == ANY) spec.inject.stretch = f->stragglers[k].ratio;
        EL_TRY(el_device_open(&spec, &f->devices[i]));
        f->links[i] = json_array();
    }
    return EL_OK;
}

static enum el_status measure_devices(struct fleet *f, json_t *agents, json_t *devices)
{
    for (int i = 0; i < f->n; i++) {
        char name[32];
        json_t *document = NULL;
        struct el_fleet_rank rank = {.options = f->options, .device = f->devices[i], .n = 1};
        EL_TRY(el_fleet_measure_device(&rank, &document));
        EL_EACH_KEY(key, rates, document) {
            (void)key;
            for (size_t k = 0; k < json_array_size(rates); k++)
                json_array_set_new(rates, k, json_real(json_number_value(json_array_get(rates, k)) * drawn(f)));
        }
        json_object_del(document, "granted_pct");
        snprintf(name, sizeof name, "host%d", i);
        json_array_append_new(agents, el_json_of(EL_KEY("name", (const char *)name), EL_KEY("boot", ""),
                                                 EL_KEY("group", json_null()), EL_KEY("state", "measured"),
                                                 EL_KEY("reason", json_null())));
        json_t *parts = el_json_of(EL_KEY("devices", document),
                                   EL_KEY("links", el_json_of(EL_KEY("links", json_incref(f->links[i])))));
        json_array_append_new(devices, el_json_of(EL_KEY("rank", i), EL_KEY("agent", i),
                                                  EL_KEY("name", el_device_name(f->devices[i])),
                                                  EL_KEY("reason", json_null()), EL_KEY("parts", parts)));
    }
    return EL_OK;
}

enum el_status el_fleet_simulate(struct el_options *options, json_t **gathered_p)
{
    struct fleet f = {.options = options, .n = options->n_devices};
    json_t *agents = json_array(), *devices = json_array(), *phases = json_array();
    f.devices = calloc((size_t)f.n + 1, sizeof(struct el_device *));
    f.links = calloc((size_t)f.n + 1, sizeof(json_t *));
    enum el_status status = f.devices && f.links ? read_inject(&f) : el_fail_errno("%d hosts", f.n);
    if (status == EL_OK) status = open_hosts(&f);
    if (status == EL_OK && f.n > 1) status = run_rounds(&f);
    if (status == EL_OK) status = measure_devices(&f, agents, devices);
    json_array_append_new(phases, el_json_of(EL_KEY("name", "links"), EL_KEY("virtual_s", f.virtual_s)));
    for (int i = 0; i < f.n && f.devices && f.links; i++) {
        el_device_close(f.devices[i]);
        json_decref(f.links[i]);
    }
    free(f.devices);
    free(f.links);
    json_t *gathered = el_json_of(EL_KEY("agents", agents), EL_KEY("devices", devices), EL_KEY("phases", phases),
                                  EL_KEY("simulated", json_true()), EL_KEY("rounds", options->fleet.rounds));
    if (status == EL_OK)
        *gathered_p = gathered;
    else
        json_decref(gathered);
    return status;
}
