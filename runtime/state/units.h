/* Units: parameters that are gathered, reduced and stored together where the state is sharded, as the modules that
 * PyTorch's fully_shard wraps. A unit's parameters lie one behind another, filled up to n equal parts: device r of the
 * n has part r. A part may begin in the middle of a parameter.
 *
 *     el_units_open(graph, EL_UNIT_BLOCK, n, &units);
 *     units->of[p], units->offset[p]              which unit parameter p is in, and where it begins there
 *     el_units_own(units, p, r, &first, &count)   the elements of p that are in part r: all, some or none
 *     el_units_close(units);
 *
 * A parameter whose rows have a limit (max_norm) is a unit by itself, of whole rows; so is one that another stage has
 * too, so that both have the same ranges of it. What is not trained stands apart:
 * it is gathered, and has no gradients. When a unit is needed follows from the nodes that read it: from the first to
 * the last of them in forward, and in the same way in backward.
 *
 * Units: elements. Ownership: the caller's. Threads: constant once opened. Errors: EL_ERR_HOST_MEMORY.
 */
#pragma once

#include "runtime/graph/graph.h"

/* What is together: what stands behind one number in the parameters' names (h.0, layer1.0), and all the rest of such a
 * model, else as layers; each layer by itself; the whole model. */
enum el_unit_kind { EL_UNIT_BLOCK, EL_UNIT_LAYER, EL_UNIT_MODEL };

struct el_unit {
    char name[EL_GRAPH_NAME_BYTES]; /* that its parameters' begin with; "": the whole model, or its rest */
    bool trained;
    int first_param, n_params;
    int64_t count, padding; /* a multiple of n, of which so many elements at the end are nobody's */
    /* Nodes: it is needed from `open` to `close`, in forward and in backward; -1: not at all. */
    int forward_open, forward_close, backward_open, backward_close;
};

struct el_units {
    int n_pieces, n;
    struct el_unit *units;
    int *of;         /* [n_params] */
    int64_t *offset; /* [n_params] */
};

enum el_status el_units_open(const struct el_graph *graph, enum el_unit_kind kind, int n_pieces,
                             struct el_units **units_p);
void el_units_close(struct el_units *units); /* NULL is legal */
/* Elements [*first_p, *first_p + *count_p) of parameter `p`, which has n, are in part `piece`. */
void el_units_own(const struct el_units *units, int p, int64_t n, int piece, int64_t *first_p, int64_t *count_p);
