/* The ledger's arithmetic: live and peak bytes a tag. It knows nothing of devices, addresses or limits. */
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

/* What lives across steps does not change within one, so the sum peaks where the step's own bytes do. */
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
