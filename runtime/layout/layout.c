/* Layouts: the usual ones, and questions to any. */
#include "runtime/layout/layout.h"

#include "runtime/layout/config.h"

/* They are neighbours. */
static int devices_of(const struct el_layout *layout, bool of_process, int number, int *first_p)
{
    int n = 0;
    for (int d = layout->n_devices - 1; d >= 0; d--) {
        const struct el_spot *spot = &layout->devices[d];
        if ((of_process ? spot->process : spot->worker) != number) continue;
        *first_p = d;
        n++;
    }
    return n;
}

int el_layout_of_worker(const struct el_layout *layout, int worker, int *first_p)
{
    return devices_of(layout, false, worker, first_p);
}

int el_layout_of_process(const struct el_layout *layout, int process, int *first_p)
{
    return devices_of(layout, true, process, first_p);
}

/* Whether two devices differ along no other axis. */
static bool same_but(const struct el_spot *a, const struct el_spot *b, enum el_axis axis)
{
    for (enum el_axis other = 0; other < EL_AXIS_COUNT; other++)
        if (other != axis && a->at[other] != b->at[other]) return false;
    return true;
}

bool el_layout_differs(const struct el_layout *layout, enum el_axis axis)
{
    for (int d = 1; d < layout->n_devices; d++)
        if (layout->devices[d].worker != layout->devices[0].worker &&
            layout->devices[d].at[axis] != layout->devices[0].at[axis])
            return true;
    return false;
}

bool el_layout_is_whole(const struct el_layout *layout, enum el_axis axis)
{
    for (enum el_axis other = 0; other < EL_AXIS_COUNT; other++)
        if ((other == axis) != el_layout_differs(layout, other)) return false;
    return true;
}

bool el_layout_is_cut(const struct el_layout *layout)
{
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++)
        if (axis != EL_AXIS_DATA && el_layout_differs(layout, axis)) return true;
    return false;
}

int el_layout_group(const struct el_layout *layout, enum el_axis axis, int device)
{
    int number = 0;
    for (enum el_axis other = 0; other < EL_AXIS_COUNT; other++)
        if (other != axis) number = number * layout->n[other] + layout->devices[device].at[other];
    return number;
}

int el_layout_source(const struct el_layout *layout, int device)
{
    const struct el_spot *of = &layout->devices[device];
    for (int d = 0; d < layout->n_devices; d++) {
        const struct el_spot *spot = &layout->devices[d];
        if (spot->owns && same_but(spot, of, EL_AXIS_DATA)) return d;
    }
    return device;
}

int el_layout_pieces(const struct el_train_config *config, const struct el_layout *layout)
{
    int n_feeds = layout->devices[0].n_feeds, n_shares = n_feeds > layout->n_workers ? n_feeds : layout->n_workers;
    return config->n_micro > 1 ? (int)config->n_micro : layout->n_devices / n_shares;
}

int el_layout_copies(const struct el_layout *layout)
{
    int n = 0;
    for (int d = 0; d < layout->n_devices; d++) {
        const struct el_spot *spot = &layout->devices[d];
        if (spot->owns && spot->feed >= n) n = spot->feed + 1;
    }
    return n;
}

int el_layout_losses(const struct el_layout *layout)
{
    int n = 0, last = -1;
    for (int d = 0; d < layout->n_devices; d++) {
        const struct el_spot *spot = &layout->devices[d];
        if (spot->at[EL_AXIS_STAGE] != layout->n[EL_AXIS_STAGE] - 1 || spot->worker == last) continue;
        last = spot->worker;
        n++;
    }
    return n;
}

/* One copy of the whole model a data rank. */
static struct el_layout uncut(int n_devices, int n_data)
{
    return (struct el_layout){
        .n_devices = n_devices,
        .n_processes = 1,
        .n_workers = 1,
        .n = {[EL_AXIS_DATA] = n_data, [EL_AXIS_STAGE] = 1, [EL_AXIS_TENSOR] = 1, [EL_AXIS_SHARD] = 1}};
}

