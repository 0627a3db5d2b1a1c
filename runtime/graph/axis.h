/* The axes of a job: the ways in which its devices differ from each other. Where a device stands is a number an axis
 * (layout.h); the devices that differ along one axis alone are a group, and a group talks by a communicator of its own
 * (worlds.h). A new axis is a row.
 *
 * Whether a group talks by collectives of its own is a fact of the axis: stages hand values over by messages among all
 * workers, and need none.
 *
 * Ownership: constant. Threads: any.
 */
#pragma once

#include <stdbool.h>

enum el_axis { EL_AXIS_DATA, EL_AXIS_STAGE, EL_AXIS_TENSOR, EL_AXIS_SHARD, EL_AXIS_COUNT };

struct el_axis_row {
    const char *name; /* in records: "data" */
    const char *word; /* in a mesh: "dp" of dp=2,pp=2 */
    const char *has;  /* what a device has along it, in words */
    bool groups;      /* its devices have a communicator of their own */
};

const struct el_axis_row *el_axis_row(enum el_axis axis);
