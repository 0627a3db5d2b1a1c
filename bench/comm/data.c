/* Data with a known result: small whole numbers with a prime period, so that misplaced parts show and every sum is
 * exact in every type. */
#include <stdlib.h>
#include <string.h>

#include "bench/comm/wire.h"
#include "runtime/base/half.h"

enum { PERIOD = 61, BLOCK = PERIOD * 256, COMBINED = -1 };

/* Products: few ranks have a 2. Averages: the sum is a multiple of n. */
static int64_t value_of(const struct el_wire_data *data, int rank, size_t i)
{
    int at = (int)(i % PERIOD);
    switch (el_comm_verb_row(data->verb)->reduces ? data->reduction : EL_COMM_SUM) {
    case EL_COMM_PRODUCT:
        return rank % 16 == at % 16 ? 2 : 1;
    case EL_COMM_AVERAGE:
        return rank == at % data->n ? data->n * (1 + at % 3) : 0;
    case EL_COMM_SUM:
        return (at + 3 * rank) % 4;
    default:
        return (at * 7 + rank * 29) % 128;
    }
}

static int64_t combine(enum el_comm_reduction reduction, int64_t a, int64_t b)
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

static int64_t combined(const struct el_wire_data *data, size_t i)
{
    int64_t value = value_of(data, 0, i);
    for (int r = 1; r < data->n; r++) value = combine(data->reduction, value, value_of(data, r, i));
    return data->reduction == EL_COMM_AVERAGE ? value / data->n : value;
}

static void store(enum el_dtype dtype, int64_t value, void *at)
{
    if (dtype == EL_F32) memcpy(at, &(float){(float)value}, sizeof(float));
    if (dtype == EL_F64) memcpy(at, &(double){(double)value}, sizeof(double));
    if (dtype == EL_F16) memcpy(at, &(uint16_t){el_f16_of_f32((float)value)}, sizeof(uint16_t));
    if (dtype == EL_BF16) memcpy(at, &(uint16_t){el_bf16_of_f32((float)value)}, sizeof(uint16_t));
    if (dtype == EL_I32) memcpy(at, &(int32_t){(int32_t)value}, sizeof(int32_t));
    if (dtype == EL_U8) memcpy(at, &(uint8_t){(uint8_t)value}, sizeof(uint8_t));
}

/* Starts at element `begin`; to be freed. */
static char *make_block(const struct el_wire_data *data, int rank, size_t begin, bool zeros)
{
    size_t width = el_dtype_bytes(data->dtype);
    char *block = malloc(BLOCK * width);
    for (size_t i = 0; block && i < PERIOD; i++) {
        int64_t value = rank == COMBINED ? combined(data, begin + i) : value_of(data, rank, begin + i);
        store(data->dtype, zeros ? 0 : value, block + i * width);
    }
    for (size_t i = PERIOD; block && i < BLOCK; i += PERIOD) memcpy(block + i * width, block, PERIOD * width);
    if (!block) el_fail_errno("data of a check");
    return block;
}

static struct el_view at_element(struct el_view view, size_t bytes)
{
    return (struct el_view){view.buffer, view.offset + bytes};
}

enum el_status el_wire_fill(const struct el_wire_data *data, int rank, size_t count, struct el_view view, bool zeros)
{
    size_t width = el_dtype_bytes(data->dtype);
    char *block = make_block(data, rank, 0, zeros);
    enum el_status status = block ? EL_OK : EL_ERR_HOST_MEMORY;
    for (size_t i = 0; i < count && status == EL_OK; i += BLOCK)
        status = el_device_write(at_element(view, i * width), block, (count - i < BLOCK ? count - i : BLOCK) * width);
    free(block);
    return status;
}

/* nccl-tests' default: proportional to the distance in rank, in whole 16 bytes. */
size_t el_wire_part(const struct el_wire_data *data, int from, int to)
{
    size_t width = el_dtype_bytes(data->dtype), n = (size_t)data->n, all = data->count * n * width;
    double distance = (to - from + data->n) % data->n, sum = (double)n * (double)(n - 1) / 2;
    return (n == 1 ? all : (size_t)(distance * (double)all / sum) & ~(size_t)15) / width;
}

size_t el_wire_part_sent_at(const struct el_wire_data *data, int from, int to)
{
    size_t begin = 0;
    for (int k = 0; k < to; k++) begin += el_wire_part(data, from, k);
    return begin;
}

size_t el_wire_part_got_at(const struct el_wire_data *data, int from, int to)
{
    size_t begin = 0;
    for (int k = 0; k < from; k++) begin += el_wire_part(data, k, to);
    return begin;
}

static enum el_status check_part(const struct el_wire_data *data, int rank, size_t begin, size_t count,
                                 struct el_view view, int64_t *wrong)
{
    size_t width = el_dtype_bytes(data->dtype);
    char *block = make_block(data, rank, begin, false), *seen = malloc(BLOCK * width);
    enum el_status status = block && seen ? EL_OK : el_fail_errno("data of a check");
    for (size_t i = 0; i < count && status == EL_OK; i += BLOCK) {
        size_t n = count - i < BLOCK ? count - i : BLOCK;
        status = el_device_read(at_element(view, i * width), seen, n * width);
        if (status != EL_OK || !memcmp(seen, block, n * width)) continue;
        for (size_t k = 0; k < n; k++) *wrong += memcmp(seen + k * width, block + k * width, width) != 0;
    }
    free(seen);
    free(block);
    return status;
}

enum el_status el_wire_check(const struct el_wire_data *data, int rank, struct el_view result, int64_t *wrong_p)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(data->verb);
    int before = (rank + data->n - 1) % data->n;
    size_t begin = row->all_data ? (size_t)rank * data->count : 0, width = el_dtype_bytes(data->dtype);
    int64_t wrong = 0;
    for (int p = 0; p < data->n && data->uneven; p++)
        EL_TRY(check_part(data, p, el_wire_part_sent_at(data, p, rank), el_wire_part(data, p, rank),
                          at_element(result, el_wire_part_got_at(data, p, rank) * width), &wrong));
    for (int p = 0;
         p < (row->all_result ? data->n : 1) && !data->uneven && !(row->result_on_root && rank != data->root); p++) {
        int source = row->reduces ? COMBINED : row->is_link ? before : row->all_result ? p : data->root;
        struct el_view part = at_element(result, (size_t)p * data->count * width);
        EL_TRY(check_part(data, source, begin, data->count, part, &wrong));
    }
    *wrong_p = wrong;
    return EL_OK;
}
