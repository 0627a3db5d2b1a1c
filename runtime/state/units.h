/* Units: parameters that sharded state gathers, reduces and stores together, like modules wrapped by PyTorch's
 * fully_shard. A unit's parameters are consecutive, padded to n equal parts; device r has part r. A part may begin
 * within a parameter.
 *
 *     el_units_open(graph, EL_UNIT_BLOCK, n, &units);
 *     units->of[p], units->offset[p]              parameter p's unit, and its start there
 *     el_units_own(units, p, r, &first, &count)   the elements of p in part r: all, some or none
 *     el_units_close(units);
 *
 * A parameter with limited rows (max_norm) is its own unit, of whole rows; so is one that another stage also has, so
 * that both have the same ranges. Frozen parameters are separate: gathered, without gradients. A unit is needed from
 * the first to the last node that reads it, in forward and in backward.
 * Units: elements. Ownership: the caller's. Threads: constant once opened. Errors: EL_ERR_HOST_MEMORY. */
#pragma once

#include "runtime/graph/graph.h"

/* A unit is: a numbered block of names (h.0, layer1.0), and the rest of such a model, or else layers; a layer; the
 * whole model. */
enum el_unit_kind { EL_UNIT_BLOCK, EL_UNIT_LAYER, EL_UNIT_MODEL };

struct el_unit {
    char name[EL_GRAPH_NAME_BYTES]; /* common prefix of its parameters; "": the whole model, or the rest */
    bool trained;
    int first_param, n_params;
    int64_t count, padding; /* a multiple of n, of which `padding` at the end */
    /* Nodes: needed from `open` to `close`, in forward and in backward; -1: never. */
    int forward_open, forward_close, backward_open, backward_close;
};

struct el_units {
    int n_pieces, n;
    struct el_unit *units;
    int *of;
    int64_t *offset;
};

enum el_status el_units_open(const struct el_graph *graph, enum el_unit_kind kind, int n_pieces,
                             struct el_units **units_p);
void el_units_close(struct el_units *units); /* NULL is legal */
/* Elements [*first_p, *first_p + *count_p) of parameter `p`, of n, are in part `piece`. */
void el_units_own(const struct el_units *units, int p, int64_t n, int piece, int64_t *first_p, int64_t *count_p);
