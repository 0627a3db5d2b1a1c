/* A row per number of workers, and the smallest that hides loading. */
#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/data/data.h"
#include "bench/options/options.h"
#include "bench/report/report.h"
#include "bench/stats/stats.h"

static json_t *read_launch(const json_t *repeat)
{
    const json_t *most = NULL;
    double most_pct = -1;
    EL_EACH(member, json_object_get(repeat, "members")) {
        double pct = 100 * el_json_number(member, "loading.exposed_ms") / el_json_number(member, "step_ms");
        if (!json_is_object(json_object_get(member, "loading")) || !(pct > most_pct)) continue;
        most = member;
        most_pct = pct;
    }
    json_t *launch = most ? json_copy((json_t *)(uintptr_t)most) : json_null();
    if (most) el_json_put_real(launch, "exposed_pct", most_pct);
    return launch;
}

static double median_of(const json_t *launches, const char *path)
{
    double *values;
    size_t n = el_json_numbers_at(launches, path, &values);
    double median = el_stats_median(values, n);
    free(values);
    return median;
}

static void put_batch(json_t *row, const json_t *launches)
{
    static const char *const names[] = {"samples",    "reads",   "read_bytes", "read_ms",    "decode_ms",
                                        "collate_ms", "wait_ms", "take_ms",    "queue_bytes"};
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "loading.%s", names[i]);
        el_json_put_real(row, names[i], median_of(launches, path));
    }
    el_json_put_real(row, "h2d_ms", median_of(launches, "busy_ms.h2d"));
    el_json_put_real(row, "load_ms",
                     el_json_number(row, "read_ms") + el_json_number(row, "decode_ms") +
                         el_json_number(row, "collate_ms"));
}

/* The launches' median share of the trial's step is exposed, so that all four figures agree. */
static void put_step(json_t *row, const json_t *trial, const json_t *launches)
{
    double step_ms = el_json_number(trial, "step_ms.mean"), pct = median_of(launches, "exposed_pct");
    json_t *each = json_array();
    EL_EACH(launch, launches) json_array_append_new(each, el_json_real(el_json_number(launch, "exposed_pct")));
    el_json_put_all(row, EL_KEY("step_ms", step_ms),
                    EL_KEY("samples_per_s", el_json_number(trial, "throughput.samples_per_s")),
                    EL_KEY("exposed_ms", pct / 100 * step_ms), EL_KEY("exposed_pct", pct), EL_KEY("launches_pct", each),
                    EL_KEY("compute_ms", step_ms - pct / 100 * step_ms));
}

/* Late workers make training wait; otherwise they wait for room in the queue. Without workers training stops while it
 * loads. */
static const char *who_waits(const json_t *row)
{
    double waited =
        el_json_number(row, "workers") > 0 ? el_json_number(row, "wait_ms") : el_json_number(row, "exposed_ms");
    double pct = 100 * waited / el_json_number(row, "step_ms");
    if (isnan(pct)) return NULL;
    if (pct >= EL_LOADING_HIDDEN_PCT) return "compute";
    return el_json_number(row, "workers") > 0 ? "loader" : "none";
}

static bool on_gpus(const struct el_trial *trial)
{
    return el_trial_backend(trial).gpu;
}

/* Taking a batch from the workers' queue copies it to pinned memory; without workers it is made there. */
static void put_pinned(json_t *row, const struct el_trial *trial)
{
    const struct el_loading *loading = &trial->train.loading;
    bool copied = on_gpus(trial) && !loading->pageable && loading->workers;
    el_json_put_text(row, "pinned", !on_gpus(trial) ? NULL : loading->pageable ? "off" : "on");
    el_json_put_real(row, "pin_ms", copied ? el_json_number(row, "take_ms") : NAN);
}

static json_t *row_of(const struct el_campaign *c, int t)
{
    const struct el_loading *loading = &c->set.trials[t].train.loading;
    const json_t *trial = json_array_get(c->trials, (size_t)t);
    static const char *const copied[] = {"status", "reason", "verdict", NULL};
    json_t *launches = json_array();
    for (int r = 0; r < c->options->repeats; r++)
        json_array_append_new(launches, read_launch(*el_campaign_repeat(c, t, r)));
    json_t *row = el_json_of(EL_KEY("workers", loading->workers),
                             EL_KEY("prefetch", loading->workers ? json_integer(loading->prefetch) : json_null()),
                             EL_KEY("page_cache", loading->cold ? "cold" : "warm"));
    el_json_copy(row, trial, copied);
    el_json_put_all(row, EL_KEY("warning", el_report_doubt(trial)),
                    EL_KEY("command", el_json_text(trial, "command", NULL)),
                    EL_KEY("process_bytes", el_json_number(trial, "processes.0.process_bytes")));
    put_step(row, trial, launches);
    put_batch(row, launches);
    put_pinned(row, &c->set.trials[t]);
    el_json_put_text(row, "waits", who_waits(row));
    json_t *spans = el_json_at(launches, "0.loading.spans");
    if (json_is_object(json_array_get(launches, 0))) el_json_put(row, "spans", json_deep_copy(spans));
    json_decref(launches);
    return row;
}

