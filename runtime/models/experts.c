/* A layer of experts, for any model over tokens, and routing on purpose (--routing). */
#include "runtime/models/experts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/experts.h"
#include "runtime/base/rng.h"
#include "runtime/models/internal.h"

enum { BURST_EVERY = 8, DRAWS = 4096, FILE_ROWS_MAX = 1 << 20 };
static const double COLD = 1e-9;

static int add(struct el_graph *graph, const struct el_node_type *type, const char *layer, const char *name,
               const int *inputs, int n_inputs, int param, const struct el_node_attributes *attributes)
{
    char text[2 * EL_GRAPH_NAME_BYTES];
    snprintf(text, sizeof text, "%s.%s", layer, name);
    return el_graph_node(graph, type, text, inputs, n_inputs, &param, param >= 0, attributes);
}

static int add_param(struct el_graph *graph, const char *layer, const char *name, const struct el_shape *shape,
                     double deviation, bool cut)
{
    char text[2 * EL_GRAPH_NAME_BYTES];
    const int ranks = cut && graph->n_expert_ranks > 1 ? graph->n_expert_ranks : 1;
    struct el_shape own = *shape;
    own.d[0] /= ranks;
    snprintf(text, sizeof text, "%s.%s", layer, name);
    const int param = el_graph_param(graph, text, &own, el_normal(deviation));
    if (ranks > 1)
        el_graph_slice_param(graph, param,
                             (struct el_slice){.first = graph->expert_rank * own.d[0], .of = shape->d[0]});
    el_graph_store_matrices(graph, param);
    return param;
}

int el_layer_experts(struct el_graph *graph, const struct el_experts_layer *layer, int x)
{
    const struct el_model_config *config = layer->config;
    const int64_t experts = el_model_size(config, "experts"), k = el_model_size(config, "top-k");
    const int64_t inner = el_model_size(config, "expert-hidden"), width = layer->width;
    const double taken = ceil(config->capacity * (double)(k * layer->tokens) / (double)experts);
    const struct el_node_attributes of = {.layer = layer->number,
                                          .tokens = layer->tokens,
                                          .experts = experts,
                                          .choices = k,
                                          .capacity = config->capacity > 0 ? (int64_t)taken : 0,
                                          .aux = config->aux,
                                          .z = config->z};
    const char *name = layer->name;
    char parameter[2 * EL_GRAPH_NAME_BYTES];
    snprintf(parameter, sizeof parameter, "%s%s", layer->prefix, name);
    const int gate = add_param(graph, parameter, "gate.weight", &(struct el_shape){.n = 2, .d = {experts, width}},
                               layer->deviation, false);
    const int up = add_param(graph, parameter, "experts.gate_up_proj",
                             &(struct el_shape){.n = 3, .d = {experts, 2 * inner, width}}, layer->deviation, true);
    const int down = add_param(graph, parameter, "experts.down_proj",
                               &(struct el_shape){.n = 3, .d = {experts, width, inner}}, layer->last_deviation, true);
    const int logits = add(graph, &el_node_linear, name, "gate", &x, 1, gate, NULL);
    const int weights = add(graph, &el_node_route, name, "route", &logits, 1, -1, &of);
    if (weights < 0) return -1;
    const int place = weights + 1, counts = weights + 2;
    const int rows = add(graph, &el_node_dispatch, name, "dispatch", (int[]){x, weights, place, counts}, 4, -1, &of);
    if (rows < 0) return -1;
    int h = add(graph, &el_node_grouped, name, "experts.gate_up_proj", (int[]){rows, counts}, 2, up, &of);
    h = add(graph, &el_node_swiglu, name, "experts.act", (int[]){h, rows + 1, counts}, 3, -1, &of);
    h = add(graph, &el_node_grouped, name, "experts.down_proj", (int[]){h, counts}, 2, down, &of);
    return add(graph, &el_node_combine, name, "combine", (int[]){h, place, counts}, 3, -1, &of);
}

/* ---- routing on purpose ---- */

/* `n` experts from `first` on are hot: they come first, and what is left goes to any others. */
static void fill(struct el_routing *routing, int64_t row, int64_t first, int64_t n)
{
    for (int64_t e = 0; e < routing->experts; e++)
        routing->table[row * routing->experts + e] = e >= first && e < first + n ? 1 : COLD;
}

