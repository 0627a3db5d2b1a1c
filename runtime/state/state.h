/* A device's state of a model across steps, as rows: parameters, kept gradients, the optimizer's slots, buffers,
 * parameters cast for passes. Arrays are whole, or a range per device of the shard axis (units.h). Memory, initial
 * values, gathering and files iterate over rows (el_shard_next in shard.h). */
#pragma once

#include "runtime/graph/graph.h"
#include "runtime/layout/config.h"

/* In the order of allocation; an optimizer has up to EL_SLOTS_MAX slots. */
enum { EL_SLOTS_MAX = 2 };
enum el_state {
    EL_STATE_PARAM,
    EL_STATE_GRAD,
    EL_STATE_SLOT,
    EL_STATE_BUFFER = EL_STATE_SLOT + EL_SLOTS_MAX,
    EL_STATE_CAST,
    EL_STATE_COUNT
};

struct el_state_row {
    const char *name; /* "param"; a slot's as in PyTorch's state_dict: "exp_avg" */
    enum el_tag tag;
    enum el_dtype dtype;
    bool of_buffers; /* an array per buffer, all in one piece of memory; else per parameter */
    bool of_trained;
    bool lent;    /* the mode owns its memory and sets the views */
    bool drawn;   /* starts with the model's initial values; else with zeros */
    bool derived; /* derived from parameters: read from their values in files, never written */
};

/* false: the job's devices have no such row. */
bool el_state_row(const struct el_train_config *config, enum el_state what, struct el_state_row *row_p);

/* Initial values of a parameter or buffer of `graph`: from config.weights, or drawn by the seed; for a slice its own.
 * values: [count] in the order of its shape. */
enum el_status el_state_initial_values(const struct el_train_config *config, const struct el_graph *graph,
                                       const struct el_param *array, double *values);
