/* Each differentiable op's backward against finite differences of its forward, in f64 by the reference kernels.
 *
 * For random r the number <r, forward(a)> is differentiated by each element of each real input a; backward with dy = r
 * must say the same. Central differences with h = 1e-5 err by h^2 and by 1e-16/h, far below the 1e-8 allowed. Inputs
 * keep away from the kinks of ReLU and max: the values are random, a kink within h has a chance of 1e-5 a case, and the
 * generator is fixed. */
#include "tests/unit/test_kernels_common.h"

#include <math.h>

enum { MOST = 1024 };

/* A forward op, and the backward op that yields the gradient of input `wrt` as its output `output`. */
struct pair {
    enum el_op_kind forward, backward;
    int64_t d[EL_ARGS_SIZES];
    double s[EL_ARGS_SCALARS];
    int wrt;
    int inputs[5]; /* the backward op's inputs before its outputs: DY, NONE, or the forward's operand of that index */
    int n_inputs, output;
    int absent; /* the forward's operand that is NULL; 0: none */
};
enum { DY = -1, NONE = -2 };

/* Batch norm, for each input: x (without and with the residual), scale, shift, residual; with a ReLU backward reads y.
 */
#define NORM(wrt, output, absent, relu, y, ...)                                                                        \
    {                                                                                                                  \
        EL_OP_BATCH_NORM_FORWARD, EL_OP_BATCH_NORM_BACKWARD, {__VA_ARGS__}, {1e-3, 0.1, relu}, wrt, {DY, 0, y, 1, 7},  \
            5, output, absent                                                                                          \
    }
#define BATCH_NORM(...)                                                                                                \
    NORM(0, 5, 0, __VA_ARGS__), NORM(0, 5, 3, __VA_ARGS__), NORM(1, 6, 0, __VA_ARGS__), NORM(2, 7, 0, __VA_ARGS__),    \
        NORM(3, 8, 0, __VA_ARGS__)
#define CONV2D(...)                                                                                                    \
    {EL_OP_CONV2D_FORWARD, EL_OP_CONV2D_BACKWARD_DATA, {__VA_ARGS__}, {0}, 0, {DY, 1}, 2, 2, 0},                       \
    {                                                                                                                  \
        EL_OP_CONV2D_FORWARD, EL_OP_CONV2D_BACKWARD_WEIGHTS, {__VA_ARGS__}, {0}, 1, {0, DY}, 2, 2, 0                   \
    }

#define LAYER_NORM(wrt, output, ...)                                                                                   \
    {                                                                                                                  \
        EL_OP_LAYER_NORM_FORWARD, EL_OP_LAYER_NORM_BACKWARD, {__VA_ARGS__}, {1e-3}, wrt, {DY, 0, 1, 4}, 4, output, 0   \
    }

