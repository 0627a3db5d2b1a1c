/* The model of a job, and the parts into which it is cut along its depth: one per stage of the layout, or several, as
 * the schedule has them.
 *
 *     el_parts_open(&config, &layout, &parts);
 *     el_parts_of(&parts, &spot)                what a device holds; parts.model itself where nothing is cut
 *     el_held_open(worker, member, &held);   ... held.parts[0 .. held.n)     the parts on it, with their parameters
 *     el_parts_close(&parts);
 *
 * Where the cuts are: config.cut. Names of nodes, comma-separated: the first of each later part. Or `time`, `memory`,
 * `nodes`: such that the largest part has as little as can be, of its FLOPs (forward and backward, as its kernels count
 * them), of its parameters, or of its nodes.
 *
 * Ownership: the graphs are the parts'; constant once open. Threads: one opens and closes; any reads.
 */
#pragma once

#include "runtime/graph/part.h"
#include "runtime/graph/pass.h"
#include "runtime/layout/config.h"
#include "runtime/layout/layout.h"
#include "runtime/layout/schedule.h"

struct el_parts {
    struct el_graph *model;
    int n, n_stages;
    struct el_graph *part[EL_PARTS_MAX];  /* [n] */
    struct el_graph *stage[EL_PARTS_MAX]; /* [n_stages]: its part, or all of them together */
    struct el_parts *pieces;              /* [n_pieces]: the same of each piece, where the model is cut across too */
    int n_pieces;
    struct el_schedule schedule; /* of a mode that cuts; else zeros: one part, on stage 0 */
};

/* `all_pieces` false: of those that are cut across the layers the first stands for all.
 * Errors: EL_ERR_INVALID naming --cut: a node that there is not, more parts than nodes, a cut that the model does not
 * allow; those of the schedule; EL_ERR_HOST_MEMORY. After a failure too it may be closed. */
enum el_status el_parts_open(const struct el_train_config *config, const struct el_layout *layout, bool all_pieces,
                             struct el_parts *parts);
/* Those of the piece that a device has, whose schedule is the job's; and what it holds of them. */
const struct el_parts *el_parts_piece(const struct el_parts *parts, const struct el_spot *spot);
const struct el_graph *el_parts_of(const struct el_parts *parts, const struct el_spot *spot);
/* Parts of zeros are legal. */
/* Whether the model can be cut across as the layout has it. Errors: EL_ERR_INVALID. */
enum el_status el_parts_check_pieces(const struct el_train_config *config, const struct el_layout *layout);
void el_parts_close(struct el_parts *parts);
