/* The communicators of a process's workers, opened before their threads start.
 *
 *     el_worlds_open_threads(&worlds, &layout, devices);    or el_worlds_open_rank, collective among processes
 *     worlds.world[d]           device d's, with the devices at its place in all workers
 *     worlds.group[d][axis]     with those that differ from it along this axis alone; NULL: use world, or no group
 *     el_worlds_close(&worlds);
 *
 * Devices are counted within this process. Threads: one opens and closes; each communicator is then its worker's.
 * Errors: the communicators'; close it after a failure too. */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/layout/layout.h"

struct el_worlds {
    int n;
    struct el_comm **world, *(*group)[EL_AXIS_COUNT];
};

enum el_status el_worlds_open_threads(struct el_worlds *worlds, const struct el_layout *layout,
                                      struct el_device *const *devices);
/* One worker per process, or one in total. */
enum el_status el_worlds_open_rank(struct el_worlds *worlds, const struct el_layout *layout,
                                   struct el_device *const *devices, struct el_bootstrap *bootstrap, const char *kind);
void el_worlds_close(struct el_worlds *worlds);
void el_worlds_abort(struct el_worlds *worlds);
