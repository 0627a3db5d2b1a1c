/* The communicators of a process's workers, opened before any of them has a thread.
 *
 *     el_worlds_open_threads(&worlds, &layout, devices);    or el_worlds_open_rank, collective among processes
 *     worlds.world[d]           device d's, among those of the same place in all workers
 *     worlds.group[d][axis]     likewise, among those that differ from it along this axis alone; NULL: the world's
 * does, or there is none el_worlds_close(&worlds);
 *
 * Devices are counted by their position among this process's. Threads: one opens and closes; a worker's are then its
 * thread's. Errors: the communicators' own; after a failure too it is to be closed.
 */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/layout/layout.h"

struct el_worlds {
    int n; /* devices */
    struct el_comm **world, *(*group)[EL_AXIS_COUNT];
};

/* All workers are in this process. */
enum el_status el_worlds_open_threads(struct el_worlds *worlds, const struct el_layout *layout,
                                      struct el_device *const *devices);
/* One worker a process, or one in all. */
enum el_status el_worlds_open_rank(struct el_worlds *worlds, const struct el_layout *layout,
                                   struct el_device *const *devices, struct el_bootstrap *bootstrap, const char *kind);
/* Zeros are legal. */
void el_worlds_close(struct el_worlds *worlds);
void el_worlds_abort(struct el_worlds *worlds);
