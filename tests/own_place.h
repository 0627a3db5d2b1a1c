/* A place to train at in this process alone: devices of one backend, and nobody to meet. */
#pragma once

#include "runtime/train/train.h"

struct own_place {
    struct el_device *devices[EL_MEMBERS_MAX];
    struct el_bootstrap *self;
    int n;
    struct el_train_place place;
};

/* `kernels`: NULL for the backend's own. */
static inline void open_place(const char *backend, int n, const struct el_kernel_table *kernels,
                              const struct el_dataset *data, struct own_place *own)
{
    own->n = n;
    assert_int_equal(el_bootstrap_open("self", &own->self), EL_OK);
    for (int d = 0; d < n; d++) {
        const struct el_device_spec spec = {.backend = backend, .index = d, .position = d, .kernels = kernels};
        assert_int_equal(el_device_open(&spec, &own->devices[d]), EL_OK);
    }
    own->place =
        (struct el_train_place){.devices = own->devices, .n_devices = n, .bootstrap = own->self, .dataset = data};
}

static inline void close_place(struct own_place *own)
{
    for (int d = 0; d < own->n; d++) el_device_close(own->devices[d]);
    el_bootstrap_close(own->self);
}

/* Trains on fresh devices of this process; `step`, which may be NULL, sees each device's steps. */
static inline enum el_status try_to_train(const struct el_train_config *config, const char *backend,
                                          const struct el_kernel_table *kernels, const struct el_dataset *data,
                                          void (*step)(void *context, const struct el_step_event *event), void *context,
                                          struct el_train_result *result_p)
{
    struct own_place own;
    struct el_probe probes[EL_MEMBERS_MAX];
    struct el_layout layout;
    el_layout_of(config, 1, &layout);
    open_place(backend, layout.n_devices, kernels, data, &own);
    for (int d = 0; d < own.n; d++) probes[d] = (struct el_probe){.context = context, .step = step};
    struct el_train_hooks hooks = {.probes = probes};
    enum el_status status = el_train(config, &own.place, &hooks, result_p);
    close_place(&own);
    return status;
}

/* With the plain kernels, and it has to succeed. */
static inline void train_watched(const struct el_train_config *config, const char *backend,
                                 const struct el_dataset *data,
                                 void (*step)(void *context, const struct el_step_event *event), void *context,
                                 struct el_train_result *result_p)
{
    if (try_to_train(config, backend, el_kernels_reference(), data, step, context, result_p) != EL_OK)
        fail_msg("%s: %s", config->mode, el_error_message());
}
