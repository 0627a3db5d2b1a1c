/* One file of a store: a header line that says the workload, then a sitting a line. Written by appending whole lines
 * under a lock, so that neither a reader nor another writer ever needs more than the file itself. */
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

#include "bench/campaign/trial.h"
#include "bench/record/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/baseline.h"
#include "bench/regress/sitting.h"

enum { SLUG_BYTES = 96, LOCK_TRIES = 1000, LOCK_PAUSE_NS = 10000000 };

/* "ddp-2-textcnn-b128": for people who list the folder. */
static void slug_of(const json_t *workload, char slug[SLUG_BYTES])
{
    snprintf(slug, SLUG_BYTES, "%.24s-%zu-%.24s-b%.0f", el_json_text(workload, "mode", "mode"),
             json_array_size(json_object_get(workload, "device_names")), el_json_text(workload, "model", "model"),
             el_json_number(workload, "global_batch"));
    for (char *at = slug; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '-') *at = '_';
}

/* The header of a file; NULL where it has none. */
static json_t *header_of(const char *path)
{
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(path, "r");
    json_t *header = file && getline(&line, &capacity, file) > 0 ? json_loads(line, 0, NULL) : NULL;
    if (file) fclose(file);
    free(line);
    return header;
}

enum el_status el_sittings_path(const char *folder, const json_t *workload, char *path, size_t bytes, bool *exists_p)
{
    char slug[SLUG_BYTES];
    bool found = false;
    slug_of(workload, slug);
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));) {
        if (strncmp(entry->d_name, slug, strlen(slug)) != 0 || !strstr(entry->d_name, ".jsonl")) continue;
        if ((size_t)snprintf(path, bytes, "%s/%s", folder, entry->d_name) >= bytes) continue;
        json_t *header = header_of(path);
        const json_t *its = json_object_get(header, "workload");
        found = its && el_workload_same(its, workload, NULL, 0);
        json_decref(header);
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

static bool is_sitting(const json_t *line)
{
    return json_is_object(json_object_get(line, "figures")) && json_is_string(json_object_get(line, "run"));
}

static enum el_status read_lines(FILE *file, const char *path, FILE *notes, json_t **header_p, json_t *sittings,
                                 size_t *passed_over_p)
{
    char *text = NULL;
    size_t capacity = 0, number = 0;
    while (getline(&text, &capacity, file) >= 0) {
        json_t *line = json_loads(text, 0, NULL);
        if (++number == 1) {
            *header_p = line;
            if (!json_is_object(json_object_get(line, "workload"))) break;
        } else if (is_sitting(line)) {
            json_array_append_new(sittings, line);
        } else {
            json_decref(line);
            ++*passed_over_p;
            if (notes) fprintf(notes, "note: %s, line %zu is no sitting (cut off?): passed over\n", path, number);
        }
    }
    free(text);
    if (ferror(file)) return el_fail_errno("%s could not be read", path);
    if (json_is_object(json_object_get(*header_p, "workload"))) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s, line 1: not the header of a file of sittings: move the file away", path);
}

enum el_status el_sittings_read(const char *path, FILE *notes, json_t **workload_p, json_t **sittings_p,
                                size_t *passed_over_p)
{
    FILE *file = fopen(path, "r");
    json_t *header = NULL, *sittings = json_array();
    size_t passed_over = 0;
    if (!file) {
        json_decref(sittings);
        return el_fail_errno("%s could not be read", path);
    }
    enum el_status status = read_lines(file, path, notes, &header, sittings, &passed_over);
    fclose(file);
    if (status == EL_OK) {
        *sittings_p = json_incref(sittings);
        if (workload_p) *workload_p = json_incref(json_object_get(header, "workload"));
        if (passed_over_p) *passed_over_p = passed_over;
    }
    json_decref(header);
    json_decref(sittings);
    return status;
}

bool el_sittings_have(const json_t *sittings, const char *run, bool accepted)
{
    for (size_t i = json_array_size(sittings); i > 0; i--) {
        const json_t *sitting = json_array_get(sittings, i - 1);
        bool is_accepted = json_is_true(json_object_get(sitting, "accepted"));
        bool same = !strcmp(el_json_text(sitting, "run", ""), run);
        if (same && is_accepted >= accepted) return true;
        if (accepted && is_accepted) return false;
    }
    return false;
}

enum el_status el_sittings_level(const json_t *sittings, const char *figure, const char *unit, const char *except,
                                 struct el_level *level_p)
{
    size_t n = json_array_size(sittings), kept = 0;
    double *values = calloc(n + 1, sizeof *values);
    bool *accepted = calloc(n + 1, sizeof *accepted), begins = false;
    for (size_t i = 0; i < n && values && accepted; i++) {
        const json_t *sitting = json_array_get(sittings, i);
        const json_t *its = json_object_get(json_object_get(sitting, "figures"), figure);
        double value = el_json_number(its, "value");
        if (except && !strcmp(el_json_text(sitting, "run", ""), except)) continue;
        begins |= json_is_true(json_object_get(sitting, "accepted"));
        if (!(value > 0) || !isfinite(value) || strcmp(el_json_text(its, "unit", ""), unit) != 0) continue;
        accepted[kept] = begins;
        values[kept++] = value;
        begins = false;
    }
    bool made = values && accepted;
    if (made) el_level_of(values, accepted, kept, level_p);
    free(values);
    free(accepted);
    return made ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu sittings", n);
}

/* ---- appending ---- */

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
    if (ftruncate(file, size) != 0) return status; /* what is left is passed over by readers */
    return status;
}

static char *lines_of(const json_t *workload, const json_t *sitting, bool first, bool torn)
{
    json_t *header = json_pack("{s:i, s:O}", "schema", EL_SCHEMA, "workload", (json_t *)(uintptr_t)workload);
    char *head = first && header ? json_dumps(header, JSON_COMPACT) : NULL, *text = NULL;
    char *line = json_dumps(sitting, JSON_COMPACT);
    if (line && (head || !first) &&
        asprintf(&text, "%s%s%s%s\n", torn ? "\n" : "", head ? head : "", head ? "\n" : "", line) < 0)
        text = NULL;
    json_decref(header);
    free(head);
    free(line);
    return text;
}

static enum el_status append_locked(int file, const char *path, const json_t *workload, const json_t *sitting)
{
    struct stat info;
    json_t *sittings = NULL;
    if (fstat(file, &info) != 0) return el_fail_errno("%s", path);
    if (info.st_size > 0) EL_TRY(el_sittings_read(path, NULL, NULL, &sittings, NULL));
    bool there = el_sittings_have(sittings, el_json_text(sitting, "run", ""),
                                  json_is_true(json_object_get(sitting, "accepted")));
    json_decref(sittings);
    if (there) return EL_OK;
    char *text = lines_of(workload, sitting, info.st_size == 0, is_torn(file, info.st_size));
    if (!text) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a sitting");
    enum el_status status = write_whole(file, info.st_size, text, path);
    free(text);
    return status;
}

enum el_status el_sittings_append(const char *path, const json_t *workload, const json_t *sitting)
{
    int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) return el_fail_errno("%s could not be opened", path);
    enum el_status status = lock(file, path);
    if (status == EL_OK) status = append_locked(file, path, workload, sitting);
    close(file);
    return status;
}
