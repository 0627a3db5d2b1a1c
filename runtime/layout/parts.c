/* Cuts a model (parts.h). */
#include "runtime/layout/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FLOPs of one node, forward and backward, per sample, from its pass on a simulated device. */
static enum el_status flops_of(const struct el_train_config *config, const struct el_graph *part, bool is_first,
                               struct el_device *device, double *flops_p)
{
    struct el_program *program = NULL;
    struct el_pass *pass = NULL;
    struct el_view views[EL_NODE_PARAMS_MAX] = {{0}}, grads[EL_NODE_PARAMS_MAX] = {{0}};
    struct el_view buffers[EL_NODE_BUFFERS_MAX] = {{0}};
    struct el_view *edges = calloc((size_t)(part->n_inputs + part->n_outputs), sizeof *edges);
    struct el_pass_spec spec = {.graph = part,
                                .device = device,
                                .dtype = config->dtype,
                                .batch = 1,
                                .training = true,
                                .input_grads = !is_first,
                                .params = views,
                                .buffers = buffers,
                                .grads = grads};
    enum el_status status;
    if (!edges) return el_fail_errno("weighing '%s'", part->nodes[0].name);
    EL_TRY_GOTO(el_program_create(&program), done);
    EL_TRY_GOTO(el_pass_open(program, &spec, &pass), done);
    el_pass_forward(pass, edges, edges + part->n_inputs);
    el_pass_backward(pass, edges + part->n_inputs, NULL);
    el_pass_close(pass);
    for (int p = 0; p < part->n_params; p++) el_program_free(program, grads[p].buffer);
    *flops_p = el_program_model_flops(program);
done:
    el_program_destroy(program);
    free(edges);
    return status;
}

/* Nodes that share a parameter stay together: the first one has their total weight. */
static enum el_status weigh(const struct el_train_config *config, const struct el_graph *model,
                            struct el_device *device, int node, double *weight_p)
{
    struct el_graph *part;
    bool memory = strcmp(config->cut, "memory") == 0;
    *weight_p = 1;
    if (strcmp(config->cut, "nodes") == 0 || el_graph_part(model, node, 1, &part) != EL_OK) return EL_OK;
    enum el_status status = EL_OK;
    if (memory)
        *weight_p = (double)el_graph_param_count(part);
    else
        status = flops_of(config, part, node == 0, device, weight_p);
    el_graph_destroy(part);
    return status;
}

/* Part `k` begins at node first[k]; first[n] is the number of nodes. */
struct cuts {
    int n, first[EL_PARTS_MAX + 1];
};

/* For parts that end before a node: the minimum of the largest weight, and the last one's first node. */
struct end {
    double least;
    int begin;
};

/* ends[n + 1][n_nodes + 1], by the number of parts, none of them empty. */
static void balance(const double *weights, int n_nodes, struct end *ends, struct cuts *cuts)
{
    for (int end = 0; end <= n_nodes; end++) ends[end].least = end == 0 ? 0 : INFINITY;
    for (int k = 1; k <= cuts->n; k++) {
        const struct end *fewer = ends + (k - 1) * (n_nodes + 1);
        for (int end = 0; end <= n_nodes; end++) {
            struct end *best = ends + k * (n_nodes + 1) + end;
            double part = 0;
            best->least = INFINITY;
            for (int begin = end - 1; begin >= 0; begin--) {
                part += weights[begin];
                if (part >= best->least) break; /* weights only grow */
                double heaviest = part > fewer[begin].least ? part : fewer[begin].least;
                if (heaviest < best->least) *best = (struct end){heaviest, begin};
            }
        }
    }
    cuts->first[cuts->n] = n_nodes;
    for (int k = cuts->n; k > 0; k--) cuts->first[k - 1] = ends[k * (n_nodes + 1) + cuts->first[k]].begin;
}

