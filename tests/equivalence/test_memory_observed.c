/* The ledger against what is seen of it from outside: by an observer, mark by mark, and by a forecast where epochs are
 * evaluated. */
#include "tests/test.h"

#include "profiles/memory_timeline.h"
#include "runtime/train/forecast.h"
#include "tests/equivalence/memory_cases.h"

/* Evaluating after an epoch, and exchanging figures between members, are not part of a step: neither shows in its peak.
 */
static void an_evaluation_does_not_count(void **state)
{
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        struct el_train_config config;
        struct el_ledger ledgers[DEVICES];
        struct el_memory_forecast forecasts[DEVICES];
        if (is_sanitized() && el_mode_option_of(mode->name, "procs") && !el_mode_option_of(mode->name, "micro"))
            continue;
        int n = el_mode_devices_for(mode->name, "textcnn", DEVICES);
        configure(&config, mode->name, "textcnn", EL_OPT_SGD, false, n, 1024);
        el_model_set(&config.model, "vocab", (int64_t[]){50}, 1); /* activations weigh most */
        el_model_set(&config.model, "filters", (int64_t[]){8}, 1);
        config.epochs = 1;
        measure(&config, "cpu", ledgers);
        assert_int_equal(el_train_forecast(&config, el_kernels_cpu(), forecasts), EL_OK);
        for (int d = 0; d < n; d++) {
            assert_int_equal(ledgers[d].peak_bytes, forecasts[d].ledger.peak_bytes);
            assert_memory_equal(ledgers[d].peak_by_tag, forecasts[d].ledger.peak_by_tag, sizeof ledgers[d].peak_by_tag);
        }
    }
}

static void forget_warm_up(void *context, int member)
{
    struct el_recorder **recorders = context;
    if (recorders[member]) el_recorder_begin(recorders[member]);
}

/* What lives across steps and the marks one by one, over all measured steps: a ledger kept by an observer. */
static struct el_ledger replayed(const struct el_recorder *recorder, int position, const size_t *base)
{
    struct el_ledger seen = {0};
    assert_true(el_recorder_step_count(recorder) > 0);
    for (size_t i = 0; i < el_recorder_step_count(recorder); i++) {
        struct el_step_event step = el_recorder_step(recorder, i);
        size_t live[EL_TAG_COUNT], sum = 0;
        memcpy(live, base, sizeof live);
        for (int tag = 0; tag < EL_TAG_COUNT; tag++) sum += live[tag];
        for (int m = 0; m < step.n_marks; m++) {
            const struct el_mark *mark = &step.marks[m];
            assert_true(mark->op >= 0 && mark->op <= step.n_ops);
            if (mark->device != position) continue;
            live[mark->tag] += (size_t)mark->bytes;
            sum += (size_t)mark->bytes;
            if (live[mark->tag] > seen.peak_by_tag[mark->tag]) seen.peak_by_tag[mark->tag] = live[mark->tag];
            if (sum <= seen.peak_bytes) continue;
            seen.peak_bytes = sum;
            memcpy(seen.at_peak_by_tag, live, sizeof live);
        }
    }
    return seen;
}

static void check_timeline(const struct el_recorder *recorder, int position, const struct el_ledger *ledger)
{
    struct el_ledger seen = replayed(recorder, position, ledger->live_by_tag);
    assert_int_equal(seen.peak_bytes, ledger->peak_bytes);
    assert_memory_equal(seen.at_peak_by_tag, ledger->at_peak_by_tag, sizeof seen.at_peak_by_tag);
    for (int tag = 0; tag < EL_TAG_COUNT; tag++) {
        size_t peak = seen.peak_by_tag[tag], base = ledger->live_by_tag[tag];
        assert_int_equal(peak > base ? peak : base, ledger->peak_by_tag[tag]);
    }
    struct el_memory_timeline timeline;
    assert_int_equal(el_memory_timeline_make(recorder, position, ledger->live_by_tag, &timeline), EL_OK);
    const struct el_memory_point *top = &timeline.points[timeline.peak];
    assert_int_equal(top->total_bytes, ledger->peak_bytes);
    for (int tag = 0; tag < EL_TAG_COUNT; tag++) assert_int_equal(top->bytes[tag], ledger->at_peak_by_tag[tag]);
    for (int i = 1; i < timeline.n; i++) assert_true(timeline.points[i - 1].at_ns <= timeline.points[i].at_ns);
    el_memory_timeline_free(&timeline);
}

/* In every mode an observer finds the ledger's peak again, by its marks alone: captured or issued anew, measured or in
 * virtual time, in steps of one batch and in epochs whose last batch is smaller. */
static void an_observer_finds_the_ledgers_peak(void **state)
{
    static const char *const models[] = {"textcnn", "mlp", "toy", "linear"};
    const struct el_mode_info *mode = el_mode_list();
    for (int i = 0; mode->name; mode += i++ % 8 == 7 || (is_sanitized() && i % 3 == 2)) {
        struct el_train_config config;
        struct el_ledger ledgers[DEVICES];
        struct el_recorder *recorders[DEVICES] = {NULL};
        struct el_probe probes[DEVICES] = {{0}};
        struct el_layout layout;
        bool anew = i & 1;
        int n = devices_for(mode->name, models[i / 2 % 4]), first = 0;
        configure(&config, mode->name, models[i / 2 % 4], EL_OPT_MOMENTUM, false, n, anew ? 3000 : 20);
        config.capture = !anew;
        config.epochs = anew;
        el_layout_of(&config, 1, &layout);
        for (int d = 0; d < n; d++) {
            int members = el_layout_of_worker(&layout, el_layout_spot(&layout, d).worker, &first);
            if (first == d) assert_int_equal(el_recorder_create(d, members, &recorders[d]), EL_OK);
            probes[d] = el_recorder_probe(recorders[first]);
        }
        struct el_train_hooks hooks = {.probes = probes, .context = recorders, .measure_begin = forget_warm_up};
        measure_with(&config, anew ? "null" : "sim", &hooks, ledgers);
        for (int d = 0; d < n; d++) {
            el_layout_of_worker(&layout, el_layout_spot(&layout, d).worker, &first);
            check_timeline(recorders[first], d, &ledgers[d]);
        }
        for (int d = 0; d < n; d++) el_recorder_destroy(recorders[d]);
    }
}

RUN_TESTS(NULL, NULL, an_evaluation_does_not_count, an_observer_finds_the_ledgers_peak)
