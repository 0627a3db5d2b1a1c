
#include "runtime/modes/dp/dp.h"
#include "runtime/modes/dp/fix.h"

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

struct settings {
    int output_device;
};

static const struct el_mode_option output_device = {
    .name = "output-device",
    .argument = "N",
    .help = "position in --devices, from 0, of the device on which outputs are gathered and their loss is computed; "
            "the first device of the list is the master",
    .kind = EL_MODE_INT,
    EL_MODE_SETTING(struct settings, output_device),
    .initial = "0",
    .max = EL_MEMBERS_MAX - 1};

static const struct el_mode_option loss_in = {
    .name = "loss-in",
    .argument = "WHERE",
    .help = "compute one loss from the gathered outputs, or one in each replica, whose mean is the step's loss",
    .kind = EL_MODE_SWITCH,
    EL_MODE_FIELD(loss_in_replica),
    .choices = "output|replica",
    .initial = "output"};

static const struct el_mode_option dp_fix = {
    .name = "dp-fix",
    .argument = "LIST",
    .help = "remove these causes of a longer step, comma-separated: inputs, outputs, update (with outputs), replicas "
            "(with update), overlap, threads; all: its step is then ddp's ('evenload explain' measures them)",
    .kind = EL_MODE_WORDS,
    EL_MODE_FIELD(dp_fix),
    .choices = EL_DP_FIX_NAMES,
    .initial = "none"};

const struct el_mode_option *const el_dp_options[] = {
    &output_device, &loss_in, &el_mode_accumulate, &dp_fix, &el_mode_shares, &el_mode_share_weights, NULL};

int el_dp_output_device(const struct el_train_config *config)
{
    return ((const struct settings *)el_mode_settings(config))->output_device;
}

/* Without gathered outputs each replica has a loss. */
void el_dp_resolve(struct el_train_config *config)
{
    if (config->dp_fix && config->loss_in_replica) config->dp_fix |= EL_DP_FIX_OUTPUTS;
    config->dp_fix = el_dp_fix_close(config->dp_fix);
    if (config->dp_fix & EL_DP_FIX_OUTPUTS) config->loss_in_replica = true;
}

enum el_status el_dp_check(struct el_train_config *config, const struct el_layout *layout)
{
    int output = el_dp_output_device(config);
    const char *other = output > 0 ? "--loss-in device" : config->n_accumulate > 1 ? "--accumulate" : NULL;
    if (output < 0 || (output > 0 && output >= layout->n[EL_AXIS_DATA]))
        return el_fail(EL_ERR_INVALID,
                       "--loss-in device=%d: %d devices have a part of the batch; they are numbered from 0", output,
                       layout->n[EL_AXIS_DATA]);
    if (!config->dp_fix || !other) return EL_OK; /* fixes apply to plain dp only */
    return el_fail(EL_ERR_INVALID, "--dp-fix and %s do not go together: leave one of them out", other);
}
