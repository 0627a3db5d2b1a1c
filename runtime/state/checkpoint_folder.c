/* The folders of checkpoints, and the hash of a file; see checkpoint.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/hash.h"
#include "runtime/state/checkpoint.h"

enum { HASHED_AT_ONCE = EL_HASH_BLOCK, TRIES = 64 };

/* ---- folders ---- */

void el_checkpoint_folder(const char *dir, int64_t step, bool complete, char path[EL_PATH_BYTES])
{
    snprintf(path, EL_PATH_BYTES, "%s/step-%" PRId64 "%s", dir, step, complete ? "" : ".part");
}

/* What a checkpoint is made of, whole or not. */
static bool is_ours(const char *name)
{
    static const char *const ours[] = {"index.json", "index.json.tmp.*", "rank-[0-9]*.safetensors", "rank-[0-9]*.done",
                                       "rank-[0-9]*.tmp.*"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (fnmatch(ours[i], name, 0) == 0) return true;
    return false;
}

bool el_checkpoint_is_in(const char *dir, const char *path)
{
    char above[EL_PATH_BYTES + 4];
    struct stat of_dir, of_path, of_above;
    snprintf(above, sizeof above, "%s/..", path);
    if (stat(dir, &of_dir) != 0 || stat(path, &of_path) != 0 || stat(above, &of_above) != 0) return !strcmp(dir, path);
    return of_dir.st_dev == of_path.st_dev &&
           (of_dir.st_ino == of_path.st_ino || (of_dir.st_dev == of_above.st_dev && of_dir.st_ino == of_above.st_ino));
}

void el_checkpoint_remove(const char *folder)
{
    for (int i = 0; i < TRIES; i++) /* others may be writing into it still */
        if (el_folder_remove(folder, is_ours) || (errno != ENOTEMPTY && errno != EEXIST)) return;
}

/* The number of a folder "step-20"; -1: it is none. `part`: of one that is not complete. */
static int64_t step_of(const char *name, bool part)
{
    char *end;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '1' || name[5] > '9') return -1;
    const long long step = strtoll(name + 5, &end, 10);
    return strcmp(end, part ? ".part" : "") == 0 ? step : -1;
}

int64_t el_checkpoint_before(const char *dir, int64_t below)
{
    int64_t last = -1;
    DIR *folder = opendir(dir);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        const int64_t step = step_of(entry->d_name, false);
        char index[sizeof entry->d_name + 16];
        snprintf(index, sizeof index, "%s/index.json", entry->d_name);
        if (step > last && step < below && faccessat(dirfd(folder), index, F_OK, 0) == 0) last = step;
    }
    if (folder) closedir(folder);
    return last;
}

int64_t el_checkpoint_last(const char *dir)
{
    return el_checkpoint_before(dir, INT64_MAX);
}

void el_checkpoint_tidy(const char *dir, int64_t last, int keep)
{
    char path[EL_PATH_BYTES];
    int64_t step = INT64_MAX;
    for (int kept = 0; (step = el_checkpoint_before(dir, step)) >= 0;) {
        if (step <= last && kept++ < keep) continue;
        el_checkpoint_folder(dir, step, true, path);
        el_checkpoint_remove(path);
    }
}

void el_checkpoint_remove_parts(const char *dir)
{
    char path[EL_PATH_BYTES];
    DIR *folder = opendir(dir);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        if (step_of(entry->d_name, true) < 0) continue;
        el_checkpoint_folder(dir, step_of(entry->d_name, true), false, path);
        el_checkpoint_remove(path);
    }
    if (folder) closedir(folder);
}

/* ---- hashes ---- */

enum el_status el_checkpoint_hash(const char *path, uint64_t *hash_p, int64_t *bytes_p)
{
    int file;
    ssize_t got = 0;
    EL_TRY(el_file_open("", path, INT64_MAX, &file));
    unsigned char *bytes = malloc(HASHED_AT_ONCE);
    *hash_p = EL_HASH_BEGIN;
    *bytes_p = 0;
    for (size_t n = 0; bytes; n = 0) { /* whole blocks, wherever a read ends */
        while (n < HASHED_AT_ONCE && (got = read(file, bytes + n, HASHED_AT_ONCE - n)) > 0) n += (size_t)got;
        *hash_p = el_hash_blocks(*hash_p, bytes, n);
        *bytes_p += (int64_t)n;
        if (n < HASHED_AT_ONCE) break;
    }
    const bool bad = !bytes || got < 0;
    if (bad) got = errno;
    free(bytes);
    close(file);
    errno = (int)got;
    return bad ? el_fail_errno("%s", el_path_tail(path)) : EL_OK;
}
