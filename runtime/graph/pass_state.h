/* What a pass keeps account of, shared by pass.c and pass_node.c. Nobody else includes it. */
#pragma once

#include "runtime/graph/pass.h"

/* A tensor's way through the pass. */
struct value {
    struct el_view view; /* buffer NULL: freed or not yet allocated */
    bool owned;          /* this pass frees it */
    struct el_view grad;
    bool grad_owned; /* false: the caller's doutput, or another tensor's now */
    bool is_output;
    int segment;      /* which makes and reads it, and nobody else: it is computed again in backward; 0: it is not */
    int last_forward; /* last node that reads it, -1: none */
    int last_inputs;  /* lowest node whose backward for inputs reads it, -1: none */
    int last_weights; /* the same of backward for weights */
};

/* A parameter's. */
struct weight {
    struct el_view cast;  /* its values in the other type; buffer NULL: not now */
    struct el_view wide;  /* a new gradient in the pass's type that is to be cast */
    int uses;             /* backward contributions to come */
    struct el_view fresh; /* a new gradient that is to be added to a kept one; of a frozen one: that nobody wants */
    bool begun;           /* an overwritten gradient that has a contribution */
};

struct el_pass {
    struct el_pass_spec spec;
    struct el_program *program;
    enum el_phase phase;
    bool again;                /* what forward_node issues is computed again */
    struct value *values;      /* [n_tensors] */
    struct weight *weights;    /* [n_params] */
    struct el_buffer **kept;   /* [n_nodes]: what forward leaves beside tensors */
    struct el_view sums, part; /* of a sum over the pieces on its way, for the node in work; part's buffer NULL: none */
    int sum_op;
};

/* Issues a kernel of this type. */
void el_pass_emit_as(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op, enum el_dtype dtype);
/* After a node's backward: new gradients go where they are stored. */
void el_pass_store_grads(struct el_pass *pass, const struct el_node *node);
bool el_pass_wants_grad(const struct el_pass *pass, int tensor);
/* Of parameters, and of their gradients. */
enum el_dtype el_pass_stored(const struct el_pass *pass);
enum el_dtype el_pass_grads(const struct el_pass *pass);
size_t el_pass_tensor_bytes(const struct el_pass *pass, int tensor);
/* A mark of the pass's program, on its device. */
struct el_view el_pass_alloc(struct el_pass *pass, enum el_tag tag, size_t bytes, const char *name);
