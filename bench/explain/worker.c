/* All variants and ddp train in short blocks on the same devices in random order, so that neither drift nor a process's
 * luck with memory and cores becomes a difference. Each block has the same weights and fresh memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/campaign/gate.h"
#include "bench/campaign/runner.h"
#include "bench/explain/explain.h"
#include "bench/job/worker.h"
#include "bench/machine/host.h"
#include "bench/stats/stats.h"
#include "profiles/system.h"
#include "runtime/base/rng.h"
#include "runtime/gate/gate.h"
#include "runtime/launch/launch.h"

/* The first step has its own buckets, the second may find cold caches. Five steps suffice if nothing is computed. */
enum { WARMUP = 2, STEPS_MIN = 3, STEPS_MAX = 100, STEPS_UNCOMPUTED = 5 };

struct launch {
    struct el_job job;
    struct el_job_devices open;
    int number;
    struct el_explain_way way;
    double step_ms[EL_EXPLAIN_VARIANTS_MAX]; /* of its last block; 0: none */
    json_t *parts;                           /* [variant] */
    json_t *prediction;                      /* of simulated devices; else NULL */
    double waited_pct;
};

static json_t *memory_of(const struct el_ledger *ledger)
{
    json_t *tags = json_object();
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (ledger->at_peak_by_tag[t] > 0)
            json_object_set_new(tags, el_tag_name((enum el_tag)t), json_integer((json_int_t)ledger->at_peak_by_tag[t]));
    return json_pack("{s:I, s:o}", "peak_bytes", (json_int_t)ledger->peak_bytes, "at_peak_by_tag", tags);
}

static double median_ms(const struct el_train_result *result)
{
    double *ms = calloc((size_t)result->n_steps, sizeof *ms);
    for (int64_t i = 0; ms && i < result->n_steps; i++) ms[i] = (double)result->step_ns[i] * 1e-6;
    double median = ms ? el_stats_median(ms, (size_t)result->n_steps) : NAN;
    free(ms);
    return median;
}

static bool computes(const struct el_trial *trial)
{
    return el_trial_backend(trial).computes;
}

/* By the previous block. */
static int64_t steps_of(const struct launch *launch, int variant)
{
    double wanted = launch->job.trial->train.min_time_s * 1e3 / EL_EXPLAIN_BLOCKS / launch->step_ms[variant];
    if (!(launch->step_ms[variant] > 0) || !(wanted > STEPS_MIN)) return STEPS_MIN;
    int most = computes(launch->job.trial) ? STEPS_MAX : STEPS_UNCOMPUTED;
    return wanted > most ? most : (int64_t)ceil(wanted);
}

static enum el_status configure(const struct el_trial *trial, const struct el_explain_variant *of,
                                struct el_train_config *config)
{
    EL_TRY(el_trial_use_mode(trial, of->mode, config));
    config->dp_fix = of->fixes;
    if (of->option) EL_TRY(el_mode_option_set(config, of->option, of->value));
    return el_train_check(config);
}

static enum el_status run_block(struct launch *launch, int variant, bool keep)
{
    struct el_train_config config = launch->job.trial->train;
    const struct el_train_place place = el_job_place(&launch->job, &launch->open);
    struct el_train_result result;
    config.warmup = WARMUP;
    config.steps = steps_of(launch, variant);
    config.min_time_s = 0;
    config.control = EL_CONTROL_NONE;
    EL_TRY(configure(launch->job.trial, &launch->way.variants[variant], &config));
    EL_TRY(el_train(&config, &place, NULL, &result));
    launch->step_ms[variant] = median_ms(&result);
    json_t *part = json_array_get(launch->parts, (size_t)variant), *memory = json_object_get(part, "memory");
    if (keep) json_array_append_new(json_object_get(part, "block_ms"), el_json_real(launch->step_ms[variant]));
    for (int d = 0; d < launch->open.n && json_array_size(memory) < (size_t)launch->open.n; d++)
        json_array_append_new(memory, memory_of(&result.ledgers[d]));
    el_train_result_free(&result);
    return EL_OK;
}

static void shuffle(const struct launch *launch, int round, int *order)
{
    const struct el_rng_key key = {
        .seed = launch->job.trial->train.seed, .use = EL_RNG_ORDER, .id = (uint32_t)launch->number};
    for (int i = 0; i < launch->way.n; i++) {
        int k = (int)(el_rng_u64(&key, (uint64_t)round, (uint64_t)i) % (uint64_t)(i + 1));
        order[i] = order[k];
        order[k] = i;
    }
}

/* The first round is discarded: it shows how long steps are, and touches all memory. */
static enum el_status run_rounds(struct launch *launch)
{
    int order[EL_EXPLAIN_VARIANTS_MAX];
    for (int round = 0; round <= EL_EXPLAIN_BLOCKS; round++) {
        shuffle(launch, round, order);
        for (int i = 0; i < launch->way.n; i++) EL_TRY(run_block(launch, order[i], round > 0));
        printf("[launch %d, turn %d of %d]\n", launch->number + 1, round, EL_EXPLAIN_BLOCKS);
        fflush(stdout);
    }
    return EL_OK;
}

