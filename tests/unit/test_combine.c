/* The arithmetic of reductions (runtime/comm/combine.h) against one element after another: the same bits for every
 * reduction, type, number of arrays, length and place, and nothing beyond the end is written. */
#include "tests/test.h"

#include <math.h>

#include "runtime/base/half.h"
#include "runtime/base/rng.h"
#include "runtime/comm/combine.h"

enum { INS_MAX = 7, OUTS_MAX = 3, COUNT_MAX = 2600, GUARD = 0x5a };

/* Aligned like memory of a device; a case begins `offset` elements behind that. */
static _Alignas(64) unsigned char ins_memory[INS_MAX][(COUNT_MAX + 16) * 8];
static _Alignas(64) unsigned char outs_memory[OUTS_MAX][(COUNT_MAX + 16) * 8];

struct combination {
    enum el_comm_reduction reduction;
    enum el_dtype dtype;
    int n_ins, n_outs, members;
    size_t count, offset; /* elements */
    bool in_place;        /* the first output is the last input */
};

static void fill(uint64_t seed)
{
    const struct el_rng_key key = {.seed = seed, .use = EL_RNG_TEST};
    for (int k = 0; k < INS_MAX; k++)
        for (size_t i = 0; i < sizeof ins_memory[0] / 8; i++) {
            uint64_t bits = el_rng_u64(&key, (uint64_t)k, i);
            memcpy(&ins_memory[k][i * 8], &bits, sizeof bits);
        }
    memset(outs_memory, GUARD, sizeof outs_memory);
}

/* Random bits are too wild for floating-point numbers: some of each size, some that sums of do not represent. */
static void fill_floats(const struct combination *c)
{
    for (int k = 0; k < INS_MAX; k++)
        for (size_t i = 0; i < COUNT_MAX + 16; i++) {
            double value = ((double)(ins_memory[k][i] % 64) - 31.7) * (1 + (double)k / 3);
            if (c->dtype == EL_F32) ((float *)(void *)ins_memory[k])[i] = (float)value;
            if (c->dtype == EL_F16) ((uint16_t *)(void *)ins_memory[k])[i] = el_f16_of_f32((float)value);
            if (c->dtype == EL_BF16) ((uint16_t *)(void *)ins_memory[k])[i] = el_bf16_of_f32((float)value);
            if (c->dtype == EL_F64) ((double *)(void *)ins_memory[k])[i] = value;
        }
}

#define EL_DEFINE_EXPECTED(name, type, wide, bitwise)                                                                  \
    static type name(const struct combination *c, const type *const *ins, size_t i)                                    \
    {                                                                                                                  \
        type sum = ins[0][i];                                                                                          \
        for (int k = 1; k < c->n_ins; k++) {                                                                           \
            type x = ins[k][i];                                                                                        \
            if (c->reduction == EL_COMM_SUM || c->reduction == EL_COMM_AVERAGE) sum = (type)((wide)sum + (wide)x);     \
            if (c->reduction == EL_COMM_PRODUCT) sum = (type)((wide)sum * (wide)x);                                    \
            if (c->reduction == EL_COMM_MIN && x < sum) sum = x;                                                       \
            if (c->reduction == EL_COMM_MAX && x > sum) sum = x;                                                       \
            if (c->reduction == EL_COMM_AND) sum = (type)((bitwise)sum & (bitwise)x);                                  \
            if (c->reduction == EL_COMM_OR) sum = (type)((bitwise)sum | (bitwise)x);                                   \
            if (c->reduction == EL_COMM_XOR) sum = (type)((bitwise)sum ^ (bitwise)x);                                  \
        }                                                                                                              \
        if (c->reduction == EL_COMM_AVERAGE && c->members) sum = (type)(sum / (type)c->members);                       \
        return sum;                                                                                                    \
    }
EL_DEFINE_EXPECTED(expected_f32, float, float, int64_t)
EL_DEFINE_EXPECTED(expected_f64, double, double, int64_t)
EL_DEFINE_EXPECTED(expected_i32, int32_t, uint64_t, uint32_t)
EL_DEFINE_EXPECTED(expected_u8, uint8_t, uint32_t, uint8_t)
#undef EL_DEFINE_EXPECTED

/* Nearest to a number of `digits` binary digits, ties to even, whose smallest step is 2^least: apart from how half.h
 * does it. `largest`: what is beyond that half a step is infinite. */
static double narrow(double x, int digits, int least, double largest)
{
    int exponent;
    if (isnan(x) || isinf(x) || x == 0) return x;
    frexp(x, &exponent);
    int step = exponent - digits < least ? least : exponent - digits;
    double nearest = ldexp(nearbyint(ldexp(x, -step)), step);
    return fabs(nearest) > largest ? copysign(INFINITY, x) : nearest;
}

static double f16(double x)
{
    return narrow(x, 11, -24, 65504);
}

static double bf16(double x)
{
    return narrow(x, 8, -133, 0x1.fep127);
}

