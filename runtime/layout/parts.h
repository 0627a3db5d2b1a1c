/* A job's model, and its parts along the depth: one or, by the schedule, several per stage.
 *
 *     el_parts_open(&config, &layout, &parts);
 *     el_parts_of(&parts, &spot)                what a device holds; parts.model if nothing is cut
 *     el_held_open(worker, member, &held);   ... held.parts[0 .. held.n)     the parts on it, with their parameters
 *     el_parts_close(&parts);
 *
 * config.cut: the first node of each later part, comma-separated; or `time`, `memory`, `nodes`: minimises the largest
 * part's FLOPs (forward and backward, counted by kernels), parameters or nodes.
 * Ownership: parts own the graphs; constant once open. Threads: one opens and closes; any reads. */
#pragma once

#include "runtime/graph/part.h"
#include "runtime/graph/pass.h"
#include "runtime/layout/config.h"
#include "runtime/layout/layout.h"
#include "runtime/layout/schedule.h"

struct el_parts {
    struct el_graph *model;
    int n, n_stages;
    struct el_graph *part[EL_PARTS_MAX];
    struct el_graph *stage[EL_PARTS_MAX]; /* [n_stages]: its part, or all of them joined */
    struct el_parts *pieces;              /* [n_pieces]: the same for each piece along tensor, or rank along expert */
    int n_pieces;
    struct el_schedule schedule; /* of a mode with stages; else zeros: one part on stage 0 */
};

/* `all_pieces` false: the first piece represents all. Errors: EL_ERR_INVALID naming --cut (unknown node, more parts
 * than nodes, impossible cut); the schedule's; EL_ERR_HOST_MEMORY. Close it after a failure too. */
enum el_status el_parts_open(const struct el_train_config *config, const struct el_layout *layout, bool all_pieces,
                             struct el_parts *parts);
/* The parts of a device's piece (with the job's schedule), and what the device holds of them. */
const struct el_parts *el_parts_piece(const struct el_parts *parts, const struct el_spot *spot);
const struct el_graph *el_parts_of(const struct el_parts *parts, const struct el_spot *spot);
/* Whether the model can be cut across layers, or its experts can, by this layout. Errors: EL_ERR_INVALID. */
enum el_status el_parts_check_pieces(const struct el_train_config *config, const struct el_layout *layout);
void el_parts_close(struct el_parts *parts);
