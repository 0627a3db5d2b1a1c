/* Weights in the fast kernels' own layout: what a device holds is another order, what is read from it is not. resnet18
 * begins with the same weights and gives the loss and the gradients that it gives on the plain reference's kernels. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/gate/gate.h"
#include "runtime/train/train.h"

enum { BATCH = 8, IMAGE = 32, WIDTH = 16, CLASSES = 10 };

static void make_config(struct el_train_config *config)
{
    *config = (struct el_train_config){.mode = "single",
                                       .model = {.name = "resnet18", .classes = CLASSES, .dropout = -1},
                                       .dtype = EL_F32,
                                       .lr = -1,
                                       .capture = true,
                                       .seed = 3,
                                       .global_batch = BATCH,
                                       .n_devices = 1,
                                       .steps = 1};
    el_model_set(&config->model, "image", (int64_t[]){IMAGE}, 1);
    el_model_set(&config->model, "width", (int64_t[]){WIDTH}, 1);
    assert_int_equal(el_model_resolve(&config->model), EL_OK);
    assert_int_equal(el_train_check(config), EL_OK);
}

static void gradients(const struct el_train_config *config, const struct el_kernel_table *kernels, double *loss_p,
                      double **grads_p)
{
    struct el_dataset_spec spec = {
        .source = "dummy", .input = EL_INPUT_IMAGES, .image = IMAGE, .classes = CLASSES, .seed = 3};
    struct el_device_spec place_of = {.backend = "cpu", .kernels = kernels};
    struct el_dataset *dataset;
    struct el_bootstrap *self;
    struct el_device *device;
    assert_int_equal(el_dataset_open(&spec, &dataset), EL_OK);
    assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
    assert_int_equal(el_device_open(&place_of, &device), EL_OK);
    struct el_train_place place = {.devices = &device, .n_devices = 1, .bootstrap = self, .dataset = dataset};
    if (el_gate_gradients(config, &place, loss_p, grads_p) != EL_OK) fail_msg("%s", el_error_message());
    el_device_close(device);
    el_bootstrap_close(self);
    el_dataset_close(dataset);
}

/* In f32 gradients drift through batch norms of few samples; a value at a wrong place is wrong altogether. */
static void test_gradients_do_not_depend_on_the_layout(void **state)
{
    struct el_train_config config;
    double loss[2], *grads[2], worst;
    char name[64];
    make_config(&config);
    gradients(&config, el_kernels_cpu(), &loss[0], &grads[0]);
    gradients(&config, el_kernels_reference(), &loss[1], &grads[1]);
    assert_int_equal(el_gate_compare(&config, grads[0], grads[1], &worst, name, sizeof name), EL_OK);
    print_message("losses %.6f and %.6f; worst gradient %s, off by %.2g\n", loss[0], loss[1], name, worst);
    assert_true(loss[0] - loss[1] < 1e-4 && loss[1] - loss[0] < 1e-4);
    assert_true(worst < 1e-2);
    free(grads[0]);
    free(grads[1]);
}

RUN_TESTS(NULL, NULL, test_gradients_do_not_depend_on_the_layout)
