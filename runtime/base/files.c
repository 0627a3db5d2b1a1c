/* A file is written under a random, new temporary name and renamed, so that a reader never sees half of it and no
 * foreign link is followed. It gets the name when all is written (O_TMPFILE), without that at once. */
#include "runtime/base/files.h"
#include "runtime/base/grow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static bool make_one(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

enum el_status el_folder_make(const char *path, const char *advice)
{
    char *part = strdup(path);
    bool made = part != NULL;
    if (!part) return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for its name", path);
    for (char *at = strchr(part + (*part != 0), '/'); at && made; at = made ? strchr(at + 1, '/') : NULL) {
        *at = 0;
        made = make_one(part);
        if (made) *at = '/';
    }
    if (made) made = make_one(part);
    enum el_status status =
        made ? EL_OK : el_fail_errno("%s: cannot make this folder%s%s", part, advice ? "; " : "", advice ? advice : "");
    free(part);
    return status;
}

bool el_folder_remove(const char *path, bool (*is_ours)(const char *name))
{
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) return unlink(path) == 0;
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *files = folder < 0 ? NULL : fdopendir(folder);
    for (const struct dirent *entry; files && (entry = readdir(files));)
        if (is_ours(entry->d_name)) unlinkat(folder, entry->d_name, 0);
    if (files) closedir(files);
    return rmdir(path) == 0;
}

const char *el_path_tail(const char *path)
{
    enum { SHOWN_BYTES = 250 };
    size_t length = strlen(path);
    return length > SHOWN_BYTES ? path + length - SHOWN_BYTES : path;
}

static enum el_status check_opened(const char *what, const char *shown, int file, int64_t most_bytes)
{
    struct stat info;
    if (fstat(file, &info) != 0) return el_fail_errno("%s%s", what, shown);
    if (S_ISDIR(info.st_mode)) return el_fail(EL_ERR_IO, "%s%s: is a directory; give a file in it", what, shown);
    if (!S_ISREG(info.st_mode))
        return el_fail(EL_ERR_IO, "%s%s: is not a regular file: give a file that can be read again", what, shown);
    if (info.st_size > most_bytes)
        return el_fail(EL_ERR_INVALID, "%s%s: is larger than %" PRId64 " MiB, the most that is read", what, shown,
                       most_bytes >> 20);
    return EL_OK;
}

enum el_status el_file_open(const char *what, const char *path, int64_t most_bytes, int *file_p)
{
    const char *shown = el_path_tail(path);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) return el_fail_errno("%s%s", what, shown);
    enum el_status status = check_opened(what, shown, file, most_bytes);
    if (status == EL_OK)
        *file_p = file;
    else
        close(file);
    return status;
}

enum el_status el_file_stream(const char *what, const char *path, int64_t most_bytes, FILE **stream_p)
{
    int file;
    EL_TRY(el_file_open(what, path, most_bytes, &file));
    FILE *stream = fdopen(file, "r");
    if (stream == NULL) {
        enum el_status status = el_fail_errno("%s%s", what, el_path_tail(path));
        close(file);
        return status;
    }
    *stream_p = stream;
    return EL_OK;
}

enum el_status el_file_read(const char *path, int64_t most_bytes, char **data_p, size_t *n_p)
{
    enum { CHUNK_BYTES = 1 << 16 };
    FILE *file;
    char *data = NULL;
    size_t n = 0, room = 0, got = 1;
    EL_TRY(el_file_stream("", path, most_bytes, &file));
    enum el_status status = EL_OK;
    for (; status == EL_OK && got > 0; n += got) {
        if (n > (size_t)most_bytes || !EL_GROW(data, room, n + CHUNK_BYTES + 1))
            status = el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for its bytes", el_path_tail(path));
        got = status == EL_OK ? fread(data + n, 1, room - n - 1, file) : 0;
    }
    if (status == EL_OK && ferror(file)) status = el_fail_errno("%s", el_path_tail(path));
    fclose(file);
    if (status != EL_OK) {
        free(data);
        return status;
    }
    data[n] = 0;
    *data_p = data;
    *n_p = n;
    return EL_OK;
}