void el_layout_one_device(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    (void)n_processes;
    *layout_p = uncut(1, 1);
    layout_p->devices[0] = (struct el_spot){.samples = config->global_batch, .n_feeds = 1, .owns = true};
}

int64_t el_layout_chunk(int64_t samples, int n, int m)
{
    int64_t chunk = (samples + n - 1) / n, left = samples - m * chunk;
    return left < 0 ? 0 : left < chunk ? left : chunk;
}

/* Worker `w` of `n_workers`: its devices are the next `n`, and share its part of the batch as tensor.chunk cuts it. */
static void place_worker(const struct el_train_config *config, int w, int n_workers, int n, struct el_layout *layout)
{
    int n_micro = config->n_accumulate > 0 ? (int)config->n_accumulate : 1;
    for (int d = w * n; d < (w + 1) * n; d++) {
        bool first = d == w * n;
        struct el_spot *spot = &layout->devices[d];
        *spot = (struct el_spot){.process = layout->n_processes == 1 ? 0 : w,
                                 .worker = w,
                                 .at[EL_AXIS_DATA] = d,
                                 .feed = first ? w : 0,
                                 .n_feeds = first ? n_workers : 0,
                                 .owns = first};
        for (int k = 0; k < n_micro; k++) {
            int64_t batch = el_share_size(config->global_batch, n_workers * n_micro, w + k * n_workers);
            spot->samples += el_layout_chunk(batch, n, d - w * n);
        }
        layout->n[EL_AXIS_DATA] += spot->samples > 0;
    }
}

void el_layout_one_worker(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    (void)n_processes;
    *layout_p = uncut(config->n_devices, 0);
    place_worker(config, 0, 1, config->n_devices, layout_p);
}

void el_layout_worker_several(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    int n = config->n_devices, ranks = config->mesh[EL_AXIS_DATA];
    int asked = ranks ? ranks : n_processes > 1 ? n_processes : 1;
    int n_workers = asked <= n && n % asked == 0 ? asked : 1;
    *layout_p = uncut(n, 0);
    layout_p->n_workers = n_workers;
    layout_p->n_processes = n_processes == 1 ? 1 : n_workers;
    for (int w = 0; w < n_workers; w++) place_worker(config, w, n_workers, n / n_workers, layout_p);
}

void el_layout_worker_each(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    int n = config->n_devices;
    *layout_p = uncut(n, n);
    layout_p->n_workers = n;
    layout_p->n_processes = n_processes == 1 ? 1 : n;
    for (int d = 0; d < n; d++)
        layout_p->devices[d] = (struct el_spot){.process = layout_p->n_processes == 1 ? 0 : d,
                                                .worker = d,
                                                .at[EL_AXIS_DATA] = d,
                                                .samples = el_share_size(config->global_batch, n, d),
                                                .feed = d,
                                                .n_feeds = n,
                                                .owns = true};
}

void el_layout_stages(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    int n = config->n_devices, asked = config->mesh[EL_AXIS_DATA], n_data = asked && n % asked == 0 ? asked : 1;
    *layout_p = uncut(n, n_data);
    layout_p->n_workers = n;
    layout_p->cuts = true;
    layout_p->n[EL_AXIS_STAGE] = n / n_data;
    layout_p->n_processes = n_processes > 1 ? n : 1;
    for (int d = 0; d < n; d++) {
        int stages = layout_p->n[EL_AXIS_STAGE], data_rank = d / stages;
        layout_p->devices[d] = (struct el_spot){.process = layout_p->n_processes == 1 ? 0 : d,
                                                .worker = d,
                                                .at[EL_AXIS_DATA] = data_rank,
                                                .at[EL_AXIS_STAGE] = d % stages,
                                                .samples = el_share_size(config->global_batch, n_data, data_rank),
                                                .feed = data_rank,
                                                .n_feeds = n_data,
                                                .owns = true};
    }
}
