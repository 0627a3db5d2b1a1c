/* One sentence: which rank is late, or that it is the wire. */
#include "bench/base/text.h"
#include "bench/traces/traces.h"

void el_traces_sentence(const struct el_rank_row *rows, const struct el_ranks_blame *blame, char *text, size_t bytes)
{
    const char *who = blame->who >= 0 ? rows[blame->who].name : "";
    text[0] = 0;
    switch (blame->kind) {
    case EL_BLAME_STAYS:
        el_text_append(text, bytes, "%s is late: last in %.0f %% of the steps, by %.3g ms; the others wait %.3g of %.3g ms for it.", who,
                       rows[blame->who].last_pct, blame->late_s * 1e3, blame->wait_s * 1e3, blame->step_s * 1e3);
        return;
    case EL_BLAME_AT_TIMES:
    case EL_BLAME_WANDERS:
        el_text_append(text, bytes, "Lateness wanders: %.3g of %.3g ms are spent waiting.", blame->wait_s * 1e3, blame->step_s * 1e3);
        return;
    case EL_BLAME_WIRE:
        el_text_append(text, bytes, "The wire: %.3g of %.3g ms are transfers that nothing hides.", blame->transfer_s * 1e3, blame->step_s * 1e3);
        return;
    default:
        el_text_append(text, bytes, "The ranks are even.");
    }
}
