/* The reference kernels of experts against answers worked out by hand, from the definitions in kernels.h. */
#include "tests/unit/test_kernels_common.h"

static void assert_ints(const int32_t *got, const int32_t *want, int n)
{
    for (int i = 0; i < n; i++)
        if (got[i] != want[i]) fail_msg("integer %d is %d, should be %d", i, got[i], want[i]);
}
#define INTS(...) ((const int32_t[]){__VA_ARGS__})

/* Of equal logits the first; of two chosen ones the weights are of the two alone, of one it is the share of all. */
static void test_largest_logits(void **state)
{
    double logits[] = {1, 3, 3, 0, 2, 2, 2, 2, 0, -1, log(3), 0}, weights[6];
    int32_t chosen[6];
    struct el_kernel_args args = {.p = {logits, NULL, weights, chosen}, .d = {1, 3, 4, 2}};
    run_f64(EL_OP_ROUTE_FORWARD, &args);
    assert_ints(chosen, INTS(1, 2, 0, 1, 2, 0), 6);
    assert_all_near(weights, (double[]){0.5, 0.5, 0.5, 0.5, 0.75, 0.25}, 6);
    double two[] = {0, log(3), 1000 + log(4), 1000};
    struct el_kernel_args one = {.p = {two, NULL, weights, chosen}, .d = {1, 2, 2, 1}};
    run_f64(EL_OP_ROUTE_FORWARD, &one);
    assert_ints(chosen, INTS(1, 0), 2);
    assert_near(weights[0], 0.75);
    assert_true(fabs(weights[1] - 0.8) < 1e-9); /* 1000 + log(4) is rounded */
}

/* In turn from the sample's first choice of all, whatever the logits and the table are. */
static void test_balanced(void **state)
{
    double logits[24] = {0, log(3)}, table[4] = {1, 0, 0, 0}, weights[12];
    int32_t chosen[12];
    struct el_kernel_args args = {.p = {logits, table, weights, chosen}, .d = {1, 3, 4, 2, 0, 1, 1}, .s = {1}};
    run_f64(EL_OP_ROUTE_FORWARD, &args);
    assert_ints(chosen, INTS(0, 1, 2, 3, 0, 1), 6);
    assert_all_near(weights, (double[]){0.25, 0.75, 0.5, 0.5}, 4);
    struct el_kernel_args split = {.p = {logits, NULL, weights, chosen}, .d = {2, 3, 4, 2, 1, 2}, .s = {1}};
    run_f64(EL_OP_ROUTE_FORWARD, &split); /* samples 1 and 3: choices 6 and 18 are the first */
    assert_ints(chosen, INTS(2, 3, 0, 1, 2, 3, 2, 3, 0, 1, 2, 3), 12);
}

/* An expert of weight 0 is drawn only when no other one is left; the table's rows take turns. */
static void test_drawn_by_the_table(void **state)
{
    enum { T = 50, E = 4 };
    double logits[T * E] = {0}, table[2 * E] = {0, 1, 0, 2, 0, 0, 1, 0}, weights[3 * T];
    int32_t chosen[3 * T];
    struct el_kernel_args args = {
        .p = {logits, table, weights, chosen}, .d = {1, T, E, 2, 0, 1, 2}, .k = {11, 4}, .step = 6};
    run_f64(EL_OP_ROUTE_FORWARD, &args);
    int threes_first = 0;
    for (int i = 0; i < T; i++) {
        threes_first += chosen[2 * i] == 3;
        assert_true(chosen[2 * i] + chosen[2 * i + 1] == 4 && chosen[2 * i] % 2 == 1);
        assert_near(weights[2 * i], 0.5);
    }
    assert_in_range(threes_first, 17, 49);
    args.d[3] = 3;
    run_f64(EL_OP_ROUTE_FORWARD, &args);
    for (int i = 0; i < T; i++) assert_int_equal(chosen[3 * i + 2], 0);
    args.d[3] = 1, args.step = 7;
    run_f64(EL_OP_ROUTE_FORWARD, &args);
    for (int i = 0; i < T; i++) assert_int_equal(chosen[i], 2);
}

/* Each first choice as often as its weight, each second one as often as its weight among those that are left: within
 * five sigma. Both tables draw the same, of the samples of another split too. */
