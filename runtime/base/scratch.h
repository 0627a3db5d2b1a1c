/* A folder for what must not stay: /dev/shm/evenload-job-XXXXXX, in memory, or else one in /tmp. Its maker holds a lock
 * on it (flock): who dies without a chance to remove it lets go of that, and the next one to make a folder removes it.
 */
#pragma once

#include <stdint.h>

enum { EL_SCRATCH_BYTES = 32 };

/* Removes those of this user's folders that nobody holds, and makes one. `path` is "" where none can be made, or no
 * place has `bytes` free. Returns the lock: a descriptor, to be closed after the folder was removed; -1: no folder. */
int el_scratch_make(char path[EL_SCRATCH_BYTES], uint64_t free_bytes);
/* With all that is in it; "": nothing. */
void el_scratch_remove(const char *path);
