/* The models: each file builds one graph from sizes. To add one: a file here, a row in models.c, a test in tests/unit.
 */
#ifndef EL_MODELS_H
#define EL_MODELS_H

#include "runtime/data/data.h"
#include "runtime/graph/graph.h"

enum { EL_MODEL_HIDDEN_MAX = 16, EL_MODEL_NAME_BYTES = 32 };

/* Sizes; 0 (or n_hidden -1) means the model's own default, filled in by el_model_resolve. */
struct el_model_config {
    char name[EL_MODEL_NAME_BYTES];
    int64_t vocab, embed, seq, filters, features, classes;
    int n_hidden; /* -1: default */
    int64_t hidden[EL_MODEL_HIDDEN_MAX];
    double dropout;  /* rate; textcnn only; negative: default */
    double max_norm; /* L2 limit of the classifier's rows, applied after each step; 0: none */
};

struct el_model_info {
    const char *name;
    const char *summary;
    enum el_input_kind input;
    const char *takes; /* the sizes that it has, as options by blank; all have classes and max-norm */
    int64_t seq_min;   /* words a sentence at least: its widest window; 0: it has no sentences */
};

/* The list, ended by a row whose name is NULL. */
const struct el_model_info *el_model_list(void);
const struct el_model_info *el_model_find(const char *name); /* NULL: unknown */

/* Fills in defaults and checks ranges. Errors: EL_ERR_INVALID naming the option. */
enum el_status el_model_resolve(struct el_model_config *config);
/* Builds the graph of a resolved configuration. */
enum el_status el_model_build(const struct el_model_config *config, struct el_graph **graph_p);

#endif
