#include "runtime/train/worlds.h"

#include <stdlib.h>

/* Opens the group number `group` along `axis` (EL_AXIS_COUNT: all workers) of the devices at place `member`; each
 * stores its own in worlds. */
static enum el_status open_group(struct el_worlds *worlds, const struct el_layout *layout,
                                 struct el_device *const *devices, enum el_axis axis, int group, int member)
{
    size_t n_workers = (size_t)layout->n_workers;
    struct el_device **of_group = calloc(n_workers, sizeof *of_group);
    struct el_comm **made = calloc(n_workers, sizeof *made);
    int *position = calloc(n_workers, sizeof *position), n = 0;
    enum el_status status =
        of_group && made && position ? EL_OK : el_fail_errno("communicators of %zu workers", n_workers);
    for (int w = 0; w < layout->n_workers && status == EL_OK; w++) {
        int first;
        el_layout_of_worker(layout, w, &first);
        if (axis != EL_AXIS_COUNT && el_layout_group(layout, axis, first) != group) continue;
        position[n] = first + member;
        of_group[n++] = devices[first + member];
    }
    if (n > 0) status = el_comm_open_local(of_group, n, made);
    for (int i = 0; i < n && status == EL_OK; i++)
        *(axis == EL_AXIS_COUNT ? &worlds->world[position[i]] : &worlds->group[position[i]][axis]) = made[i];
    free(of_group);
    free(made);
    free(position);
    return status;
}

static enum el_status make_room(struct el_worlds *worlds, int n)
{
    *worlds = (struct el_worlds){.world = calloc((size_t)n, sizeof *worlds->world),
                                 .group = calloc((size_t)n, sizeof *worlds->group)};
    if (!worlds->world || !worlds->group) return el_fail_errno("communicators of %d devices", n);
    worlds->n = n;
    return EL_OK;
}

static bool is_apart(const struct el_layout *layout, enum el_axis axis)
{
    return el_axis_row(axis)->groups && el_layout_differs(layout, axis) && !el_layout_is_whole(layout, axis);
}

static void name(struct el_worlds *worlds, const struct el_layout *layout, int position)
{
    for (int d = 0; d < worlds->n; d++) {
        int worker = el_layout_spot(layout, position + d).worker, first;
        el_layout_of_worker(layout, worker, &first);
        el_comm_name(worlds->world[d], layout->n[EL_AXIS_STAGE] > 1 ? "pipeline" : "world", position + d - first);
        for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++)
            if (worlds->group[d][axis])
                el_comm_name(worlds->group[d][axis], el_axis_row(axis)->name,
                             el_layout_group(layout, axis, position + d));
    }
}

enum el_status el_worlds_open_threads(struct el_worlds *worlds, const struct el_layout *layout,
                                      struct el_device *const *devices)
{
    EL_TRY(make_room(worlds, layout->n_devices));
    for (int m = 0; m < layout->n_devices / layout->n_workers; m++)
        EL_TRY(open_group(worlds, layout, devices, EL_AXIS_COUNT, 0, m));
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++)
        for (int g = 0; is_apart(layout, axis) && g < layout->n_devices / layout->n[axis]; g++)
            EL_TRY(open_group(worlds, layout, devices, axis, g, 0));
    name(worlds, layout, 0);
    return EL_OK;
}

enum el_status el_worlds_open_rank(struct el_worlds *worlds, const struct el_layout *layout,
                                   struct el_device *const *devices, struct el_bootstrap *bootstrap, const char *kind)
{
    int position, n = el_layout_of_process(layout, el_bootstrap_rank(bootstrap), &position);
    EL_TRY(make_room(worlds, n));
    for (int m = 0; m < n; m++)
        EL_TRY(el_bootstrap_size(bootstrap) > 1 ? el_comm_open_ranks(kind, bootstrap, devices[m], &worlds->world[m])
                                                : el_comm_open_self(devices[m], &worlds->world[m]));
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++)
        if (is_apart(layout, axis))
            EL_TRY(el_comm_split(worlds->world[0], el_layout_group(layout, axis, position),
                                 el_layout_spot(layout, position).at[axis], &worlds->group[0][axis]));
    name(worlds, layout, position);
    return EL_OK;
}

/* Each communicator, split ones before their origins; NULL at the end. */
static struct el_comm *comm_at(const struct el_worlds *worlds, int *at)
{
    const int each = EL_AXIS_COUNT + 1;
    for (; *at < worlds->n * each; ++*at) {
        int d = *at / each, axis = *at % each;
        struct el_comm *comm = axis < EL_AXIS_COUNT ? worlds->group[d][axis] : worlds->world[d];
        if (comm) return comm;
    }
    return NULL;
}

void el_worlds_abort(struct el_worlds *worlds)
{
    struct el_comm *comm;
    for (int at = 0; (comm = comm_at(worlds, &at)); at++) el_comm_abort(comm);
}

void el_worlds_close(struct el_worlds *worlds)
{
    struct el_comm *comm;
    for (int at = 0; (comm = comm_at(worlds, &at)); at++) el_comm_close(comm);
    free(worlds->world);
    free(worlds->group);
    *worlds = (struct el_worlds){0};
}