static void test_frequencies(void **state)
{
    enum { B = 4, T = 5000, E = 3 };
    static float logits[B * T * E], weights[B * T * 2];
    static int32_t chosen[B * T * 2], again[B * T * 2];
    float table[] = {1, 2, 5};
    double seen[E] = {0}, pairs[E][E] = {{0}};
    struct el_kernel_args args = {
        .p = {logits, table, weights, chosen}, .d = {B, T, E, 2, 0, 1, 1}, .k = {5, 3}, .step = 2};
    assert_int_equal(el_kernels_reference()->find(EL_OP_ROUTE_FORWARD, EL_F32)->run(&args), EL_OK);
    for (int i = 0; i < B * T; i++) {
        seen[chosen[2 * i]]++;
        pairs[chosen[2 * i]][chosen[2 * i + 1]]++;
    }
    for (int a = 0; a < E; a++)
        for (int b = 0; b < E; b++) {
            const double p = (double)table[a] / 8, q = a == b ? 0 : p * (double)table[b] / (8 - (double)table[a]);
            assert_true(fabs(seen[a] - p * B * T) < 5 * sqrt(p * (1 - p) * B * T));
            assert_true(fabs(pairs[a][b] - q * B * T) <= 5 * sqrt(q * (1 - q) * B * T));
        }
    args.p[3] = again, args.d[0] = 2, args.d[4] = 1, args.d[5] = 2;
    assert_int_equal(el_kernels_cpu()->find(EL_OP_ROUTE_FORWARD, EL_F32)->run(&args), EL_OK);
    assert_memory_equal(again, chosen + 2 * T, 2 * T * sizeof *again);
    assert_memory_equal(again + 2 * T, chosen + 6 * T, 2 * T * sizeof *again);
    args.step = 3;
    assert_int_equal(el_kernels_cpu()->find(EL_OP_ROUTE_FORWARD, EL_F32)->run(&args), EL_OK);
    assert_memory_not_equal(again, chosen + 2 * T, 2 * T * sizeof *again);
}

/* Expert 0 has the first choices of tokens 0 and 2, then the second one of token 1. */
static void test_places(void **state)
{
    int32_t chosen[] = {0, 1, 1, 0, 0, 1}, place[6], counts[2], log[4] = {10, 20, 30, 40};
    struct el_kernel_args args = {.p = {chosen, place, counts, log}, .d = {1, 3, 2, 2, 1, 6, 0}};
    run_f64(EL_OP_ROUTE_PLACE, &args);
    assert_ints(place, INTS(0, 4, 3, 2, 1, 5), 6);
    assert_ints(counts, INTS(3, 3), 2);
    assert_ints(log, INTS(13, 23, 33, 43), 4);
    args.d[6] = 2; /* the second choices of tokens 1 and 2 are dropped */
    run_f64(EL_OP_ROUTE_PLACE, &args);
    assert_ints(place, INTS(0, 3, 2, -1, 1, -1), 6);
    assert_ints(counts, INTS(2, 2), 2);
    assert_ints(log, INTS(16, 26, 35, 45), 4);
    args.p[3] = NULL;
    run_f64(EL_OP_ROUTE_PLACE, &args);
    assert_ints(place, INTS(0, 3, 2, -1, 1, -1), 6);
}

/* Two parts of four rows each, of two experts; rows 1 to 3 and 7 are gaps. The capacity is each sample's own. */
static void test_places_in_parts(void **state)
{
    int32_t chosen[] = {2, 0, 2, 3}, place[4], counts[8], again[8];
    struct el_kernel_args args = {.p = {chosen, place, counts, NULL, again}, .d = {2, 1, 4, 2, 2, 8, 1}};
    run_f64(EL_OP_ROUTE_PLACE, &args);
    assert_ints(place, INTS(4, 0, 5, 6), 4);
    assert_ints(counts, INTS(1, 0, 0, 0, 1, 0, 1, 1), 8);
    assert_ints(again, INTS(1, 0, 0, 0, 1, 0, 1, 1), 8);
}

static void test_rows(void **state)
{
    double x[] = {1, 2, 3, 4}, rows[10] = {0, 0, 9, 9, 0, 0, 0, 0, 9, 9}, y[] = {100, 200, 300, 400};
    int32_t place[] = {3, 0, -1, 2}, dropped[] = {3, 0, -1, -1};
    struct el_kernel_args take = {.p = {x, place, rows}, .d = {2, 2, 2, 5}};
    run_f64(EL_OP_ROWS_TAKE, &take);
    assert_all_near(rows, (double[]){1, 2, 9, 9, 3, 4, 1, 2, 9, 9}, 10);
    struct el_kernel_args give = {.p = {rows, place, y}, .d = {2, 2, 2, 5}, .s = {1}};
    run_f64(EL_OP_ROWS_GIVE, &give);
    assert_all_near(y, (double[]){102, 204, 303, 404}, 4);
    give.s[0] = 0, give.p[1] = dropped;
    run_f64(EL_OP_ROWS_GIVE, &give);
    assert_all_near(y, (double[]){2, 4, 0, 0}, 4);
}

