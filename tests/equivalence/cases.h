/* Cases that the tests of equivalence share: models, optimizers,
 * devices, dropout and batches, in f64 by the reference kernels, over 50 steps. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/train/train.h"
#include "tests/sanitized.h"

enum { CASE_STEPS = 50, CASE_STEPS_SANITIZED = 5 };

/* A step's losses may differ by this: sums are taken in another order, and 50 steps carry that on. */
static const double CASE_TOLERANCE = 1e-7;

struct el_case {
    const char *model;
    enum el_optimizer_kind optimizer;
    double dropout;
    int64_t batch;
};

/* Even and uneven batches: 24 divides by 1, 2, 3 and 4; 22 leaves shares that differ (and chunks of 6, 6, 6, 4 and 8,
 * 8, 6). */
static const struct el_case el_cases[] = {
    {"textcnn", EL_OPT_SGD, 0, 24},     {"textcnn", EL_OPT_MOMENTUM, 0.5, 24}, {"textcnn", EL_OPT_ADAM, 0.5, 22},
    {"textcnn", EL_OPT_ADAM, 0, 22},    {"textcnn", EL_OPT_SGD, 0.5, 22},      {"textcnn", EL_OPT_MOMENTUM, 0, 22},
    {"mlp", EL_OPT_SGD, 0, 22},         {"mlp", EL_OPT_MOMENTUM, 0, 24},       {"mlp", EL_OPT_ADAM, 0, 22},
    {"toy", EL_OPT_SGD, 0, 24},         {"toy", EL_OPT_MOMENTUM, 0, 22},       {"toy", EL_OPT_ADAM, 0, 22},
    {"linear", EL_OPT_MOMENTUM, 0, 22},
};

static const char *const optimizer_names[] = {"sgd", "momentum", "adam", "adamw"};

static inline void el_case_text(const struct el_case *c, const char *mode, int n_devices, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s %s %s dropout %g batch %d on %d", mode, c->model, optimizer_names[c->optimizer],
             c->dropout, (int)c->batch, n_devices);
}

/* Small sizes: the semantics do not depend on them. */
static inline enum el_status el_case_config(const struct el_case *c, const char *mode, int n_devices,
                                            struct el_train_config *config)
{
    *config = (struct el_train_config){.dtype = EL_F64,
                                       .optimizer = c->optimizer,
                                       .lr = c->optimizer >= EL_OPT_ADAM ? 0.002 : 0.05,
                                       .momentum = 0.9,
                                       .keep_grads = true,
                                       .overlap = true,
                                       .capture = true,
                                       .seed = 7,
                                       .global_batch = c->batch,
                                       .n_devices = n_devices,
                                       .n_micro = 2,
                                       .steps = is_sanitized() ? CASE_STEPS_SANITIZED : CASE_STEPS,
                                       .bucket_first_bytes = 1024, /* several buckets even here */
                                       .bucket_cap_bytes = 4096,
                                       .model = {.sizes = {{"vocab", 1, {60}},
                                                           {"embed", 1, {6}},
                                                           {"seq", 1, {9}},
                                                           {"filters", 1, {4}},
                                                           {"features", 1, {12}},
                                                           {"hidden", 2, {12, 7}}},
                                                 .classes = 4,
                                                 .dropout = c->dropout}};
    snprintf(config->mode, sizeof config->mode, "%s", mode);
    snprintf(config->model.name, sizeof config->model.name, "%s", c->model);
    EL_TRY(el_model_resolve(&config->model));
    return el_train_check(config);
}

/* Whether the model has enough nodes for a mode that cuts it. */
static inline bool el_case_can_be_cut(const struct el_case *c, const char *mode, int n_devices)
{
    struct el_train_config config;
    struct el_graph *graph;
    if (!el_mode_cuts(mode)) return true;
    if (el_case_config(c, mode, 1, &config) != EL_OK || el_model_build(&config.model, &graph) != EL_OK) return true;
    bool enough = graph->n_nodes >= n_devices;
    el_graph_destroy(graph);
    return enough;
}

/* Shares of the batch whose means count alike. */
static inline int el_case_shares(const struct el_case *c, const char *mode, int n_devices)
{
    struct el_train_config config;
    struct el_layout layout;
    if (el_case_config(c, mode, n_devices, &config) != EL_OK) return 0;
    el_layout_of(&config, 0, &layout);
    return layout.n_feeds;
}

static inline enum el_status el_case_dataset(struct el_dataset **dataset_p)
{
    struct el_dataset_spec spec = {.source = "dummy", .vocab = 60, .seq = 9, .classes = 4, .seed = 3};
    return el_dataset_open(&spec, dataset_p);
}

/* The worst difference between two runs' losses; INFINITY where one is not a number. */
static inline double el_case_difference(const struct el_train_result *a, const struct el_train_result *b)
{
    double worst = 0;
    for (int64_t i = 0; i < a->n_warmup + a->n_steps; i++) {
        double difference = fabs(a->loss[i] - b->loss[i]);
        if (!(difference <= worst)) worst = isnan(difference) ? INFINITY : difference;
    }
    return worst;
}
