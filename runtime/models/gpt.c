/* gpt: GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019), with a tied embedding as
 * head. A tensor-parallel piece has some heads, inner outputs and tokens of the vocabulary, and the rest whole. Names,
 * order and initial values are Hugging Face's GPT2LMHeadModel: normal with deviation 0.02, divided by sqrt(2 layers) at
 * branches' ends. Dropout: after the embedding and at branches' ends, not on attention. */
#include <math.h>
#include <stdio.h>

#include "runtime/models/experts.h"
#include "runtime/models/internal.h"

static const double DEVIATION = 0.02;
enum { WIDER = 4 }; /* a block's inner width / its width */

/* clang-format off */
#define SIZES                                                                                                          \
    {"layers", "blocks", 1, 1000, .initial = {4}, .small = {2}},                                                       \
    {"embed", "width: the size of a token's vector", 1, 65536, .initial = {256}, .small = {8}},                        \
    {"heads", "heads of attention, which divide the width", 1, 4096, .initial = {4}, .small = {4}},                    \
    {"seq", "tokens a sequence", 1, 65536, .initial = {128}, .small = {6}},                                            \
    {"vocab", "vocabulary size", 2, 1 << 30, .initial = {8192}, .small = {60}}
/* clang-format on */
static const struct el_model_size sizes[] = {SIZES, {.name = NULL}};
static const struct el_model_size moe_sizes[] = {
    SIZES,
    {"experts", "experts of each block", 2, EL_EXPERTS_MAX, .initial = {8}, .small = {4}},
    {"top-k", "experts that each token goes to", 1, EL_EXPERTS_CHOSEN_MAX, .initial = {2}, .small = {2}},
    {"expert-hidden", "inner width of an expert", 1, 1 << 20, .initial = {512}, .small = {8}},
    {.name = NULL},
};

enum { BLOCK_BYTES = 16 };

struct gpt {
    const struct el_model_config *config;
    struct el_graph *graph;
    bool experts;
    int64_t layers, width, heads, seq, vocab;
    double dropout;
    char block[BLOCK_BYTES]; /* "h.0.": the current block; "": outside blocks */
};

static int param(const struct gpt *gpt, const char *layer, const char *name, const struct el_shape *shape,
                 struct el_initial initial)
{
    char text[2 * EL_GRAPH_NAME_BYTES];
    snprintf(text, sizeof text, "transformer.%s%s.%s", gpt->block, layer, name);
    return el_graph_param(gpt->graph, text, shape, initial);
}

static int node(const struct gpt *gpt, const struct el_node_type *type, const char *layer, int x, const int *params,
                int n_params, const struct el_node_attributes *attributes)
{
    char text[2 * EL_GRAPH_NAME_BYTES];
    snprintf(text, sizeof text, "%s%s", gpt->block, layer);
    return el_graph_node(gpt->graph, type, text, &x, 1, params, n_params, attributes);
}

static int add_norm(const struct gpt *gpt, const char *layer, int x)
{
    const struct el_shape row = {.n = 1, .d = {gpt->width}};
    int scale = param(gpt, layer, "weight", &row, el_constant(1));
    int shift = param(gpt, layer, "bias", &row, el_constant(0));
    el_graph_between(gpt->graph, scale);
    el_graph_between(gpt->graph, shift);
    return node(gpt, &el_node_layer_norm, layer, x, (int[]){scale, shift}, 2, NULL);
}

/* w: the whole model's [outputs, inputs], or several such matrices of the same inputs; transposed in files, like
 * Hugging Face's Conv1D. */
static int add_linear(const struct gpt *gpt, const char *layer, int x, const struct el_shape *w, double deviation,
                      enum el_across across)
{
    const int last = w->n - 1, dim = across == EL_ACROSS_INPUTS ? last : last - 1, n = gpt->graph->n_pieces;
    struct el_shape own = *w, row;
    if (n) own.d[dim] /= n;
    const struct el_slice slice = {.dim = dim, .first = gpt->graph->piece * own.d[dim], .of = w->d[dim]};
    row = across == EL_ACROSS_INPUTS ? *w : own;
    row.n--;
    int weight = param(gpt, layer, "weight", &own, el_normal(deviation));
    int bias = param(gpt, layer, "bias", &row, el_constant(0));
    el_graph_store_transposed(gpt->graph, weight, bias);
    if (n) el_graph_slice_param(gpt->graph, weight, slice);
    if (n && across == EL_ACROSS_OUTPUTS) el_graph_slice_param(gpt->graph, bias, slice);
    return node(gpt, &el_node_linear, layer, x, (int[]){weight, bias}, 2,
                &(struct el_node_attributes){.across = n ? across : EL_ACROSS_NOT});
}

static int add_dropout(const struct gpt *gpt, const char *layer, int x)
{
    if (gpt->dropout <= 0) return x;
    return node(gpt, &el_node_dropout, layer, x, NULL, 0, &(struct el_node_attributes){.rate = gpt->dropout});
}

static int add_residual(const struct gpt *gpt, const char *dropout, const char *layer, int x, int f)
{
    char text[2 * EL_GRAPH_NAME_BYTES];
    f = add_dropout(gpt, dropout, f);
    snprintf(text, sizeof text, "%s%s", gpt->block, layer);
    return el_graph_node(gpt->graph, &el_node_residual, text, (int[]){x, f}, 2, NULL, 0, NULL);
}

