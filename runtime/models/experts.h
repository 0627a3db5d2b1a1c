/* A layer of experts, which takes a block's MLP's place, and routing on purpose.
 *
 *     x = el_layer_experts(graph, &(struct el_experts_layer){.config = config, .name = "h.0.mlp", ...}, x);
 *
 * Sizes: `experts`, `top-k`, `expert-hidden` of the model's rows. Parameters have Hugging Face's names and shapes of
 * Mixtral (transformers 5): gate.weight [experts, width], experts.gate_up_proj [experts, 2 hidden, width],
 * experts.down_proj [experts, width, hidden]. Errors: the graph's. */
#pragma once

#include "runtime/models/models.h"

struct el_experts_layer {
    const struct el_model_config *config;
    const char *prefix, *name; /* "transformer.", "h.0.mlp" */
    int64_t number;            /* among the model's layers of experts */
    int64_t width, tokens;
    double deviation, last_deviation; /* of initial weights */
};

/* Returns the output [tokens, width]. */
int el_layer_experts(struct el_graph *graph, const struct el_experts_layer *layer, int x);

bool el_routing_is_learned(const struct el_model_config *config);
/* config.routing; NULL: learned. Close it (graph.h) after a failure too. Errors: EL_ERR_INVALID naming --routing or
 * --placement; EL_ERR_HOST_MEMORY. */
enum el_status el_routing_open(const struct el_model_config *config, struct el_routing **routing_p);
