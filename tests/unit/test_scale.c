/* Scaling: what is asked for, ratios and losses from hand-made records, the sweep's recommendation, and whether the
 * interval for a repeat of the whole study holds one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/campaign/trial.h"
#include "bench/options/options.h"
#include "bench/record/jvalue.h"
#include "bench/scale/scale.h"
#include "runtime/base/rng.h"

enum { REPEATS = 5, MIB = 1 << 20 };

static struct el_options asked, options;

/* What `scale` makes of these words on two cores and so many GPUs. */
static enum el_status choose(const char *words, int gpus)
{
    static char text[512];
    static char *argv[32];
    int argc = 0;
    snprintf(text, sizeof text, "scale %s", words);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
    argv[argc] = NULL;
    el_options_defaults(EL_CMD_SCALE, &asked);
    enum el_status status = el_options_parse(EL_CMD_SCALE, argc, argv, &asked);
    return status == EL_OK ? el_scale_options(&asked, 6, gpus, &options) : status;
}

static void counts_are_chosen_and_one_is_among_them(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int gpus;
        const char *backend;
        int n, counts[4];
    } cases[] = {{"", 0, "cpu", 4, {1, 2, 4, 6}},
                 {"", 2, "cuda", 2, {1, 2}},
                 {"--devices 4,2", 0, "cpu", 3, {1, 2, 4}},
                 {"--devices null:3,1", 2, "null", 2, {1, 3}},
                 {"--devices cuda:1,2", 0, "cuda", 2, {1, 2}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(choose(cases[i].words, cases[i].gpus), EL_OK);
        assert_string_equal(options.counts_backend, cases[i].backend);
        assert_int_equal(options.n_counts, cases[i].n);
        assert_memory_equal(options.counts, cases[i].counts, sizeof(int) * (size_t)cases[i].n);
    }
}

