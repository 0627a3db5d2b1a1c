/* One file of a store, found and read: a header line that says the workload, then a session a line. Appending is
 * sessions_append.c's. */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/hash.h"
#include "bench/base/jvalue.h"
#include "bench/regress/baseline.h"
#include "bench/regress/program.h"
#include "bench/regress/session.h"
#include "bench/trial/trial.h"

/* More than can count for a level, with room for what is far or of another unit. */
enum { SLUG_BYTES = 96, PARSED_MAX = 4 * EL_LEVEL_SESSIONS_MAX };

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

struct lines {
    char **texts;
    size_t n, capacity;
};

static void free_lines(struct lines *lines)
{
    for (size_t i = 0; i < lines->n; i++) free(lines->texts[i]);
    free(lines->texts);
}

static bool add_line(struct lines *lines, char *text)
{
    if (lines->n == lines->capacity) {
        size_t capacity = 2 * lines->capacity + 64;
        char **texts = realloc(lines->texts, capacity * sizeof *texts);
        if (!texts) return false;
        lines->texts = texts;
        lines->capacity = capacity;
    }
    lines->texts[lines->n++] = text;
    return true;
}

static enum el_status load_lines(const char *path, struct lines *lines)
{
    FILE *file = fopen(path, "r");
    enum el_status status = EL_OK;
    if (!file) return el_fail_errno("%s could not be read", path);
    for (;;) {
        char *text = NULL;
        size_t capacity = 0;
        if (getline(&text, &capacity, file) < 0) {
            free(text);
            break;
        }
        if (add_line(lines, text)) continue;
        free(text);
        status = el_fail(EL_ERR_HOST_MEMORY, "no memory for the lines of %s", path);
        break;
    }
    if (status == EL_OK && ferror(file)) status = el_fail_errno("%s could not be read", path);
    fclose(file);
    return status;
}

static bool is_balanced(const char *text)
{
    long open = 0;
    for (; *text; text++) open += (*text == '{') - (*text == '}');
    return open == 0;
}

/* A text of a line that we wrote, into the session. A quote within a text has a backslash, so that no folder's name
 * looks like a key. */
static bool copy_text(const char *line, const char *key, json_t *session)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":\"", key);
    const char *at = strstr(line, quoted);
    if (!at) return false;
    at += strlen(quoted);
    return json_object_set_new(session, key, json_stringn(at, strcspn(at, "\""))) == 0;
}

/* Of an old line only which run it was, when, and whether it was accepted: nothing else of it is asked for, and to
 * parse a thousand lines takes a tenth of a second. NULL: not as we write them. */
static json_t *old_session(const char *text)
{
    json_t *session = json_object();
    bool good = is_balanced(text) && copy_text(text, "run", session) && copy_text(text, "time_utc", session);
    if (good && strstr(text, "\"accepted\":true")) json_object_set_new(session, "accepted", json_true());
    if (good) return session;
    json_decref(session);
    return NULL;
}

static json_t *whole_session(const char *text)
{
    json_t *line = json_loads(text, 0, NULL);
    if (json_is_object(json_object_get(line, "figures")) && json_is_string(json_object_get(line, "run"))) return line;
    json_decref(line);
    return NULL;
}

/* All but the header. Returns how many lines are none. */
static size_t read_sessions(const struct lines *lines, const char *path, FILE *notes, json_t *sessions)
{
    size_t skipped = 0;
    for (size_t i = 1; i < lines->n; i++) {
        bool old = i > 1 && lines->n - i > PARSED_MAX;
        json_t *session = old ? old_session(lines->texts[i]) : NULL;
        if (!session) session = whole_session(lines->texts[i]);
        if (session) {
            json_array_append_new(sessions, session);
            continue;
        }
        skipped++;
        if (notes) fprintf(notes, "note: %s, line %zu: invalid entry (truncated?), skipped\n", path, i + 1);
    }
    return skipped;
}

enum el_status el_sessions_read(const char *path, FILE *notes, json_t **workload_p, json_t **sessions_p,
                                size_t *skipped_p)
{
    struct lines lines = {0};
    enum el_status status = load_lines(path, &lines);
    json_t *header = status == EL_OK && lines.n > 0 ? json_loads(lines.texts[0], 0, NULL) : NULL;
    json_t *workload = json_object_get(header, "workload");
    if (status == EL_OK && !json_is_object(workload))
        status = el_fail(EL_ERR_INVALID, "%s, line 1: not the header of a file of sessions: move the file away", path);
    if (status == EL_OK) {
        *sessions_p = json_array();
        size_t skipped = read_sessions(&lines, path, notes, *sessions_p);
        if (workload_p) *workload_p = json_incref(workload);
        if (skipped_p) *skipped_p = skipped;
    }
    json_decref(header);
    free_lines(&lines);
    return status;
}

bool el_sessions_have(const json_t *sessions, const char *run, bool accepted)
{
    for (size_t i = json_array_size(sessions); i > 0; i--) {
        const json_t *session = json_array_get(sessions, i - 1);
        bool is_accepted = json_is_true(json_object_get(session, "accepted"));
        bool same = !strcmp(el_json_text(session, "run", ""), run);
        if (same && is_accepted >= accepted) return true;
        if (accepted && is_accepted) return false;
    }
    return false;
}

bool el_sessions_is_level(const json_t *sessions, const char *run)
{
    for (size_t i = json_array_size(sessions); i > 0; i--) {
        const json_t *session = json_array_get(sessions, i - 1);
        if (strcmp(el_json_text(session, "run", ""), run) != 0) return false;
        if (json_is_true(json_object_get(session, "accepted"))) return true;
    }
    return false;
}

/* A run that was added and accepted later is two lines, and one session: the later one. */
static bool comes_again(const json_t *sessions, size_t at)
{
    const char *run = el_json_text(json_array_get(sessions, at), "run", "");
    for (size_t i = json_array_size(sessions); i > at + 1; i--)
        if (!strcmp(el_json_text(json_array_get(sessions, i - 1), "run", ""), run)) return true;
    return false;
}

enum el_status el_sessions_level(const json_t *sessions, const char *figure, const char *unit, const char *except,
                                 struct el_level *level_p)
{
    size_t n = json_array_size(sessions), kept = 0;
    double *values = calloc(n + 1, sizeof *values);
    bool *accepted = calloc(n + 1, sizeof *accepted), begins = false;
    for (size_t i = 0; i < n && values && accepted; i++) {
        const json_t *session = json_array_get(sessions, i);
        const json_t *its = json_object_get(json_object_get(session, "figures"), figure);
        double value = el_json_number(its, "value");
        /* Also of a session that does not count here: the era is that of those after it. */
        begins |= json_is_true(json_object_get(session, "accepted"));
        if (except && !strcmp(el_json_text(session, "run", ""), except)) continue;
        if (!(value > 0) || !isfinite(value) || strcmp(el_json_text(its, "unit", ""), unit) != 0) continue;
        if (comes_again(sessions, i)) continue;
        accepted[kept] = begins;
        values[kept++] = value;
        begins = false;
    }
    bool made = values && accepted;
    if (begins) kept = 0; /* of the level that was accepted last there is none */
    if (made) el_level_of(values, accepted, kept, level_p);
    free(values);
    free(accepted);
    return made ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu sessions", n);
}
