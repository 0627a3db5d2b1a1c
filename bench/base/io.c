/* Writing documents: a temporary name first, then rename, so that a reader never sees half a file. The name
 * is drawn at random and must be new: nobody else's link is followed from it.
 *
 * The writer is our own for two reasons: arrays of numbers stand on one line (thousands of step times would otherwise
 * be thousands of lines), and a real is the shortest text that reads back the same. Parsing is jansson's. */
#include "bench/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/jvalue.h"

static void write_scalar(const json_t *value, FILE *out)
{
    char text[32];
    if (json_is_real(value)) {
        const char *shortest = el_json_shortest(json_real_value(value), text);
        fputs(shortest, out);
        if (strpbrk(shortest, ".e") == NULL) fputs(".0", out); /* it stays a real */
        return;
    }
    json_dumpf(value, out, JSON_ENCODE_ANY);
}

/* On one line stand arrays without objects and arrays in them, and objects of nothing but numbers. */
static bool is_flat(json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++)
        if (json_is_object(json_array_get(value, i)) || json_is_array(json_array_get(value, i))) return false;
    for (void *at = json_object_iter(value); at != NULL; at = json_object_iter_next(value, at))
        if (!json_is_number(json_object_iter_value(at)) && !json_is_null(json_object_iter_value(at))) return false;
    return true;
}

static void write_value(json_t *value, int indent, FILE *out)
{
    bool object = json_is_object(value), flat = is_flat(value);
    void *at = json_object_iter(value);
    size_t n = object ? json_object_size(value) : json_array_size(value);
    if (!object && !json_is_array(value)) {
        write_scalar(value, out);
        return;
    }
    fputc(object ? '{' : '[', out);
    for (size_t i = 0; i < n; i++) {
        if (i > 0) fputs(flat ? ", " : ",", out);
        if (!flat) fprintf(out, "\n%*s", indent + 2, "");
        if (object) {
            json_t *key = json_string(json_object_iter_key(at));
            write_scalar(key, out);
            json_decref(key);
            fputs(": ", out);
        }
        write_value(object ? json_object_iter_value(at) : json_array_get(value, i), indent + 2, out);
        at = object ? json_object_iter_next(value, at) : NULL;
    }
    if (!flat) fprintf(out, "\n%*s", indent, "");
    fputc(object ? '}' : ']', out);
}

enum el_status el_print_json(const json_t *document, FILE *out)
{
    write_value((json_t *)(uintptr_t)document, 0, out);
    fputc('\n', out);
    if (fflush(out) != 0 || ferror(out))
        return el_fail_errno("%s cannot be written", out == stdout ? "standard output" : "the record");
    return EL_OK;
}

/* What is no regular file (a device, a pipe) is written in place. A pipe that nobody reads is refused, not waited for.
 */
static FILE *open_in_place(const char *path)
{
    int file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) return NULL;
    int flags = fcntl(file, F_GETFL);
    FILE *out = flags >= 0 && fcntl(file, F_SETFL, flags & ~O_NONBLOCK) == 0 ? fdopen(file, "w") : NULL;
    if (out == NULL) close(file);
    return out;
}

/* "PATH.tmp.<16 hex digits>", open for writing; of the mode that any new file has. */
static FILE *open_temporary(const char *path, char *temporary, size_t capacity)
{
    int file = -1;
    for (int i = 0; i < 100 && file < 0; i++) {
        uint64_t drawn;
        if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) return NULL;
        int n = snprintf(temporary, capacity, "%s.tmp.%016" PRIx64, path, drawn);
        if (n < 0 || (size_t)n >= capacity) errno = ENAMETOOLONG;
        if (n < 0 || (size_t)n >= capacity) return NULL;
        file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
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
    char *resolved = exists ? realpath(path, NULL) : NULL; /* of a link what it leads to is replaced, not the link */
    if (!exists && lstat(path, &info) == 0) return fopen(path, "w"); /* a link to what is not there yet */
    FILE *out = open_temporary(resolved != NULL ? resolved : path, temporary, capacity);
    free(resolved);
    return out;
}

/* Over what the temporary name was made of. */
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
    errno = 0; /* what is left of an earlier call is no reason */
    bool bad = fflush(file) != 0 || ferror(file) || (!in_place && fsync(fileno(file)) != 0);
    int number = errno;
    if (fclose(file) != 0 && !bad) bad = true, number = errno;
    if (!bad && (in_place || rename_over_target(temporary))) return EL_OK;
    if (bad) errno = number != 0 ? number : EIO;
    enum el_status status = el_fail_errno("%s could not be written", path);
    if (!in_place) unlink(temporary);
    return status;
}

enum el_status el_write_json(const json_t *document, const char *path)
{
    char temporary[EL_PATH_BYTES + 64];
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (file == NULL) return el_fail_errno("%s could not be written", path);
    write_value((json_t *)(uintptr_t)document, 0, file);
    fputc('\n', file);
    return el_file_end(file, temporary, path);
}