static void a_batch_belongs_to_weak_or_strong(void **state)
{
    (void)state;
    assert_int_equal(choose("", 0), EL_OK);
    assert_true(options.weak && !options.strong && options.batch_is_per_device && options.batches[0] == 64);
    assert_int_equal(choose("--batch-per-device 7", 0), EL_OK);
    assert_true(options.batch_is_per_device && options.batches[0] == 7);
    assert_int_equal(choose("--strong --batch 96", 0), EL_OK);
    assert_true(options.strong && !options.batch_is_per_device && options.batches[0] == 96);
    assert_int_equal(choose("--strong", 0), EL_OK);
    assert_true(!options.batch_is_per_device && options.batches[0] == 64);
    static const char *const bad[] = {"--weak --strong",
                                      "--batch 64",
                                      "--weak --batch 64",
                                      "--strong --batch-per-device 8",
                                      "--strong --batch 8,9",
                                      "--modes single",
                                      "--bucket-mb 1 --modes dp",
                                      "--bucket-mb 1 --devices 1",
                                      "--bucket-mb 1,1",
                                      "--devices 2,2",
                                      "--devices 0",
                                      "--devices cpu:0,cpu:1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_int_equal(choose(bad[i], 0), EL_ERR_INVALID);
}

/* single once, every mode at every count, and other buckets on the most devices only. */
static void trials_are_counts_times_modes(void **state)
{
    (void)state;
    struct el_trial_set set = {0};
    assert_int_equal(choose("--data dummy --devices null:1,2,4 --procs 1 --bucket-mb 1,25,3", 0), EL_OK);
    assert_int_equal(el_trials_resolve(EL_CMD_SCALE, &options, "/nonexistent", &set), EL_OK);
    static const struct {
        const char *mode;
        int devices, bucket_mib;
    } wanted[] = {{"single", 1, 25}, {"dp", 1, 25},  {"dp", 2, 25}, {"dp", 4, 25}, {"ddp", 1, 25},
                  {"ddp", 2, 25},    {"ddp", 4, 25}, {"ddp", 4, 1}, {"ddp", 4, 3}};
    assert_int_equal(set.n, sizeof wanted / sizeof wanted[0]);
    for (int i = 0; i < set.n; i++) {
        const struct el_trial *trial = &set.trials[i];
        assert_string_equal(trial->train.mode, wanted[i].mode);
        assert_int_equal(trial->n_devices, wanted[i].devices);
        assert_int_equal(trial->train.bucket_cap_bytes, (size_t)wanted[i].bucket_mib << 20);
        assert_int_equal(trial->train.global_batch, 64 * wanted[i].devices);
        for (int j = 0; j < i; j++) assert_string_not_equal(trial->id, set.trials[j].id);
    }
    el_trials_free(&set);
}

/* A trial as a record has it: repeat r ran at rate[r]; NAN: it failed. */
static json_t *make_trial(const char *mode, int devices, bool weak, const double *rates, double cap_mib)
{
    json_t *repeats = json_array();
    double logs = 0;
    int n = 0;
    for (int r = 0; r < REPEATS; r++) {
        bool ok = !isnan(rates[r]);
        json_array_append_new(repeats, json_pack("{s:i, s:s, s:o}", "repeat", r, "status", ok ? "ok" : "failed",
                                                 "samples_per_s", el_json_real(rates[r])));
        if (ok) logs += log(rates[r]), n++;
    }
    int batch = weak ? 8 * devices : 8;
    return json_pack("{s:s, s:i, s:i, s:s, s:s, s:[], s:[], s:{s:s, s:f}, s:{s:f}, s:o, s:[{s:{s:i}}, {s:{s:i}}]}",
                     "mode", mode, "devices", devices, "global_batch", batch, "status", "ok", "verdict", "valid",
                     "warnings", "warning_rules", "config", "batch_given", weak ? "per_device" : "global",
                     "bucket_cap_bytes", cap_mib * MIB, "throughput", "samples_per_s", exp(logs / n), "repeats",
                     repeats, "per_device", "memory", "peak_bytes", 100, "memory", "peak_bytes", 300);
}

static json_t *make_run(json_t *trials)
{
    return json_pack("{s:i, s:o}", "schema", 1, "trials", trials);
}

static json_t *document_of(json_t *trials)
{
    json_t *run = make_run(trials), *document = NULL;
    assert_int_equal(el_scale_document(run, "dir", &document), EL_OK);
    json_decref(run);
    return document;
}

static const double PLAIN[REPEATS] = {100, 104, 97, 101, 99};

static void times(double factor, const double *noise, double rates[REPEATS])
{
    for (int r = 0; r < REPEATS; r++) rates[r] = PLAIN[r] * factor * (noise ? noise[r] : 1);
}

#define assert_near(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * fmax(1, fabs((double)(b))))

/* The machine's ups and downs are in both: a paired ratio has none of them. */
static void ratios_are_of_repeats_side_by_side(void **state)
{
    (void)state;
    double wrapped[REPEATS], two[REPEATS];
    times(0.8, NULL, wrapped);
    times(1.2, NULL, two);
    json_t *trials = json_pack("[o, o, o]", make_trial("single", 1, true, PLAIN, 25),
                               make_trial("ddp", 1, true, wrapped, 25), make_trial("ddp", 2, true, two, 25));
    json_t *document = document_of(trials);
    assert_string_equal(el_json_text(document, "scaling", ""), "weak");
    assert_near(el_json_number(document, "batch"), 8);
    assert_near(el_json_number(document, "rows.2.plain.speedup"), 1.2);
    assert_near(el_json_number(document, "rows.2.plain.speedup_ci95.0"), 1.2);
    assert_near(el_json_number(document, "rows.2.plain.speedup_ci95.1"), 1.2);
    assert_near(el_json_number(document, "rows.2.plain.efficiency"), 0.6);
    assert_near(el_json_number(document, "rows.2.wrapped.speedup"), 1.5);
    assert_near(el_json_number(document, "rows.2.wrapped.efficiency_ci95.1"), 0.75);
    assert_true(json_is_null(el_json_at(document, "rows.0.plain")));
    assert_true(json_is_null(el_json_at(document, "rows.1.wrapped")));
    assert_near(el_json_number(document, "rows.2.peak_bytes"), 300);
    double one_ms = 8 / exp((log(100) + log(104) + log(97) + log(101) + log(99)) / 5) * 1e3;
    assert_near(el_json_number(document, "rows.2.step.ideal_ms"), one_ms);
    assert_near(el_json_number(document, "rows.2.step.step_ms"), one_ms * 2 / 1.2);
    json_decref(document);
}

static void strong_shares_the_ideal_step(void **state)
{
    (void)state;
    double two[REPEATS];
    times(1.5, NULL, two);
    json_t *document = document_of(
        json_pack("[o, o]", make_trial("single", 1, false, PLAIN, 25), make_trial("dp", 2, false, two, 25)));
    assert_string_equal(el_json_text(document, "scaling", ""), "strong");
    double ideal = el_json_number(document, "rows.1.step.ideal_ms"),
           one = el_json_number(document, "rows.0.step.step_ms");
    assert_near(ideal, one / 2);
    assert_near(el_json_number(document, "rows.1.step.step_ms"), one / 1.5);
    assert_near(el_json_number(document, "rows.1.plain.efficiency"), 0.75); /* T_1 / (2 T_2) */
    json_decref(document);
}

/* On a machine with other work the next study is one under another load: no interval is promised for it. */
static void no_repeat_is_foretold_beside_other_work(void **state)
{
    (void)state;
    static const char *const rules[] = {"others", "stolen", "gpu_others", "drift"};
    double two[REPEATS];
    times(1.7, NULL, two);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        for (int side = 0; side < 2; side++) {
            json_t *trials[] = {make_trial("single", 1, true, PLAIN, 25), make_trial("ddp", 2, true, two, 25)};
            json_object_set_new(trials[side], "warning_rules", json_pack("[s]", rules[i]));
            json_object_set_new(trials[side], "warnings", json_pack("[s]", "words"));
            json_t *document = document_of(json_pack("[o, o]", trials[0], trials[1]));
            bool given = strcmp(rules[i], "drift") == 0;
            const json_t *plain = el_json_at(document, "rows.1.plain");
            assert_true(json_is_array(json_object_get(plain, "speedup_ci95")));
            assert_int_equal(json_is_array(json_object_get(plain, "speedup_repeat95")), given);
            assert_int_equal(json_is_array(json_object_get(plain, "efficiency_repeat95")), given);
            assert_string_equal(el_json_text(plain, "repeat_reason", "none"),
                                given ? "none" : "other work was on the machine");
            json_decref(document);
        }
}

/* A repeat that failed in one of both pairs with nothing; four pairs give no interval. */
static void a_missing_repeat_leaves_its_partner_out(void **state)
{
    (void)state;
    double two[REPEATS];
    times(1.7, NULL, two);
    two[1] = NAN;
    json_t *document =
        document_of(json_pack("[o, o]", make_trial("single", 1, true, PLAIN, 25), make_trial("ddp", 2, true, two, 25)));
    assert_near(el_json_number(document, "rows.1.plain.speedup"), 1.7);
    assert_true(json_is_null(el_json_at(document, "rows.1.plain.speedup_ci95")));
    assert_string_equal(el_json_text(document, "rows.1.plain.reason", ""), "fewer than 5 repeats");
    json_decref(document);
}

static void the_parts_of_the_loss_add_up(void **state)
{
    (void)state;
    double two[REPEATS];
    times(1.6, NULL, two);
    json_t *trial = make_trial("ddp", 2, true, two, 25);
    json_object_set_new(trial, "breakdown",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:[f, f]}", "step_ms", 100.0, "compute_alone_ms",
                                  82.0, "contention_ms", 3.0, "exposed_ms", 9.0, "other_ms", 2.0, "idle_ms", 4.0,
                                  "exposed_step_ms", 11.0, "exposed_step_ci95", 8.0, 14.0));
    json_t *document = document_of(json_pack("[o, o]", make_trial("single", 1, true, PLAIN, 25), trial));
    const json_t *step = el_json_at(document, "rows.1.step");
    double parts = el_json_number(step, "compute_ms") + el_json_number(step, "contention_ms") +
                   el_json_number(step, "exposed_ms") + el_json_number(step, "idle_ms");
    assert_near(parts, el_json_number(step, "lost_ms"));
    assert_near(el_json_number(step, "ideal_ms") + parts, 100);
    assert_near(el_json_number(step, "comm_costs_ms"), 11);
    assert_near(el_json_number(step, "comm_costs_ci95.1"), 14);
    json_decref(document);
}

