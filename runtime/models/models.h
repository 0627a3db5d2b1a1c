/* The models: each file builds a graph from sizes. docs/adding.md adds one.
 *
 *     struct el_model_config config = {.name = "mlp", .dropout = -1};
 *     el_model_set(&config, "features", (int64_t[]){64}, 1);         other sizes get defaults
 *     el_model_resolve(&config);
 *     el_model_build(&config, &graph); */
#pragma once

#include <stdbool.h>

#include "runtime/base/files.h"
#include "runtime/data/data.h"
#include "runtime/graph/graph.h"

enum { EL_MODEL_NAME_BYTES = 32, EL_MODEL_SIZES_MAX = 16, EL_MODEL_VALUES_MAX = 16, EL_PLACEMENT_BYTES = 240 };

/* A size of a model: an option of that name, with help, and a field in the record, shared by models with equal names.
 * The data decide `vocab`, `seq` (models over ids), `features` and `image` (an image's side). */
struct el_model_size {
    const char *name, *help;
    int64_t min, max;                     /* equal: fixed */
    bool list;                            /* any number of values; else exactly one */
    int64_t initial[EL_MODEL_VALUES_MAX]; /* default; a list's is ended by 0 */
    int64_t small[EL_MODEL_VALUES_MAX];   /* for checks without timing; none: `initial` */
};

/* A size's values: given, or after el_model_resolve complete. */
struct el_model_values {
    const char *name; /* of a row; NULL: free place */
    int n;
    int64_t v[EL_MODEL_VALUES_MAX];
};

/* The auxiliary loss's coefficient (--model aux), unless it is given. */
#define EL_MODEL_AUX 0.01

/* The training loss. mse: against one-hot labels, mean over samples and classes. */
enum el_model_loss { EL_MODEL_LOSS_OWN, EL_MODEL_LOSS_CROSS_ENTROPY, EL_MODEL_LOSS_MSE };

struct el_model_config {
    char name[EL_MODEL_NAME_BYTES];
    struct el_model_values sizes[EL_MODEL_SIZES_MAX];
    int64_t classes; /* 0: the model's, else 2 */
    enum el_model_loss loss;
    enum el_precision precision;
    double dropout;  /* rate; negative: the model's */
    bool recompute;  /* keep only blocks' inputs and recompute blocks in backward (pass.h) */
    double max_norm; /* L2 limit of the classifier's rows after each step; 0: none */
    /* Experts: capacity factor (0: none is dropped), coefficients of the auxiliary loss and the router z loss, how
     * tokens are sent (empty: learned), the experts' order over ranks (empty: theirs), and the number of ranks. */
    double capacity, aux, z;
    char routing[EL_PATH_BYTES], placement[EL_PLACEMENT_BYTES];
    int expert_ranks;
    char freeze[EL_PATH_BYTES]; /* names of parameters and layers, comma-separated; "": none */
};

/* NULL: not given. Valid until the size is set again. */
const struct el_model_values *el_model_values(const struct el_model_config *config, const char *name);
/* The first value; 0: none. */
int64_t el_model_size(const struct el_model_config *config, const char *name);
/* `name` is a row's and is not copied; n at most EL_MODEL_VALUES_MAX. */
void el_model_set(struct el_model_config *config, const char *name, const int64_t *values, int n);

/* Allowed differences of a mode (`evenload verify`); 0: the usual one, in brackets. */
struct el_model_check {
    int steps;             /* with compared f64 losses (30) */
    double loss, gradient; /* of the first step in f32 (runtime/gate/gate.h) */
    bool slow; /* its nodes are all in another model: skipped in --quick and with variants, and run on one number of
                  devices */
    const char *freeze; /* a layer to freeze in a variant of each mode; NULL: no such variant */
    /* f32 gradients drift too far with few samples per device: compare f64 ones, within 1e-7. `gradient` then applies
     * to a whole batch on one GPU; 0: f64 there too. */
    bool f64_gradients;
};

struct el_model_info {
    const char *name;
    const char *summary;
    enum el_input_kind input;
    const struct el_model_size *sizes; /* ended by a row whose name is NULL */
    int64_t classes;                   /* fixed number; 0: the data's */
    bool any_length;                   /* over ids: parameters do not depend on `seq` */
    /* Sizes cut by tensor parallelism, ended by NULL (of a list every other one); none: impossible, `whole` says
     * why. */
    const char *across[3], *whole;
    bool drops;
    bool blocks; /* that can be recomputed */
    bool experts;
    double dropout;
    struct el_model_check check;
};

/* Ended by a row whose name is NULL. */
const struct el_model_info *el_model_list(void);
const struct el_model_info *el_model_find(const char *name);
const struct el_model_size *el_model_size_row(const struct el_model_info *model, const char *name);
/* Every model's sizes, each name once, from its first model; returns their number. */
int el_model_size_list(const struct el_model_size *list_p[EL_MODEL_SIZES_MAX]);

enum el_status el_model_resolve(struct el_model_config *config);
/* Builds a resolved configuration's graph. Errors: EL_ERR_INVALID of --freeze: an unknown name, or nothing left to
 * train. */
enum el_status el_model_build(const struct el_model_config *config, struct el_graph **graph_p);
/* What rank `rank` of n has, with experts over ranks: each layer's experts [rank e / n, ...), all else whole. Errors:
 * EL_ERR_INVALID: the model has no experts, or they do not divide evenly. */
enum el_status el_model_build_rank(const struct el_model_config *config, int rank, int n, struct el_graph **graph_p);
/* One of n tensor-parallel pieces: parameters are slices, linear layers sum over pieces (EL_AXIS_TENSOR); by_tokens:
 * graph.h. Errors: EL_ERR_INVALID: no pieces, or not so many. */
enum el_status el_model_build_piece(const struct el_model_config *config, int piece, int n_pieces, bool by_tokens,
                                    struct el_graph **graph_p);
