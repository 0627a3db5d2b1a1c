/* A folder for what must not stay: /dev/shm/el-XXXXXX, in memory, or else one in /tmp. */
#ifndef EL_SCRATCH_H
#define EL_SCRATCH_H

#include <stdint.h>

enum { EL_SCRATCH_BYTES = 32 };

/* `path` is "" where none can be made, or no place has `free_bytes` free. */
void el_scratch_make(char path[EL_SCRATCH_BYTES], uint64_t free_bytes);
/* With all that is in it; "": nothing. */
void el_scratch_remove(const char *path);

#endif
