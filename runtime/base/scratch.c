/* Temporary folders that are always removed. */
#include "runtime/base/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char PREFIX[] = "evenload-job-";
enum { RANDOM = 6, TRIES = 3 };

static bool has_room(const char *folder, uint64_t bytes)
{
    struct statvfs file_system;
    if (statvfs(folder, &file_system) != 0) return false;
    return file_system.f_blocks == 0 || /* no limit */
           file_system.f_bavail * (uint64_t)file_system.f_frsize >= bytes;
}

/* Locks this user's folder unless another holds it. -1: failed. */
static int hold(const char *path)
{
    struct stat held, named;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return -1;
    /* The former holder may have removed it meanwhile. */
    if (flock(folder, LOCK_EX | LOCK_NB) == 0 && fstat(folder, &held) == 0 && held.st_uid == geteuid() &&
        stat(path, &named) == 0 && named.st_ino == held.st_ino && named.st_dev == held.st_dev)
        return folder;
    close(folder);
    return -1;
}

/* Removes dead processes' folders. */
static void sweep(const char *place)
{
    DIR *folder = opendir(place);
    char path[EL_SCRATCH_BYTES];
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) || strlen(entry->d_name) != strlen(PREFIX) + RANDOM)
            continue;
        snprintf(path, sizeof path, "%s/%.19s", place, entry->d_name);
        int left = hold(path);
        if (left < 0) continue;
        el_scratch_remove(path);
        close(left);
    }
    if (folder) closedir(folder);
}

int el_scratch_make(char path[EL_SCRATCH_BYTES], uint64_t free_bytes)
{
    static const char *const places[] = {"/dev/shm", "/tmp"};
    for (int i = 0; i < 2; i++) sweep(places[i]);
    for (int i = 0; i < 2 * TRIES; i++) {
        const char *place = places[i / TRIES];
        snprintf(path, EL_SCRATCH_BYTES, "%s/%sXXXXXX", place, PREFIX);
        if (!has_room(place, free_bytes) || !mkdtemp(path)) continue;
        int lock = hold(path); /* -1: swept by another process in between */
        if (lock >= 0) return lock;
    }
    path[0] = 0;
    return -1;
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
