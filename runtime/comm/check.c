/* Checks an operation's arguments: a refusal is the caller's mistake. */
#include "runtime/comm/member.h"

static enum el_status check_link(const struct el_comm *comm, const struct el_comm_op *op)
{
    const char *name = el_comm_verb_row(op->verb)->name;
    size_t bytes = op->count * el_dtype_bytes(op->dtype);
    if (op->root == comm->rank)
        return el_fail(EL_ERR_INVALID, "%s: rank %d cannot be its own partner", name, comm->rank);
    if (op->tag < 0) return el_fail(EL_ERR_INVALID, "%s: tag %d is below 0", name, op->tag);
    if (comm->state && !comm->partners && comm->backend->ops->open_mailboxes)
        return el_fail(EL_ERR_ABSENT, "communicator %s: has no %s before its mailboxes are opened", comm->backend->name,
                       name);
    if (comm->partners && !comm->partners[op->root])
        return el_fail(EL_ERR_INVALID, "%s: no mailboxes were opened between ranks %d and %d", name, comm->rank,
                       op->root);
    if (comm->partners && bytes > comm->mailbox_bytes)
        return el_fail(EL_ERR_INVALID, "%s: a message of %zu bytes, and mailboxes of %zu", name, bytes,
                       comm->mailbox_bytes);
    return EL_OK;
}

static enum el_status check_words(const struct el_comm *comm, const struct el_comm_op *op)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(op->verb);
    if (op->root < 0 || op->root >= comm->size)
        return el_fail(EL_ERR_INVALID, "%s: %s %d of %d members", row->name, row->is_link ? "partner" : "root",
                       op->root, comm->size);
    if (!row->has_root && op->root != 0)
        return el_fail(EL_ERR_INVALID, "%s: has no root, and %d was given", row->name, op->root);
    if (row->is_link) EL_TRY(check_link(comm, op));
    if (row->reduces && !el_comm_reduces(op->reduction, op->dtype))
        return el_fail(EL_ERR_INVALID, "%s: no %s of %s values", row->name, el_comm_reduction_name(op->reduction),
                       el_dtype_name(op->dtype));
    if (!el_comm_has_verb(comm, op->verb))
        return el_fail(EL_ERR_ABSENT, "communicator %s: has no %s", comm->backend->name, row->name);
    if (row->reduces && !el_comm_has_reduction(comm, op->reduction, op->dtype))
        return el_fail(EL_ERR_ABSENT, "communicator %s: has no %s of %s values", comm->backend->name,
                       el_comm_reduction_name(op->reduction), el_dtype_name(op->dtype));
    return EL_OK;
}

struct side {
    const char *name;
    struct el_view view;
    size_t bytes;
};

static enum el_status check_size(const char *verb, const struct side *side)
{
    const struct el_buffer *buffer = side->view.buffer;
    if (!buffer || (side->view.offset <= buffer->bytes && side->bytes <= buffer->bytes - side->view.offset))
        return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s: %zu bytes of %s at offset %zu of '%s', which has %zu bytes", verb, side->bytes,
                   side->name, (size_t)side->view.offset, buffer->name ? buffer->name : "a buffer", buffer->bytes);
}

/* In place, the smaller one is the member's own part of the larger one. */
static enum el_status check_overlap(const struct el_comm *comm, const struct el_comm_op *op, const struct side *data,
                                    const struct side *result)
{
    uintptr_t d = data->view.offset, r = result->view.offset;
    const struct el_comm_verb_row *row = el_comm_verb_row(op->verb);
    if (data->view.buffer != result->view.buffer || d + data->bytes <= r || r + result->bytes <= d) return EL_OK;
    if (op->verb == EL_COMM_ALL_TO_ALL)
        return el_fail(EL_ERR_INVALID, "%s: data and result overlap, and it does not work in place", row->name);
    if (row->all_data) d += (uintptr_t)comm->rank * result->bytes;
    if (row->all_result) r += (uintptr_t)comm->rank * data->bytes;
    if (d == r) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s: data and result overlap%s", row->name,
                   row->all_data     ? ": in place, the result is the member's own part of the data"
                   : row->all_result ? ": in place, the data are the member's own part of the result"
                                     : ": in place, they are the same memory");
}

static enum el_status check_sides(const struct el_comm *comm, const struct el_comm_op *op)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(op->verb);
    size_t part = op->count * el_dtype_bytes(op->dtype), n = (size_t)comm->size;
    struct side data = {"data", op->data, part * (row->all_data ? n : 1)};
    struct side result = {"result", op->result, part * (row->all_result ? n : 1)};
    bool gives = el_comm_gives(comm, op->verb, op->root), gets = el_comm_gets(comm, op->verb, op->root);
    bool has_data = el_comm_is_given(op->data), has_result = el_comm_is_given(op->result);
    if (gives && !has_data) return el_fail(EL_ERR_INVALID, "%s: no data", row->name);
    if (gets && !has_result && (!has_data || row->all_data || row->all_result))
        return el_fail(EL_ERR_INVALID, "%s: no result", row->name);
    if (gives || (gets && !has_result)) EL_TRY(check_size(row->name, &data));
    if (gets && has_result) EL_TRY(check_size(row->name, &result));
    return gives && gets && has_result ? check_overlap(comm, op, &data, &result) : EL_OK;
}

static enum el_status check_used(const struct el_comm *comm, const struct el_comm_op *op)
{
    const char *name = el_comm_verb_row(op->verb)->name;
    const bool given = el_comm_is_given(op->used), each = op->used_each > 0 && op->used_each <= INT32_MAX;
    if (op->verb != EL_COMM_ALL_TO_ALL && (given || op->expected != 0))
        return el_fail(EL_ERR_INVALID, "%s: its parts are always used whole", name);
    if (!(op->expected >= 0 && op->expected <= 1))
        return el_fail(EL_ERR_INVALID, "%s: %g of each part is expected", name, op->expected);
    if (!given) return EL_OK;
    if (!each || op->unit < 1 || op->unit > INT32_MAX)
        return el_fail(EL_ERR_INVALID, "%s: %lld counts of %lld elements for each part", name, (long long)op->used_each,
                       (long long)op->unit);
    struct side used = {"counts", op->used, 2 * (size_t)comm->size * (size_t)op->used_each * sizeof(int32_t)};
    return check_size(name, &used);
}

enum el_status el_comm_check(const struct el_comm *comm, const struct el_comm_op *op)
{
    EL_TRY(check_words(comm, op));
    EL_TRY(check_used(comm, op));
    return op->count > 0 ? check_sides(comm, op) : EL_OK;
}
