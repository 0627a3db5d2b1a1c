/* Sharded state in closed forms, exactly and by tag, with what each rank sends, for sizes that do not divide among the
 * ranks. A model of layers 1 .. L, each a unit u of elements filled up to a multiple of n; S slots; gathered one unit
 * ahead. While unit k goes backward the one before it is still being reduced:
 *
 *             parameters   slots          gradients
 *     zero1   sum u        S sum u / n    sum u
 *     zero2   sum u        S sum u / n    the largest u(k) + u(k + 1) + (u(k + 1) + ... + u(L)) / n
 *     zero3   sum u / n    S sum u / n    the same; and gathered the largest u(k) + u(k + 1)
 *
 * or, if that is more, u(k) + (u(k) + ... + u(L)) / n, when unit k is reduced and those before it are no longer there.
 * Where gradients are reduced in another type (--comm-hook) a unit of that type is beside them, a bucket; zero2 and
 * zero3 then have u(k) + (u(k + 1) + ... + u(L)) / n of their own. In bf16-mixed parameters are u / n everywhere, and
 * zero1 and zero2 have u of casts; zero2's and zero3's gradients are of bf16, and their parts of f32. There all that is
 * in f32 is 16 sum u / n bytes with Adam: parameters, two slots, and gradients before the optimizer's step.
 * A rank sends (n - 1) / n of u for each gathering and each reduction: gradients and parameters once; zero3's
 * parameters in forward, and but for the last unit's again in backward. And the forecast is the ledger, and has these
 * forms on 64 and 4,096 ranks too. */
#include "tests/test.h"

#include "runtime/train/forecast.h"
#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

enum { DEVICES = 5, FORECAST_MAX = 4096, UNITS_MAX = 16 };

struct units {
    int n;
    size_t real[UNITS_MAX], filled[UNITS_MAX]; /* elements */
};

/* Bytes of an element: as it is stored, in a slot, as it is reduced, as passes take it, and in a whole gradient. */
struct widths {
    size_t stored, slot, reduced, computed, whole;
};

static struct units units_of(const struct el_train_config *config, size_t ranks)
{
    struct el_graph *graph;
    struct units units = {0};
    assert_int_equal(el_model_build(&config->model, &graph), EL_OK);
    for (int p = 0; p < graph->n_params; p++) {
        units.n += p % 2 == 0; /* a layer's weight and bias */
        units.real[units.n - 1] += (size_t)el_param_count(graph, p);
    }
    for (int u = 0; u < units.n; u++) units.filled[u] = (units.real[u] + ranks - 1) / ranks * ranks;
    el_graph_destroy(graph);
    return units;
}

static size_t sum(const struct units *units)
{
    size_t all = 0;
    for (int u = 0; u < units->n; u++) all += units->filled[u];
    return all;
}

/* What is in work: of gradients with the parts that are reduced (`parts`), or gathered parameters. What a unit is
 * filled up with has a tag of its own. */
static size_t work_peak(const struct units *units, size_t ranks, bool parts)
{
    size_t peak = 0, reduced = 0;
    for (int u = units->n - 1; u >= 0; u--) {
        size_t beside = u + 1 < units->n ? units->real[u + 1] : 0;
        if (parts && u + 1 < units->n) reduced += units->filled[u + 1] / ranks;
        size_t made = units->real[u] + beside + reduced, own = parts ? units->filled[u] / ranks : 0;
        if (made > peak) peak = made;
        if (units->real[u] + reduced + own > peak) peak = units->real[u] + reduced + own;
    }
    return peak;
}

/* Gradients of another type than they are reduced in, or than their parts have. The latter are cast when the next
 * unit's are reduced. */
static size_t cast_peak(const struct units *units, size_t ranks, const struct widths *w)
{
    size_t peak = 0, reduced = 0;
    for (int u = units->n - 1; u >= 0; u--) {
        const size_t beside = w->whole == w->reduced && u + 1 < units->n ? units->real[u + 1] : 0;
        const size_t made = w->whole * (units->real[u] + beside) + reduced;
        if (made > peak) peak = made;
        reduced += w->stored * units->filled[u] / ranks;
    }
    if (w->whole == w->reduced) reduced += w->whole * units->real[0];
    return reduced > peak ? reduced : peak;
}

static size_t largest(const struct units *units)
{
    size_t found = 0;
    for (int u = 0; u < units->n; u++) found = units->real[u] > found ? units->real[u] : found;
    return found;
}

static void count_sent(void *context, const struct el_step_event *event)
{
    uint64_t *sent = context;
    for (int i = 0; i < event->n_ops; i++) sent[event->ops[i].device] = 0;
    for (int i = 0; i < event->n_ops; i++)
        if (event->ops[i].op_class == EL_CLASS_COMM) sent[event->ops[i].device] += event->ops[i].sent_bytes;
}