static const struct pair pairs[] = {
    {EL_OP_EMBEDDING_FORWARD, EL_OP_EMBEDDING_BACKWARD, {9, 5, 3}, {0}, 1, {0, DY}, 2, 2, 0},
    {EL_OP_CONV1D_FORWARD, EL_OP_CONV1D_BACKWARD_DATA, {2, 7, 3, 4, 3}, {0}, 0, {DY, 1}, 2, 2, 0},
    {EL_OP_CONV1D_FORWARD, EL_OP_CONV1D_BACKWARD_DATA, {2, 5, 70, 2, 5}, {0}, 0, {DY, 1}, 2, 2, 0},
    {EL_OP_CONV1D_FORWARD, EL_OP_CONV1D_BACKWARD_WEIGHTS, {2, 7, 3, 4, 3}, {0}, 1, {0, DY}, 2, 2, 0},
    {EL_OP_CONV1D_FORWARD, EL_OP_CONV1D_BACKWARD_WEIGHTS, {2, 7, 3, 4, 3}, {0}, 2, {0, DY}, 2, 3, 0},
    {EL_OP_LINEAR_FORWARD, EL_OP_LINEAR_BACKWARD_DATA, {3, 70, 5}, {0}, 0, {DY, 1}, 2, 2, 0},
    {EL_OP_LINEAR_FORWARD, EL_OP_LINEAR_BACKWARD_WEIGHTS, {3, 70, 5}, {0}, 1, {0, DY}, 2, 2, 0},
    {EL_OP_LINEAR_FORWARD, EL_OP_LINEAR_BACKWARD_WEIGHTS, {3, 70, 5}, {0}, 2, {0, DY}, 2, 3, 0},
    {EL_OP_LINEAR_FORWARD, EL_OP_LINEAR_BACKWARD_DATA, {6, 9, 7}, {1}, 0, {DY, 1}, 2, 2, 0},
    {EL_OP_LINEAR_FORWARD, EL_OP_LINEAR_BACKWARD_WEIGHTS, {6, 9, 7}, {1}, 1, {0, DY}, 2, 2, 0},
    {EL_OP_LINEAR_FORWARD, EL_OP_LINEAR_BACKWARD_WEIGHTS, {6, 9, 7}, {0}, 1, {0, DY}, 2, 2, 2},
    LAYER_NORM(0, 4, 5, 7),
    LAYER_NORM(1, 5, 5, 7),
    LAYER_NORM(2, 6, 5, 7),
    {EL_OP_GELU_FORWARD, EL_OP_GELU_BACKWARD, {60}, {0}, 0, {DY, 0}, 2, 2, 0},
    {EL_OP_ATTENTION_FORWARD, EL_OP_ATTENTION_BACKWARD, {2, 5, 2, 3}, {0}, 0, {DY, 0, 2}, 3, 3, 0}, /* q, k and v */
    {EL_OP_ATTENTION_FORWARD, EL_OP_ATTENTION_BACKWARD, {1, 3, 1, 70}, {0}, 0, {DY, 0, 2}, 3, 3, 0},
    {EL_OP_ROUTE_FORWARD, EL_OP_ROUTE_BACKWARD, {2, 4, 6, 3, 0, 1, 1}, {0}, 0, {DY, 0, 2, 3}, 4, 4, 1},
    {EL_OP_ROUTE_FORWARD, EL_OP_ROUTE_BACKWARD, {2, 4, 6, 1, 0, 1, 1}, {0}, 0, {DY, 0, 2, 3}, 4, 4, 1},
    {EL_OP_ROWS_TAKE, EL_OP_ROWS_GIVE, {7, 5, 2, 20}, {0}, 0, {DY, 1}, 2, 2, 0},
    {EL_OP_ROWS_GIVE, EL_OP_ROWS_TAKE, {7, 5, 2, 20}, {0}, 0, {DY, 1}, 2, 2, 0},
    {EL_OP_GROUPED_FORWARD, EL_OP_GROUPED_BACKWARD_DATA, {24, 5, 7, 3, 2, 2}, {0}, 0, {DY, 1, 2}, 3, 3, 0},
    {EL_OP_GROUPED_FORWARD, EL_OP_GROUPED_BACKWARD_WEIGHTS, {24, 5, 7, 3, 2, 2}, {0}, 1, {0, DY, 2}, 3, 3, 0},
    {EL_OP_SWIGLU_FORWARD, EL_OP_SWIGLU_BACKWARD, {12, 5, 3, 2, 1}, {0}, 0, {DY, 0, 1, 2}, 4, 4, 0},
    {EL_OP_SWIGLU_FORWARD, EL_OP_SWIGLU_BACKWARD, {12, 5, 3, 2, 1}, {0}, 1, {DY, 0, 1, 2}, 4, 5, 0},
    {EL_OP_ADD_ROW, EL_OP_SUM_ROWS, {4, 5}, {0}, 1, {DY}, 1, 1, 0},
    {EL_OP_MAX_TIME_FORWARD, EL_OP_MAX_TIME_BACKWARD, {3, 5, 7}, {0}, 0, {DY, 2}, 2, 2, 0},
    {EL_OP_DROPOUT, EL_OP_DROPOUT, {5, 11, 0, 1}, {0.4}, 0, {DY}, 1, 1, 0},
    {EL_OP_COPY_COLUMNS, EL_OP_COPY_COLUMNS, {4, 3, 3, 3}, {0}, 0, {DY}, 1, 1, 0},
    {EL_OP_SCALE, EL_OP_SCALE, {9}, {0.3}, 0, {DY}, 1, 1, 0},
    CONV2D(1, 1, 1, 1, 1, 1, 1, 0),
    CONV2D(2, 5, 4, 3, 4, 3, 1, 1),
    CONV2D(1, 7, 6, 2, 3, 3, 2, 1),
    CONV2D(2, 7, 7, 2, 3, 7, 2, 3),
    CONV2D(1, 3, 5, 66, 2, 1, 2, 0),
    BATCH_NORM(0, NONE, 7, 3),
    BATCH_NORM(1, 6, 7, 3),
    BATCH_NORM(1, 6, 5, 66),
    {EL_OP_MAX_POOL_FORWARD, EL_OP_MAX_POOL_BACKWARD, {2, 7, 6, 3, 3, 2, 1}, {0}, 0, {DY, 2}, 2, 2, 0},
    {EL_OP_MAX_POOL_FORWARD, EL_OP_MAX_POOL_BACKWARD, {1, 6, 7, 2, 2, 1, 0}, {0}, 0, {DY, 2}, 2, 2, 0},
    {EL_OP_MEAN_POOL_FORWARD, EL_OP_MEAN_POOL_BACKWARD, {2, 9, 5}, {0}, 0, {DY}, 1, 1, 0},
    {EL_OP_CROSS_ENTROPY, EL_OP_CROSS_ENTROPY, {4, 5}, {0}, 0, {0, 1}, 2, 3, 0}, /* loss and gradient at once */
    {EL_OP_MSE, EL_OP_MSE, {4, 5}, {0}, 0, {0, 1}, 2, 3, 0},
};

