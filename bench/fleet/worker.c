/* A phase's process: one device, one document. */
#include "bench/fleet/fleet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/options/options.h"
#include "bench/stats/stats.h"

const struct el_fleet_figure el_fleet_figures[EL_FLEET_DEVICE_FIGURES] = {{"products", "products", "GFLOP/s", 1e-9},
                                                                          {"memory", "memory", "GB/s", 1e-9},
                                                                          {"copies", "copies", "GB/s", 1e-9},
                                                                          {"step", "step", "steps/s", 1}};

enum { RESULT, PHASE, HOSTS, WRONG, ARGUMENTS_MAX = 48 };

/* "0,0,1,1": returns how many. */
static int read_hosts(const char *text, int *hosts, int most)
{
    int n = 0;
    for (char *end; *text && n < most; text = *end ? end + 1 : end) {
        hosts[n++] = (int)strtol(text, &end, 10);
        if (end == text) return -1;
    }
    return n;
}

/* ---- the step of ddp ---- */

static enum el_status open_device(struct el_fleet_rank *rank, struct el_device **device_p);

/* As rank 0's device is. */
static enum el_status is_large(struct el_fleet_rank *rank, bool *large_p)
{
    struct el_device *device = NULL;
    enum el_status status = open_device(rank, &device);
    if (status == EL_OK) status = el_fleet_is_large(device, large_p);
    el_device_close(device);
    EL_TRY(el_bootstrap_agree(rank->bootstrap, status));
    return el_bootstrap_broadcast(rank->bootstrap, large_p, sizeof *large_p);
}

static enum el_status resolve_step(const struct el_fleet_rank *rank, bool gpu, struct el_trial_set *set_p)
{
    char text[320], *words[ARGUMENTS_MAX] = {text}, *rest = text;
    struct el_options options;
    int n = 0, width = gpu ? 4096 : 512;
    snprintf(text, sizeof text,
             "run --mode ddp --model mlp --features %d --hidden %d,%d --classes 10 --data dummy --batch %d --comm %s "
             "--steps 4 --warmup 1 --min-time 0.1 --control none --devices %d",
             width, width, width, rank->n * (gpu ? 1024 : 32), rank->options->comm, rank->n);
    while ((words[n] = strsep(&rest, " "))) n++;
    el_options_defaults(EL_CMD_RUN, &options);
    EL_TRY(el_options_parse(EL_CMD_RUN, n, words, &options));
    options.n_devices = rank->n;
    for (int i = 0; i < rank->n; i++) options.devices[i] = rank->options->devices[0];
    return el_trials_resolve(EL_CMD_RUN, &options, set_p);
}

/* Rank 0's: {"step_ms": [a repeat], "compute_ms": [a rank: [a repeat]]}. */
static void put_repeat(json_t *document, const json_t *repeat, int n)
{
    double *steps = NULL;
    size_t n_steps = el_json_numbers(json_object_get(repeat, "step_ms"), &steps);
    if (json_object_size(document) == 0) {
        json_t *ranks = json_array();
        for (int r = 0; r < n; r++) json_array_append_new(ranks, json_array());
        el_json_put_all(document, EL_KEY("step_ms", json_array()), EL_KEY("compute_ms", ranks));
    }
    json_array_append_new(json_object_get(document, "step_ms"),
                          el_json_real(n_steps ? el_stats_median(steps, n_steps) : NAN));
    EL_EACH(member, json_object_get(repeat, "members"))
        json_array_append_new(json_array_get(json_object_get(document, "compute_ms"), member_at.i),
                              el_json_real(el_json_number(member, "compute_ms")));
    free(steps);
}

static enum el_status measure_step(struct el_fleet_rank *rank, json_t **document_p)
{
    struct el_trial_set set;
    json_t *document = json_object();
    bool large = false;
    *document_p = document;
    EL_TRY(is_large(rank, &large));
    enum el_status mine = resolve_step(rank, large, &set), status = el_bootstrap_agree(rank->bootstrap, mine);
    for (int i = 0; i < rank->options->repeats && status == EL_OK; i++) {
        json_t *repeat = NULL;
        const struct el_job job = {
            .trial = set.trials, .dataset = set.dataset, .bootstrap = rank->bootstrap, .repeat = i};
        status = el_job_measure(&job, &repeat);
        if (repeat && !el_json_is(repeat, "status", "ok") && status == EL_OK)
            status = el_fail(EL_ERR_PEER, "%s", el_json_text(repeat, "reason", "the step failed"));
        if (repeat && status == EL_OK) put_repeat(document, repeat, rank->n);
        json_decref(repeat);
    }
    if (mine == EL_OK) el_trials_free(&set);
    return status;
}

/* ---- one phase ---- */

static enum el_status open_device(struct el_fleet_rank *rank, struct el_device **device_p)
{
    const struct el_device_name *name = &rank->options->devices[0];
    struct el_cores cores;
    struct el_device_spec spec = {.backend = name->backend, .index = name->index};
    el_cores_find("", &cores);
    if (el_backend_facts(name->backend).on_host) {
        spec.n_cores = 1;
        spec.cores[0] = cores.cpus[name->index % cores.n];
    }
    return el_device_open(&spec, device_p);
}

static void identify(const struct el_device *device, json_t *document)
{
    struct el_device_identity identity;
    const int *cores;
    if (el_device_cores(device, &cores) > 0) el_json_put(document, "core", json_integer(cores[0]));
    el_device_identify(device, &identity);
    el_json_put_all(document, EL_KEY("device", el_device_name(device)), EL_KEY("uuid", el_json_filled(identity.uuid)),
                    EL_KEY("model", el_json_filled(identity.model)));
}

static enum el_status run_phase(struct el_fleet_rank *rank, const char *phase, json_t **document_p)
{
    if (!strcmp(phase, "step")) return measure_step(rank, document_p);
    EL_TRY(open_device(rank, &rank->device));
    enum el_status status = !strcmp(phase, "devices") ? el_fleet_measure_device(rank, document_p)
                            : !strcmp(phase, "links") ? el_fleet_measure_pairs(rank, document_p)
                                                      : el_fleet_soak(rank, phase, document_p);
    if (status == EL_OK) identify(rank->device, *document_p);
    el_device_close(rank->device);
    return status;
}

enum el_status el_fleet_worker(struct el_worker *worker)
{
    const char *phase = worker->arguments[PHASE];
    int hosts[EL_FLEET_RANKS_MAX];
    struct el_fleet_rank rank = {.options = &worker->options, .hosts = hosts};
    bool together = !strcmp(phase, "links") || !strcmp(phase, "step");
    int n = read_hosts(worker->arguments[HOSTS], hosts, EL_FLEET_RANKS_MAX);
    EL_TRY(el_worker_join(worker, together && n > 1));
    rank.bootstrap = worker->bootstrap;
    rank.rank = el_bootstrap_rank(rank.bootstrap);
    rank.n = el_bootstrap_size(rank.bootstrap);
    if (together && n != rank.n) return el_fail(EL_ERR_INTERNAL, "fleet: %d hosts of %d ranks", n, rank.n);
    el_bootstrap_set_timeout(rank.bootstrap, EL_FLEET_STUCK_S);
    rank.wrong = strtod(worker->arguments[WRONG], NULL);
    return run_phase(&rank, phase, &worker->document);
}
