/* A temporary folder: /dev/shm/evenload-job-XXXXXX, else in /tmp. Its maker holds a lock (flock); if it dies, the next
 * maker removes the folder. */
#pragma once

#include <stdint.h>

enum { EL_SCRATCH_BYTES = 32 };

/* Removes this user's unlocked folders, and makes one with `bytes` free; `path` is "" if impossible. Returns the lock,
 * a descriptor to close after removing the folder; -1: no folder. */
int el_scratch_make(char path[EL_SCRATCH_BYTES], uint64_t free_bytes);
/* Recursively; "": nothing. */
void el_scratch_remove(const char *path);
