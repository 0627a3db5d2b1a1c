/* The causes of dp's step, and what dp's layout is without some of them. */
#include "runtime/modes/dp/fix.h"

#include "runtime/modes/dp/dp.h"

static const struct el_dp_fix_row rows[EL_DP_FIXES] = {
    {"inputs", EL_DP_FIX_INPUTS, 0, "the batch is loaded on the master and scattered"},
    {"outputs", EL_DP_FIX_OUTPUTS, 0, "outputs are gathered on the master, and their gradient is scattered"},
    {"update", EL_DP_FIX_UPDATE, EL_DP_FIX_OUTPUTS, "the master alone has the loss and the update"},
    {"replicas", EL_DP_FIX_REPLICAS, EL_DP_FIX_UPDATE, "the model is sent to each device before every forward"},
    {"overlap", EL_DP_FIX_OVERLAP, 0, "gradients are reduced after the whole backward"},
    {"threads", EL_DP_FIX_THREADS, 0, "a thread for each replica is made and ended in every step"},
};

const struct el_dp_fix_row *el_dp_fix_rows(void)
{
    return rows;
}

unsigned el_dp_fix_close(unsigned fixes)
{
    for (int i = EL_DP_FIXES - 1; i >= 0; i--)
        if (fixes & rows[i].fix) fixes |= rows[i].needs;
    return fixes;
}

void el_dp_fix_text(unsigned fixes, char *text, size_t bytes)
{
    el_mode_words_show(EL_DP_FIX_NAMES, fixes, text, bytes);
}

/* One worker for all devices all the same: whose threads issue is no op of a step. */
void el_dp_layout(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    int n = config->n_devices;
    el_layout_one_worker(config, n_processes, layout_p);
    for (int d = 0; d < n && n > 1; d++) {
        struct el_spot *spot = &layout_p->devices[d];
        if (config->dp_fix & EL_DP_FIX_INPUTS) {
            spot->samples = el_share_size(config->global_batch, n, d);
            spot->feed = d;
            spot->n_feeds = n;
        }
        if (config->dp_fix & EL_DP_FIX_UPDATE) spot->owns = spot->samples > 0;
    }
    if (config->dp_fix & EL_DP_FIX_INPUTS) layout_p->n[EL_AXIS_DATA] = n;
}
