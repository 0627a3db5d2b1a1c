/* One more line for a file of sessions: whole, durable, and under a lock, so that neither a reader nor another writer
 * ever needs more than the file itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/baseline.h"

enum { LOCK_TRIES = 1000, LOCK_PAUSE_NS = 10000000 };

/* Where a file system has no locks it goes on without. */
static enum el_status lock(int file, const char *path)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
        if (flock(file, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR)) return EL_OK;
        nanosleep(&pause, NULL);
    }
    return el_fail(EL_ERR_IO, "%s: another program has held this file for ten seconds: try again when it has ended",
                   path);
}

/* Whether the last line was cut off; a file that is read from its end. */
static bool is_torn(int file, off_t size)
{
    char last = '\n';
    return size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n';
}

/* All of it or nothing. */
static enum el_status write_whole(int file, off_t size, const char *text, const char *path)
{
    size_t length = strlen(text);
    ssize_t written = write(file, text, length);
    if (written == (ssize_t)length && fsync(file) == 0) return EL_OK;
    if (written >= 0) errno = written < (ssize_t)length ? ENOSPC : errno;
    enum el_status status = el_fail_errno("%s could not be written", path);
    if (ftruncate(file, size) != 0) return status; /* what is left is skipped by readers */
    return status;
}

static char *lines_of(const json_t *workload, const json_t *session, bool first, bool torn)
{
    json_t *header = json_pack("{s:i, s:O}", "schema", EL_SCHEMA, "workload", (json_t *)(uintptr_t)workload);
    char *head = first && header ? json_dumps(header, JSON_COMPACT) : NULL, *text = NULL;
    char *line = json_dumps(session, JSON_COMPACT);
    if (line && (head || !first) &&
        asprintf(&text, "%s%s%s%s\n", torn ? "\n" : "", head ? head : "", head ? "\n" : "", line) < 0)
        text = NULL;
    json_decref(header);
    free(head);
    free(line);
    return text;
}

static enum el_status append_locked(int file, const char *path, const json_t *workload, const json_t *session)
{
    struct stat info;
    json_t *sessions = NULL;
    if (fstat(file, &info) != 0) return el_fail_errno("%s", path);
    if (info.st_size > 0) EL_TRY(el_sessions_read(path, NULL, NULL, &sessions, NULL));
    bool there = el_sessions_have(sessions, el_json_text(session, "run", ""),
                                  json_is_true(json_object_get(session, "accepted")));
    json_decref(sessions);
    if (there) return EL_OK;
    char *text = lines_of(workload, session, info.st_size == 0, is_torn(file, info.st_size));
    if (!text) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a session");
    enum el_status status = write_whole(file, info.st_size, text, path);
    free(text);
    return status;
}

enum el_status el_sessions_append(const char *path, const json_t *workload, const json_t *session)
{
    int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) return el_fail_errno("%s could not be opened", path);
    enum el_status status = lock(file, path);
    if (status == EL_OK) status = append_locked(file, path, workload, session);
    close(file);
    return status;
}