static uint16_t expected_half(const struct combination *c, const uint16_t *const *ins, size_t i)
{
    bool is_half = c->dtype == EL_F16, sums = c->reduction == EL_COMM_SUM || c->reduction == EL_COMM_AVERAGE;
    double sum = 0;
    for (int k = 0; k < c->n_ins; k++) {
        double x = (double)(is_half ? el_f32_of_f16(ins[k][i]) : el_f32_of_bf16(ins[k][i])), all = x;
        if (c->reduction == EL_COMM_SUM || c->reduction == EL_COMM_AVERAGE) all = sum + x;
        if (c->reduction == EL_COMM_PRODUCT) all = sum * x;
        if (c->reduction == EL_COMM_MIN) all = fmin(sum, x);
        if (c->reduction == EL_COMM_MAX) all = fmax(sum, x);
        sum = k == 0 ? x : sums ? (double)(float)all : is_half ? f16(all) : bf16(all);
    }
    if (c->reduction == EL_COMM_AVERAGE && c->members) sum = (double)(float)(sum / c->members);
    if (sums) sum = is_half ? f16(sum) : bf16(sum);
    return is_half ? el_f16_of_f32((float)sum) : el_bf16_of_f32((float)sum);
}

static void expect(const struct combination *c, const void *const *ins, unsigned char *all)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->dtype == EL_F32) ((float *)(void *)all)[i] = expected_f32(c, (const float *const *)ins, i);
        if (c->dtype == EL_F64) ((double *)(void *)all)[i] = expected_f64(c, (const double *const *)ins, i);
        if (c->dtype == EL_F16 || c->dtype == EL_BF16)
            ((uint16_t *)(void *)all)[i] = expected_half(c, (const uint16_t *const *)ins, i);
        if (c->dtype == EL_I32) ((int32_t *)(void *)all)[i] = expected_i32(c, (const int32_t *const *)ins, i);
        if (c->dtype == EL_U8) all[i] = expected_u8(c, (const uint8_t *const *)ins, i);
    }
}

static void check(const struct combination *c)
{
    static _Alignas(64) unsigned char all[COUNT_MAX * 8];
    size_t width = el_dtype_bytes(c->dtype), at = c->offset * width, bytes = c->count * width;
    const void *ins[INS_MAX];
    void *outs[OUTS_MAX];
    fill(4711 + c->count);
    if (c->dtype != EL_I32 && c->dtype != EL_U8) fill_floats(c);
    for (int k = 0; k < c->n_ins; k++) ins[k] = &ins_memory[k][at];
    for (int k = 0; k < c->n_outs; k++) outs[k] = &outs_memory[k][at];
    if (c->in_place) outs[0] = &ins_memory[c->n_ins - 1][at];
    unsigned char behind = ((unsigned char *)outs[0])[bytes];
    expect(c, ins, all);
    el_combine(c->reduction, c->dtype, c->members, outs, c->n_outs, ins, c->n_ins, c->count);
    for (int k = 0; k < c->n_outs; k++)
        if (memcmp(outs[k], all, bytes) != 0)
            fail_msg("%s of %d x %zu %s at %zu%s: output %d is wrong", el_comm_reduction_name(c->reduction), c->n_ins,
                     c->count, el_dtype_name(c->dtype), c->offset, c->in_place ? ", in place" : "", k);
    assert_int_equal(((unsigned char *)outs[0])[bytes], behind);
}

/* 512 doubles or 1024 floats are a block. */
static void test_same_as_one_after_another(void **state)
{
    static const size_t counts[] = {0, 1, 15, 17, 511, 1024, 1025, COUNT_MAX};
    static const int n_ins[] = {1, 2, 3, INS_MAX};
    struct combination c;
    for (int reduction = 0; reduction < EL_COMM_REDUCTION_COUNT; reduction++)
        for (int dtype = 0; dtype < EL_DTYPE_COUNT; dtype++) {
            if (!el_comm_reduces((enum el_comm_reduction)reduction, (enum el_dtype)dtype)) continue;
            for (int way = 0; way < 8 * 4; way++) {
                c = (struct combination){.reduction = (enum el_comm_reduction)reduction,
                                         .dtype = (enum el_dtype)dtype,
                                         .n_ins = n_ins[way % 4],
                                         .n_outs = way % OUTS_MAX + 1,
                                         .members = way % 5 == 0 ? 0 : n_ins[way % 4],
                                         .count = counts[way / 4],
                                         .offset = (size_t)(way % 7),
                                         .in_place = way % 2};
                check(&c);
            }
        }
}

static float combine_two(enum el_comm_reduction reduction, float a, float b)
{
    float result = 0;
    void *out = &result;
    el_combine(reduction, EL_F32, 0, &out, 1, (const void *[]){&a, &b}, 2, 1);
    return result;
}