/* Two parts of three rows, three experts: the first has rows 0, 1 and 3, the third row 4, the second none. */
static void test_grouped(void **state)
{
    double x[] = {1, 2, 50, 3, 4, 60}, w[] = {1, 10, 7, 7, 2, 20}, y[12], dx[6] = {1, 1, 1, 1, 1, 1}, dw[6];
    int32_t counts[] = {2, 0, 0, 1, 0, 1};
    for (int i = 0; i < 12; i++) y[i] = -1;
    struct el_kernel_args args = {.p = {x, w, counts, y}, .d = {6, 1, 2, 3, 2, 1}};
    run_f64(EL_OP_GROUPED_FORWARD, &args);
    assert_all_near(y, (double[]){1, 10, 2, 20, -1, -1, 3, 30, 8, 80, -1, -1}, 12);
    double dy[] = {1, 2, 3, 4, 5, 6, 1, 0, 0, 1, 7, 8};
    struct el_kernel_args data = {.p = {dy, w, counts, dx}, .d = {6, 1, 2, 3, 2, 1}, .s = {1}};
    run_f64(EL_OP_GROUPED_BACKWARD_DATA, &data);
    assert_all_near(dx, (double[]){22, 44, 1, 2, 21, 1}, 6);
    for (int i = 0; i < 6; i++) dw[i] = 5;
    struct el_kernel_args weights = {.p = {x, dy, counts, dw}, .d = {6, 1, 2, 3, 2, 1}, .s = {0, 0, 1}};
    run_f64(EL_OP_GROUPED_BACKWARD_WEIGHTS, &weights);
    assert_all_near(dw, (double[]){1 + 6 + 3, 2 + 8, 0, 0, 0, 4}, 6);
    weights.s[0] = 1;
    run_f64(EL_OP_GROUPED_BACKWARD_WEIGHTS, &weights);
    assert_all_near(dw, (double[]){20, 20, 0, 0, 0, 8}, 6);
    weights.s[2] = 0.5;
    run_f64(EL_OP_GROUPED_BACKWARD_WEIGHTS, &weights);
    assert_all_near(dw, (double[]){25, 25, 0, 0, 0, 10}, 6);
}

/* silu(log 3) = 3/4 log 3, its slope 3/4 (1 + log(3) / 4); silu(0) = 0, its slope 1/2. The last row is not used. */
static void test_swiglu(void **state)
{
    double l = log(3), h[] = {l, 2, 0, 3, 5, 5}, scale[] = {10, 1, 1}, y[] = {0, 0, -1}, dy[] = {1, 4, 1};
    double dh[6] = {0, 0, 0, 0, 9, 9}, dscale[3] = {0, 0, 9};
    int32_t counts[] = {1, 1};
    struct el_kernel_args args = {.p = {h, scale, counts, y}, .d = {3, 1, 2, 1, 1}};
    run_f64(EL_OP_SWIGLU_FORWARD, &args);
    assert_all_near(y, (double[]){15 * l, 0, -1}, 3);
    struct el_kernel_args back = {.p = {dy, h, scale, counts, dh, dscale}, .d = {3, 1, 2, 1, 1}};
    run_f64(EL_OP_SWIGLU_BACKWARD, &back);
    assert_all_near(dh, (double[]){15 * (1 + l / 4), 7.5 * l, 6, 0, 9, 9}, 6);
    assert_all_near(dscale, (double[]){1.5 * l, 0, 9}, 3);
}

/* One token, one choice of two equal logits: p = 1/2 each. dweights 8 through the softmax: 2 and -2. */
static void test_route_backward(void **state)
{
    double dweights[] = {8}, logits[] = {0, 0}, weights[] = {0.5}, dlogits[2];
    int32_t chosen[] = {0};
    struct el_kernel_args args = {.p = {dweights, logits, weights, chosen, dlogits}, .d = {1, 1, 2, 1}};
    run_f64(EL_OP_ROUTE_BACKWARD, &args);
    assert_all_near(dlogits, (double[]){2, -2}, 2);
    dweights[0] = 0, args.s[0] = 3; /* the loss is 3 * 2 * p of the chosen one */
    run_f64(EL_OP_ROUTE_BACKWARD, &args);
    assert_all_near(dlogits, (double[]){1.5, -1.5}, 2);
    args.s[0] = 0, args.s[1] = 5; /* 5 (log sum)^2, whose slope is 10 log(2) p */
    run_f64(EL_OP_ROUTE_BACKWARD, &args);
    assert_all_near(dlogits, (double[]){5 * log(2), 5 * log(2)}, 2);
}

RUN_TESTS(NULL, NULL, test_largest_logits, test_balanced, test_drawn_by_the_table, test_frequencies, test_places,
          test_places_in_parts, test_rows, test_grouped, test_swiglu, test_route_backward)
