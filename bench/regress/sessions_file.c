/* One file of a store, found, read and appended to: a header line that says the workload, then a session a line. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/hash.h"
#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/record/record.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"

enum { SLUG_BYTES = 96, LOCK_TRIES = 1000, LOCK_PAUSE_NS = 10000000, FILE_BYTES_MAX = 256 << 20 };

/* "ddp-2-textcnn-b128": for people who list the folder. */
static void slug_of(const json_t *workload, char slug[SLUG_BYTES])
{
    if (el_program_is(workload))
        snprintf(slug, SLUG_BYTES, "program-%.40s", el_json_text(workload, "program", "?"));
    else
        snprintf(slug, SLUG_BYTES, "%.24s-%zu-%.24s-b%.0f", el_json_text(workload, "mode", "mode"),
                 json_array_size(json_object_get(workload, "device_names")), el_json_text(workload, "model", "model"),
                 el_json_number(workload, "global_batch"));
    for (char *at = slug; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '-') *at = '_';
}

/* The file behind its first line, and the workload that this says; NULL where it says none. Where it is no file that
 * can be read the message is set. */
static FILE *open_sessions(const char *path, json_t **workload_p)
{
    char *line = NULL;
    size_t capacity = 0;
    FILE *file;
    *workload_p = NULL;
    if (el_file_stream("", path, FILE_BYTES_MAX, &file) != EL_OK) return NULL;
    json_t *header = getline(&line, &capacity, file) > 0 ? json_loads(line, 0, NULL) : NULL;
    el_json_printable(header);
    json_t *workload = json_object_get(header, "workload");
    *workload_p = json_is_object(workload) ? json_incref(workload) : NULL;
    json_decref(header);
    free(line);
    return file;
}

bool el_sessions_is_file(const char *name)
{
    static const char ending[] = ".jsonl";
    size_t length = strlen(name), its = sizeof ending - 1;
    return length > its && !strcmp(name + length - its, ending);
}

enum el_status el_sessions_path(const char *folder, const json_t *workload, char *path, size_t bytes, bool *exists_p)
{
    char slug[SLUG_BYTES];
    bool found = false;
    slug_of(workload, slug);
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));) {
        if (strncmp(entry->d_name, slug, strlen(slug)) != 0 || !el_sessions_is_file(entry->d_name)) continue;
        if ((size_t)snprintf(path, bytes, "%s/%s", folder, entry->d_name) >= bytes) continue;
        json_t *its;
        FILE *file = open_sessions(path, &its);
        found = its && el_workload_same(its, workload);
        if (file) fclose(file);
        json_decref(its);
    }
    if (entries) closedir(entries);
    *exists_p = found;
    if (found) return EL_OK;
    char *text = json_dumps(workload, JSON_SORT_KEYS | JSON_COMPACT);
    uint64_t hash = text ? el_hash(EL_HASH_BEGIN, text, strlen(text)) : 0;
    free(text);
    if ((size_t)snprintf(path, bytes, "%s/%s-%016" PRIx64 ".jsonl", folder, slug, hash) >= bytes)
        return el_fail(EL_ERR_INVALID, "%.60s...: the store's name is too long", folder);
    return EL_OK;
}

/* ---- reading ---- */

/* All but the header. Returns how many lines are none. */
static size_t read_sessions(FILE *file, const char *path, FILE *notes, json_t *sessions)
{
    char *line = NULL;
    size_t capacity = 0, skipped = 0;
    for (size_t number = 2; getline(&line, &capacity, file) >= 0; number++) {
        json_t *session = json_loads(line, 0, NULL);
        el_json_printable(session);
        bool is_one = json_is_object(json_object_get(session, "figures")) && el_json_text(session, "run", NULL);
        is_one = is_one && json_array_append(sessions, session) == 0;
        json_decref(session);
        if (is_one) continue;
        skipped++;
        if (notes) el_text_line(notes, "note: %s, line %zu: invalid entry (truncated?), skipped", path, number);
    }
    free(line);
    return skipped;
}

enum el_status el_sessions_read(const char *path, FILE *notes, json_t **workload_p, json_t **sessions_p,
                                size_t *skipped_p)
{
    json_t *workload, *sessions;
    FILE *file = open_sessions(path, &workload);
    if (!file) return EL_ERR_IO;
    sessions = json_array();
    size_t skipped = workload ? read_sessions(file, path, notes, sessions) : 0;
    enum el_status status = EL_OK;
    if (ferror(file)) status = el_fail_errno("%s could not be read", path);
    if (status == EL_OK && !workload)
        status = el_fail(EL_ERR_INVALID, "%s, line 1: not the header of a file of sessions: move the file away", path);
    fclose(file);
    if (status == EL_OK) {
        *sessions_p = json_incref(sessions);
        if (workload_p) *workload_p = json_incref(workload);
        if (skipped_p) *skipped_p = skipped;
    }
    json_decref(workload);
    json_decref(sessions);
    return status;
}

