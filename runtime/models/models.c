/* The list of models, and what they share. */
#include "runtime/models/models.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/models/experts.h"
#include "runtime/models/internal.h"

/* The rows el_model_<name> of the models' files (docs/adding.md). */
/* clang-format off */
#define MODELS(row) \
    row(textcnn)    \
    row(mlp)        \
    row(resnet18)   \
    row(resnet50)   \
    row(gpt)        \
    row(moe)        \
    row(branch)     \
    row(toy)        \
    row(linear)
/* clang-format on */

#define DECLARE(name) extern const struct el_model el_model_##name;
#define ADDRESS(name) &el_model_##name,

MODELS(DECLARE)
static const struct el_model *const models[] = {MODELS(ADDRESS)};
enum { N_MODELS = sizeof models / sizeof models[0] };

static struct el_model_info list[N_MODELS + 1];
static pthread_once_t list_once = PTHREAD_ONCE_INIT;

static void make_list(void)
{
    for (int i = 0; i < N_MODELS; i++) list[i] = models[i]->info;
}

const struct el_model_info *el_model_list(void)
{
    pthread_once(&list_once, make_list);
    return list;
}

static const struct el_model *find(const char *name)
{
    for (int i = 0; i < N_MODELS; i++) {
        if (strcmp(models[i]->info.name, name) == 0) return models[i];
    }
    return NULL;
}

const struct el_model_info *el_model_find(const char *name)
{
    const struct el_model *model = find(name);
    return model ? &model->info : NULL;
}

const struct el_model_size *el_model_size_row(const struct el_model_info *model, const char *name)
{
    for (const struct el_model_size *row = model->sizes; row->name; row++)
        if (!strcmp(row->name, name)) return row;
    return NULL;
}

int el_model_size_list(const struct el_model_size *list_p[EL_MODEL_SIZES_MAX])
{
    int n = 0;
    for (int m = 0; m < N_MODELS; m++)
        for (const struct el_model_size *row = models[m]->info.sizes; row->name && n < EL_MODEL_SIZES_MAX; row++) {
            bool listed = false;
            for (int i = 0; i < n; i++) listed |= !strcmp(list_p[i]->name, row->name);
            if (!listed) list_p[n++] = row;
        }
    return n;
}

const struct el_model_values *el_model_values(const struct el_model_config *config, const char *name)
{
    for (int i = 0; i < EL_MODEL_SIZES_MAX && config->sizes[i].name; i++)
        if (!strcmp(config->sizes[i].name, name)) return &config->sizes[i];
    return NULL;
}

int64_t el_model_size(const struct el_model_config *config, const char *name)
{
    const struct el_model_values *values = el_model_values(config, name);
    return values && values->n ? values->v[0] : 0;
}

void el_model_set(struct el_model_config *config, const char *name, const int64_t *values, int n)
{
    int place = 0;
    while (place < EL_MODEL_SIZES_MAX - 1 && config->sizes[place].name && strcmp(config->sizes[place].name, name))
        place++;
    struct el_model_values *size = &config->sizes[place];
    *size = (struct el_model_values){.name = name, .n = n};
    for (int i = 0; i < n; i++) size->v[i] = values[i];
}

int el_layer_linear_across(struct el_graph *graph, const char *name, int input, int64_t inputs, int64_t outputs,
                           bool relu, enum el_across across)
{
    char text[EL_GRAPH_NAME_BYTES];
    const double bound = 1 / sqrt((double)inputs);
    struct el_shape shape = {.n = 2, .d = {outputs, inputs}};
    struct el_slice slice = {.dim = across == EL_ACROSS_INPUTS, .of = across == EL_ACROSS_INPUTS ? inputs : outputs};
    if (across != EL_ACROSS_NOT) shape.d[slice.dim] /= graph->n_pieces;
    slice.first = graph->piece * shape.d[slice.dim];
    snprintf(text, sizeof text, "%.40s.weight", name);
    int w = el_graph_param(graph, text, &shape, el_uniform(bound));
    snprintf(text, sizeof text, "%.40s.bias", name);
    int bias = el_graph_param(graph, text, &(struct el_shape){.n = 1, .d = {shape.d[0]}}, el_uniform(bound));
    if (across != EL_ACROSS_NOT) el_graph_slice_param(graph, w, slice);
    if (across == EL_ACROSS_OUTPUTS) el_graph_slice_param(graph, bias, slice);
    return el_graph_node(graph, &el_node_linear, name, (int[]){input}, 1, (int[]){w, bias}, 2,
                         &(struct el_node_attributes){.relu = relu, .across = across});
}