/* Operands of the forward op; p[i] has room for MOST reals. */
struct forward {
    struct el_kernel_args args;
    int n;
    struct operand operands[EL_ARGS_POINTERS];
    double storage[EL_ARGS_POINTERS][MOST];
    double dy[MOST];
};

static void forward_make(const struct pair *pair, struct forward *f)
{
    memset(f, 0, sizeof *f);
    f->args.k[0] = 5;
    memcpy(f->args.d, pair->d, sizeof pair->d);
    memcpy(f->args.s, pair->s, sizeof pair->s);
    f->n = op_operands(pair->forward, pair->d, f->operands);
    for (int i = 0; i < f->n; i++) {
        assert_true(f->operands[i].n <= MOST);
        if (f->operands[i].kind == IN_STEP) f->operands[i].kind = IN; /* no ties: they are kinks */
        operand_fill(&f->operands[i], i, pair->d[1], EL_F64, 0, f->storage[i]);
        f->args.p[i] = pair->absent && pair->absent == i ? NULL : f->storage[i];
    }
    const struct operand r = {.kind = IN, .n = MOST};
    operand_fill(&r, 77, 0, EL_F64, 0, f->dy);
    if (pair->inputs[0] != DY && pair->inputs[1] != DY) f->dy[0] = 1; /* a loss is differentiated itself */
}

/* Where the forward op's result stands: its first output that it does not also read, if there is one. */
static int result_of(const struct pair *pair, const struct forward *f)
{
    for (int i = 0; i < f->n; i++)
        if (f->operands[i].kind == OUT) return i;
    for (int i = 0; i < f->n; i++)
        if (operand_is_output(f->operands[i].kind)) return i;
    fail_msg("%s has no output", el_op_name(pair->forward));
    return 0;
}

/* <r, forward's result>. */
static double objective(const struct pair *pair, struct forward *f)
{
    assert_int_equal(el_kernels_reference()->find(pair->forward, EL_F64)->run(&f->args), EL_OK);
    int result = result_of(pair, f);
    double sum = 0;
    for (int64_t j = 0; j < f->operands[result].n; j++) sum += f->dy[j] * f->storage[result][j];
    return sum;
}

static double difference(const struct pair *pair, struct forward *f, double *element)
{
    const double h = 1e-5;
    double kept = *element;
    *element = kept + h;
    double above = objective(pair, f);
    *element = kept - h;
    double below = objective(pair, f);
    *element = kept;
    return (above - below) / (2 * h);
}

/* What goes back into a linear op: with a fused ReLU, relu_backward's on the stored output. */
static double *into_backward(const struct pair *pair, struct forward *f)
{
    static double masked[MOST];
    int64_t n = f->operands[3].n, off = 0;
    if (pair->forward != EL_OP_LINEAR_FORWARD || pair->s[0] == 0) return f->dy;
    struct el_kernel_args relu = {.p = {f->dy, f->storage[3], masked}, .d = {n}};
    assert_int_equal(el_kernels_reference()->find(EL_OP_RELU_BACKWARD, EL_F64)->run(&relu), EL_OK);
    for (int64_t i = 0; i < n; i++) off += masked[i] == 0;
    assert_in_range(off, 5, n - 5); /* both sides of the kink are there */
    return masked;
}

