/* A small residual network and its images, for what the tests of equivalence ask of batch norm. */
#pragma once

#include <stdio.h>

#include "runtime/train/train.h"

enum { IMAGE_SIDE = 16, IMAGE_CLASSES = 4 };

/* In f64; to be checked. */
static inline void el_case_images_config(const char *mode, int n_devices, int64_t batch, int64_t image,
                                         struct el_train_config *config)
{
    *config = (struct el_train_config){.dtype = EL_F64,
                                       .optimizer = EL_OPT_MOMENTUM,
                                       .lr = 0.01,
                                       .momentum = 0.9,
                                       .overlap = true,
                                       .broadcast_buffers = true,
                                       .capture = true,
                                       .seed = 7,
                                       .global_batch = batch,
                                       .n_devices = n_devices,
                                       .n_micro = 2,
                                       .steps = 3,
                                       .model = {.name = "resnet18", .classes = IMAGE_CLASSES, .dropout = -1}};
    snprintf(config->mode, sizeof config->mode, "%s", mode);
    el_model_set(&config->model, "image", &image, 1);
    el_model_set(&config->model, "width", (int64_t[]){2}, 1);
    assert_int_equal(el_model_resolve(&config->model), EL_OK);
}

static inline enum el_status el_case_images(struct el_dataset **dataset_p)
{
    struct el_dataset_spec spec = {
        .source = "dummy", .input = EL_INPUT_IMAGES, .image = IMAGE_SIDE, .classes = IMAGE_CLASSES, .seed = 3};
    return el_dataset_open(&spec, dataset_p);
}
