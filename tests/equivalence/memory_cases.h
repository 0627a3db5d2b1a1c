/* What the tests of memory train, and the ledgers that it leaves. */
#pragma once

#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

enum { DEVICES = 3, CHUNK_BYTES = 10 << 20, FEATURES = 240, HIDDEN = 240 };

static inline void configure(struct el_train_config *config, const char *mode, const char *model,
                             enum el_optimizer_kind optimizer, bool keep, int n_devices, int64_t batch)
{
    *config = (struct el_train_config){.dtype = EL_F32,
                                       .optimizer = optimizer,
                                       .lr = 0.01,
                                       .momentum = 0.9,
                                       .keep_grads = keep,
                                       .overlap = true,
                                       .capture = true,
                                       .seed = 1,
                                       .global_batch = batch,
                                       .n_micro = 2,
                                       .n_devices = n_devices,
                                       .warmup = 1,
                                       .steps = 2,
                                       .model = {.sizes = {{"vocab", 1, {6000}},
                                                           {"embed", 1, {64}},
                                                           {"seq", 1, {12}},
                                                           {"features", 1, {FEATURES}},
                                                           {"image", 1, {16}},
                                                           {"width", 1, {8}},
                                                           {"hidden", 2, {HIDDEN, HIDDEN}}},
                                                 .classes = 10}};
    snprintf(config->mode, sizeof config->mode, "%s", mode);
    snprintf(config->model.name, sizeof config->model.name, "%s", model);
    assert_int_equal(el_model_resolve(&config->model), EL_OK);
    assert_int_equal(el_train_check(config), EL_OK);
}

/* Of those that are there: a mode that cuts the model has at most as many as that has nodes. */
static inline int devices_for(const char *mode, const char *model)
{
    if (!el_mode_cuts(mode)) return el_mode_devices_for(mode, model, DEVICES);
    return strcmp(model, "linear") == 0 ? 1 : strcmp(model, "toy") == 0 ? 2 : DEVICES;
}

/* Trains on `backend`'s devices; on `null` ones kernels are skipped, on `sim` ones memory too, and the ledger is the
 * same. `hooks` may be NULL. */
static inline void measure_with(const struct el_train_config *config, const char *backend,
                                const struct el_train_hooks *hooks, struct el_ledger *ledgers)
{
    struct own_place own;
    struct el_dataset *dataset;
    struct el_dataset_spec data = {.source = "dummy",
                                   .input = el_model_find(config->model.name)->input,
                                   .image = 16,
                                   .vocab = el_model_size(&config->model, "vocab"),
                                   .seq = 12,
                                   .classes = config->model.classes,
                                   .seed = 3,
                                   .held_out = config->epochs ? 0.1 : 0};
    assert_int_equal(el_dataset_open(&data, &dataset), EL_OK);
    open_place(backend, config->n_devices, NULL, dataset, &own);
    struct el_train_result result;
    if (el_train(config, &own.place, hooks, &result) != EL_OK) fail_msg("%s", el_error_message());
    memcpy(ledgers, result.ledgers, (size_t)config->n_devices * sizeof *ledgers);
    el_train_result_free(&result);
    close_place(&own);
    el_dataset_close(dataset);
}

static inline void measure(const struct el_train_config *config, const char *backend, struct el_ledger *ledgers)
{
    measure_with(config, backend, NULL, ledgers);
}