static enum el_status find_balance(const struct el_train_config *config, const struct el_graph *model,
                                   struct cuts *cuts)
{
    size_t n_nodes = (size_t)model->n_nodes;
    double *weights = calloc(n_nodes, sizeof *weights);
    struct end *ends = calloc((size_t)(cuts->n + 1) * (n_nodes + 1), sizeof *ends);
    struct el_device *device = NULL;
    struct el_device_spec spec = {.backend = "sim"};
    enum el_status status = weights && ends ? el_device_open(&spec, &device) : el_fail_errno("weights of the nodes");
    for (int n = 0; n < model->n_nodes && status == EL_OK; n++) status = weigh(config, model, device, n, &weights[n]);
    if (status == EL_OK) balance(weights, model->n_nodes, ends, cuts);
    el_device_close(device);
    free(weights);
    free(ends);
    return status;
}

static int find_node(const struct el_graph *model, const char *name)
{
    for (int n = 0; n < model->n_nodes; n++)
        if (strcmp(model->nodes[n].name, name) == 0) return n;
    return -1;
}

static enum el_status find_named(const struct el_train_config *config, const struct el_graph *model, struct cuts *cuts)
{
    char names[sizeof config->cut], *rest = names;
    int k = 1;
    snprintf(names, sizeof names, "%s", config->cut);
    for (const char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest), k++) {
        int node = find_node(model, name);
        if (node < 0)
            return el_fail(EL_ERR_INVALID, "--cut %s: %s has no node '%s'", config->cut, config->model.name, name);
        if (k < cuts->n) cuts->first[k] = node;
        if (node <= (k <= cuts->n ? cuts->first[k - 1] : 0))
            return el_fail(EL_ERR_INVALID, "--cut %s: '%s' is not after the previous cut", config->cut, name);
    }
    cuts->first[cuts->n] = model->n_nodes;
    if (k == cuts->n) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--cut %s: gives %d parts, and there must be %d", config->cut, k, cuts->n);
}

static bool is_balance(const char *cut)
{
    return strcmp(cut, "time") == 0 || strcmp(cut, "memory") == 0 || strcmp(cut, "nodes") == 0;
}

static enum el_status cut_up(const struct el_train_config *config, struct el_parts *parts, int n)
{
    struct cuts cuts = {.n = n};
    const char *or_else = n == parts->n_stages                    ? ""
                          : el_schedule_is_file(config->schedule) ? ", or another --schedule"
                                                                  : ", or fewer --schedule parts";
    if (n > parts->model->n_nodes)
        return el_fail(EL_ERR_INVALID, "%s has %d node%s: it cannot be cut into %d parts: give %s%s",
                       config->model.name, parts->model->n_nodes, parts->model->n_nodes == 1 ? "" : "s", n,
                       config->mesh[EL_AXIS_STAGE] ? "a smaller pp" : "fewer --devices", or_else);
    EL_TRY(is_balance(config->cut) ? find_balance(config, parts->model, &cuts)
                                   : find_named(config, parts->model, &cuts));
    for (; parts->n < n; parts->n++) {
        int first = cuts.first[parts->n];
        EL_TRY(el_graph_part(parts->model, first, cuts.first[parts->n + 1] - first, &parts->part[parts->n]));
    }
    return EL_OK;
}

static enum el_status fill_stages(struct el_parts *parts)
{
    for (int s = 0; s < parts->n_stages; s++) {
        const struct el_graph *held[EL_PARTS_MAX];
        int n = 0;
        for (int k = 0; k < parts->n; k++)
            if (parts->schedule.device[k] == s) held[n++] = parts->stage[s] = parts->part[k];
        if (n > 1) EL_TRY(el_graph_of_parts(held, n, &parts->stage[s]));
    }
    return EL_OK;
}

const struct el_parts *el_parts_piece(const struct el_parts *parts, const struct el_spot *spot)
{
    const int piece = spot->at[EL_AXIS_TENSOR] + spot->at[EL_AXIS_EXPERT]; /* one of them is 0 */
    return parts->pieces ? &parts->pieces[piece < parts->n_pieces ? piece : 0] : parts;
}

const struct el_graph *el_parts_of(const struct el_parts *parts, const struct el_spot *spot)
{
    return el_parts_piece(parts, spot)->stage[spot->at[EL_AXIS_STAGE]];
}