static void runs_without_a_baseline_are_refused(void **state)
{
    (void)state;
    json_t *document = NULL;
    json_t *run = make_run(json_pack("[o]", make_trial("ddp", 2, true, PLAIN, 25)));
    assert_int_equal(el_scale_document(run, "dir", &document), EL_ERR_INVALID);
    json_decref(run);
    json_t *other = make_trial("dp", 2, true, PLAIN, 25);
    json_object_set_new(other, "global_batch", json_integer(48));
    run = make_run(json_pack("[o, o]", make_trial("single", 1, true, PLAIN, 25), other));
    assert_int_equal(el_scale_document(run, "dir", &document), EL_ERR_INVALID);
    json_decref(run);
    assert_null(document);
}

static void mark_shared(json_t *trial)
{
    json_object_set_new(trial, "warnings", json_pack("[s, s]", "others were there", "devices share a core (a and b)"));
    json_object_set_new(trial, "warning_rules", json_pack("[s, s]", "others", "shared_core"));
}

static char *printed(const json_t *document)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    el_scale_print(document, file);
    fclose(file);
    return text;
}

/* Of four devices on two cores nothing is said but that they share them. */
static void shared_counts_make_no_claim(void **state)
{
    (void)state;
    double two[REPEATS], four[REPEATS];
    times(1.7, NULL, two);
    times(3.9, NULL, four);
    json_t *shared = make_trial("ddp", 4, true, four, 25);
    mark_shared(shared);
    json_t *document = document_of(
        json_pack("[o, o, o]", make_trial("single", 1, true, PLAIN, 25), make_trial("ddp", 2, true, two, 25), shared));
    assert_string_equal(el_json_text(document, "rows.2.shared", ""), "devices share a core (a and b)");
    char *text = printed(document);
    assert_non_null(strstr(text, "ddp on 2 devices: 1.70 times plain single"));
    assert_null(strstr(text, "ddp on 4 devices:"));
    assert_non_null(strstr(text, "From 4 devices on (marked *"));
    assert_non_null(strstr(text, "  4*"));
    free(text);
    json_decref(document);
}

