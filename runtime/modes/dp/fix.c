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

/* Still one worker for all devices: the issuing threads are no ops of a step. */
void el_dp_layout(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    el_layout_one_worker(config, n_processes, layout_p);
    layout_p->each_loads = config->dp_fix & EL_DP_FIX_INPUTS;
    layout_p->each_owns = config->dp_fix & EL_DP_FIX_UPDATE;
    if (layout_p->each_loads) layout_p->n_feeds = layout_p->n[EL_AXIS_DATA] = config->n_devices;
}
