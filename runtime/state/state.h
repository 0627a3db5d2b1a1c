/* What a device holds of a model from step to step, as rows: parameters, kept gradients, the optimizer's slots,
 * buffers, parameters in the type that passes take. A row says what it is called, how it begins and under which tag the
 * ledger has it. An array is stored whole, or each device of the shard axis has a range of it (units.h). Whatever goes
 * over a shard's memory goes over its rows (el_shard_next in shard.h): memory, initial values, gathering, files. More
 * state is a row more.
 *
 * Ownership: plain values. Threads: any.
 */
#pragma once

#include "runtime/graph/graph.h"
#include "runtime/layout/config.h"

/* Rows, in the order in which they are allocated; an optimizer has up to EL_SLOTS_MAX slots. */
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
    const char *name; /* "param"; a slot's as in the state_dict of PyTorch's optimizer: "exp_avg" */
    enum el_tag tag;
    enum el_dtype dtype;
    bool of_buffers; /* an array for each buffer of the graph, all in one piece of memory; else for each parameter */
    bool of_trained; /* only for those that are trained */
    bool lent;       /* its memory is the mode's, which fills in the views */
    bool drawn;      /* begins with the model's initial values; else with zeros */
    bool derived;    /* follows from parameters, as which it is read from files; none is written */
};

/* false: the job's devices hold nothing of this kind by themselves. */
bool el_state_row(const struct el_train_config *config, enum el_state what, struct el_state_row *row_p);

/* What a parameter or a buffer of `graph` begins with: the values of config.weights, or those drawn by the seed; of a
 * slice its own of them. values: [count] in the order of its shape. */
enum el_status el_state_initial_values(const struct el_train_config *config, const struct el_graph *graph,
                                       const struct el_param *array, double *values);