static void fill_zipf(struct el_routing *routing, double exponent)
{
    for (int64_t e = 0; e < routing->experts; e++) routing->table[e] = pow((double)(e + 1), -exponent);
}

/* Lines of a number per expert, separated by commas or spaces; lines that begin with # are comments. */
static enum el_status read_file(const char *path, struct el_routing *routing)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t bytes = 0;
    int64_t number = 0;
    enum el_status status = EL_OK;
    if (!file)
        status = el_fail(EL_ERR_INVALID, "--routing %s: no such routing, and as a file: %s", path, strerror(errno));
    while (status == EL_OK && getline(&line, &bytes, file) >= 0) {
        char *at = line + strspn(line, " \t\r\n"), *end;
        double sum = 0;
        number++;
        if (!*at || *at == '#') continue;
        double *table = realloc(routing->table, (size_t)((routing->rows + 1) * routing->experts) * sizeof *table);
        if (!table) status = el_fail_errno("routing of %lld steps", (long long)routing->rows);
        if (!table) break;
        routing->table = table;
        for (int64_t e = 0; e < routing->experts && status == EL_OK; e++) {
            double *value = &table[routing->rows * routing->experts + e];
            *value = strtod(at, &end);
            if (end == at || !(*value >= 0) || isinf(*value))
                status =
                    el_fail(EL_ERR_INVALID,
                            "--routing %s: line %lld: there must be %lld counts of at least 0, one for each expert",
                            path, (long long)number, (long long)routing->experts);
            sum += *value;
            at = end + strspn(end, ", \t\r\n");
        }
        if (status == EL_OK && (*at || sum <= 0 || routing->rows == FILE_ROWS_MAX))
            status = el_fail(EL_ERR_INVALID, "--routing %s: line %lld: %s", path, (long long)number,
                             *at        ? "more counts than experts (--experts)"
                             : sum <= 0 ? "no expert gets a token"
                                        : "too many steps");
        routing->rows++;
    }
    if (status == EL_OK && ferror(file))
        status = el_fail(EL_ERR_INVALID, "--routing %s: could not be read: %s", path, strerror(errno));
    if (status == EL_OK && routing->rows == 0)
        status = el_fail(EL_ERR_INVALID, "--routing %s: no line of counts: give one for each step", path);
    free(line);
    if (file) fclose(file);
    return status;
}

/* Expected choices of a token: the share of so many draws. */
static enum el_status expect(struct el_routing *routing, int64_t k)
{
    const struct el_rng_key key = {.use = EL_RNG_ROUTE};
    const int64_t n = routing->experts;
    routing->expected = calloc((size_t)n, sizeof *routing->expected);
    double *arrival = malloc((size_t)n * sizeof *arrival);
    if (!routing->expected || !arrival) {
        free(arrival);
        return el_fail_errno("routing to %lld experts", (long long)n);
    }
    for (uint64_t i = 0; i < DRAWS; i++) {
        const double *weights = routing->table + (int64_t)(i % (uint64_t)routing->rows) * n;
        for (int64_t e = 0; e < n; e++)
            arrival[e] = weights[e] > 0
                             ? -log1p(-el_rng_uniform(&key, i, (uint64_t)e) - EL_EXPERTS_HALF_DRAW) / weights[e]
                             : INFINITY;
        for (int64_t j = 0; j < k; j++) {
            int64_t best = -1;
            for (int64_t e = 0; e < n; e++)
                if (!isnan(arrival[e]) && (best < 0 || arrival[e] < arrival[best])) best = e;
            routing->expected[best] += 1.0 / DRAWS;
            arrival[best] = NAN;
        }
    }
    free(arrival);
    return EL_OK;
}

static enum el_status number_of(const char *text, const char *word, int64_t limit, int64_t *value_p)
{
    char *end;
    *value_p = strtoll(text, &end, 10);
    if (end != text && !*end && *value_p >= 0 && *value_p < limit) return EL_OK;
    if (limit == 1)
        return el_fail(EL_ERR_INVALID, "--routing %s:%s: each rank has all experts: give --mode ep", word, text);
    return el_fail(EL_ERR_INVALID, "--routing %s:%s: must be a number from 0 to %lld", word, text,
                   (long long)limit - 1);
}

/* What is behind "zipf:"; NULL: another routing. */
static const char *behind(const char *text, const char *word)
{
    const size_t n = strlen(word);
    return strncmp(text, word, n) == 0 && text[n] == ':' ? text + n + 1 : NULL;
}

