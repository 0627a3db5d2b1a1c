/* The numerics gate: in f32 by the fast kernels, a step's loss and every parameter's gradient of every mode against
 * plain training on one device, and against the f64 reference kernels. What single itself gets wrong in f32 shows in
 * the second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/parallel/train.h"
#include "tests/sanitized.h"

enum { DEVICES = 4 };

static const double LOSS_TOLERANCE = 1e-6, GRADIENT_TOLERANCE = 1e-4;

static void configure(struct el_train_config *config, const char *mode, const char *model, enum el_dtype dtype, int n,
                      int64_t batch)
{
    *config = (struct el_train_config){
        .dtype = dtype,
        .optimizer = EL_OPT_MOMENTUM,
        .lr = 0.01,
        .momentum = 0.9,
        .overlap = true,
        .capture = true,
        .seed = 1,
        .global_batch = batch,
        .n_devices = n,
        .steps = 1,
        .model = {.sizes = {{"vocab", 1, {2000}}, {"seq", 1, {24}}}, .classes = 5, .dropout = 0.5}};
    if (is_sanitized()) { /* its kernels are slow, and their sizes are test_kernels' */
        config->model.sizes[2] = (struct el_model_values){"embed", 1, {40}};
        config->model.sizes[3] = (struct el_model_values){"filters", 1, {20}};
        config->model.sizes[4] = (struct el_model_values){"features", 1, {200}};
        config->model.sizes[5] = (struct el_model_values){"hidden", 2, {150, 100}};
    }
    snprintf(config->mode, sizeof config->mode, "%s", mode);
    snprintf(config->model.name, sizeof config->model.name, "%s", model);
    assert_int_equal(el_model_resolve(&config->model), EL_OK);
    assert_int_equal(el_train_check(config), EL_OK);
}

/* Loss and gradients of the mode (config->mode) on fresh devices. */
static double gradients(const struct el_train_config *config, const struct el_kernel_table *kernels, double **grads_p)
{
    struct el_device *devices[DEVICES];
    struct el_bootstrap *self;
    struct el_dataset *dataset;
    struct el_dataset_spec data = {.source = "dummy", .vocab = 2000, .seq = 24, .classes = 5, .seed = 3};
    assert_int_equal(el_dataset_open(&data, &dataset), EL_OK);
    assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
    for (int d = 0; d < config->n_devices; d++) {
        struct el_device_spec spec = {.backend = "cpu", .index = d, .position = d, .kernels = kernels};
        assert_int_equal(el_device_open(&spec, &devices[d]), EL_OK);
    }
    struct el_train_place place = {
        .devices = devices, .n_devices = config->n_devices, .bootstrap = self, .dataset = dataset};
    double loss;
    enum el_status status = el_train_gradients(config, &place, &loss, grads_p);
    if (status != EL_OK) fail_msg("%s: %s", config->mode, el_error_message());
    for (int d = 0; d < config->n_devices; d++) el_device_close(devices[d]);
    el_bootstrap_close(self);
    el_dataset_close(dataset);
    return loss;
}

static void hold(const struct el_train_config *config, const char *against, double loss, double *grads,
                 double wanted_loss, double *wanted)
{
    double worst;
    char name[64];
    assert_int_equal(el_train_compare(config, grads, wanted, &worst, name, sizeof name), EL_OK);
    if (!(fabs(loss - wanted_loss) <= LOSS_TOLERANCE)) {
        fail_msg("%s %s on %d against %s: loss %.9g, not %.9g", config->mode, config->model.name, config->n_devices,
                 against, loss, wanted_loss);
    }
    if (!(worst <= GRADIENT_TOLERANCE)) {
        fail_msg("%s %s on %d against %s: gradient of %s is off by %g", config->mode, config->model.name,
                 config->n_devices, against, name, worst);
    }
}

static int count_nodes(const struct el_train_config *config)
{
    struct el_graph *graph;
    assert_int_equal(el_model_build(&config->model, &graph), EL_OK);
    int n = graph->n_nodes;
    el_graph_destroy(graph);
    return n;
}

static void f32_agrees(const char *model)
{
    struct el_train_config config;
    double *single, *exact, *grads;
    configure(&config, "single", model, EL_F64, 1, 24);
    double exact_loss = gradients(&config, el_kernels_reference(), &exact);
    configure(&config, "single", model, EL_F32, 1, 24);
    double single_loss = gradients(&config, NULL, &single);
    hold(&config, "f64", single_loss, single, exact_loss, exact);
    const int nodes = count_nodes(&config);
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        int most = el_mode_devices(mode->name, DEVICES);
        if (el_mode_takes(mode->name, "cut") && most > nodes) most = nodes;
        if (is_sanitized() && most > 2) most = 2;
        for (int n = 1; n <= most; n++) { /* 24 is even for each */
            configure(&config, mode->name, model, EL_F32, n, 24);
            double loss = gradients(&config, NULL, &grads);
            hold(&config, "single", loss, grads, single_loss, single);
            hold(&config, "f64", loss, grads, exact_loss, exact);
            free(grads);
        }
    }
    free(single);
    free(exact);
}

static void textcnn(void **state)
{
    (void)state;
    f32_agrees("textcnn");
}

static void mlp(void **state)
{
    (void)state;
    f32_agrees("mlp");
}

static void toy(void **state)
{
    (void)state;
    f32_agrees("toy");
}

/* The gate's own yardstick for uneven ddp batches; and it must notice a mode that disagrees (here: another seed). */
static void the_gate_tells_modes_apart(void **state)
{
    (void)state;
    struct el_train_config config;
    double *grads, *wanted, worst;
    char name[64];
    configure(&config, "ddp", "mlp", EL_F32, 3, 22);
    double loss = gradients(&config, NULL, &grads);
    struct el_device *device;
    struct el_dataset *dataset;
    struct el_device_spec spec = {.backend = "cpu"};
    struct el_dataset_spec data = {.source = "dummy", .vocab = 2000, .seq = 24, .classes = 5, .seed = 3};
    assert_int_equal(el_dataset_open(&data, &dataset), EL_OK);
    assert_int_equal(el_device_open(&spec, &device), EL_OK);
    double wanted_loss;
    assert_int_equal(el_train_reference(&config, device, dataset, &wanted_loss, &wanted), EL_OK);
    hold(&config, "mean of means", loss, grads, wanted_loss, wanted);
    free(wanted);
    config.seed = 2;
    assert_int_equal(el_train_reference(&config, device, dataset, &wanted_loss, &wanted), EL_OK);
    assert_int_equal(el_train_compare(&config, grads, wanted, &worst, name, sizeof name), EL_OK);
    assert_true(worst > 0.1);
    free(wanted);
    free(grads);
    el_device_close(device);
    el_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(textcnn), cmocka_unit_test(mlp), cmocka_unit_test(toy),
                                       cmocka_unit_test(the_gate_tells_modes_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