bool el_file_line(const char *path, const char *key, char *text, size_t bytes)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0, n = strlen(key);
    bool found = false;
    while (file && !found && getline(&line, &capacity, file) > 0) found = strncmp(line, key, n) == 0;
    snprintf(text, bytes, "%.*s", found ? (int)strcspn(line + n, "\n") : 0, found ? line + n : "");
    free(line);
    if (file) fclose(file);
    return found;
}

/* Devices and pipes are written in place. A pipe without a reader is refused. */
static FILE *open_in_place(const char *path)
{
    int file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) return NULL;
    int flags = fcntl(file, F_GETFL);
    FILE *out = flags >= 0 && fcntl(file, F_SETFL, flags & ~O_NONBLOCK) == 0 ? fdopen(file, "w") : NULL;
    if (out == NULL) close(file);
    return out;
}

/* -1: the file system has no O_TMPFILE, or /proc is missing for naming it later. */
static int open_nameless(const char *path)
{
    char folder[EL_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    int n = slash ? snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path) : 0;
    if (n < 0 || (size_t)n >= sizeof folder || access("/proc/self/fd", X_OK) != 0) return -1;
    return open(slash ? folder : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

static bool give_name(int file, const char *name)
{
    char own[32];
    struct stat info;
    snprintf(own, sizeof own, "/proc/self/fd/%d", file);
    if (fstat(file, &info) != 0) return false;
    return info.st_nlink > 0 || linkat(AT_FDCWD, own, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

/* "PATH.tmp.<16 hex digits>", with a new file's usual mode. */
static FILE *open_temporary(const char *path, char *temporary, size_t capacity)
{
    int file = -1;
    for (int i = 0; i < 100 && file < 0; i++) {
        uint64_t drawn;
        struct stat info;
        if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) return NULL;
        int n = snprintf(temporary, capacity, "%s.tmp.%016" PRIx64, path, drawn);
        if (n < 0 || (size_t)n >= capacity) errno = ENAMETOOLONG;
        if (n < 0 || (size_t)n >= capacity) return NULL;
        if (lstat(temporary, &info) == 0) continue;
        if (errno != ENOENT) return NULL;
        file = open_nameless(path);
        if (file < 0) file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST) return NULL;
    }
    FILE *out = file < 0 ? NULL : fdopen(file, "w");
    if (file >= 0 && out == NULL) {
        close(file);
        unlink(temporary);
    }
    return out;
}

FILE *el_file_begin(const char *path, char *temporary, size_t capacity)
{
    struct stat info;
    bool exists = stat(path, &info) == 0;
    temporary[0] = '\0';
    if (exists && S_ISDIR(info.st_mode)) errno = EISDIR;
    if (exists && S_ISDIR(info.st_mode)) return NULL;
    if (exists && !S_ISREG(info.st_mode)) return open_in_place(path);
    char *resolved = exists ? realpath(path, NULL) : NULL;           /* a link's target is replaced, not the link */
    if (!exists && lstat(path, &info) == 0) return fopen(path, "w"); /* a dangling link */
    FILE *out = open_temporary(resolved != NULL ? resolved : path, temporary, capacity);
    free(resolved);
    return out;
}

static bool rename_over_target(const char *temporary)
{
    const char *suffix = strrchr(temporary, '.'); /* ".tmp.<digits>" */
    char *target = strndup(temporary, (size_t)(suffix - temporary) - strlen(".tmp"));
    bool good = target != NULL && rename(temporary, target) == 0;
    free(target);
    return good;
}

enum el_status el_file_end(FILE *file, const char *temporary, const char *path)
{
    bool in_place = temporary[0] == '\0';
    errno = 0; /* clears an earlier call's */
    bool bad = fflush(file) != 0 || ferror(file) || (!in_place && fsync(fileno(file)) != 0);
    bad = bad || (!in_place && !give_name(fileno(file), temporary));
    int number = errno;
    if (fclose(file) != 0 && !bad) bad = true, number = errno;
    if (!bad && (in_place || rename_over_target(temporary))) return EL_OK;
    if (bad) errno = number != 0 ? number : EIO;
    enum el_status status = el_fail_errno("%s could not be written", path);
    if (!in_place) unlink(temporary);
    return status;
}

void el_file_drop(FILE *file, const char *temporary)
{
    if (file == NULL) return;
    fclose(file);
    if (temporary[0] != '\0') unlink(temporary);
}
