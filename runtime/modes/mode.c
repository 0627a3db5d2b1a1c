/* The registry of modes (docs/adding.md adds one). */
#include "runtime/modes/mode.h"

#include <pthread.h>
#include <string.h>

/* clang-format off */
#define MODES(row) \
    row(single)    \
    row(dp)        \
    row(ddp)       \
    row(manual)    \
    row(spmg)      \
    row(mp)        \
    row(pipeline)  \
    row(tp)        \
    row(ep)        \
    row(zero1)     \
    row(zero2)     \
    row(zero3)     \
    row(reference)
/* clang-format on */

#define DECLARE(name) extern const struct el_mode_ops el_mode_##name;
#define ADDRESS(name) &el_mode_##name,

MODES(DECLARE)
static const struct el_mode_ops *const modes[] = {MODES(ADDRESS)};
enum { N_MODES = sizeof modes / sizeof modes[0] };

const struct el_mode_ops *el_mode_ops_find(const char *name)
{
    for (int i = 0; i < N_MODES; i++) {
        if (strcmp(modes[i]->info.name, name) == 0) return modes[i];
    }
    return NULL;
}

void el_layout_of(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    el_mode_ops_find(config->mode)->layout(config, n_processes, layout_p);
}

static struct el_mode_info list[N_MODES + 1];
static pthread_once_t list_once = PTHREAD_ONCE_INIT;

static void make_list(void)
{
    int n = 0;
    for (int i = 0; i < N_MODES; i++) {
        if (!modes[i]->hidden) list[n++] = modes[i]->info;
    }
}

const struct el_mode_info *el_mode_list(void)
{
    pthread_once(&list_once, make_list);
    return list;
}

int el_mode_devices(const char *mode, int n)
{
    struct el_train_config config = {.n_devices = n, .global_batch = n};
    const struct el_mode_ops *ops = el_mode_ops_find(mode);
    struct el_layout layout;
    if (!ops) return 0;
    ops->layout(&config, 0, &layout);
    return layout.n_devices;
}

int el_mode_devices_for(const char *mode, const char *model, int n)
{
    const struct el_mode_ops *ops = el_mode_ops_find(mode);
    const unsigned others = 1U << EL_AXIS_STAGE | 1U << EL_AXIS_SHARD;
    const bool across = ops && ops->info.axes & 1U << EL_AXIS_TENSOR && !(ops->info.axes & others);
    const bool experts = ops && ops->info.axes & 1U << EL_AXIS_EXPERT;
    if ((across && !el_model_find(model)->across[0]) || (experts && !el_model_find(model)->experts)) return 1;
    return el_mode_devices(mode, n);
}

const struct el_mode_info *el_mode_plain(void)
{
    return &el_mode_single.info;
}

bool el_mode_cuts(const char *mode)
{
    const struct el_mode_ops *ops = el_mode_ops_find(mode);
    return ops && ops->info.axes & 1U << EL_AXIS_STAGE && !(ops->info.axes & 1U << EL_AXIS_SHARD);
}

bool el_mode_has_pieces(const char *mode)
{
    const struct el_mode_ops *ops = el_mode_ops_find(mode);
    return ops && ops->info.axes & (1U << EL_AXIS_STAGE | 1U << EL_AXIS_TENSOR) &&
           !(ops->info.axes & 1U << EL_AXIS_SHARD);
}

const struct el_mode_info *el_mode_find(const char *name)
{
    const struct el_mode_ops *mode = el_mode_ops_find(name);
    return mode && !mode->hidden ? &mode->info : NULL;
}
