#include <stdio.h>
#include <string.h>

#include "runtime/layout/config.h"
#include "runtime/layout/layout.h"

/* Adjacent: all workers have equally many devices; with several processes each has one worker. */
int el_layout_of_worker(const struct el_layout *layout, int worker, int *first_p)
{
    int n = layout->n_devices / layout->n_workers;
    *first_p = worker * n;
    return worker < layout->n_workers ? n : 0;
}

int el_layout_of_process(const struct el_layout *layout, int process, int *first_p)
{
    int n = layout->n_devices / layout->n_processes;
    *first_p = process * n;
    return process < layout->n_processes ? n : 0;
}

/* Samples of a worker's share of each micro-step, cut among its devices by tensor.chunk. */
static int64_t samples_of(const struct el_layout *layout, int worker, int place, int n)
{
    int64_t samples = 0;
    for (int k = 0; k < layout->n_micro_steps; k++) {
        int share = worker + k * layout->n_workers;
        samples += el_layout_piece(
            &layout->shares, el_share_size(layout->global_batch, layout->n_workers * layout->n_micro_steps, share), n,
            place);
    }
    return samples;
}

static int64_t loaded_of(const struct el_layout *layout, int feed)
{
    int64_t samples = 0;
    if (layout->shares.n != layout->n_feeds) return el_share_size(layout->global_batch, layout->n_feeds, feed);
    for (int k = 0; k < layout->n_micro_steps; k++)
        samples += el_batch_part(&layout->shares, layout->global_batch, layout->n_feeds * layout->n_micro_steps,
                                 feed + k * layout->n_feeds)
                       .samples;
    return samples;
}

struct el_spot el_layout_spot(const struct el_layout *layout, int device)
{
    int each = el_layout_per_copy(layout), tensors = layout->n[EL_AXIS_TENSOR];
    int n = layout->n_devices / layout->n_workers, worker = device / n;
    bool first = device % n == 0, loads = first || layout->each_loads;
    struct el_spot spot = {.process = layout->n_processes == 1 ? 0 : worker,
                           .worker = worker,
                           .at[EL_AXIS_DATA] = device / el_layout_stride(layout),
                           .at[EL_AXIS_SHARD] = device / each % layout->n[EL_AXIS_SHARD],
                           .at[EL_AXIS_EXPERT] = device / each / layout->n[EL_AXIS_SHARD] % layout->n[EL_AXIS_EXPERT],
                           .at[EL_AXIS_STAGE] = device % each / tensors,
                           .at[EL_AXIS_TENSOR] = device % tensors,
                           .n_feeds = loads ? layout->n_feeds : 0};
    if (layout->n[EL_AXIS_DATA] == 1) spot.at[EL_AXIS_DATA] = 0;
    if (loads) spot.feed = layout->each_loads ? device : worker / each % layout->n_feeds;
    if (n == 1 || layout->each_loads)
        spot.samples = loaded_of(layout, spot.feed);
    else
        spot.samples = samples_of(layout, worker, device % n, n);
    spot.owns = first || (layout->each_owns && spot.samples > 0);
    return spot;
}

bool el_layout_differs(const struct el_layout *layout, enum el_axis axis)
{
    return layout->n_workers > 1 && layout->n[axis] > 1;
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
    struct el_spot spot = el_layout_spot(layout, device);
    int number = 0;
    for (enum el_axis other = 0; other < EL_AXIS_COUNT; other++)
        if (other != axis) number = number * layout->n[other] + spot.at[other];
    return number;
}

int el_layout_per_copy(const struct el_layout *layout)
{
    return layout->n[EL_AXIS_STAGE] * layout->n[EL_AXIS_TENSOR];
}

int el_layout_stride(const struct el_layout *layout)
{
    return el_layout_per_copy(layout) * layout->n[EL_AXIS_SHARD] * layout->n[EL_AXIS_EXPERT];
}

/* Copies of the model are consecutive, and the first one's devices are owners. */
int el_layout_source(const struct el_layout *layout, int device)
{
    return device % el_layout_stride(layout);
}

int el_layout_pieces(const struct el_train_config *config, const struct el_layout *layout)
{
    int n_shares = layout->n_feeds > layout->n_workers ? layout->n_feeds : layout->n_workers;
    return config->n_micro > 1 ? (int)config->n_micro : layout->n_devices / n_shares;
}

int el_layout_copies(const struct el_layout *layout)
{
    return layout->each_loads && !layout->each_owns ? 1 : layout->n_feeds;
}

struct el_shares el_layout_feed_shares(const struct el_layout *layout)
{
    return layout->shares.n == layout->n_feeds ? layout->shares : (struct el_shares){0};
}

int el_layout_losses(const struct el_layout *layout)
{
    return layout->n_workers / layout->n[EL_AXIS_STAGE];
}