/* Words of the last line that begins with "ddp". */
static int words_of_row(char *text)
{
    int n = 0;
    char *row = NULL, *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (!strncmp(line, "ddp ", 4)) row = line;
    assert_non_null(row);
    for (char *word = strtok_r(row, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) n++;
    return n;
}

/* Steps of minutes: figures that are wider than their columns still stand apart. */
static void wide_figures_stand_apart(void **state)
{
    (void)state;
    static const char *const names[] = {"step_ms",    "lost_ms", "compute_ms",   "contention_ms",
                                        "exposed_ms", "idle_ms", "comm_costs_ms"};
    double two[REPEATS];
    times(1.7, NULL, two);
    json_t *document =
        document_of(json_pack("[o, o]", make_trial("single", 1, true, PLAIN, 25), make_trial("ddp", 2, true, two, 25)));
    json_t *step = el_json_at(document, "rows.1.step");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) el_json_put_real(step, names[i], 1234567890123);
    el_json_put(step, "comm_costs_ci95", json_pack("[f, f]", 1234567890123.0, 2345678901234.0));
    el_json_put_real(el_json_at(document, "rows.1"), "peak_bytes", 1e17);
    char *text = printed(document);
    assert_int_equal(words_of_row(text), 14); /* mode, devices, seven parts, low - high, peak, verdict */
    free(text);
    json_decref(document);
}