int el_layer_linear(struct el_graph *graph, const char *name, int input, int64_t inputs, int64_t outputs, bool relu)
{
    return el_layer_linear_across(graph, name, input, inputs, outputs, relu, EL_ACROSS_NOT);
}

static enum el_status in_range(const char *option, int64_t value, int64_t low, int64_t high)
{
    if (value >= low && value <= high) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s %lld: must be between %lld and %lld", option, (long long)value, (long long)low,
                   (long long)high);
}

/* Sets defaults, or the only possible values. */
static enum el_status resolve_size(const struct el_model_size *row, struct el_model_config *config)
{
    const struct el_model_values *given = el_model_values(config, row->name);
    char option[64];
    if (!given || row->min == row->max) {
        int n = 1;
        while (row->list && n < EL_MODEL_VALUES_MAX && row->initial[n]) n++;
        el_model_set(config, row->name, row->initial, n);
        given = el_model_values(config, row->name);
    }
    snprintf(option, sizeof option, "--%s", row->name);
    for (int i = 0; i < given->n; i++) EL_TRY(in_range(option, given->v[i], row->min, row->max));
    return EL_OK;
}

enum el_status el_model_resolve(struct el_model_config *config)
{
    const struct el_model_info *model = el_model_find(config->name);
    if (!model) return el_fail(EL_ERR_INVALID, "--model %s: no such model", config->name);
    if (!config->classes || model->classes) config->classes = model->classes ? model->classes : 2;
    if (config->dropout < 0) config->dropout = model->dropout;
    for (const struct el_model_size *row = model->sizes; row->name; row++) EL_TRY(resolve_size(row, config));
    if (model->input == EL_INPUT_TOKENS) config->classes = el_model_size(config, "vocab");
    if (config->classes == 1 && config->loss != EL_MODEL_LOSS_MSE)
        return el_fail(EL_ERR_INVALID,
                       "--classes 1: only squared error takes one class: give --loss mse, or 2 to 10000");
    if (model->input != EL_INPUT_TOKENS) EL_TRY(in_range("--classes", config->classes, 1, 10000));
    if (!(config->dropout < 1))
        return el_fail(EL_ERR_INVALID, "--model dropout=%g: must be at least 0 and below 1", config->dropout);
    if (!(config->max_norm >= 0))
        return el_fail(EL_ERR_INVALID, "--model max-norm=%g: must not be negative", config->max_norm);
    if (model->experts && el_model_size(config, "top-k") > el_model_size(config, "experts"))
        return el_fail(EL_ERR_INVALID, "--top-k %lld: there are %lld experts (--experts): give at most as many",
                       (long long)el_model_size(config, "top-k"), (long long)el_model_size(config, "experts"));
    if (config->max_norm > 0 && model->input == EL_INPUT_TOKENS)
        return el_fail(EL_ERR_INVALID,
                       "--model max-norm=%g: model %s has no classifier of its own to limit: leave it out",
                       config->max_norm, config->name);
    return EL_OK;
}

static void list_layers(const struct el_graph *graph, char *text, size_t bytes)
{
    size_t used = 0, before = 0;
    *text = 0;
    for (int p = 0; p < graph->n_params && used < bytes; p++) {
        const char *name = graph->params[p].name;
        size_t n = strcspn(name, ".");
        if (p > 0 && n == before && !strncmp(name, graph->params[p - 1].name, n)) continue;
        used += (size_t)snprintf(text + used, bytes - used, "%s%.*s", used ? " " : "", (int)n, name);
        before = n;
    }
}

static enum el_status freeze(const struct el_model_config *config, struct el_graph *graph)
{
    char name[sizeof config->freeze], layers[256];
    for (const char *at = config->freeze; *config->freeze && graph->failure == EL_OK; at++) {
        size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (el_graph_freeze(graph, name) == 0) {
            list_layers(graph, layers, sizeof layers);
            return el_fail(EL_ERR_INVALID, "--freeze: %s has no parameter or layer '%.60s' (it has %s)", config->name,
                           name, layers);
        }
        at += n;
        if (!*at) break;
    }
    return EL_OK;
}

