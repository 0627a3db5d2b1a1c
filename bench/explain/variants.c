/* Which schedules are measured to tell dp's causes apart, and the trial that they are of. */
#include <string.h>

#include "bench/explain/explain.h"

/* dp without the first `n` causes. */
static unsigned without(int n)
{
    unsigned fixes = 0;
    for (int i = 0; i < n; i++) fixes |= el_dp_fix_rows()[i].fix;
    return fixes;
}

static int find(const struct el_explain_variant *list, int n, unsigned fixes)
{
    for (int v = 0; v < n; v++)
        if (!list[v].is_ddp && list[v].fixes == fixes) return v;
    return -1;
}

int el_explain_variants(struct el_explain_variant *list)
{
    int n = 0;
    for (int k = 0; k <= EL_DP_FIXES; k++) list[n++] = (struct el_explain_variant){.fixes = without(k)};
    list[n++] = (struct el_explain_variant){.is_ddp = true};
    for (int i = 0; i < EL_DP_FIXES; i++) {
        unsigned fixes = el_dp_fix_close(el_dp_fix_rows()[i].fix);
        if (find(list, n, fixes) < 0) list[n++] = (struct el_explain_variant){.fixes = fixes};
    }
    return n;
}

int el_explain_alone(int cause)
{
    struct el_explain_variant list[EL_EXPLAIN_VARIANTS_MAX];
    int n = el_explain_variants(list);
    return find(list, n, el_dp_fix_close(el_dp_fix_rows()[cause].fix));
}

enum el_status el_explain_resolve(const struct el_options *options, struct el_trial_set *set_p)
{
    struct el_options dp = *options;
    dp.n_modes = 1;
    snprintf(dp.modes[0], sizeof dp.modes[0], "dp");
    EL_TRY(el_trials_resolve(EL_CMD_EXPLAIN, &dp, set_p));
    const struct el_trial *trial = &set_p->trials[0];
    enum el_status status = EL_OK;
    if (set_p->n != 1) status = el_fail(EL_ERR_INVALID, "--batch: explain takes one trial apart: give one batch");
    if (trial->n_devices < 2 || trial->train.global_batch < trial->n_devices)
        status = el_fail(EL_ERR_INVALID, "explain: on one device dp and ddp are the same: give --devices 2 or more");
    if (status != EL_OK) el_trials_free(set_p);
    return status;
}
