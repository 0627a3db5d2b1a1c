/* What members give to an operation, and what each gets: values that are exact in every type and order, and repeat with
 * a prime period: a part in the wrong place shows, and long data are copies of the first stretch. */
#pragma once

#include <string.h>

#include "runtime/base/half.h"
#include "runtime/comm/comm.h"

enum { CASE_PERIOD = 4093 };

struct comm_case {
    enum el_comm_verb verb; /* EL_COMM_SEND: each member sends to the next one and receives from the one before */
    enum el_comm_reduction reduction;
    enum el_dtype dtype;
    enum el_comm_algorithm algorithm;
    size_t count, shift; /* elements; how far the data begins behind a cache line */
    int root;
    bool in_place;
    bool registered; /* memory of el_comm_alloc */
    bool at_once;    /* by el_comm_exchange, not in a program */
};

/* Integer-valued, and small enough that no combination of 7 members leaves a byte, in any order; an average is whole.
 */
static inline int64_t case_value(const struct comm_case *c, int size, int rank, size_t i)
{
    i %= CASE_PERIOD;
    uint32_t draw = (uint32_t)(((uint64_t)rank * 7919 + i * 31 + i / 61 + 17) * 2654435761u >> 7);
    switch (el_comm_verb_row(c->verb)->reduces ? c->reduction : EL_COMM_REDUCTION_COUNT) {
    case EL_COMM_SUM:
        return draw % 30;
    case EL_COMM_PRODUCT:
        return 1 + draw % 2;
    case EL_COMM_MIN:
    case EL_COMM_MAX:
        return (int64_t)(draw % 100) - (c->dtype == EL_U8 ? 0 : 50);
    case EL_COMM_AVERAGE:
        return size * (int64_t)(draw % 5);
    default:
        return draw & 0xff;
    }
}

static inline int64_t case_combine(enum el_comm_reduction reduction, int64_t a, int64_t b)
{
    switch (reduction) {
    case EL_COMM_PRODUCT:
        return a * b;
    case EL_COMM_MIN:
        return a < b ? a : b;
    case EL_COMM_MAX:
        return a > b ? a : b;
    case EL_COMM_AND:
        return a & b;
    case EL_COMM_OR:
        return a | b;
    case EL_COMM_XOR:
        return a ^ b;
    default:
        return a + b;
    }
}

static inline int64_t case_combined(const struct comm_case *c, int size, size_t i)
{
    int64_t all = case_value(c, size, 0, i);
    for (int r = 1; r < size; r++) all = case_combine(c->reduction, all, case_value(c, size, r, i));
    return c->reduction == EL_COMM_AVERAGE ? all / size : all;
}

/* Element i of what rank `rank` gets. */
static inline int64_t case_expected(const struct comm_case *c, int size, int rank, size_t i)
{
    size_t mine = (size_t)rank * c->count + i;
    switch (c->verb) {
    case EL_COMM_ALL_REDUCE:
    case EL_COMM_REDUCE:
        return case_combined(c, size, i);
    case EL_COMM_REDUCE_SCATTER:
        return case_combined(c, size, mine);
    case EL_COMM_BROADCAST:
        return case_value(c, size, c->root, i);
    case EL_COMM_SCATTER:
        return case_value(c, size, c->root, mine);
    case EL_COMM_ALL_TO_ALL:
        return case_value(c, size, (int)(i / c->count), (size_t)rank * c->count + i % c->count);
    case EL_COMM_SEND:
        return case_value(c, size, (rank + size - 1) % size, i);
    default: /* the gathers */
        return case_value(c, size, (int)(i / c->count), i % c->count);
    }
}

static inline void case_store(void *data, enum el_dtype dtype, size_t i, int64_t value)
{
    if (dtype == EL_F32) ((float *)data)[i] = (float)value;
    if (dtype == EL_F64) ((double *)data)[i] = (double)value;
    if (dtype == EL_F16) ((uint16_t *)data)[i] = el_f16_of_f32((float)value);
    if (dtype == EL_BF16) ((uint16_t *)data)[i] = el_bf16_of_f32((float)value);
    if (dtype == EL_I32) ((int32_t *)data)[i] = (int32_t)value;
    if (dtype == EL_U8) ((uint8_t *)data)[i] = (uint8_t)value;
}

static inline double case_load(const void *data, enum el_dtype dtype, size_t i)
{
    if (dtype == EL_F32) return (double)((const float *)data)[i];
    if (dtype == EL_F64) return ((const double *)data)[i];
    if (dtype == EL_F16) return (double)el_f32_of_f16(((const uint16_t *)data)[i]);
    if (dtype == EL_BF16) return (double)el_f32_of_bf16(((const uint16_t *)data)[i]);
    return dtype == EL_I32 ? (double)((const int32_t *)data)[i] : (double)((const uint8_t *)data)[i];
}

/* The first stretch of `n` elements is there; the others are copies of it. */
static inline void case_repeat(unsigned char *at, size_t width, size_t n)
{
    for (size_t done = CASE_PERIOD; done < n; done += CASE_PERIOD)
        memcpy(at + done * width, at, (n - done < CASE_PERIOD ? n - done : CASE_PERIOD) * width);
}

/* What rank `rank` gives: `n` elements. */
static inline void case_store_data(const struct comm_case *c, int size, int rank, unsigned char *at, size_t n)
{
    for (size_t i = 0; i < n && i < CASE_PERIOD; i++) case_store(at, c->dtype, i, case_value(c, size, rank, i));
    case_repeat(at, el_dtype_bytes(c->dtype), n);
}

/* What rank `rank` gets: `n` elements, a whole number of parts. */
static inline void case_store_result(const struct comm_case *c, int size, int rank, unsigned char *at, size_t n)
{
    size_t width = el_dtype_bytes(c->dtype);
    for (size_t part = 0; part < n; part += c->count) {
        for (size_t i = 0; i < c->count && i < CASE_PERIOD; i++)
            case_store(at + part * width, c->dtype, i, case_expected(c, size, rank, part + i));
        case_repeat(at + part * width, width, c->count);
    }
}