/* The first launch chooses, the others confirm, so that a lucky launch does not confirm itself. If both are below a
 * limit, so is the median over all. */
static double confirmed_pct(const json_t *row)
{
    json_t *pct = json_copy(json_object_get(row, "launches_pct"));
    double *values;
    if (json_array_size(pct) > 1) json_array_remove(pct, 0);
    size_t n = el_json_numbers(pct, &values);
    double median = el_stats_median(values, n);
    json_decref(pct);
    free(values);
    return median;
}

static json_t *row_without(const json_t *rows, const char *page_cache)
{
    EL_EACH(row, rows)
        if (el_json_is(row, "page_cache", page_cache) && el_json_whole(row, "workers") == 0) return row;
    return NULL;
}

static const char *slowest_stage(const json_t *row)
{
    double read = el_json_number(row, "read_ms"), decode = el_json_number(row, "decode_ms"),
           collate = el_json_number(row, "collate_ms");
    if (isnan(read + decode + collate)) return NULL;
    if (read >= decode && read >= collate) return "read";
    return decode >= collate ? "decode" : "batch";
}

static json_t *recommend(const json_t *rows, const char *page_cache)
{
    const json_t *none = row_without(rows, page_cache), *found = NULL;
    if (!none) return NULL;
    EL_EACH(row, rows) {
        if (found || !el_json_is(row, "page_cache", page_cache) || !el_json_is(row, "status", "ok")) continue;
        if (!json_equal(json_object_get(row, "pinned"), json_object_get(none, "pinned"))) continue;
        if (!(el_json_number(row, "launches_pct.0") < EL_LOADING_HIDDEN_PCT)) continue;
        if (confirmed_pct(row) < EL_LOADING_HIDDEN_PCT) found = row;
    }
    static const char *const copied[] = {"workers", "prefetch", "exposed_pct", NULL};
    const char *doubt = el_json_text(found, "warning", el_json_text(none, "warning", NULL));
    double estimate = ceil(el_json_number(none, "load_ms") / el_json_number(none, "compute_ms"));
    if (el_json_number(none, "exposed_pct") < EL_LOADING_HIDDEN_PCT) estimate = 0;
    json_t *answer = el_json_of(EL_KEY("page_cache", page_cache));
    el_json_copy(answer, found, copied);
    el_json_put_all(answer, EL_KEY("without_pct", el_json_number(none, "exposed_pct")),
                    EL_KEY("step_ms", el_json_number(found, "step_ms")),
                    EL_KEY("without_step_ms", el_json_number(none, "step_ms")), EL_KEY("estimate", estimate),
                    EL_KEY("warning", doubt), EL_KEY("slowest_stage", slowest_stage(none)),
                    EL_KEY("ms_per_read", el_json_number(none, "read_ms") / el_json_number(none, "reads")));
    return answer;
}

static void put_about(json_t *document, const struct el_campaign *c)
{
    const struct el_trial *trial = &c->set.trials[0];
    const struct el_loading *loading = &trial->train.loading;
    el_json_put_all(document, EL_KEY("dir", c->store.dir), EL_KEY("mode", trial->train.mode),
                    EL_KEY("model", trial->train.model.name),
                    EL_KEY("data", el_dataset_info(c->set.dataset)->description),
                    EL_KEY("data_in", trial->in_files ? "disk" : "memory"),
                    EL_KEY("decodes", el_dataset_info(c->set.dataset)->image ? "pixels" : "words"),
                    EL_KEY("devices", trial->n_devices), EL_KEY("global_batch", trial->train.global_batch),
                    EL_KEY("launches", c->options->repeats), EL_KEY("injected", el_json_filled(trial->inject)));
    const char *pinned = el_option_list(c->options, "pin-memory") ? "both" : loading->pageable ? "off" : "on";
    static const char *const transfers[] = {"on", "off", "ahead"};
    el_json_put_text(document, "pinned", on_gpus(trial) ? pinned : NULL);
    el_json_put_text(document, "non_blocking", on_gpus(trial) ? transfers[loading->transfer] : NULL);
    el_json_put_text(document, "pinned_reason", on_gpus(trial) ? NULL : "CPU devices copy from any host memory");
}

enum el_status el_loading_document(const struct el_campaign *campaign, json_t **document_p)
{
    static const char *const caches[] = {"warm", "cold"};
    json_t *document = json_object(), *rows = json_array(), *recommended = json_array();
    put_about(document, campaign);
    for (int t = 0; t < campaign->set.n; t++) json_array_append_new(rows, row_of(campaign, t));
    for (int i = 0; i < 2; i++) {
        json_t *answer = recommend(rows, caches[i]);
        if (answer) json_array_append_new(recommended, answer);
    }
    el_json_put_all(document, EL_KEY("rows", rows), EL_KEY("recommended", recommended));
    if (!json_object_get(document, "recommended"))
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for what was measured");
    *document_p = document;
    return EL_OK;
}
