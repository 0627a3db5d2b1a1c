/* Folders that are removed again, whatever was left in them. */
#include "runtime/base/scratch.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

static bool has_room(const char *folder, uint64_t bytes)
{
    struct statvfs file_system;
    if (statvfs(folder, &file_system) != 0) return false;
    return file_system.f_blocks == 0 || /* no limit */
           file_system.f_bavail * (uint64_t)file_system.f_frsize >= bytes;
}

void el_scratch_make(char path[EL_SCRATCH_BYTES], uint64_t free_bytes)
{
    static const char *const places[] = {"/dev/shm", "/tmp"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, EL_SCRATCH_BYTES, "%s/el-XXXXXX", places[i]);
        if (has_room(places[i], free_bytes) && mkdtemp(path)) return;
    }
    path[0] = 0;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    remove(path);
    return 0;
}

void el_scratch_remove(const char *path)
{
    if (*path) nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
