/* Training on fake cards and on CPU devices, in this process, for the tests of tests/cards. */
#pragma once

#include "tests/test.h"

#include <stdlib.h>

#include "runtime/base/module.h"
#include "runtime/comm/nccl/api.h"
#include "tests/cards/cards.h"
#include "tests/equivalence/case_images.h"
#include "tests/equivalence/cases.h"

enum { CARDS = 4, CONTEXT_BYTES = 3 << 20 };

static struct el_dataset *sentences, *images;

/* In the place of the library's: without NCCL members of one process copy from card to card, or go through the host. */
static bool with_nccl;
enum el_status el_nccl_api_open(const struct el_nccl_api **api_p)
{
    const void *table;
    if (!with_nccl) return el_fail(EL_ERR_ABSENT, "no NCCL in this test");
    EL_TRY(el_module_table("nccl", "el_nccl_module", &table));
    *api_p = table;
    return EL_OK;
}

static inline struct el_device *open_card(int index)
{
    struct el_device_spec spec = {.backend = "cuda", .index = index, .position = index};
    struct el_device *device = NULL;
    if (el_device_open(&spec, &device) != EL_OK) fail_msg("%s", el_error_message());
    return device;
}

static inline int open_all(void **state)
{
    return el_case_dataset(&sentences) == EL_OK && el_case_images(&images) == EL_OK ? 0 : -1;
}

static inline int close_all(void **state)
{
    el_dataset_close(sentences);
    el_dataset_close(images);
    return 0;
}

/* A small model in a mode; for resnet18 over images. */
static inline void configure(const char *model, const char *mode, int n, enum el_dtype dtype,
                             struct el_train_config *config)
{
    if (strcmp(model, "resnet18") == 0) {
        el_case_images_config(mode, n, 8, IMAGE_SIDE, config);
        assert_int_equal(el_train_check(config), EL_OK);
    } else {
        const struct el_case c = {model, EL_OPT_MOMENTUM, 0, 22};
        if (el_case_config(&c, mode, n, config) != EL_OK) fail_msg("%s", el_error_message());
    }
    config->dtype = dtype;
    config->steps = is_sanitized() ? 2 : 4;
}

struct trained {
    enum el_status status;
    struct el_train_result result;
    struct el_ledger ledgers[CARDS];
    int64_t reserved_bytes[CARDS];
};

/* On fresh devices; a failure's words are el_error_message()'s. `shared`: all devices on the first card. */
static inline void train_on(const char *backend, bool shared, const struct el_train_config *config,
                            struct trained *trained)
{
    struct el_device *devices[CARDS];
    struct el_bootstrap *self;
    assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
    for (int d = 0; d < config->n_devices; d++) {
        struct el_device_spec spec = {.backend = backend, .index = shared ? 0 : d, .position = d};
        if (strcmp(backend, "cpu") == 0) spec.kernels = el_kernels_reference();
        if (el_device_open(&spec, &devices[d]) != EL_OK) fail_msg("%s", el_error_message());
    }
    struct el_train_place place = {.devices = devices,
                                   .n_devices = config->n_devices,
                                   .bootstrap = self,
                                   .dataset = strcmp(config->model.name, "resnet18") == 0 ? images : sentences};
    struct el_train_hooks hooks = {.probes = NULL};
    trained->status = el_train(config, &place, &hooks, &trained->result);
    for (int d = 0; d < config->n_devices; d++) {
        trained->ledgers[d] = *el_device_ledger(devices[d]);
        trained->reserved_bytes[d] = el_device_reserved(devices[d]);
        el_device_close(devices[d]);
    }
    el_bootstrap_close(self);
}

static inline bool is_long(void)
{
    return getenv("EVENLOAD_LONG") != NULL;
}

/* The same numbers on every machine, below n. */
static inline int draw(uint64_t *random, int n)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (int)((*random >> 33) % (uint64_t)n);
}

/* What was made was unmade. */
static inline void assert_nothing_left(void)
{
    for (int d = 0; d < CARDS; d++) {
        struct cards_counts counts;
        cards_count(d, &counts);
        assert_int_equal(counts.left_bytes, 0);
        assert_int_equal(counts.pinned_bytes, 0);
        assert_int_equal(counts.streams, 0);
        assert_int_equal(counts.events, 0);
        assert_true(counts.library_bytes == 0 || counts.library_bytes == CONTEXT_BYTES);
    }
}

/* As the program sees it: before anything asks for cards. */
static inline void set_up_cards(void)
{
    setenv("FAKE_CARDS", "4", 1);
    unsetenv("FAKE_CARDS_FAIL");
    unsetenv("FAKE_CARDS_SEED");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_LAUNCH_BLOCKING");
}