static enum el_status build_piece(const struct el_train_config *config, const struct el_layout *layout, int piece,
                                  struct el_graph **graph_p)
{
    const int ranks = layout->n[EL_AXIS_EXPERT];
    if (ranks > 1) return el_model_build_rank(&config->model, piece, ranks, graph_p);
    return el_model_build_piece(&config->model, piece, layout->n[EL_AXIS_TENSOR], config->by_tokens, graph_p);
}

/* A piece is cut at the same nodes as the whole model. */
static enum el_status open_piece(const struct el_train_config *config, const struct el_parts *whole,
                                 const struct el_layout *layout, struct el_parts *piece)
{
    int first = 0;
    piece->schedule = whole->schedule;
    piece->n_stages = whole->n_stages;
    EL_TRY(build_piece(config, layout, whole->n_pieces, &piece->model));
    if (whole->n == 1) piece->part[piece->n++] = piece->model;
    for (; piece->n < whole->n; first += whole->part[piece->n++]->n_nodes)
        EL_TRY(el_graph_part(piece->model, first, whole->part[piece->n]->n_nodes, &piece->part[piece->n]));
    return fill_stages(piece);
}

enum el_status el_parts_check_pieces(const struct el_train_config *config, const struct el_layout *layout)
{
    struct el_graph *piece;
    if (layout->n[EL_AXIS_TENSOR] * layout->n[EL_AXIS_EXPERT] == 1) return EL_OK;
    EL_TRY(build_piece(config, layout, 0, &piece));
    el_graph_destroy(piece);
    return EL_OK;
}

static enum el_status open_pieces(const struct el_train_config *config, const struct el_layout *layout, bool all,
                                  struct el_parts *parts)
{
    const int n = layout->n[EL_AXIS_TENSOR] * layout->n[EL_AXIS_EXPERT];
    parts->pieces = calloc((size_t)n, sizeof *parts->pieces);
    if (!parts->pieces) return el_fail_errno("%d pieces of a model", n);
    enum el_status status = EL_OK;
    for (; parts->n_pieces < (all ? n : 1) && status == EL_OK; parts->n_pieces++)
        status = open_piece(config, parts, layout, &parts->pieces[parts->n_pieces]);
    return status;
}

enum el_status el_parts_open(const struct el_train_config *config, const struct el_layout *layout, bool all_pieces,
                             struct el_parts *parts)
{
    *parts = (struct el_parts){0};
    EL_TRY(el_model_build(&config->model, &parts->model));
    if (layout->cuts) EL_TRY(el_schedule_open(config, layout->n[EL_AXIS_STAGE], &parts->schedule));
    parts->n_stages = layout->n[EL_AXIS_STAGE];
    if (parts->schedule.n_parts > 1 || (layout->cuts && !is_balance(config->cut)))
        EL_TRY(cut_up(config, parts, parts->schedule.n_parts));
    else
        parts->part[parts->n++] = parts->model;
    EL_TRY(fill_stages(parts));
    const bool pieces = layout->n[EL_AXIS_TENSOR] * layout->n[EL_AXIS_EXPERT] > 1;
    return pieces ? open_pieces(config, layout, all_pieces, parts) : EL_OK;
}

static bool is_part(const struct el_parts *parts, const struct el_graph *graph)
{
    for (int k = 0; k < parts->n; k++)
        if (parts->part[k] == graph) return true;
    return false;
}

static void close_graphs(struct el_parts *parts)
{
    for (int s = 0; s < parts->n_stages; s++)
        if (!is_part(parts, parts->stage[s])) el_graph_destroy(parts->stage[s]);
    for (int k = 0; k < parts->n; k++)
        if (parts->part[k] != parts->model) el_graph_destroy(parts->part[k]);
    el_graph_destroy(parts->model);
}

void el_parts_close(struct el_parts *parts)
{
    for (int k = 0; k < parts->n_pieces; k++) close_graphs(&parts->pieces[k]);
    free(parts->pieces);
    close_graphs(parts);
    el_schedule_close(&parts->schedule);
    *parts = (struct el_parts){0};
}
