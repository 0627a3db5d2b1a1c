/* A folder for what must not stay: /dev/shm/el-XXXXXX, in memory, or else one in /tmp. */
#ifndef EL_SCRATCH_H
#define EL_SCRATCH_H

enum { EL_SCRATCH_BYTES = 32 };

/* `path` is "" where none can be made. */
void el_scratch_make(char path[EL_SCRATCH_BYTES]);
/* With all that is in it; "": nothing. */
void el_scratch_remove(const char *path);

#endif
