/* The models: each file builds one graph from sizes. To add one: a file here with its row, named in models.c.
 *
 *     struct el_model_config config = {.name = "mlp", .dropout = -1};
 *     el_model_set(&config, "features", (int64_t[]){64}, 1);         sizes that are not set get the model's own
 *     el_model_resolve(&config);
 *     el_model_build(&config, &graph);
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/files.h"
#include "runtime/data/data.h"
#include "runtime/graph/graph.h"

enum { EL_MODEL_NAME_BYTES = 32, EL_MODEL_SIZES_MAX = 16, EL_MODEL_VALUES_MAX = 16 };

/* A size that a model takes: a row of the model, from which come an option of that name, its help and its field in the
 * record. Models whose rows have the same name share the option. What the data decide is called `vocab`, `seq` (models
 * over ids), `features` and `image` (an image's side). */
struct el_model_size {
    const char *name, *help;
    int64_t min, max;                     /* the same: the model always has this one */
    bool list;                            /* none, one or several values; else exactly one */
    int64_t initial[EL_MODEL_VALUES_MAX]; /* where it is not given; a list's is ended by 0 */
    int64_t small[EL_MODEL_VALUES_MAX];   /* where numbers are checked and not timed; none: `initial` */
};

/* What a size is: given by the user, and after el_model_resolve of every size of the model. */
struct el_model_values {
    const char *name; /* of a row; NULL: this place is free */
    int n;
    int64_t v[EL_MODEL_VALUES_MAX];
};

/* Which loss it is trained by. Squared error is against labels as rows of 0 and a 1 (one-hot), a mean over both. */
enum el_model_loss { EL_MODEL_LOSS_OWN, EL_MODEL_LOSS_CROSS_ENTROPY, EL_MODEL_LOSS_MSE };

struct el_model_config {
    char name[EL_MODEL_NAME_BYTES];
    struct el_model_values sizes[EL_MODEL_SIZES_MAX];
    int64_t classes; /* 0: the model's own, else 2 */
    enum el_model_loss loss;
    enum el_precision precision;
    double dropout;             /* rate; negative: the model's own */
    bool recompute;             /* blocks keep their input alone, and are computed again in backward (pass.h) */
    double max_norm;            /* L2 limit of the classifier's rows, applied after each step; 0: none */
    char freeze[EL_PATH_BYTES]; /* parameters and layers by their names, comma-separated; "": all are trained */
};

/* NULL: not given. Valid until the size is set again. */
const struct el_model_values *el_model_values(const struct el_model_config *config, const char *name);
/* The first value; 0: not given, or none. */
int64_t el_model_size(const struct el_model_config *config, const char *name);
/* `name` is a row's, and stays; n at most EL_MODEL_VALUES_MAX. */
void el_model_set(struct el_model_config *config, const char *name, const int64_t *values, int n);

/* How far a mode's numbers may be from what they must equal (`evenload verify`). Of 0: the usual, as it stands behind.
 */
struct el_model_check {
    int steps;             /* whose losses are compared in f64: 30 */
    double loss, gradient; /* of the first step in f32, as runtime/gate/gate.h has them */
    bool slow; /* another model has all of its nodes: not in --quick, nor with variants, and on one number of devices */
    const char *freeze; /* a layer that is frozen in one variant of each mode; NULL: there is no such variant */
    /* In f32 they drift too far to say anything where a device has few samples: those in f64 are compared, within 1e-7.
     * Within `gradient` those of a whole batch on one GPU; 0: these too are compared in f64. */
    bool f64_gradients;
};

struct el_model_info {
    const char *name;
    const char *summary;
    enum el_input_kind input;
    const struct el_model_size *sizes; /* ended by a row whose name is NULL */
    int64_t classes;                   /* it always has so many; 0: as many as the data */
    bool any_length;                   /* over ids: parameters do not depend on `seq` */
    /* Sizes that are cut across devices, ended by NULL, of a list every other one; none: it cannot be, and `whole` says
     * why. */
    const char *across[3], *whole;
    bool drops;     /* it has dropout */
    bool blocks;    /* that can be computed again */
    double dropout; /* its rate where none is given */
    struct el_model_check check;
};

/* The list, ended by a row whose name is NULL. */
const struct el_model_info *el_model_list(void);
const struct el_model_info *el_model_find(const char *name); /* NULL: unknown */
/* The model's row of that size, or NULL. */
const struct el_model_size *el_model_size_row(const struct el_model_info *model, const char *name);
/* Every size that some model takes, each name once, as its first model has it; returns how many. */
int el_model_size_list(const struct el_model_size *list_p[EL_MODEL_SIZES_MAX]);

/* Fills in defaults and checks ranges. Errors: EL_ERR_INVALID naming the option. */
enum el_status el_model_resolve(struct el_model_config *config);
/* Builds the graph of a resolved configuration. Errors: EL_ERR_INVALID of --freeze: a name that the model has not, or
 * nothing left to train. */
enum el_status el_model_build(const struct el_model_config *config, struct el_graph **graph_p);
/* One of n pieces of it, cut across its layers: parameters are slices, and linear layers sum over the pieces
 * (EL_AXIS_TENSOR); by_tokens as in graph.h. Errors: EL_ERR_INVALID: the model has no such pieces, or not so many. */
enum el_status el_model_build_piece(const struct el_model_config *config, int piece, int n_pieces, bool by_tokens,
                                    struct el_graph **graph_p);
