/* Arrays of numbers stay on one line (thousands of step times), and reals have the shortest exact text. */
#include "bench/base/io.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/jvalue.h"
#include "runtime/base/utf8.h"

/* A record of a thousand launches with ten thousand steps each has half of it. */
#define DOCUMENT_BYTES_MAX ((int64_t)256 << 20)

enum el_status el_read_json(const char *path, json_t **document_p)
{
    json_error_t error;
    FILE *file;
    EL_TRY(el_file_stream("", path, DOCUMENT_BYTES_MAX, &file));
    json_t *document = json_loadf(file, 0, &error);
    fclose(file);
    if (!document)
        return el_fail(EL_ERR_INVALID, "%s is no JSON: line %d, column %d: %s", el_path_tail(path), error.line,
                       error.column, error.text);
    *document_p = document;
    return EL_OK;
}

enum el_status el_read_document(const char *path, bool (*is_one)(const json_t *document), const char *command,
                                json_t **document_p)
{
    json_t *document;
    EL_TRY(el_read_json(path, &document));
    if (!is_one(document)) {
        json_decref(document);
        return el_fail(EL_ERR_INVALID, "%s is nothing that 'evenload %s' of this version wrote", path, command);
    }
    el_json_printable(document);
    *document_p = document;
    return EL_OK;
}

/* ASCII, without "##": a CI system finds no commands in its log, and JSON readers get the same text. */
static void write_escaped(const json_t *value, FILE *out)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    for (const char *at = text; at && *at; at++)
        if (*at == 0x7F || (*at == '#' && at > text && at[-1] == '#'))
            fprintf(out, "\\u%04X", (unsigned)*at);
        else
            fputc(*at, out);
    free(text);
}

static void write_scalar(const json_t *value, FILE *out)
{
    char text[32];
    if (json_is_real(value)) {
        const char *shortest = el_json_written(json_real_value(value), text);
        fputs(shortest, out);
        if (strpbrk(shortest, ".e") == NULL) fputs(".0", out); /* it stays a real */
        return;
    }
    bool plain = !json_is_string(value) || el_utf8_is_printable(json_string_value(value));
    if (plain)
        json_dumpf(value, out, JSON_ENCODE_ANY);
    else
        write_escaped(value, out);
}

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

enum el_status el_write_json(const json_t *document, const char *path)
{
    char temporary[EL_PATH_BYTES + 64];
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (file == NULL) return el_fail_errno("%s could not be written", path);
    write_value((json_t *)(uintptr_t)document, 0, file);
    fputc('\n', file);
    return el_file_end(file, temporary, path);
}

enum el_status el_write_file(const char *path, enum el_status (*write)(const void *context, FILE *out),
                             const void *context)
{
    char temporary[EL_PATH_BYTES + 64];
    const char *shared = getenv("GITHUB_STEP_SUMMARY");
    bool append = shared && !strcmp(shared, path);
    FILE *out = append ? fopen(path, "a") : el_file_begin(path, temporary, sizeof temporary);
    if (out == NULL) return el_fail_errno("%s could not be written", path);
    enum el_status status = write(context, out);
    if (!append && status == EL_OK) return el_file_end(out, temporary, path);
    if (!append) el_file_drop(out, temporary);
    if (!append) return status;
    bool bad = fflush(out) != 0 || ferror(out);
    bad |= fclose(out) != 0;
    return status == EL_OK && bad ? el_fail_errno("%s could not be written", path) : status;
}

static bool ends_with_one(const char *name, const char *const *endings)
{
    size_t n = strlen(name);
    for (; *endings; endings++) {
        size_t m = strlen(*endings);
        if (n > m && !strcmp(name + n - m, *endings)) return true;
    }
    return false;
}

static enum el_status add_folder(const char *folder, const char *const *endings, json_t *paths)
{
    struct dirent **entries;
    char path[2 * EL_PATH_BYTES];
    size_t before = json_array_size(paths);
    int n = scandir(folder, &entries, NULL, versionsort);
    if (n < 0) return el_fail_errno("%s", folder);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && ends_with_one(entries[i]->d_name, endings))
            json_array_append_new(paths, el_json_string(path));
        free(entries[i]);
    }
    free(entries);
    if (json_array_size(paths) > before) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s: no file in it ends with %s", folder, *endings);
}

enum el_status el_input_paths(const char *const *names, size_t n, const char *const *endings, json_t **paths_p)
{
    struct stat info;
    json_t *paths = json_array();
    enum el_status status = EL_OK;
    for (size_t i = 0; i < n && status == EL_OK; i++)
        if (stat(names[i], &info) == 0 && S_ISDIR(info.st_mode))
            status = add_folder(names[i], endings, paths);
        else
            json_array_append_new(paths, el_json_string(names[i]));
    if (status == EL_OK)
        *paths_p = paths;
    else
        json_decref(paths);
    return status;
}
