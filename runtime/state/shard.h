/* A shard: a device with its part of a model across steps, given by its graph. Feeds load its data (feed.h).
 *
 *     el_shard_open(&shard, &spec);                             weights have their initial values
 *     el_shard_issue_zero_grad(&shard, program);                in a step ...
 *     el_shard_issue_optimizer(&shard, program, grads);
 *     el_shard_read_loss(&shard, &loss);                        ... and after it
 *     el_shard_close(&shard);
 *
 * Shapes: views [n_params] of parameters' elements in the configuration's type, in the graph's order; buffer NULL:
 * absent. open, close and read_loss block; issue functions add ops on the device's compute stream, with the program's
 * errors. Ownership: the shard owns its buffers; config, graph and device must outlive it. Threads: one at a time.
 * Errors: EL_ERR_OOM names device and tag; EL_ERR_HOST_MEMORY. */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/graph/pass.h"
#include "runtime/state/state.h"
#include "runtime/state/units.h"

struct el_shard {
    const struct el_train_config *config;
    const struct el_graph *graph;
    struct el_device *device;
    /* An owner's; NULL on a device without state. Frozen and unused parameters have no gradient and no slots. */
    union {
        struct el_view *rows[EL_STATE_COUNT];
        struct {
            struct el_view *params;
            /* --zero-grad keep: its own. --bucket-mb view=on: places in the mode's buckets, set and freed by the mode.
             * Else without buffers: allocated in each step. */
            struct el_view *grads;
            struct el_view *slots[EL_SLOTS_MAX];
            struct el_view *buffers; /* [n_buffers]: in one piece (buffers.h) */
            struct el_view *casts;   /* for passes, if of another type than `params` */
        };
    };
    struct el_view *issued;   /* for the gradients of the step that the mode issues */
    struct el_buffer *routed; /* of an owner with experts: [layers, 2, experts] i32 (pass.h); else NULL */
    struct el_buffer *loss;   /* [n_accumulate] of the configuration: the last step's micro-steps */
    /* Sharded state (else NULL): parameters and other ranges are stored by unit. For rows with bit 1 << enum el_state
     * in `split` it stores part `piece` of each unit. */
    struct el_units *units;
    unsigned split;
    int piece;
    /* Devices with the rest of the model and n_copies - 1 other copies of it; NULL: all is here. The worker's. */
    struct el_comm *rest;
    int n_copies;
};

/* Close it after a failure too. n_pieces 0: not sharded. */
struct el_shard_spec {
    const struct el_train_config *config;
    const struct el_graph *graph;
    struct el_device *device;
    bool owns;
    unsigned split;
    int piece, n_pieces;
};
enum el_status el_shard_open(struct el_shard *shard, const struct el_shard_spec *spec);
void el_shard_close(struct el_shard *shard); /* A zeroed shard is legal */

/* Experts of each layer, and layers with experts up to the last one here; 0: none. */
int64_t el_shard_routed(const struct el_graph *graph, int64_t *layers_p);

size_t el_shard_param_bytes(const struct el_shard *shard, int param);
/* Parameters for passes: [n_params] of el_config_computed; if sharded, use gathered ones (copies.h). */
const struct el_view *el_shard_computed(const struct el_shard *shard);
/* Iterates over its stored arrays by rows:
 *
 *     for (struct el_state_item item = {0}; el_shard_next(&shard, &item);)
 *         item.row.name, item.array->name, item.view          buffer NULL: not there (yet) */
struct el_state_item {
    enum el_state what;
    struct el_state_row row;
    int number; /* among the graph's parameters or buffers */
    const struct el_param *array;
    struct el_view *view;
    int64_t first, count; /* the stored elements, in memory order */
    int at;
};
bool el_shard_next(const struct el_shard *shard, struct el_state_item *item);
/* An array's stored elements. The optimizer updates those of EL_STATE_SLOT. */
void el_shard_range(const struct el_shard *shard, enum el_state what, int number, int64_t *first_p, int64_t *count_p);
/* An item's values, [count of its array] in the order of its shape; zeros for elements on other devices. */
enum el_status el_shard_read_item(const struct el_shard *shard, const struct el_state_item *item, double *values);
/* The same from its memory [item->count], read before. */
enum el_status el_shard_values_of(const struct el_shard *shard, const struct el_state_item *item, const void *memory,
                                  double *values);
/* Writes the stored ones to the device; `values` is scratch afterwards. */
enum el_status el_shard_write_item(const struct el_shard *shard, const struct el_state_item *item, double *values);
/* A buffer's elements as doubles in the order of its shape. Between steps. */
enum el_status el_shard_read_doubles(const struct el_shard *shard, const struct el_param *array, struct el_view view,
                                     double *values);
/* Element `i` in the configuration's type; 0 if kernels do not compute. Between steps. */
enum el_status el_shard_read_value(const struct el_shard *shard, struct el_buffer *values, int i, double *value_p);
enum el_status el_shard_read_loss(const struct el_shard *shard, double *loss_p);

/* Zeroes kept gradients (phase optimizer); nothing if they are freed. */
void el_shard_issue_zero_grad(const struct el_shard *shard, struct el_program *program);
/* An optimizer step by grads[n_params] (with split slots: the updated elements), after clipping their norm over the
 * whole model in place (--clip), then the limit on rows' norms. Parameters without gradient stay unchanged. Collective
 * over `rest` when clipping. */
void el_shard_issue_optimizer(const struct el_shard *shard, struct el_program *program, const struct el_view *grads);
void el_shard_issue_fill(const struct el_shard *shard, struct el_program *program, enum el_phase phase,
                         const char *label, struct el_view x, int64_t n, double value);
void el_shard_issue_fill_as(const struct el_shard *shard, struct el_program *program, enum el_phase phase,
                            const char *label, enum el_dtype dtype, struct el_view x, int64_t n, double value);
/* y = scale * x, n elements, each with its own type. */
void el_shard_issue_move(const struct el_shard *shard, struct el_program *program, enum el_phase phase,
                         const char *label, enum el_dtype from, struct el_view x, enum el_dtype to, struct el_view y,
                         int64_t n, double scale);
void el_shard_free_grads(const struct el_shard *shard, struct el_program *program, const struct el_view *grads);