static void check_pair(const struct pair *pair)
{
    static struct forward f;
    static double gradient[EL_ARGS_POINTERS][MOST];
    forward_make(pair, &f);
    memset(gradient, 0, sizeof gradient); /* rows of experts that are not used stay */
    objective(pair, &f);                  /* so that what backward keeps of it (the positions of maxima) is there */
    double *dy = into_backward(pair, &f);
    struct el_kernel_args back = f.args;
    memset(back.p, 0, sizeof back.p);
    if (pair->forward != pair->backward) memset(back.s, 0, sizeof back.s); /* nothing is added to */
    if (pair->backward == EL_OP_GROUPED_BACKWARD_WEIGHTS) back.s[2] = 1;
    for (int i = 0; i < pair->n_inputs; i++) {
        int from = pair->inputs[i];
        back.p[i] = from == DY ? dy : from == NONE ? NULL : f.args.p[from];
    }
    for (int i = pair->n_inputs; i < EL_ARGS_POINTERS; i++) back.p[i] = gradient[i];
    assert_int_equal(el_kernels_reference()->find(pair->backward, EL_F64)->run(&back), EL_OK);
    for (int64_t j = 0; j < f.operands[pair->wrt].n; j++) {
        double want = difference(pair, &f, &f.storage[pair->wrt][j]), got = gradient[pair->output][j];
        if (!(fabs(got - want) <= 1e-8 * (1 + fabs(want))))
            fail_msg("%s, input %d, element %lld: backward says %.9g, differences %.9g", el_op_name(pair->forward),
                     pair->wrt, (long long)j, got, want);
    }
}

static void test_pairs(void **state)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) check_pair(&pairs[i]);
}

/* The losses that route_backward adds to its gradient, as kernels.h writes them, for choices that stay. */
static double router_losses(const int64_t *d, const double *logits, const int32_t *chosen, double aux, double z)
{
    const int64_t t = d[1], e = d[2], k = d[3];
    double loss = 0;
    for (int64_t s = 0; s < d[0]; s++) {
        double choices[8] = {0}, softmax[8] = {0}, squares = 0;
        for (int64_t i = s * t; i < (s + 1) * t; i++) {
            double sum = 0;
            for (int64_t j = 0; j < e; j++) sum += exp(logits[i * e + j]);
            for (int64_t j = 0; j < e; j++) softmax[j] += exp(logits[i * e + j]) / sum / (double)t;
            for (int64_t j = 0; j < k; j++) choices[chosen[i * k + j]] += 1 / (double)t;
            squares += log(sum) * log(sum) / (double)t;
        }
        for (int64_t j = 0; j < e; j++) loss += aux * (double)e * choices[j] * softmax[j];
        loss += z * squares;
    }
    return loss;
}

static void check_router_losses(int64_t k, double aux, double z)
{
    enum { B = 3, T = 5, E = 8, N = B * T * E };
    const int64_t d[] = {B, T, E, k};
    double logits[N], dlogits[N], weights[N], none[N] = {0};
    int32_t chosen[N];
    for (int i = 0; i < N; i++) logits[i] = 2 * operand_value(IN, 3, i);
    struct el_kernel_args route = {.p = {logits, NULL, weights, chosen}, .d = {B, T, E, k}};
    assert_int_equal(el_kernels_reference()->find(EL_OP_ROUTE_FORWARD, EL_F64)->run(&route), EL_OK);
    struct el_kernel_args back = {.p = {none, logits, weights, chosen, dlogits}, .d = {B, T, E, k}, .s = {aux, z}};
    assert_int_equal(el_kernels_reference()->find(EL_OP_ROUTE_BACKWARD, EL_F64)->run(&back), EL_OK);
    for (int i = 0; i < N; i++) {
        const double h = 1e-5, kept = logits[i];
        logits[i] = kept + h;
        const double above = router_losses(d, logits, chosen, aux, z);
        logits[i] = kept - h;
        const double want = (above - router_losses(d, logits, chosen, aux, z)) / (2 * h);
        logits[i] = kept;
        if (!(fabs(dlogits[i] - want) <= 1e-8))
            fail_msg("k %d aux %g z %g, logit %d: backward says %.9g, differences %.9g", (int)k, aux, z, i, dlogits[i],
                     want);
    }
}

static void test_router_losses(void **state)
{
    check_router_losses(1, 0.5, 0);
    check_router_losses(2, 0.5, 0);
    check_router_losses(2, 0, 0.3);
    check_router_losses(3, 0.01, 0.001);
}

RUN_TESTS(NULL, NULL, test_pairs, test_router_losses)
