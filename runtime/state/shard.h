/* A shard: a device, and what it holds of a model from step to step. Its graph is the part of the model that it is
 * given, and everything here is sized by that graph. What is loaded into it is the feed's (feed.h).
 *
 *     el_shard_open(&shard, &spec);                             weights have their initial values
 *     el_shard_issue_zero_grad(&shard, program);                in a step ...
 *     el_shard_issue_optimizer(&shard, program, grads);
 *     el_shard_read_loss(&shard, &loss);                        ... and after it
 *     el_shard_close(&shard);
 *
 * Shapes: views are of a parameter's elements, in the type of the configuration: [n_params] of them, in the graph's
 * order. Where one is not there its buffer is NULL.
 * Timing: open, close and read_loss block. What is called issue puts ops on the device's compute stream, and its
 * failures are the program's.
 * Ownership: the shard owns its buffers; config, graph and device must outlive it. Threads: one at a time.
 * Errors: EL_ERR_OOM names device and tag; EL_ERR_HOST_MEMORY.
 */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/graph/pass.h"
#include "runtime/state/state.h"
#include "runtime/state/units.h"

struct el_shard {
    const struct el_train_config *config;
    const struct el_graph *graph;
    struct el_device *device;
    /* An owner's; NULL on a device that holds nothing between steps. A parameter that is frozen, or that the graph does
     * not use, has neither a gradient nor slots. */
    union {
        struct el_view *rows[EL_STATE_COUNT];
        struct {
            struct el_view *params;
            /* --zero-grad keep: its own. --bucket-mb view=on: places in the mode's buckets, which the mode fills in and
             * frees. Else without buffers, and allocated in each step. */
            struct el_view *grads;
            struct el_view *slots[EL_SLOTS_MAX]; /* of the optimizer */
            struct el_view *buffers;             /* [n_buffers]: in one piece (buffers.h) */
            struct el_view *casts;               /* what passes take, where that is of another type than `params` */
        };
    };
    struct el_view *issued; /* a place for the gradients of the step that its mode is issuing */
    struct el_buffer *loss; /* [n_accumulate] of the configuration: of the last step's micro-steps */
    /* Where the state is sharded (else NULL): parameters, and what else is stored by ranges, lie unit by unit. Of rows
     * with a bit 1 << enum el_state in `split` it stores part `piece` of each unit. */
    struct el_units *units;
    unsigned split;
    int piece;
    /* Who have the rest of the model, with n_copies - 1 more copies of all of it; NULL: it is here. The worker's. */
    struct el_comm *rest;
    int n_copies;
};

/* After a failure too it is to be closed. n_pieces 0: the state is not sharded. */
struct el_shard_spec {
    const struct el_train_config *config;
    const struct el_graph *graph;
    struct el_device *device;
    bool owns;
    unsigned split;
    int piece, n_pieces;
};
enum el_status el_shard_open(struct el_shard *shard, const struct el_shard_spec *spec);
/* A shard of zeros is legal. */
void el_shard_close(struct el_shard *shard);

size_t el_shard_param_bytes(const struct el_shard *shard, int param);
/* What passes take: [n_params], of el_config_computed; or, where it is stored in parts, what is gathered (copies.h).
 */
const struct el_view *el_shard_computed(const struct el_shard *shard);
/* The walk over what it stores, row by row:
 *
 *     for (struct el_state_item item = {0}; el_shard_next(&shard, &item);)
 *         item.row.name, item.array->name, item.view          buffer NULL: not there (yet)
 */
struct el_state_item {
    enum el_state what;
    struct el_state_row row;
    int number; /* of the graph's parameters, or buffers */
    const struct el_param *array;
    struct el_view *view;
    int64_t first, count; /* the elements of the array that are stored, in the order of its memory */
    int at;               /* the walk's */
};
bool el_shard_next(const struct el_shard *shard, struct el_state_item *item);
/* Those elements of one array. The optimizer updates those of EL_STATE_SLOT. */
void el_shard_range(const struct el_shard *shard, enum el_state what, int number, int64_t *first_p, int64_t *count_p);
/* An item's values, [count of its array] in the order of its shape: zeros where another device stores them. */
enum el_status el_shard_read_item(const struct el_shard *shard, const struct el_state_item *item, double *values);
/* The same of its memory [item->count], which has been read before. */
enum el_status el_shard_values_of(const struct el_shard *shard, const struct el_state_item *item, const void *memory,
                                  double *values);
/* To the device: those that it stores. `values` is scratch afterwards. */
enum el_status el_shard_write_item(const struct el_shard *shard, const struct el_state_item *item, double *values);
/* A buffer's values as people, files and comparisons want them: all elements in the order of its shape, as doubles,
 * however the device stores them. `view`: where they are. Between steps. */
enum el_status el_shard_read_doubles(const struct el_shard *shard, const struct el_param *array, struct el_view view,
                                     double *values);
/* Element `i` of `values`, in the type of the configuration; 0 where kernels do not compute. Between steps. */
enum el_status el_shard_read_value(const struct el_shard *shard, struct el_buffer *values, int i, double *value_p);
/* The mean of `loss`. */
enum el_status el_shard_read_loss(const struct el_shard *shard, double *loss_p);

/* Zeroes kept gradients (phase optimizer); nothing where they are freed. */
void el_shard_issue_zero_grad(const struct el_shard *shard, struct el_program *program);
/* One step of the optimizer by grads[n_params] (where slots are split: of the elements that it updates), whose norm
 * over the whole model is limited first (--clip: in place), then the limit on rows' norms. What has no gradient stays
 * as it is. Collective over `rest`, if they are clipped. */
void el_shard_issue_optimizer(const struct el_shard *shard, struct el_program *program, const struct el_view *grads);
/* x = value, n elements. */
void el_shard_issue_fill(const struct el_shard *shard, struct el_program *program, enum el_phase phase,
                         const char *label, struct el_view x, int64_t n, double value);
/* The same of another type than the configuration's. */
void el_shard_issue_fill_as(const struct el_shard *shard, struct el_program *program, enum el_phase phase,
                            const char *label, enum el_dtype dtype, struct el_view x, int64_t n, double value);
/* y = scale * x, n elements, each in a type of its own. */
void el_shard_issue_move(const struct el_shard *shard, struct el_program *program, enum el_phase phase,
                         const char *label, enum el_dtype from, struct el_view x, enum el_dtype to, struct el_view y,
                         int64_t n, double scale);
/* Frees those of grads[n_params] that were allocated in the step. */
void el_shard_free_grads(const struct el_shard *shard, struct el_program *program, const struct el_view *grads);
