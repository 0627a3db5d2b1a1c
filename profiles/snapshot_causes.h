/* Private to the reader of snapshots: what an allocation was for, by its frames. */
#pragma once

#include "profiles/pickle.h"
#include "profiles/snapshot.h"

/* Frames that allocations share are read once. */
struct el_snapshot_causes {
    struct el_pickle *pickle;
    uint32_t *of; /* [values]: of a list of frames 1 + its place, of the device that is being read; 0: not read yet */
    bool dirty;
};

/* A device begins: it has places of its own. */
void el_snapshot_causes_begin(struct el_snapshot_causes *causes);
/* The device's place of these frames, a new one where there is none; beyond EL_SNAPSHOT_PLACES_MAX one of the same
 * cause. */
struct el_snapshot_place *el_snapshot_place_of(struct el_snapshot_causes *causes, uint32_t frames,
                                               struct el_snapshot_device *device);