bool el_sessions_have(const json_t *sessions, const char *run, bool accepted)
{
    for (size_t i = json_array_size(sessions); i > 0; i--) {
        const json_t *session = json_array_get(sessions, i - 1);
        bool is_accepted = json_is_true(json_object_get(session, "accepted"));
        bool same = el_json_is(session, "run", run);
        if (same && is_accepted >= accepted) return true;
        if (accepted && is_accepted) return false;
    }
    return false;
}

bool el_sessions_is_level(const json_t *sessions, const char *run)
{
    for (size_t i = json_array_size(sessions); i > 0; i--) {
        const json_t *session = json_array_get(sessions, i - 1);
        if (!el_json_is(session, "run", run)) return false;
        if (json_is_true(json_object_get(session, "accepted"))) return true;
    }
    return false;
}

enum el_status el_sessions_level(const json_t *sessions, const char *figure, const char *unit, const char *except,
                                 struct el_level *level_p)
{
    size_t n = json_array_size(sessions), counted = 0;
    double *values = calloc(n + 1, sizeof *values);
    bool *accepted = calloc(n + 1, sizeof *accepted), begins = false;
    /* The last line of each run: one that was added and accepted later is two lines, and one session, the later one. */
    json_t *last = json_object();
    bool made = values && accepted && last;
    for (size_t i = 0; i < n && made; i++)
        json_object_set(last, el_json_text(json_array_get(sessions, i), "run", ""), json_array_get(sessions, i));
    for (size_t i = 0; i < n && made; i++) {
        const json_t *session = json_array_get(sessions, i);
        const json_t *its = json_object_get(json_object_get(session, "figures"), figure);
        const char *run = el_json_text(session, "run", "");
        double value = el_json_number(its, "value");
        /* Also of a session that does not count here: the era is that of those after it. */
        begins |= json_is_true(json_object_get(session, "accepted"));
        if (json_object_get(last, run) != session || (except && !strcmp(run, except))) continue;
        if (!(value > 0) || !isfinite(value) || !el_json_is(its, "unit", unit)) continue;
        accepted[counted] = begins;
        values[counted++] = value;
        begins = false;
    }
    if (begins) counted = 0; /* of the level that was accepted last there is none */
    if (made) el_level_of(values, accepted, counted, level_p);
    json_decref(last);
    free(values);
    free(accepted);
    return made ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu sessions", n);
}

/* ---- appending: whole, durable, and under a lock, so that neither a reader nor another writer needs more than the
 * file itself ---- */

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
    char *head = json_dumps(header, JSON_COMPACT), *line = json_dumps(session, JSON_COMPACT), *text = NULL;
    if (!head || !line ||
        asprintf(&text, "%s%s%s%s\n", torn ? "\n" : "", first ? head : "", first ? "\n" : "", line) < 0)
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
    char last = '\n'; /* another where the last line was cut off */
    if (fstat(file, &info) != 0) return el_fail_errno("%s", path);
    if (!S_ISREG(info.st_mode)) return el_fail(EL_ERR_IO, "%s: is not a regular file: move it away", path);
    if (info.st_size > 0) EL_TRY(el_sessions_read(path, NULL, NULL, &sessions, NULL));
    bool there = el_sessions_have(sessions, el_json_text(session, "run", ""),
                                  json_is_true(json_object_get(session, "accepted")));
    json_decref(sessions);
    if (there) return EL_OK;
    bool torn = info.st_size > 0 && pread(file, &last, 1, info.st_size - 1) == 1 && last != '\n';
    char *text = lines_of(workload, session, info.st_size == 0, torn);
    if (!text) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a session");
    enum el_status status = write_whole(file, info.st_size, text, path);
    free(text);
    return status;
}

enum el_status el_sessions_append(const char *path, const json_t *workload, const json_t *session)
{
    int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (file < 0) return el_fail_errno("%s could not be opened", path);
    enum el_status status = lock(file, path);
    if (status == EL_OK) status = append_locked(file, path, workload, session);
    close(file);
    return status;
}