int64_t el_layout_chunk(int64_t samples, int n, int m)
{
    int64_t chunk = (samples + n - 1) / n, left = samples - m * chunk;
    return left < 0 ? 0 : left < chunk ? left : chunk;
}

int64_t el_layout_piece(const struct el_shares *shares, int64_t samples, int n, int m)
{
    return shares->n == n ? el_batch_part(shares, samples, n, m).samples : el_layout_chunk(samples, n, m);
}

static struct el_layout uncut(const struct el_train_config *config, int n, int n_workers, int n_processes)
{
    return (struct el_layout){
        .n_devices = n,
        .n_processes = n_processes == 1 ? 1 : n_workers,
        .n_workers = n_workers,
        .n = {[EL_AXIS_DATA] = n, [EL_AXIS_STAGE] = 1, [EL_AXIS_TENSOR] = 1, [EL_AXIS_SHARD] = 1, [EL_AXIS_EXPERT] = 1},
        .global_batch = config->global_batch,
        .shares = config->shares,
        .n_micro_steps = config->n_accumulate > 0 ? (int)config->n_accumulate : 1,
        .n_feeds = n_workers};
}

void el_layout_one_device(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    *layout_p = uncut(config, 1, 1, n_processes);
}

static void share_out(const struct el_train_config *config, int n_workers, int n_processes, struct el_layout *layout_p)
{
    *layout_p = uncut(config, config->n_devices, n_workers, n_processes);
    layout_p->n[EL_AXIS_DATA] = 0;
    for (int d = 0; d < layout_p->n_devices; d++) layout_p->n[EL_AXIS_DATA] += el_layout_spot(layout_p, d).samples > 0;
}

void el_layout_one_worker(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    share_out(config, 1, n_processes, layout_p);
}

void el_layout_worker_several(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    int n = config->n_devices, ranks = config->mesh[EL_AXIS_DATA];
    int asked = ranks ? ranks : n_processes > 1 ? n_processes : 1;
    share_out(config, asked <= n && n % asked == 0 ? asked : 1, n_processes, layout_p);
}

void el_layout_worker_each(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    *layout_p = uncut(config, config->n_devices, config->n_devices, n_processes);
}

void el_layout_sharded(const struct el_train_config *config, int n_processes, unsigned split,
                       struct el_layout *layout_p)
{
    const int *mesh = config->mesh, n_stages = mesh[EL_AXIS_STAGE] ? mesh[EL_AXIS_STAGE] : 1;
    const int n_pieces = mesh[EL_AXIS_TENSOR] ? mesh[EL_AXIS_TENSOR] : 1;
    const bool even = config->n_devices % (n_stages * n_pieces) == 0;
    const int stages = even ? n_stages : 1, tensors = even ? n_pieces : 1, n = config->n_devices / stages / tensors;
    const int asked = mesh[EL_AXIS_SHARD], copies = asked && n % asked == 0 ? n / asked : mesh[EL_AXIS_DATA];
    *layout_p = uncut(config, config->n_devices, config->n_devices, n_processes);
    layout_p->n_feeds = n;
    layout_p->n[EL_AXIS_STAGE] = stages;
    layout_p->cuts = stages > 1;
    layout_p->n[EL_AXIS_TENSOR] = tensors;
    layout_p->n[EL_AXIS_DATA] = copies && n % copies == 0 ? copies : 1;
    layout_p->n[EL_AXIS_SHARD] = n / layout_p->n[EL_AXIS_DATA];
    layout_p->split = split;
}

/* The mesh's number of copies along data; in a copy `given` along one axis, the rest along the other. */
static void cut_along(const struct el_train_config *config, enum el_axis rest, enum el_axis given, int n_processes,
                      struct el_layout *layout_p)
{
    int n = config->n_devices, asked = config->mesh[EL_AXIS_DATA], n_data = asked && n % asked == 0 ? asked : 1;
    int each = n / n_data, across = config->mesh[given] && each % config->mesh[given] == 0 ? config->mesh[given] : 1;
    *layout_p = uncut(config, n, n, n_processes);
    layout_p->n_feeds = layout_p->n[EL_AXIS_DATA] = n_data;
    layout_p->n[given] = across;
    layout_p->n[rest] = each / across;
}

void el_layout_stages(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    cut_along(config, EL_AXIS_STAGE, EL_AXIS_TENSOR, n_processes > 1 ? n_processes : 1, layout_p);
    layout_p->cuts = true;
}

void el_layout_across(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    cut_along(config, EL_AXIS_TENSOR, EL_AXIS_SHARD, n_processes, layout_p);
}

void el_layout_experts(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    cut_along(config, EL_AXIS_EXPERT, EL_AXIS_SHARD, n_processes, layout_p);
    layout_p->n_feeds = layout_p->n_devices;
}
