/* mkdir -p, safe opening, small system files, and files that are written whole or not at all.
 *
 *     char temporary[EL_PATH_BYTES + 64];
 *     file = el_file_begin(path, temporary, sizeof temporary);       NULL, and errno
 *     fprintf(file, ...);
 *     status = el_file_end(file, temporary, path);                   closes it, also where it fails
 *
 * el_file_end returns when the file is on disk. Threads: any, each with its own files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/status.h"

/* mkdir -p. Errors: EL_ERR_IO naming the folder, with `advice` ("give another --out") unless NULL. */
enum el_status el_folder_make(const char *path, const char *advice);
/* Removes the files of a folder for which `is_ours`, and the folder if it is then empty; of a link only the link.
 * Whether the path is gone; else errno. */
bool el_folder_remove(const char *path, bool (*is_ours)(const char *name));

/* Opens an untrusted path for reading: a regular file of at most `most_bytes`; pipes and devices are refused without
 * waiting. `what` precedes the path in messages ("data file "). Errors: EL_ERR_IO, EL_ERR_INVALID (too large). */
enum el_status el_file_open(const char *what, const char *path, int64_t most_bytes, int *file_p);
/* The same as a stream; the caller closes it. */
enum el_status el_file_stream(const char *what, const char *path, int64_t most_bytes, FILE **stream_p);
/* The whole file and a zero behind it, to be freed. Errors: as above, EL_ERR_HOST_MEMORY, with the path's tail. */
enum el_status el_file_read(const char *path, int64_t most_bytes, char **data_p, size_t *n_p);
const char *el_path_tail(const char *path);

/* The rest of the first line that begins with `key`, cut to `bytes`. false, and "": no such line or file. */
bool el_file_line(const char *path, const char *key, char *text, size_t bytes);

enum { EL_PATH_BYTES = 1024, EL_TEMPORARY_BYTES = 21 /* ".tmp." and 16 digits */ };

/* Opens "<path>.tmp.<random>" for writing, nameless until complete if the file system can, so that a killed writer
 * leaves nothing. NULL and errno on failure. `temporary` needs EL_TEMPORARY_BYTES more than the path. A link's target
 * is replaced. Devices and pipes are written in place, `temporary` is "" then; a folder is EISDIR, a pipe without a
 * reader ENXIO. */
FILE *el_file_begin(const char *path, char *temporary, size_t capacity);
enum el_status el_file_end(FILE *file, const char *temporary, const char *path);
/* Discards it; the old file stays. A NULL `file` is legal. */
void el_file_drop(FILE *file, const char *temporary);
