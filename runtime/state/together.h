/* Ops of one kind, at most one per parameter, issued one by one or, with --optimizer foreach=on, as one op of many
 * tensors.
 *
 *     struct el_together copies = {.shard = shard, .program = program, .phase = phase, .label = "copy to bucket"};
 *     el_together_move(&copies, ...);  ...
 *     el_together_end(&copies);
 *
 * All have the same types and scalars. Errors: the program's. */
#pragma once

#include "runtime/state/shard.h"

struct el_together {
    const struct el_shard *shard;
    struct el_program *program;
    enum el_phase phase;
    const char *label; /* of moves, copies, fills and the joint op; NULL: its kernel's name */
    struct el_kernel_op op;
    struct el_tensor_views *tensors;
};

bool el_together_is_on(const struct el_shard *shard);
void el_together_add(struct el_together *together, const struct el_kernel_op *op);
/* y = scale * x, as el_shard_issue_move. */
void el_together_move(struct el_together *together, enum el_dtype from, struct el_view x, enum el_dtype to,
                      struct el_view y, int64_t n, double scale);
/* y = x, in the stored type; one by one these are copies. */
void el_together_copy(struct el_together *together, struct el_view x, struct el_view y, int64_t n);
void el_together_zero(struct el_together *together, struct el_view x, int64_t n);
void el_together_end(struct el_together *together);
