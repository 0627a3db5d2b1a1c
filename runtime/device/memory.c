/* A device's persistent buffers, its limit, its ledger, and copies to and from the host. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/internal.h"

void el_ledger_add(struct el_ledger *ledger, enum el_tag tag, size_t bytes)
{
    ledger->live_bytes += bytes;
    ledger->live_by_tag[tag] += bytes;
    if (ledger->live_by_tag[tag] > ledger->peak_by_tag[tag]) ledger->peak_by_tag[tag] = ledger->live_by_tag[tag];
    if (ledger->live_bytes > ledger->peak_bytes) {
        ledger->peak_bytes = ledger->live_bytes;
        memcpy(ledger->at_peak_by_tag, ledger->live_by_tag, sizeof ledger->live_by_tag);
    }
}

void el_ledger_remove(struct el_ledger *ledger, enum el_tag tag, size_t bytes)
{
    ledger->live_bytes -= bytes;
    ledger->live_by_tag[tag] -= bytes;
}

/* Persistent bytes are constant within a step, so the sum peaks with the step's own. */
void el_ledger_merge_step(struct el_ledger *base, const struct el_ledger *step)
{
    for (int tag = 0; tag < EL_TAG_COUNT; tag++) {
        size_t peak = base->live_by_tag[tag] + step->peak_by_tag[tag];
        if (peak > base->peak_by_tag[tag]) base->peak_by_tag[tag] = peak;
    }
    if (base->live_bytes + step->peak_bytes <= base->peak_bytes) return;
    base->peak_bytes = base->live_bytes + step->peak_bytes;
    for (int tag = 0; tag < EL_TAG_COUNT; tag++) {
        base->at_peak_by_tag[tag] = base->live_by_tag[tag] + step->at_peak_by_tag[tag];
    }
}

enum el_status el_device_resident(struct el_device *device, int64_t *bytes_p)
{
    int64_t bytes;
    if (device->ops->resident) {
        EL_TRY(device->ops->resident(device->state, &bytes));
        *bytes_p = bytes + (device->ops->async ? 0 : device->adopted_bytes); /* a card's driver includes them */
        return EL_OK;
    }
    return el_fail(EL_ERR_ABSENT, "%s: %s", device->name,
                   device->ops->simulated ? "simulated" : "this backend cannot say what is resident");
}

const struct el_ledger *el_device_ledger(const struct el_device *device)
{
    return &device->ledger;
}

void el_device_ledger_reset_peak(struct el_device *device)
{
    struct el_ledger *ledger = &device->ledger;
    ledger->peak_bytes = ledger->live_bytes;
    memcpy(ledger->at_peak_by_tag, ledger->live_by_tag, sizeof ledger->live_by_tag);
    memcpy(ledger->peak_by_tag, ledger->live_by_tag, sizeof ledger->live_by_tag);
}

void el_device_ledger_restore_peak(struct el_device *device, const struct el_ledger *earlier)
{
    struct el_ledger *ledger = &device->ledger;
    ledger->peak_bytes = earlier->peak_bytes;
    memcpy(ledger->at_peak_by_tag, earlier->at_peak_by_tag, sizeof ledger->at_peak_by_tag);
    memcpy(ledger->peak_by_tag, earlier->peak_by_tag, sizeof ledger->peak_by_tag);
}

enum el_status el_device_check_limit(const struct el_device *device, size_t step_live_bytes, size_t bytes,
                                     enum el_tag tag, const char *name)
{
    size_t limit = device->spec.memory_limit_bytes, live = device->ledger.live_bytes + step_live_bytes;
    if (limit == 0 || (live <= limit && bytes <= limit - live)) return EL_OK;
    char wanted[EL_BYTES_TEXT], used[EL_BYTES_TEXT], all[EL_BYTES_TEXT];
    return el_fail(EL_ERR_OOM,
                   "%s is out of memory: %s for '%s' (%s) do not fit, %s of %s are in use; take a smaller batch or "
                   "model, or a larger --devices mem",
                   device->name, el_bytes_text(bytes, wanted), name, el_tag_name(tag), el_bytes_text(live, used),
                   el_bytes_text(limit, all));
}

enum el_status el_device_has_room(const struct el_device *device, enum el_tag tag, size_t bytes, const char *name)
{
    return el_device_check_limit(device, 0, bytes, tag, name);
}

static void keep(struct el_persistent *made)
{
    struct el_device *device = made->buffer.device;
    made->next = device->allocations;
    made->link = &device->allocations;
    if (made->next) made->next->link = &made->next;
    device->allocations = made;
    device->reserved_bytes += (int64_t)made->buffer.bytes;
    el_ledger_add(&device->ledger, made->buffer.tag, made->buffer.bytes);
}

static enum el_status make_buffer(const struct el_buffer *like, const struct el_lent_memory *lent,
                                  struct el_buffer **buffer_p)
{
    struct el_device *device = like->device;
    EL_TRY(el_device_has_room(device, like->tag, like->bytes, like->name));
    struct el_persistent *made = calloc(1, sizeof *made);
    if (!made) return el_fail_errno("%s: '%s'", device->name, like->name);
    made->buffer = *like;
    enum el_status status = EL_OK;
    if (lent) {
        made->lent = *lent;
        made->buffer.address = lent->address;
        device->adopted_bytes += (int64_t)like->bytes;
    } else if (!device->ops->simulated) {
        status = device->ops->map(device->state, like->bytes, &made->buffer.address);
    }
    if (status != EL_OK) {
        free(made);
        return status;
    }
    keep(made);
    *buffer_p = &made->buffer;
    return EL_OK;
}

enum el_status el_device_alloc(struct el_device *device, enum el_tag tag, size_t bytes, const char *name,
                               struct el_buffer **buffer_p)
{
    struct el_buffer like = {.device = device, .tag = tag, .bytes = bytes, .name = name};
    return make_buffer(&like, NULL, buffer_p);
}

enum el_status el_device_adopt(struct el_device *device, enum el_tag tag, size_t bytes, const char *name,
                               const struct el_lent_memory *memory, struct el_buffer **buffer_p)
{
    struct el_buffer like = {.device = device, .tag = tag, .bytes = bytes, .name = name};
    return make_buffer(&like, memory, buffer_p);
}

void el_device_free(struct el_buffer *buffer)
{
    if (!buffer) return;
    struct el_persistent *gone = (struct el_persistent *)buffer;
    struct el_device *device = buffer->device;
    if (gone->lent.release) {
        if (!el_device_is_kept(device)) gone->lent.release(gone->lent.owner);
        device->adopted_bytes -= (int64_t)buffer->bytes;
    } else if (!device->ops->simulated && !el_device_is_kept(device)) {
        device->ops->unmap(device->state, buffer->address, buffer->bytes);
    }
    device->reserved_bytes -= (int64_t)buffer->bytes;
    el_ledger_remove(&device->ledger, buffer->tag, buffer->bytes);
    *gone->link = gone->next;
    if (gone->next) gone->next->link = gone->link;
    free(gone);
}

enum el_status el_device_write(struct el_view destination, const void *host, size_t bytes)
{
    struct el_device *device = destination.buffer->device;
    if (device->ops->simulated) return EL_OK;
    return device->ops->move(device->state, (void *)(uintptr_t)host, destination.buffer->address + destination.offset,
                             bytes, true);
}

enum el_status el_device_read(struct el_view source, void *host, size_t bytes)
{
    struct el_device *device = source.buffer->device;
    if (device->ops->simulated) {
        memset(host, 0, bytes);
        return EL_OK;
    }
    return device->ops->move(device->state, host, source.buffer->address + source.offset, bytes, false);
}
