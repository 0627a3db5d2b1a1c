/* Reads and writes documents, atomically (runtime/base/files.h). Blocking; written data are on the disk. Threads:
 * any. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/files.h"

/* A document of unknown origin, at most 256 MiB. Errors: EL_ERR_IO; EL_ERR_INVALID with line and column. */
enum el_status el_read_json(const char *path, json_t **document_p);
/* A document of this version's `command`, checked by `is_one`; its text is made printable. Errors: as above. */
enum el_status el_read_document(const char *path, bool (*is_one)(const json_t *document), const char *command,
                                json_t **document_p);
/* Indented, by a temporary name and rename. Errors: EL_ERR_IO with the path. */
enum el_status el_write_json(const json_t *document, const char *path);
/* The same form, on an open stream. */
enum el_status el_print_json(const json_t *document, FILE *out);

/* Writes a file atomically by `write`; appends if `path` is $GITHUB_STEP_SUMMARY, which several commands share. Errors:
 * EL_ERR_IO with the path, and `write`'s. */
enum el_status el_write_file(const char *path, enum el_status (*write)(const void *context, FILE *out),
                             const void *context);

/* [path]: files as named, and of folders those with one of `endings` (ends with NULL), by name and number. New
 * reference. Errors: EL_ERR_IO; EL_ERR_INVALID: a folder without any. */
enum el_status el_input_paths(const char *const *names, size_t n, const char *const *endings, json_t **paths_p);
