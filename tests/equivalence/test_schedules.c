/* Schedules of pipelines, by name and from PyTorch's tables, on 1 to 4 devices: single's losses, and as much memory as
 * is predicted, also with several copies of the stages; activation sets in the ledger as a schedule's table counts
 * them. */
#include "tests/test.h"

#include "runtime/layout/schedule.h"
#include "runtime/train/forecast.h"
#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

#define TABLES "tests/unit/data/schedules/"

enum { DEVICES = 4, STEPS = 20, STEPS_SANITIZED = 4 };

/* With dropout, cuts that several values cross, and nodes that have neither parameters nor a gradient of their input.
 * 24 samples are divided by 4, 6 and 8 micro-batches. */
static const struct el_case textcnn = {"textcnn", EL_OPT_MOMENTUM, 0.5, 24};

static const struct row {
    const char *schedule;
    int devices, micro, parts;
    int copies; /* of the stages, on devices / copies each; 0: one */
} rows[] = {
    {"gpipe", 2, 4, 0, 0},
    {"1f1b", 3, 6, 0, 0},
    {"interleaved", 2, 4, 0, 0},
    {"interleaved", 2, 3, 4, 0},
    {"interleaved", 3, 6, 3, 0},
    {"interleaved", 4, 8, 0, 0},
    {"interleaved", 1, 2, 3, 0},
    {"zero-bubble", 2, 4, 0, 0},
    {"zero-bubble", 3, 2, 0, 0},
    {"zero-bubble", 4, 8, 2, 0},
    {TABLES "GPipe-1x4-6.csv", 4, 0, 0, 0},
    {TABLES "1F1B-1x4-6.csv", 4, 0, 0, 0},
    {TABLES "Interleaved1F1B-2x2-4.csv", 2, 0, 0, 0},
    {TABLES "ZBVZeroBubble-2x2-4.csv", 2, 0, 0, 0},
    {TABLES "ZBVZeroBubble-2x4-8.csv", 4, 0, 0, 0},
    {TABLES "DualPipeV-2x2-6.csv", 2, 0, 0, 0},
    {TABLES "LoopedBFS-2x2-4.csv", 2, 0, 0, 0},
    {"interleaved", 4, 2, 0, 2},
    {"zero-bubble", 4, 3, 2, 2},
    {TABLES "ZBVZeroBubble-2x2-4.csv", 4, 0, 0, 2},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static struct el_train_config config_of(const struct el_case *c, const struct row *row)
{
    struct el_train_config config;
    assert_int_equal(el_case_config(c, row ? "pipeline" : "single", row ? row->devices : 1, &config), EL_OK);
    config.steps = is_sanitized() ? STEPS_SANITIZED : STEPS;
    if (!row) return config;
    snprintf(config.schedule, sizeof config.schedule, "%s", row->schedule);
    config.n_micro = row->micro;
    config.parts = row->parts;
    config.mesh[EL_AXIS_DATA] = row->copies;
    if (el_train_check(&config) != EL_OK) fail_msg("%s", el_error_message());
    return config;
}

static void hold_ledgers(const char *name, const struct el_ledger *ledger, const struct el_ledger *wanted, int device)
{
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (ledger->peak_by_tag[t] != wanted->peak_by_tag[t])
            fail_msg("%s: device %d holds %zu bytes of %s, not %zu", name, device, ledger->peak_by_tag[t],
                     el_tag_name((enum el_tag)t), wanted->peak_by_tag[t]);
    assert_int_equal(ledger->peak_bytes, wanted->peak_bytes);
}

static void every_schedule_gives_singles_losses_in_the_predicted_memory(void **state)
{
    struct el_train_result single, result, simulated;
    struct el_train_config config = config_of(&textcnn, NULL);
    train_watched(&config, "cpu", dataset, NULL, NULL, &single);
    for (int i = 0; i < N_ROWS; i++) {
        struct el_memory_forecast forecasts[DEVICES];
        config = config_of(&textcnn, &rows[i]);
        train_watched(&config, "cpu", dataset, NULL, NULL, &result);
        double difference = el_case_difference(&result, &single);
        if (!(difference <= CASE_TOLERANCE))
            fail_msg("%s on %d: losses differ by %g", rows[i].schedule, rows[i].devices, difference);
        assert_int_equal(el_train_forecast(&config, el_kernels_reference(), forecasts), EL_OK);
        config.steps = 2;
        train_watched(&config, "sim", dataset, NULL, NULL, &simulated);
        for (int d = 0; d < config.n_devices; d++) {
            hold_ledgers(rows[i].schedule, &result.ledgers[d], &forecasts[d].ledger, d);
            hold_ledgers(rows[i].schedule, &simulated.ledgers[d], &forecasts[d].ledger, d);
        }
        el_train_result_free(&simulated);
        el_train_result_free(&result);
    }
    el_train_result_free(&single);
}

/* ---- activation sets ---- */

/* Peak bytes of activations a device, for micro-batches of `MICRO_SAMPLES`. */
enum { MICRO_SAMPLES = 2 };

static void activations(const struct row *row, int micro, size_t *bytes)
{
    struct el_case mlp = {"mlp", EL_OPT_SGD, 0, (int64_t)micro * MICRO_SAMPLES};
    struct row now = *row;
    struct el_memory_forecast forecasts[DEVICES];
    now.micro = micro;
    struct el_train_config config = config_of(&mlp, &now);
    assert_int_equal(el_train_forecast(&config, el_kernels_reference(), forecasts), EL_OK);
    for (int d = 0; d < row->devices; d++) bytes[d] = forecasts[d].ledger.peak_by_tag[EL_TAG_ACTIVATION];
}

/* On each device a set's bytes, and what comes once on top, follow from gpipe, which holds M of them; then 1f1b has as
 * many as its table says, byte for byte. The first device's sets are of one node, which keeps none. */
static void the_ledger_has_as_many_sets_as_the_table(void **state)
{
    static const struct row gpipe = {"gpipe", 3, 0, 0, 0}, alternating = {"1f1b", 3, 0, 0, 0};
    size_t two[DEVICES], three[DEVICES], bytes[DEVICES];
    activations(&gpipe, 2, two);
    activations(&gpipe, 3, three);
    assert_true(three[1] > two[1] && three[2] > two[2]);
    for (int micro = 4; micro <= 6; micro++) {
        struct el_schedule schedule;
        struct el_train_config config = {.schedule = "1f1b", .n_micro = micro};
        assert_int_equal(el_schedule_open(&config, 3, &schedule), EL_OK);
        activations(&gpipe, micro, bytes);
        for (int d = 0; d < 3; d++) assert_int_equal(bytes[d], two[d] + (size_t)(micro - 2) * (three[d] - two[d]));
        activations(&alternating, micro, bytes);
        for (int d = 0; d < 3; d++) {
            int sets = el_schedule_in_flight(&schedule, d);
            assert_int_equal(sets, 3 - d);
            assert_int_equal(bytes[d] + 2 * (three[d] - two[d]), two[d] + (size_t)sets * (three[d] - two[d]));
        }
        el_schedule_close(&schedule);
    }
}

RUN_TESTS(open_all, close_all, every_schedule_gives_singles_losses_in_the_predicted_memory,
          the_ledger_has_as_many_sets_as_the_table)
