/* Files that are there whole or not at all, whatever ends the program meanwhile.
 *
 *     char temporary[EL_PATH_BYTES + 64];
 *     file = el_file_begin(path, temporary, sizeof temporary);       NULL, and errno
 *     fprintf(file, ...);
 *     status = el_file_end(file, temporary, path);                   closes it, also where it fails
 *
 * Timing: blocking; what is ended is on the disk. Threads: any, each with files of its own. */
#ifndef EL_BENCH_IO_H
#define EL_BENCH_IO_H

#include <jansson.h>
#include <stdio.h>

#include "runtime/base/status.h"

enum { EL_PATH_BYTES = 1024 };

/* Opens "<path>.tmp.<random>" (NULL and errno: could not). A link is followed: what it leads to is replaced. What is
 * there and no regular file (a device, a pipe) is written in place, and `temporary` is "" then; a folder is EISDIR, a
 * pipe that nobody reads ENXIO. */
FILE *el_file_begin(const char *path, char *temporary, size_t capacity);
enum el_status el_file_end(FILE *file, const char *temporary, const char *path);

/* A document, indented, by a temporary name and rename. Errors: EL_ERR_IO with the path. */
enum el_status el_write_json(const json_t *document, const char *path);
/* The same form on an open stream: `run --json`. */
enum el_status el_print_json(const json_t *document, FILE *out);

#endif