static void test_what_is_no_number_stays_none(void **state)
{
    static const enum el_comm_reduction reductions[] = {EL_COMM_SUM, EL_COMM_PRODUCT, EL_COMM_MIN, EL_COMM_MAX};
    for (int i = 0; i < 4; i++) {
        assert_true(isnan(combine_two(reductions[i], NAN, 1)));
        assert_true(isnan(combine_two(reductions[i], 1, NAN)));
    }
    assert_true(combine_two(EL_COMM_MIN, -INFINITY, 3) == -INFINITY);
}

static void test_integers(void **state)
{
    int32_t a[] = {-7, INT32_MAX}, b[] = {2, 1}, sums[2];
    uint8_t c = 200, d = 100, byte;
    void *out = sums, *byte_out = &byte;
    el_combine(EL_COMM_AVERAGE, EL_I32, 2, &out, 1, (const void *[]){a, b}, 2, 2);
    assert_int_equal(sums[0], -2); /* towards zero */
    assert_int_equal(sums[1], INT32_MIN / 2);
    el_combine(EL_COMM_SUM, EL_U8, 0, &byte_out, 1, (const void *[]){&c, &d}, 2, 1);
    assert_int_equal(byte, 44);
    el_combine(EL_COMM_AVERAGE, EL_U8, 300, &byte_out, 1, (const void *[]){&c, &d}, 2, 1);
    assert_int_equal(byte, 0);
}

/* Every number of 16 bits widens to what its bits say, and comes back. */
static void test_halves_widen(void **state)
{
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        double sign = bits & 0x8000 ? -1 : 1;
        int exponent = (int)(bits >> 10 & 31), mantissa = (int)(bits & 0x3ff);
        double value = sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
        float half = el_f32_of_f16((uint16_t)bits), brain = el_f32_of_bf16((uint16_t)bits);
        if (exponent == 31) assert_true(mantissa ? isnan(half) : isinf(half) && half * sign > 0);
        if (exponent < 31) assert_true((double)half == value && !signbit(half) == (sign > 0));
        if (!isnan(half)) assert_int_equal(el_f16_of_f32(half), bits);
        if (!isnan(brain)) assert_int_equal(el_bf16_of_f32(brain), bits);
        if (isnan(half)) assert_int_equal(el_f16_of_f32(half), bits | 0x200);
        if (isnan(brain)) assert_int_equal(el_bf16_of_f32(brain), bits | 0x40);
    }
}

/* Ties, subnormal numbers, the largest and what is beyond it; then f32 of any bits. */
static void test_halves_narrow_to_the_nearest(void **state)
{
    static const struct {
        double value;
        uint16_t f16, bf16;
    } known[] = {{1, 0x3c00, 0x3f80},
                 {-2, 0xc000, 0xc000},
                 {1 + 0x1p-11, 0x3c00, 0x3f80},     /* a tie of f16: to the even one below */
                 {1 + 3 * 0x1p-11, 0x3c02, 0x3f80}, /* to the even one above */
                 {1 + 0x1p-8, 0x3c04, 0x3f80},      /* a tie of bf16 */
                 {1 + 3 * 0x1p-8, 0x3c0c, 0x3f82},
                 {1 + 0x1p-8 + 0x1p-20, 0x3c04, 0x3f81}, /* just above it */
                 {65504, 0x7bff, 0x4780},
                 {65519, 0x7bff, 0x4780},
                 {65520, 0x7c00, 0x4780}, /* half a step beyond the largest f16 */
                 {0x1p-24, 0x0001, 0x3380},
                 {0x1p-25, 0x0000, 0x3300}, /* a tie with zero */
                 {-3 * 0x1p-25, 0x8002, 0xb3c0},
                 {0x1.ffcp-15, 0x0400, 0x3880}, /* up to the smallest normal f16 */
                 {0x1p-133, 0, 0x0001},
                 {0x1p-134, 0, 0x0000},
                 {0x1.ffp127, 0x7c00, 0x7f80}};
    const struct el_rng_key key = {.seed = 3, .use = EL_RNG_TEST};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(el_f16_of_f32((float)known[i].value), known[i].f16);
        assert_int_equal(el_bf16_of_f32((float)known[i].value), known[i].bf16);
    }
    for (uint64_t i = 0; i < 300000; i++) {
        float x = el_f32_of_bits((uint32_t)el_rng_u64(&key, 0, i));
        if (i % 2) x = ldexpf(x < 0 ? -1 : 1, (int)(i % 50) - 30) * (1 + (float)(i % 4099) / 4096); /* in f16's range */
        if (isnan(x)) continue;
        assert_true((double)el_f32_of_f16(el_f16_of_f32(x)) == f16((double)x));
        assert_true((double)el_f32_of_bf16(el_bf16_of_f32(x)) == bf16((double)x));
    }
}

RUN_TESTS(NULL, NULL, test_same_as_one_after_another, test_what_is_no_number_stays_none, test_integers,
          test_halves_widen, test_halves_narrow_to_the_nearest)