static struct widths widths_of(const struct el_train_config *config, int stage)
{
    const size_t stored = el_dtype_bytes(el_config_stored(config)),
                 computed = el_dtype_bytes(el_config_computed(config));
    return (struct widths){stored, el_dtype_bytes(config->dtype), el_dtype_bytes(el_config_reduced(config)), computed,
                           stage == 1 ? stored : computed};
}

/* What a rank has, and sends. */
static void check_rank(const struct el_train_config *config, int stage, const struct el_ledger *ledger, uint64_t sent)
{
    const size_t n = (size_t)config->n_devices, slots = config->optimizer == EL_OPT_ADAM ? 2 : 1;
    const struct units units = units_of(config, n);
    const struct widths w = widths_of(config, stage);
    const bool casts = w.reduced != w.whole, mixed = w.computed != w.stored;
    const size_t all = sum(&units), last = units.filled[units.n - 1], *peak = ledger->peak_by_tag,
                 grads = stage == 1                     ? w.stored * all
                         : casts || w.whole != w.stored ? cast_peak(&units, n, &w)
                                                        : w.stored * work_peak(&units, n, true);
    assert_int_equal(peak[EL_TAG_PARAM], w.stored * (stage < 3 && !mixed ? all : all / n));
    if (mixed) assert_int_equal(peak[EL_TAG_CAST], stage < 3 ? w.computed * all : 0);
    if (mixed && slots == 2) assert_int_equal(peak[EL_TAG_PARAM] + peak[EL_TAG_OPTIMIZER] + 4 * all / n, 16 * all / n);
    assert_int_equal(peak[EL_TAG_OPTIMIZER], w.slot * slots * all / n);
    assert_int_equal(peak[EL_TAG_GRAD], grads);
    assert_int_equal(peak[EL_TAG_REPLICA],
                     stage < 3 || (n == 1 && !mixed) ? 0 : w.computed * work_peak(&units, n, false));
    assert_int_equal(peak[EL_TAG_BUCKET], casts ? w.reduced * largest(&units) : 0);
    assert_int_equal(sent, (n - 1) * (w.reduced * all + w.computed * (stage < 3 ? all : 2 * all - last)) / n);
}

static void check(const struct el_train_config *config, int stage)
{
    static struct el_memory_forecast forecasts[FORECAST_MAX];
    struct el_train_result result;
    uint64_t sent[DEVICES];
    assert_int_equal(el_train_forecast(config, el_kernels_reference(), forecasts), EL_OK);
    for (int d = 0; d < config->n_devices; d++)
        check_rank(config, stage, &forecasts[d].ledger, forecasts[d].sent_bytes);
    if (config->n_devices > DEVICES) return;
    train_watched(config, "null", dataset, count_sent, sent, &result);
    for (int d = 0; d < config->n_devices; d++) {
        assert_memory_equal(forecasts[d].ledger.peak_by_tag, result.ledgers[d].peak_by_tag,
                            sizeof result.ledgers[d].peak_by_tag);
        assert_int_equal(forecasts[d].sent_bytes, sent[d]);
    }
    el_train_result_free(&result);
}

/* In f64; as torch.autocast; stored in bf16; and the types in which gradients are reduced turned round. */
static void memory_and_bytes_have_closed_forms(void **state)
{
    static const struct {
        enum el_dtype dtype;
        enum el_precision precision;
        enum el_hook hook;
    } types[] = {{EL_F64, EL_PRECISION_FULL, EL_HOOK_NONE},       {EL_F32, EL_PRECISION_BF16, EL_HOOK_BF16},
                 {EL_F32, EL_PRECISION_BF16_PURE, EL_HOOK_NONE},  {EL_F32, EL_PRECISION_BF16_PURE, EL_HOOK_F32},
                 {EL_F32, EL_PRECISION_BF16_MIXED, EL_HOOK_NONE}, {EL_F32, EL_PRECISION_BF16_MIXED, EL_HOOK_BF16}};
    for (int i = 0; i < 2 * 6; i++)
        for (int stage = 1; stage <= 3; stage++)
            for (int n = 1; n <= FORECAST_MAX; n = n < DEVICES ? n + 1 : n < 64 ? 64 : 64 * n) {
                struct el_train_config config;
                const struct el_case mlp = {"mlp", i % 2 ? EL_OPT_ADAM : EL_OPT_MOMENTUM, 0, n > 30 ? n : 30};
                const char mode[] = {'z', 'e', 'r', 'o', (char)('0' + stage), 0};
                assert_int_equal(el_case_config(&mlp, mode, n, &config), EL_OK);
                config.dtype = types[i / 2].dtype;
                config.model.precision = types[i / 2].precision;
                config.hook = types[i / 2].hook;
                config.keep_grads = false;
                config.steps = 2;
                if (el_train_check(&config) != EL_OK) fail_msg("%s", el_error_message());
                check(&config, stage);
            }
}

RUN_TESTS(open_all, close_all, memory_and_bytes_have_closed_forms)
