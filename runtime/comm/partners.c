/* Opening mailboxes where members share no memory: each tells all others whom it names. */
#include <stdlib.h>

#include "runtime/comm/comm_ops.h"

/* What member r says: [1 + size]. */
enum { CANNOT, CAN };

/* NULL: no two disagree. */
static enum el_status compare(const uint8_t *rows, int rank, int size)
{
    size_t row = (size_t)size + 1;
    for (size_t a = 0; a < (size_t)size; a++)
        if (rows[a * row] == CANNOT) return el_fail(EL_ERR_PEER, "mailboxes: rank %zu has no room for them", a);
    for (size_t a = 0; a < (size_t)size; a++)
        for (size_t b = 0; b < (size_t)size; b++)
            if (rows[a * row + 1 + b] && !rows[b * row + 1 + a])
                return el_fail((int)a == rank ? EL_ERR_INVALID : EL_ERR_PEER,
                               "mailboxes: rank %zu names rank %zu, which does not name it", a, b);
    return EL_OK;
}

enum el_status el_comm_meet_partners(const struct el_comm_ops *ops, void *state, int rank, int size,
                                     enum el_status mine, const bool *partners)
{
    size_t row = (size_t)size + 1;
    uint8_t *rows = calloc((size_t)size, row);
    struct el_error own;
    if (!rows) { /* the others would wait */
        ops->abort(state);
        return el_fail(EL_ERR_HOST_MEMORY, "mailboxes: no memory");
    }
    uint8_t *said = rows + (size_t)rank * row;
    el_error_take(mine, &own);
    said[0] = mine == EL_OK ? CAN : CANNOT;
    for (int r = 0; r < size && mine == EL_OK; r++) said[1 + r] = partners[r];
    const struct el_comm_task task = {.verb = EL_COMM_ALL_GATHER,
                                      .dtype = EL_U8,
                                      .algorithm = EL_COMM_DIRECT,
                                      .count = row,
                                      .data = said,
                                      .result = rows};
    enum el_status status = ops->reserve ? ops->reserve(state, &task) : EL_OK;
    if (status == EL_OK) status = ops->run(state, &task);
    if (status == EL_OK && mine == EL_OK) status = compare(rows, rank, size);
    free(rows);
    return mine != EL_OK ? el_error_give(&own) : status;
}