static void give_buckets(json_t *trial, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_pack("{s:i}", "bytes", MIB / n));
    json_object_set_new(trial, "collectives", list);
}

/* ddp on 2 with 25, and with 1 (always `ratio` of its step) and 100 (the buckets of 25, and by chance far faster). */
static json_t *make_sweep(double ratio, const double *noise)
{
    double base[REPEATS], small[REPEATS], same[REPEATS];
    times(1.6, NULL, base);
    times(1.6 / ratio, noise, small);
    times(3.2, NULL, same);
    json_t *trials[] = {make_trial("single", 1, true, PLAIN, 25), make_trial("ddp", 2, true, base, 25),
                        make_trial("ddp", 2, true, small, 1), make_trial("ddp", 2, true, same, 100)};
    give_buckets(trials[1], 2);
    give_buckets(trials[2], 6);
    give_buckets(trials[3], 2);
    return json_pack("[o, o, o, o]", trials[0], trials[1], trials[2], trials[3]);
}

static void a_size_is_recommended_only_beyond_chance(void **state)
{
    (void)state;
    static const double noise[REPEATS] = {0.97, 1.04, 1.01, 0.96, 1.03};
    static const struct {
        double ratio, recommended;
    } cases[] = {{0.8, 1}, {0.99, NAN}, {1.2, NAN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *document = document_of(make_sweep(cases[i].ratio, noise));
        assert_int_equal(json_array_size(json_object_get(document, "rows")), 2); /* the sweep's are not counts */
        double found = el_json_number(document, "buckets.recommended_mib");
        assert_true(isnan(cases[i].recommended) ? isnan(found) : found == cases[i].recommended);
        assert_near(el_json_number(document, "buckets.looks"), 1);
        assert_near(el_json_number(document, "buckets.rows.0.mib"), 1);
        assert_near(el_json_number(document, "buckets.rows.0.buckets"), 6);
        assert_near(el_json_number(document, "buckets.rows.1.ratio"), 1);
        assert_true(json_is_true(el_json_at(document, "buckets.rows.2.same")));
        char *text = printed(document);
        assert_non_null(strstr(text, isnan(cases[i].recommended) ? "keep 25" : "take --bucket-mb 1"));
        free(text);
        json_decref(document);
    }
}

static void shared_devices_get_no_recommendation(void **state)
{
    (void)state;
    json_t *trials = make_sweep(0.5, NULL);
    mark_shared(json_array_get(trials, 1));
    json_t *document = document_of(trials);
    assert_true(json_is_null(el_json_at(document, "buckets.recommended_mib")));
    json_decref(document);
}

/* With more looks the same scatter is told less. */
static void looking_at_more_sizes_asks_for_more(void **state)
{
    (void)state;
    assert_near(el_stats_stretch_of_looks(5, 1), 1);
    assert_near(el_stats_stretch_of_looks(5, 3), el_stats_t_quantile(1 - 0.025 / 3, 4) / el_stats_t_quantile(0.975, 4));
    const double a[REPEATS] = {1.10, 1.20, 1.05, 1.15, 1.12}, b[REPEATS] = {1, 1, 1, 1, 1};
    struct el_interval narrow = el_stats_ratio_paired(a, b, REPEATS), wide = el_stats_interval_stretch(narrow, 2);
    assert_near(wide.centre, narrow.centre);
    assert_near(log(wide.high / wide.centre), 2 * log(narrow.high / narrow.centre));
    assert_near(log(wide.low / wide.centre), 2 * log(narrow.low / narrow.centre));
}

static double normal(struct el_rng_key *key, uint64_t *at)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) sum += (double)(el_rng_u64(key, (*at)++, 0) >> 11) * 0x1p-53;
    return sum - 6;
}