static int add_experts(const struct gpt *gpt, int number, int x, double last)
{
    char name[EL_GRAPH_NAME_BYTES];
    snprintf(name, sizeof name, "%smlp", gpt->block);
    const struct el_experts_layer layer = {.config = gpt->config,
                                           .prefix = "transformer.",
                                           .name = name,
                                           .number = number,
                                           .width = gpt->width,
                                           .tokens = gpt->seq,
                                           .deviation = DEVIATION,
                                           .last_deviation = last};
    return el_layer_experts(gpt->graph, &layer, x);
}

static int add_mlp(const struct gpt *gpt, int f, double last)
{
    const int64_t width = gpt->width, inner = WIDER * width;
    f = add_linear(gpt, "mlp.c_fc", f, &(struct el_shape){.n = 2, .d = {inner, width}}, DEVIATION, EL_ACROSS_OUTPUTS);
    f = node(gpt, &el_node_gelu, "mlp.act", f, NULL, 0, NULL);
    return add_linear(gpt, "mlp.c_proj", f, &(struct el_shape){.n = 2, .d = {width, inner}}, last, EL_ACROSS_INPUTS);
}

static int add_block(const struct gpt *gpt, int number, int x)
{
    const int64_t width = gpt->width;
    const double last = DEVIATION / sqrt(2.0 * (double)gpt->layers);
    int f = add_norm(gpt, "ln_1", x);
    f = add_linear(gpt, "attn.c_attn", f, &(struct el_shape){.n = 3, .d = {3, width, width}}, DEVIATION,
                   EL_ACROSS_OUTPUTS);
    f = node(
        gpt, &el_node_attention, "attn", f, NULL, 0,
        &(struct el_node_attributes){.heads = gpt->graph->n_pieces ? gpt->heads / gpt->graph->n_pieces : gpt->heads});
    f = add_linear(gpt, "attn.c_proj", f, &(struct el_shape){.n = 2, .d = {width, width}}, last, EL_ACROSS_INPUTS);
    x = add_residual(gpt, "attn.resid_dropout", "attn.add", x, f);
    f = add_norm(gpt, "ln_2", x);
    f = gpt->experts ? add_experts(gpt, number, f, last) : add_mlp(gpt, f, last);
    return add_residual(gpt, "mlp.dropout", "mlp.add", x, f);
}

static int build(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    struct gpt gpt = {.config = config,
                      .graph = graph,
                      .experts = el_model_size(config, "experts") > 0,
                      .layers = el_model_size(config, "layers"),
                      .width = el_model_size(config, "embed"),
                      .heads = el_model_size(config, "heads"),
                      .seq = el_model_size(config, "seq"),
                      .vocab = el_model_size(config, "vocab"),
                      .dropout = config->dropout};
    const int n = graph->n_pieces;
    const struct el_shape table = {.n = 2, .d = {n ? gpt.vocab / n : gpt.vocab, gpt.width}},
                          rows = {.n = 2, .d = {gpt.seq, gpt.width}};
    int x = el_graph_input(graph, "tokens", EL_I32, &(struct el_shape){.n = 1, .d = {gpt.seq}});
    int tokens = param(&gpt, "wte", "weight", &table, el_normal(DEVIATION));
    if (n) el_graph_slice_param(graph, tokens, (struct el_slice){.first = graph->piece * table.d[0], .of = gpt.vocab});
    int places = param(&gpt, "wpe", "weight", &rows, el_normal(DEVIATION));
    el_graph_between(graph, places);
    x = node(&gpt, &el_node_embedding, "wte", x, &tokens, 1, NULL);
    x = node(&gpt, &el_node_shift, "wpe", x, &places, 1, NULL);
    x = add_dropout(&gpt, "drop", x);
    for (int i = 0; i < gpt.layers; i++) {
        snprintf(gpt.block, sizeof gpt.block, "h.%d.", i);
        graph->segment = config->recompute ? i + 1 : 0;
        x = add_block(&gpt, i, x);
    }
    graph->segment = 0;
    gpt.block[0] = 0;
    x = add_norm(&gpt, "ln_f", x);
    *loss_p = EL_LOSS_CROSS_ENTROPY;
    x = node(&gpt, &el_node_linear, "lm_head", x, &tokens, 1,
             &(struct el_node_attributes){.across = n ? EL_ACROSS_OUTPUTS : EL_ACROSS_NOT});
    if (n)
        el_graph_slice_node(graph, x, (struct el_slice){.dim = 1, .first = graph->piece * table.d[0], .of = gpt.vocab});
    return x;
}

const struct el_model el_model_gpt = {.info = {.name = "gpt",
                                               .summary = "GPT-2's transformer over tokens; the head is the embedding",
                                               .input = EL_INPUT_TOKENS,
                                               .sizes = sizes,
                                               .drops = true,
                                               .blocks = true,
                                               .across = {"heads", "vocab"}},
                                      .build = build};

const struct el_model el_model_moe = {.info = {.name = "moe",
                                               .summary = "gpt with a router and experts (Mixtral's) in each block",
                                               .input = EL_INPUT_TOKENS,
                                               .sizes = moe_sizes,
                                               .whole = "its experts are cut instead",
                                               .drops = true,
                                               .blocks = true,
                                               .experts = true},
                                      .build = build};
