/* Documents from files, and into files that are there whole or not at all (runtime/base/files.h). Timing: blocking;
 * what is written is on the disk. Threads: any. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/files.h"

/* A document that anyone may have written, of 256 MiB at most. Errors: EL_ERR_IO; EL_ERR_INVALID with line and column.
 */
enum el_status el_read_json(const char *path, json_t **document_p);
/* What `command` of this version wrote, if `is_one` says that it did: all its text can be printed. Errors: as above. */
enum el_status el_read_document(const char *path, bool (*is_one)(const json_t *document), const char *command,
                                json_t **document_p);
/* A document, indented, by a temporary name and rename. Errors: EL_ERR_IO with the path. */
enum el_status el_write_json(const json_t *document, const char *path);
/* The same form on an open stream: `run --json`. */
enum el_status el_print_json(const json_t *document, FILE *out);

/* What `write` writes of `context`: a file that is there whole or not at all; or behind what is there, where `path` is
 * that of $GITHUB_STEP_SUMMARY, which several commands share. Errors: EL_ERR_IO with the path, what `write` gives. */
enum el_status el_write_file(const char *path, enum el_status (*write)(const void *context, FILE *out),
                             const void *context);

/* [path] of what the user named: files, and of a folder those of its files that end with one of `endings` (ended by
 * NULL), by name and number. New reference. Errors: EL_ERR_IO; EL_ERR_INVALID: the folder has none. */
enum el_status el_input_paths(const char *const *names, size_t n, const char *const *endings, json_t **paths_p);