static struct el_interval study(struct el_rng_key *key, uint64_t *at)
{
    double one[REPEATS], two[REPEATS];
    for (int r = 0; r < REPEATS; r++) {
        double machine = 0.3 * normal(key, at); /* of the round: in both */
        one[r] = exp(machine + 0.05 * normal(key, at));
        two[r] = exp(machine + 0.05 * normal(key, at));
    }
    return el_stats_ratio_paired(two, one, REPEATS);
}

/* What docs/scale.md says: an interval holds the truth in 95 of 100, a repeat of the study in about 88; stretched by
 * sqrt(2) it holds that in 95. */
static void the_repeat_interval_holds_a_repeat(void **state)
{
    (void)state;
    enum { STUDIES = 4000 };
    struct el_rng_key key = {.seed = 11, .use = EL_RNG_ORDER};
    uint64_t at = 0;
    int truth = 0, plain = 0, stretched = 0;
    for (int i = 0; i < STUDIES; i++) {
        struct el_interval first = study(&key, &at), again = study(&key, &at);
        struct el_interval repeat = el_stats_interval_stretch(first, sqrt(2));
        truth += first.low <= 1 && 1 <= first.high;
        plain += first.low <= again.centre && again.centre <= first.high;
        stretched += repeat.low <= again.centre && again.centre <= repeat.high;
    }
    print_message("# truth %d, repeat %d, repeat by its own interval %d of %d\n", truth, plain, stretched, STUDIES);
    assert_true(truth > 0.94 * STUDIES && truth < 0.96 * STUDIES);
    assert_true(plain > 0.86 * STUDIES && plain < 0.90 * STUDIES);
    assert_true(stretched > 0.94 * STUDIES && stretched < 0.96 * STUDIES);
}

/* Hollow points have a block of their own, and lose nothing where an interval is missing. */
static void the_figure_tells_shared_counts_apart(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_scale_XXXXXX", path[64], line[256];
    double two[REPEATS];
    times(1.7, NULL, two);
    json_t *shared = make_trial("ddp", 4, true, two, 25);
    mark_shared(shared);
    json_t *document = document_of(
        json_pack("[o, o, o]", make_trial("single", 1, true, PLAIN, 25), make_trial("ddp", 2, true, two, 25), shared));
    assert_non_null(mkdtemp(dir));
    assert_int_equal(el_scale_plot_data(document, dir), EL_OK);
    snprintf(path, sizeof path, "%s/scale.dat", dir);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    bool hollow = false, found_own = false, found_hollow = false;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#') hollow = strstr(line, "columns") ? hollow : strstr(line, " shared") != NULL;
        found_own = found_own || (!hollow && !strncmp(line, "2\t1.7\t1.7\t1.7\t85\t", 17));
        found_hollow = found_hollow || (hollow && !strncmp(line, "4\t1.7\t", 6));
        assert_false(hollow && !strncmp(line, "2\t", 2));
    }
    fclose(file);
    unlink(path);
    rmdir(dir);
    json_decref(document);
    assert_true(found_own && found_hollow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_chosen_and_one_is_among_them),
        cmocka_unit_test(a_batch_belongs_to_weak_or_strong),
        cmocka_unit_test(trials_are_counts_times_modes),
        cmocka_unit_test(ratios_are_of_repeats_side_by_side),
        cmocka_unit_test(strong_shares_the_ideal_step),
        cmocka_unit_test(no_repeat_is_foretold_beside_other_work),
        cmocka_unit_test(a_missing_repeat_leaves_its_partner_out),
        cmocka_unit_test(the_parts_of_the_loss_add_up),
        cmocka_unit_test(runs_without_a_baseline_are_refused),
        cmocka_unit_test(shared_counts_make_no_claim),
        cmocka_unit_test(wide_figures_stand_apart),
        cmocka_unit_test(a_size_is_recommended_only_beyond_chance),
        cmocka_unit_test(shared_devices_get_no_recommendation),
        cmocka_unit_test(looking_at_more_sizes_asks_for_more),
        cmocka_unit_test(the_repeat_interval_holds_a_repeat),
        cmocka_unit_test(the_figure_tells_shared_counts_apart),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
