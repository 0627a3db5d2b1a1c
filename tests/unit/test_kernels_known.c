/* The reference kernels (those of images: test_kernels_known_images.c) against answers worked out by hand, from the
 * definitions in kernels.h: they are the truth for all other kernels, so that nothing else in the house can vouch for
 * them. Also names, sizes and costs. */
#include "tests/unit/test_kernels_common.h"

static void test_embedding_backward_repeated_ids(void **state)
{
    int32_t ids[] = {2, 0, 2};
    double dy[] = {1, 2, 10, 20, 100, 200}, dtable[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    struct el_kernel_args args = {.p = {ids, dy, dtable}, .d = {3, 4, 2}, .s = {0}};
    run_f64(EL_OP_EMBEDDING_BACKWARD, &args);
    assert_all_near(dtable, (double[]){10, 20, 0, 0, 101, 202, 0, 0}, 8);
    args.s[0] = 1;
    run_f64(EL_OP_EMBEDDING_BACKWARD, &args);
    assert_all_near(dtable, (double[]){20, 40, 0, 0, 202, 404, 0, 0}, 8);
}

static void test_ids_out_of_range(void **state)
{
    int32_t ids[] = {0, 4};
    float table[8] = {0}, y[4];
    struct el_kernel_args args = {.p = {ids, table, y}, .d = {2, 4, 2}};
    const struct el_kernel_table *tables[] = {el_kernels_reference(), el_kernels_cpu()};
    for (int i = 0; i < 2; i++) {
        ids[1] = 4;
        assert_int_equal(tables[i]->find(EL_OP_EMBEDDING_FORWARD, EL_F32)->run(&args), EL_ERR_INTERNAL);
        ids[1] = -1;
        assert_int_equal(tables[i]->find(EL_OP_EMBEDDING_FORWARD, EL_F32)->run(&args), EL_ERR_INTERNAL);
    }
}

/* One sample, three steps of two channels; two filters over two steps. */
static void test_conv1d(void **state)
{
    double x[] = {1, 2, 3, 4, 5, 6}, w[] = {1, 0, 0, 1, 1, -1, 2, -2}, bias[] = {10, -1}, y[4];
    struct el_kernel_args args = {.p = {x, w, bias, y}, .d = {1, 3, 2, 2, 2}, .s = {0}};
    run_f64(EL_OP_CONV1D_FORWARD, &args); /* y[t,0] = 10 + x[t,0] + x[t+1,1]; y[t,1] = -1 + (-1) + 2 * (-1) */
    assert_all_near(y, (double[]){15, -4, 19, -4}, 4);
    args.s[0] = 1;
    run_f64(EL_OP_CONV1D_FORWARD, &args);
    assert_all_near(y, (double[]){15, 0, 19, 0}, 4);
    double dy[] = {1, 10, 100, 1000}, dx[6], dw[8], dbias[2];
    struct el_kernel_args data = {.p = {dy, w, dx}, .d = {1, 3, 2, 2, 2}, .s = {0}};
    run_f64(EL_OP_CONV1D_BACKWARD_DATA, &data);
    assert_all_near(dx, (double[]){11, -10, 1100 + 20, -1000 + 1 - 20, 2000, 100 - 2000}, 6);
    struct el_kernel_args weights = {.p = {x, dy, dw, dbias}, .d = {1, 3, 2, 2, 2}, .s = {0}};
    run_f64(EL_OP_CONV1D_BACKWARD_WEIGHTS, &weights);
    assert_all_near(dw, (double[]){301, 402, 503, 604, 3010, 4020, 5030, 6040}, 8);
    assert_all_near(dbias, (double[]){101, 1010}, 2);
}

static void test_max_time_first_wins(void **state)
{
    double x[] = {1, 5, 3, 5, 3, -1}, y[2], dx[6], dy[] = {7, 8}; /* [3 steps, 2 channels] */
    int32_t at[2];
    struct el_kernel_args args = {.p = {x, y, at}, .d = {1, 3, 2}};
    run_f64(EL_OP_MAX_TIME_FORWARD, &args);
    assert_all_near(y, (double[]){3, 5}, 2);
    assert_int_equal(at[0], 1);
    assert_int_equal(at[1], 0);
    struct el_kernel_args back = {.p = {dy, at, dx}, .d = {1, 3, 2}};
    run_f64(EL_OP_MAX_TIME_BACKWARD, &back);
    assert_all_near(dx, (double[]){0, 8, 7, 0, 0, 0}, 6);
}

/* Equal logits over 4 classes lose log 4; a logit of log 3 against 0 has the share 3/4. Logits of 1000 do not overflow.
 */
static void test_cross_entropy(void **state)
{
    double logits[] = {2, 2, 2, 2}, loss, dlogits[4];
    int32_t label[] = {1, 0};
    struct el_kernel_args args = {.p = {logits, label, &loss, dlogits}, .d = {1, 4}};
    run_f64(EL_OP_CROSS_ENTROPY, &args);
    assert_near(loss, log(4));
    assert_all_near(dlogits, (double[]){0.25, -0.75, 0.25, 0.25}, 4);
    double two[] = {1000 + log(3), 1000, 0, log(3)};
    struct el_kernel_args pair = {.p = {two, label, &loss, dlogits}, .d = {2, 2}};
    run_f64(EL_OP_CROSS_ENTROPY, &pair); /* both rows are wrong with 3/4: labels 1 and 0 have the share 1/4 */
    assert_near(loss, log(4));
    double want[] = {0.375, -0.375, -0.375, 0.375};
    for (int i = 0; i < 4; i++) assert_true(fabs(dlogits[i] - want[i]) < 1e-9);
}

static void test_mse_and_count(void **state)
{
    double y[] = {1, 0, 0.5, 0.5}, loss, dy[4];
    int32_t labels[] = {0, 1};
    struct el_kernel_args args = {.p = {y, labels, &loss, dy}, .d = {2, 2}};
    run_f64(EL_OP_MSE, &args);
    assert_near(loss, 0.125);
    assert_all_near(dy, (double[]){0, 0, 0.25, -0.25}, 4);
    double one[] = {0.25, 0.5}; /* of one output label 0 wants a 1, label 1 a 0 */
    struct el_kernel_args binary = {.p = {one, labels, &loss, dy}, .d = {2, 1}};
    run_f64(EL_OP_MSE, &binary);
    assert_near(loss, (0.75 * 0.75 + 0.5 * 0.5) / 2);
    assert_all_near(dy, (double[]){-0.75, 0.5}, 2);
}

static void test_linear_without_a_bias(void **state)
{
    double x[] = {1, 2}, w[] = {3, 4, 5, -6}, y[2], dy[] = {1, 10}, dw[4];
    struct el_kernel_args args = {.p = {x, w, NULL, y}, .d = {1, 2, 2}};
    run_f64(EL_OP_LINEAR_FORWARD, &args);
    assert_all_near(y, (double[]){11, -7}, 2);
    struct el_kernel_args weights = {.p = {x, dy, dw, NULL}, .d = {1, 2, 2}};
    run_f64(EL_OP_LINEAR_BACKWARD_WEIGHTS, &weights);
    assert_all_near(dw, (double[]){1, 2, 10, 20}, 4);
}

/* 1 and 3 have the mean 2 and the deviation 1, but for eps: 3 makes it 2. With eps = 0, g = dy * scale = (2, 0) and h =
 * (-1, 1): dx = g - 1 - h * -1 = 0, as of any two values. */
static void test_layer_norm(void **state)
{
    double x[] = {1, 3}, scale[] = {2, 5}, shift[] = {10, 0}, y[2], saved[2], dy[] = {1, 0}, dx[2], dscale[2],
           dshift[2];
    struct el_kernel_args args = {.p = {x, scale, shift, y, saved}, .d = {1, 2}, .s = {3}};
    run_f64(EL_OP_LAYER_NORM_FORWARD, &args);
    assert_all_near(y, (double[]){10 - 2 * 0.5, 5 * 0.5}, 2);
    assert_all_near(saved, (double[]){2, 0.5}, 2);
    saved[1] = 1;
    struct el_kernel_args back = {.p = {dy, x, scale, saved, dx, dscale, dshift}, .d = {1, 2}};
    run_f64(EL_OP_LAYER_NORM_BACKWARD, &back);
    assert_all_near(dx, (double[]){0, 0}, 2);
    assert_all_near(dscale, (double[]){-1, 0}, 2);
    assert_all_near(dshift, (double[]){1, 0}, 2);
}

/* gelu(1) = (1 + tanh(sqrt(2 / pi) * 1.044715)) / 2. */
static void test_gelu(void **state)
{
    double x[] = {0, 1, -1}, y[3], dy[] = {1, 0, 0}, dx[3];
    struct el_kernel_args args = {.p = {x, y}, .d = {3}}, back = {.p = {dy, x, dx}, .d = {3}};
    run_f64(EL_OP_GELU_FORWARD, &args);
    assert_all_near(y, (double[]){0, 0.84119199060827670, 0.84119199060827670 - 1}, 3);
    run_f64(EL_OP_GELU_BACKWARD, &back);
    assert_all_near(dx, (double[]){0.5, 0, 0}, 3);
}

/* Two tokens of one head of one value. The first sees itself alone. The second's scores are 0 and log 3: it takes 1/4
 * of the first value and 3/4 of its own. */
static void test_attention(void **state)
{
    double qkv[] = {7, 0, 10, 1, log(3), 20}, y[2], saved[2], dy[] = {0, 16}, dqkv[6];
    struct el_kernel_args args = {.p = {qkv, y, saved}, .d = {1, 2, 1, 1}};
    run_f64(EL_OP_ATTENTION_FORWARD, &args);
    assert_all_near(y, (double[]){10, 17.5}, 2);
    assert_all_near(saved, (double[]){0, log(4)}, 2);
    struct el_kernel_args back = {.p = {dy, qkv, saved, dqkv}, .d = {1, 2, 1, 1}};
    run_f64(EL_OP_ATTENTION_BACKWARD, &back); /* dp = (160, 320), their mean 280: the scores get -30 and 30 */
    assert_all_near(dqkv, (double[]){0, -30, 4, 30 * log(3), 30, 12}, 6);
}

/* At the first step m/(1-b1) = g and v/(1-b2) = g^2, so that w moves by lr * g/(|g| + eps). */
static void test_adam(void **state)
{
    double g[] = {0.5, -2}, w[] = {1, 1}, m[2] = {0}, v[2] = {0}, denominator[2], root[2];
    struct el_kernel_args args = {.p = {g, w, m, v}, .d = {2}, .s = {0.1, 0.9, 0.999, 1e-8}, .step = 0};
    run_f64(EL_OP_ADAM, &args);
    assert_all_near(w, (double[]){1 - 0.1 * 0.5 / (0.5 + 1e-8), 1 + 0.1 * 2 / (2 + 1e-8)}, 2);
    assert_all_near(m, (double[]){0.05, -0.2}, 2);
    assert_all_near(v, (double[]){0.00025, 0.004}, 2);
    args.step = 1;
    args.p[4] = denominator;
    args.p[5] = root;
    run_f64(EL_OP_ADAM, &args);
    double m2 = 0.9 * 0.05 + 0.1 * 0.5, v2 = 0.999 * 0.00025 + 0.001 * 0.25;
    double below = sqrt(v2) / sqrt(1 - 0.998001) + 1e-8;
    assert_near(w[0], 1 - 0.1 * 0.5 / (0.5 + 1e-8) - 0.1 / (1 - 0.81) * m2 / below);
    assert_near(denominator[0], below);
    assert_near(root[0], sqrt(v2));
}

static void test_sgd_momentum_max_norm(void **state)
{
    double g[] = {1, -2}, w[] = {1, 1}, m[] = {10, 0};
    struct el_kernel_args args = {.p = {g, w, m}, .d = {2}, .s = {0.1, 0.9}};
    run_f64(EL_OP_SGD, &args);
    assert_all_near(w, (double[]){0.9, 1.2}, 2);
    run_f64(EL_OP_MOMENTUM, &args);
    assert_all_near(m, (double[]){10, -2}, 2);
    assert_all_near(w, (double[]){-0.1, 1.4}, 2);
    double rows[] = {3, 4, 0.3, 0.4};
    struct el_kernel_args norm = {.p = {rows}, .d = {2, 2}, .s = {2.5}};
    run_f64(EL_OP_MAX_NORM, &norm);
    assert_all_near(rows, (double[]){1.5, 2, 0.3, 0.4}, 4);
}

/* 8 samples at once, as two halves, and strided over three ranks: the same elements fall. */
static void test_dropout_does_not_see_the_split(void **state)
{
    enum { ROWS = 8, N = 40 };
    const struct el_kernel_table *tables[] = {el_kernels_reference(), el_kernels_cpu()};
    float x[ROWS * N], whole[ROWS * N], part[ROWS * N];
    for (int i = 0; i < ROWS * N; i++) x[i] = 1;
    struct el_kernel_args args = {.p = {x, whole}, .d = {ROWS, N, 0, 1}, .s = {0.5}, .k = {3, 1}, .step = 9};
    assert_int_equal(tables[0]->find(EL_OP_DROPOUT, EL_F32)->run(&args), EL_OK);
    int kept = 0;
    for (int i = 0; i < ROWS * N; i++) kept += whole[i] == 2;
    assert_in_range(kept, ROWS * N / 2 - 45, ROWS * N / 2 + 45); /* five sigma */
    for (int t = 0; t < 2; t++)
        for (int stride = 1; stride <= 3; stride++)
            for (int first = 0; first < stride; first++) {
                int rows = (ROWS - first + stride - 1) / stride;
                struct el_kernel_args cut = args;
                cut.p[1] = part;
                cut.d[0] = rows, cut.d[2] = first, cut.d[3] = stride;
                assert_int_equal(tables[t]->find(EL_OP_DROPOUT, EL_F32)->run(&cut), EL_OK);
                for (int r = 0; r < rows; r++)
                    assert_memory_equal(part + r * N, whole + (first + r * stride) * N, N * sizeof(float));
            }
    args.step = 10;
    args.p[1] = part;
    assert_int_equal(tables[0]->find(EL_OP_DROPOUT, EL_F32)->run(&args), EL_OK);
    assert_memory_not_equal(part, whole, sizeof part);
}

static void test_names_and_costs(void **state)
{
    assert_string_equal(el_op_name(EL_OP_CONV1D_BACKWARD_WEIGHTS), "conv1d_backward_weights");
    assert_string_equal(el_op_name(EL_OP_MAX_NORM), "max_norm");
    assert_string_equal(el_dtype_name(EL_F64), "f64");
    assert_int_equal(el_dtype_bytes(EL_I32), 4);
    struct el_kernel_args linear = {.d = {2, 3, 5}};
    struct el_op_cost cost = el_op_cost(EL_OP_LINEAR_FORWARD, EL_F32, &linear);
    assert_near(cost.flops, 2 * 2 * 3 * 5 + 10);
    assert_near(cost.bytes, 4 * (6 + 15 + 5 + 10));
    struct el_kernel_args conv = {.d = {2, 7, 3, 4, 5}, .s = {1}};
    cost = el_op_cost(EL_OP_CONV1D_BACKWARD_DATA, EL_F64, &conv);
    assert_near(cost.flops, 2 * (2 * 3 * 4) * 15 + 42);
    assert_near(cost.bytes, 8 * (24 + 60 + 2 * 42));
    struct el_kernel_args image = {.d = {2, 7, 5, 3, 4, 3, 2, 1}, .s = {1}}; /* 4 x 3 places */
    cost = el_op_cost(EL_OP_CONV2D_FORWARD, EL_F32, &image);
    assert_near(cost.flops, 2 * (2 * 12 * 4) * 27);
    assert_near(cost.bytes, 4 * (210 + 108 + 96));
    assert_near(el_op_cost(EL_OP_CONV2D_BACKWARD_WEIGHTS, EL_F64, &image).bytes, 8 * (210 + 96 + 2 * 108));
    struct el_kernel_args norm = {.d = {10, 3}, .s = {1e-5, 0.1, 1}};
    cost = el_op_cost(EL_OP_BATCH_NORM_FORWARD, EL_F32, &norm);
    assert_near(cost.flops, 9 * 30);
    assert_near(cost.bytes, 4 * (60 + 8 * 3)); /* x, y; scale, shift, both running ones twice, both saved ones */
    struct el_kernel_args pool = {.d = {2, 7, 5, 3, 3, 2, 1}};
    cost = el_op_cost(EL_OP_MAX_POOL_FORWARD, EL_F64, &pool);
    assert_near(cost.flops, 9 * 72);
    assert_near(cost.bytes, 8 * (210 + 72) + 4 * 72);
    struct el_kernel_args embedding = {.d = {10, 100, 4}};
    assert_near(el_op_cost(EL_OP_EMBEDDING_FORWARD, EL_F32, &embedding).bytes, 4 * (10 + 40 + 40));
    assert_near(el_op_cost(EL_OP_EMBEDDING_BACKWARD, EL_F32, &embedding).bytes, 4 * (10 + 40 + 400));
}

/* Two pieces of three classes each, joined: the loss and the gradient of all six. */
static void test_cross_entropy_in_pieces(void **state)
{
    double logits[12] = {1, -2, 0.5, 3, 0, 2, -1, 4, 0, 0.25, 7, -3}, halves[2][6], parts[2][6], dlogits[6], whole[12];
    int32_t labels[] = {4, 1};
    double loss, wanted;
    struct el_kernel_args all = {.p = {logits, labels, &wanted, whole}, .d = {2, 6}};
    run_f64(EL_OP_CROSS_ENTROPY, &all);
    for (int i = 0; i < 12; i++) halves[i % 6 / 3][i / 6 * 3 + i % 3] = logits[i];
    for (int m = 0; m < 2; m++) {
        struct el_kernel_args piece = {.p = {halves[m], labels, parts[m]}, .d = {2, 3, 3 * m, 6}};
        run_f64(EL_OP_CROSS_ENTROPY_PIECE, &piece);
    }
    for (int m = 0; m < 2; m++) {
        struct el_kernel_args join = {.p = {halves[m], labels, parts, &loss, dlogits}, .d = {2, 3, 3 * m, 6, 2}};
        run_f64(EL_OP_CROSS_ENTROPY_JOIN, &join);
        assert_near(loss, wanted);
        for (int i = 0; i < 6; i++) assert_near(dlogits[i], whole[i / 3 * 6 + 3 * m + i % 3]);
    }
}

/* Casts to f16 round, and round again what they have scaled: 0x1.802p-13 goes up to 0x1.804p-13, whose half has 9 of
 * the 10 digits below 2^-14 and is a tie. */
static void test_cast_f16(void **state)
{
    float x[] = {1.0F / 3, 65519, 65520, 0x1.802p-13F, -2}, back[5];
    uint16_t half[5];
    struct el_kernel_args to = {.p = {x, half}, .d = {5}, .s = {0.5}, .k = {EL_F32}};
    struct el_kernel_args from = {.p = {half, back}, .d = {5}, .s = {1}, .k = {EL_F16}};
    const struct el_kernel_table *tables[] = {el_kernels_reference(), el_kernels_cpu()};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tables[i]->find(EL_OP_CAST, EL_F16)->run(&to), EL_OK);
        assert_int_equal(tables[i]->find(EL_OP_CAST, EL_F32)->run(&from), EL_OK);
        assert_true(back[0] == 0x1.554p-3F && back[1] == 32752 && isinf(back[2]) && back[4] == -1);
        assert_true(back[3] == el_f32_of_f16(el_f16_of_f32(el_f32_of_f16(el_f16_of_f32(x[3])) / 2)));
    }
}

RUN_TESTS(NULL, NULL, test_embedding_backward_repeated_ids, test_ids_out_of_range, test_conv1d,
          test_max_time_first_wins, test_cross_entropy, test_cross_entropy_in_pieces, test_mse_and_count,
          test_linear_without_a_bias, test_layer_norm, test_gelu, test_attention, test_adam, test_sgd_momentum_max_norm,
          test_dropout_does_not_see_the_split, test_cast_f16, test_names_and_costs)