/* The gate for each schedule, once: all launches are alike. */
static enum el_status check(const struct launch *launch, int variant)
{
    struct el_trial trial = *launch->job.trial;
    const struct el_explain_variant *of = &launch->way.variants[variant];
    const struct el_job job = {.trial = &trial, .dataset = launch->job.dataset, .bootstrap = launch->job.bootstrap};
    json_t *verdict = NULL;
    char left_out[EL_DP_FIX_TEXT_BYTES];
    EL_TRY(configure(launch->job.trial, of, &trial.train));
    EL_TRY(el_job_gate(&job, &verdict));
    json_t *row = el_gate_judge(trial.train.mode, false, verdict);
    el_dp_fix_text(of->fixes, left_out, sizeof left_out);
    enum el_status status = EL_OK;
    if (!json_is_true(json_object_get(row, "agrees")))
        status = el_fail(EL_ERR_INVALID, "%s%s%s is not timed: %s", of->mode, of->fixes ? " --dp-fix " : "",
                         of->fixes ? left_out : "", el_json_text(row, "reason", "it disagrees with the reference"));
    json_decref(verdict);
    json_decref(row);
    return status;
}

static enum el_status run_launch(struct launch *launch)
{
    struct el_system_reading begin;
    EL_TRY(el_explain_way(launch->job.trial->train.mode, &launch->way));
    launch->parts = json_array();
    for (int v = 0; v < launch->way.n; v++)
        json_array_append_new(launch->parts, json_pack("{s:[], s:[]}", "block_ms", "memory"));
    for (int v = 0; v < launch->way.n && launch->number == 0 && computes(launch->job.trial); v++)
        EL_TRY(check(launch, v));
    EL_TRY(el_job_open_devices(&launch->job, &launch->open));
    el_system_read("", NULL, 0, &begin);
    enum el_status status = run_rounds(launch);
    launch->waited_pct = el_system_waited_pct(&begin);
    if (status == EL_OK && launch->open.sources)
        status = el_job_predict(&launch->job, &launch->open, false, &launch->prediction);
    el_job_close_devices(&launch->open);
    return status;
}

enum el_status el_explain_worker(struct el_worker *worker)
{
    struct el_trial_set set;
    EL_TRY(el_worker_join(worker, false));
    EL_TRY(el_explain_resolve(&worker->options, &set));
    struct launch launch = {.job = {.trial = set.trials, .dataset = set.dataset, .bootstrap = worker->bootstrap},
                            .number = atoi(worker->arguments[1])};
    enum el_status status = run_launch(&launch);
    if (status == EL_OK) {
        worker->document =
            el_json_of(EL_KEY("variants", json_incref(launch.parts)), EL_KEY("others_waited_pct", launch.waited_pct),
                       EL_KEY("environment", el_environment()));
        if (launch.prediction) el_json_put(worker->document, "prediction", json_incref(launch.prediction));
    }
    json_decref(launch.parts);
    json_decref(launch.prediction);
    el_trials_free(&set);
    return status;
}

enum el_status el_explain_resolve(const struct el_options *options, struct el_trial_set *set_p)
{
    struct el_explain_way way;
    if (options->n_modes == 1) EL_TRY(el_explain_way(options->modes[0], &way));
    EL_TRY(el_trials_resolve(EL_CMD_EXPLAIN, options, set_p));
    const struct el_trial *trial = &set_p->trials[0];
    enum el_status status = EL_OK;
    if (set_p->n != 1) status = el_fail(EL_ERR_INVALID, "--batch: explain takes one trial apart: give one batch");
    if (trial->n_devices < 2 || trial->train.global_batch < trial->n_devices)
        status = el_fail(EL_ERR_INVALID, "explain: on one device %s and ddp are the same: give --devices 2 or more",
                         trial->train.mode);
    if (status != EL_OK) el_trials_free(set_p);
    return status;
}

static enum el_status launch(const struct el_store *store, const struct el_options *options, const struct el_trial *of,
                             int number, json_t *samples)
{
    struct el_trial trial = *of;
    struct el_options resolved = *options;
    char path[EL_PATH_BYTES], text[16];
    struct el_follow follow = {.gap_s = 5};
    json_t *part;
    EL_TRY(el_trial_use_mode(of, "ddp", &trial.train));
    resolved.train.products = of->train.products; /* ranks do not try for themselves */
    snprintf(text, sizeof text, "%d", number);
    el_store_path(store, path, "launch-%d.json", number);
    el_store_path(store, follow.logs, "logs/explain-%d", number);
    EL_TRY(el_follow_launch(&follow, store, &trial, (const char *const[]){"worker", "explain", path, text, NULL},
                            EL_CMD_EXPLAIN, &resolved));
    if (el_runner_interrupted()) return EL_OK;
    EL_TRY(el_read_json(path, &part));
    unlink(path);
    json_array_append_new(samples, part);
    return EL_OK;
}

enum el_status el_explain_measure(const struct el_options *options, const struct el_trial_set *set,
                                  const struct el_store *store, json_t **samples_p)
{
    json_t *samples = json_array();
    enum el_status status = EL_OK;
    el_cores_say_busy(options->repeats * options->train.min_time_s, options->quiet);
    for (int i = 0; i < options->repeats && status == EL_OK && !el_runner_interrupted(); i++)
        status = launch(store, options, &set->trials[0], i, samples);
    *samples_p = NULL;
    if (status == EL_OK && !el_runner_interrupted())
        *samples_p = samples;
    else
        json_decref(samples);
    return status;
}