/* `head`: the piece's or rank's fields. */
static enum el_status build(const struct el_model_config *config, const struct el_graph *head,
                            struct el_graph **graph_p)
{
    struct el_graph *graph;
    enum el_loss_kind loss;
    EL_TRY(el_graph_create(&graph));
    *graph = *head;
    graph->precision = config->precision;
    if (find(config->name)->info.experts) graph->failure = el_routing_open(config, &graph->routing);
    if (graph->failure != EL_OK) el_error_take(graph->failure, &graph->error);
    int output = find(config->name)->build(config, graph, &loss);
    if (config->loss == EL_MODEL_LOSS_CROSS_ENTROPY) loss = EL_LOSS_CROSS_ENTROPY;
    if (config->loss == EL_MODEL_LOSS_MSE) loss = EL_LOSS_MSE;
    /* Every model ends in a classifier: weight and bias. */
    struct el_param *classifier = graph->n_params > 1 ? &graph->params[graph->n_params - 2] : NULL;
    if (graph->failure == EL_OK && classifier && config->max_norm > 0) classifier->max_norm = config->max_norm;
    enum el_status status = freeze(config, graph);
    if (status == EL_OK && classifier && classifier->max_norm > 0 && classifier->slice.of)
        status = el_fail(EL_ERR_INVALID,
                         "--model max-norm=%g: each device has a part of the classifier's rows: leave it out",
                         config->max_norm);
    if (status == EL_OK) status = el_graph_finish(graph, output, loss);
    if (status == EL_OK && loss == EL_LOSS_MSE && graph->class_slice.of)
        status = el_fail(EL_ERR_INVALID, "--loss mse: each device has a part of the classes: leave it out");
    if (status != EL_OK) {
        el_graph_destroy(graph);
        return status;
    }
    *graph_p = graph;
    return EL_OK;
}

enum el_status el_model_build(const struct el_model_config *config, struct el_graph **graph_p)
{
    return build(config, &(struct el_graph){0}, graph_p);
}

enum el_status el_model_build_rank(const struct el_model_config *config, int rank, int n, struct el_graph **graph_p)
{
    const int64_t experts = el_model_size(config, "experts");
    if (!find(config->name)->info.experts)
        return el_fail(EL_ERR_INVALID, "model %s has no experts that ranks could share (moe has): take another mode",
                       config->name);
    if (experts % n)
        return el_fail(EL_ERR_INVALID, "--experts %lld: does not divide evenly among %d ranks: change it, or --mesh ep",
                       (long long)experts, n);
    return build(config, &(struct el_graph){.expert_rank = rank, .n_expert_ranks = n}, graph_p);
}

/* A vocabulary divisible by `pieces`: in whole 64s, as GPT-2's 50257 is padded to 50304. */
static long long padded(int64_t vocab, int pieces)
{
    const int64_t both = 64 * pieces, step = 64 % pieces ? both : 64;
    return (vocab + step - 1) / step * step;
}

enum el_status el_model_build_piece(const struct el_model_config *config, int piece, int n_pieces, bool by_tokens,
                                    struct el_graph **graph_p)
{
    const struct el_model_info *model = el_model_find(config->name);
    if (!model->across[0])
        return el_fail(EL_ERR_INVALID,
                       "model %s cannot be cut across its layers: %s (gpt and mlp can): take another mode",
                       config->name, model->whole);
    for (int i = 0; model->across[i]; i++) {
        const struct el_model_values *size = el_model_values(config, model->across[i]);
        if (size->n == 0)
            return el_fail(EL_ERR_INVALID, "--%s: there is none that could be cut among %d devices: give some",
                           model->across[i], n_pieces);
        for (int k = 0; k < size->n; k += 2) {
            if (size->v[k] % n_pieces == 0) continue;
            if (strcmp(model->across[i], "vocab") == 0)
                return el_fail(EL_ERR_INVALID,
                               "--vocab %lld: does not divide evenly among %d devices: pad it, as to %lld (tokens that "
                               "no text has), or change --devices",
                               (long long)size->v[k], n_pieces, padded(size->v[k], n_pieces));
            return el_fail(EL_ERR_INVALID,
                           "--%s: %lld does not divide evenly among %d devices: change it, or --devices",
                           model->across[i], (long long)size->v[k], n_pieces);
        }
    }
    const int64_t tokens = model->input == EL_INPUT_TOKENS ? el_model_size(config, "seq") : 0;
    if (by_tokens && !tokens)
        return el_fail(EL_ERR_INVALID, "--sequence-parallel on: model %s has no tokens to cut: leave it out",
                       config->name);
    if (by_tokens && tokens % n_pieces)
        return el_fail(EL_ERR_INVALID,
                       "--sequence-parallel on: --seq %lld does not divide evenly among %d devices: change it, or "
                       "--devices",
                       (long long)tokens, n_pieces);
    return build(config, &(struct el_graph){.piece = piece, .n_pieces = n_pieces, .by_tokens = by_tokens}, graph_p);
}
