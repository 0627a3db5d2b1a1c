/* Of devices that nothing tells apart one is issued, and the forecast says the same, bit by bit, as if all were: here
 * where what is injected tells all apart. */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/train/forecast.h"
#include "runtime/train/train.h"

enum { DEVICES = 64, SLOW = 37 };

static const struct folded {
    const char *mode;
    int data, stages, pieces, shards;
    int64_t batch, micro, accumulate;
} cases[] = {
    {"ddp", 0, 0, 0, 0, 128, 1, 1},     {"ddp", 0, 0, 0, 0, 150, 1, 2},     {"manual", 0, 0, 0, 0, 150, 1, 1},
    {"dp", 0, 0, 0, 0, 128, 1, 1},      {"spmg", 8, 0, 0, 0, 128, 1, 1},    {"mp", 8, 0, 0, 0, 64, 1, 1},
    {"pipeline", 8, 8, 1, 0, 64, 8, 1}, {"pipeline", 2, 4, 8, 0, 64, 8, 1}, {"pipeline", 1, 8, 8, 0, 64, 16, 1},
    {"tp", 8, 0, 8, 0, 64, 1, 1},       {"tp", 16, 0, 4, 0, 128, 1, 2},     {"zero1", 1, 0, 1, 64, 128, 1, 1},
    {"zero1", 4, 0, 2, 8, 150, 1, 1},   {"zero2", 1, 0, 1, 64, 128, 1, 2},  {"zero2", 4, 0, 1, 16, 150, 1, 1},
    {"zero3", 1, 0, 1, 64, 128, 1, 1},  {"zero3", 8, 0, 1, 8, 150, 1, 2},   {"zero3", 2, 0, 4, 8, 128, 1, 1},
    {"zero3", 16, 0, 2, 2, 128, 1, 1},  {"zero1", 1, 4, 2, 8, 64, 8, 1},    {"zero3", 2, 4, 1, 8, 128, 8, 1},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static void configure(const struct folded *c, enum el_precision precision, bool together,
                      struct el_train_config *config)
{
    *config = (struct el_train_config){
        .dtype = EL_F32,
        .optimizer = EL_OPT_ADAM,
        .lr = 0.01,
        .overlap = true,
        .capture = true,
        .clip = 1,
        .global_batch = c->batch,
        .n_devices = DEVICES,
        .n_micro = c->micro,
        .n_accumulate = c->accumulate,
        .steps = 1,
        .bucket_first_bytes = 1024,
        .bucket_cap_bytes = 4096,
        .foreach = together ? EL_FOREACH_ON : EL_FOREACH_OFF,
        .comm_algorithm = precision == EL_PRECISION_BF16 ? EL_COMM_RING : EL_COMM_AUTO,
        .model = {
            .precision = precision,
            .sizes = {
                {"layers", 1, {8}}, {"embed", 1, {40}}, {"heads", 1, {8}}, {"seq", 1, {4}}, {"vocab", 1, {128}}}}};
    snprintf(config->model.name, sizeof config->model.name, "gpt");
    el_mode_change(config, c->mode);
    config->mesh[EL_AXIS_DATA] = c->data;
    config->mesh[EL_AXIS_STAGE] = c->stages;
    config->mesh[EL_AXIS_TENSOR] = c->pieces;
    config->mesh[EL_AXIS_SHARD] = c->shards;
    config->n_micro = c->micro;
    config->n_accumulate = c->accumulate;
    if (el_model_resolve(&config->model) != EL_OK || el_train_check(config) != EL_OK)
        fail_msg("%s: %s", c->mode, el_error_message());
}

static double predict(const struct el_train_config *config, const struct el_inject *injects,
                      struct el_memory_forecast *forecasts)
{
    struct el_machine machine = el_machine_default;
    const struct el_predict_spec spec = {.machines = &machine, .n_machines = 1, .injects = injects};
    double step_ns;
    machine.link_latency_ns = 1234;
    machine.link_bytes_per_s = 3e9;
    if (el_train_predict(config, el_kernels_cpu(), &spec, forecasts, &step_ns) != EL_OK)
        fail_msg("%s: %s", config->mode, el_error_message());
    return step_ns;
}

/* Once as they are, and once with a device that computes more slowly. */
static void folded_is_unfolded(void **state)
{
    static struct el_memory_forecast folded[DEVICES], all[DEVICES];
    static struct el_inject slow[DEVICES], each[DEVICES];
    for (int i = 0; i < 8 * N_CASES; i++) {
        const struct folded *c = &cases[i / 8];
        if (i / 4 % 2 && strncmp(c->mode, "zero", 4) != 0) continue;
        if ((i + i / 2 + i / 8) % 2 && !getenv("EVENLOAD_LONG")) continue; /* half of the pairs, each value in it */
        struct el_train_config config;
        configure(c, i % 2 ? EL_PRECISION_BF16 : EL_PRECISION_FULL, i / 4 % 2, &config);
        const bool slower = i / 2 % 2;
        slow[SLOW].stretch = each[SLOW].stretch = slower ? 3 : 0;
        for (int d = 0; d < DEVICES; d++) each[d].kill_step = d + 1; /* tells them apart, and a forecast has no steps */
        const double step_ns = predict(&config, slower ? slow : NULL, folded), of_all_ns = predict(&config, each, all);
        if (step_ns != of_all_ns || !(step_ns > 0))
            fail_msg("case %d, %s: a step takes %.17g ns folded, %.17g of all", i, c->mode, step_ns, of_all_ns);
        for (int d = 0; d < DEVICES; d++)
            if (memcmp(&folded[d].ledger, &all[d].ledger, sizeof all[d].ledger) != 0 ||
                strcmp(folded[d].moment, all[d].moment) != 0)
                fail_msg("case %d, %s: device %d has %zu bytes folded, %zu of all", i, c->mode, d,
                         folded[d].ledger.peak_bytes, all[d].ledger.peak_bytes);
    }
}

int main(void)
{
    if (!getenv("EVENLOAD_LONG")) print_message("# long: each precision with each device slow or not, 10 s\n");
    const struct CMUnitTest tests[] = {cmocka_unit_test(folded_is_unfolded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