static enum el_status take(const struct el_model_config *config, struct el_routing *routing)
{
    const char *text = config->routing, *zipf = behind(text, "zipf"), *hot = behind(text, "hot"),
               *hot_rank = behind(text, "hot-rank");
    const bool rotates = !strcmp(text, "rotate"), bursts = !strcmp(text, "burst");
    const int64_t n = routing->experts, ranks = config->expert_ranks > 1 ? config->expert_ranks : 1;
    int64_t one = 0;
    char *end;
    if (!zipf && !hot && !hot_rank && !rotates && !bursts) return read_file(text, routing);
    routing->rows = rotates ? n : bursts ? BURST_EVERY : 1;
    routing->table = calloc((size_t)(routing->rows * n), sizeof *routing->table);
    if (!routing->table) return el_fail_errno("routing to %lld experts", (long long)n);
    if (hot) EL_TRY(number_of(hot, "hot", n, &one));
    if (hot_rank) EL_TRY(number_of(hot_rank, "hot-rank", ranks, &one));
    if (zipf) {
        const double exponent = strtod(zipf, &end);
        if (end == zipf || *end || !(exponent >= 0 && exponent <= 10))
            return el_fail(EL_ERR_INVALID, "--routing %s: must be zipf:S with an exponent S from 0 to 10", text);
        fill_zipf(routing, exponent);
        return EL_OK;
    }
    const int64_t each = hot_rank ? n / ranks : 1;
    for (int64_t row = 0; row < routing->rows; row++) {
        const bool even = bursts && row < BURST_EVERY - 1;
        fill(routing, row, even ? 0 : rotates ? row : one * each, even ? n : each);
    }
    return EL_OK;
}

/* The expert at a place moves there with its tokens. */
static enum el_status move(const struct el_model_config *config, struct el_routing *routing)
{
    const int64_t n = routing->experts;
    const char *at = config->placement;
    int64_t from[EL_EXPERTS_MAX], places[EL_EXPERTS_MAX] = {0};
    for (int64_t e = 0; e < n; e++) {
        char *end;
        from[e] = strtoll(at, &end, 10);
        if (end == at || from[e] < 0 || from[e] >= n || places[from[e]]++ || (e + 1 < n ? *end != ',' : *end))
            return el_fail(
                EL_ERR_INVALID,
                "--placement %s: must name each of the %lld experts once, in the order of their ranks: 0,3,...",
                config->placement, (long long)n);
        at = end + 1;
    }
    for (int64_t row = 0; row < routing->rows; row++) {
        double weights[EL_EXPERTS_MAX];
        memcpy(weights, routing->table + row * n, (size_t)n * sizeof *weights);
        for (int64_t e = 0; e < n; e++) routing->table[row * n + e] = weights[from[e]];
    }
    return EL_OK;
}

static bool is_moved(const struct el_model_config *config)
{
    return *config->placement && strcmp(config->placement, "own") != 0;
}

static enum el_status make(const struct el_model_config *config, struct el_routing *routing)
{
    const bool drawn = strcmp(config->routing, "balanced") != 0;
    routing->balanced = !drawn;
    if (drawn) EL_TRY(take(config, routing));
    if (is_moved(config) && drawn) EL_TRY(move(config, routing));
    if (!drawn) return EL_OK;
    const size_t n = (size_t)(routing->rows * routing->experts);
    routing->single = malloc(n * sizeof *routing->single);
    if (!routing->single) return el_fail_errno("routing to %lld experts", (long long)routing->experts);
    for (size_t i = 0; i < n; i++) routing->single[i] = (float)routing->table[i];
    return expect(routing, el_model_size(config, "top-k"));
}

bool el_routing_is_learned(const struct el_model_config *config)
{
    return !*config->routing || !strcmp(config->routing, "learned");
}

enum el_status el_routing_open(const struct el_model_config *config, struct el_routing **routing_p)
{
    *routing_p = NULL;
    if (el_routing_is_learned(config)) {
        if (!is_moved(config)) return EL_OK;
        return el_fail(EL_ERR_INVALID,
                       "--placement: a router learns where to send, whatever the experts' order: give --routing");
    }
    if (!(*routing_p = calloc(1, sizeof **routing_p))) return el_fail_errno("routing");
    (*routing_p)->experts = el_model_size(config, "experts");
    return make(config, *routing_p);
}
