/* Folders made with those above them, files that others chose, what small files of the system say, and files that are
 * there whole or not at all, whatever ends the program meanwhile.
 *
 *     char temporary[EL_PATH_BYTES + 64];
 *     file = el_file_begin(path, temporary, sizeof temporary);       NULL, and errno
 *     fprintf(file, ...);
 *     status = el_file_end(file, temporary, path);                   closes it, also where it fails
 *
 * Timing: blocking; what is ended is on the disk. Threads: any, each with files of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/status.h"

/* mkdir -p. Errors: EL_ERR_IO naming the folder that cannot be made, with `advice` ("give another --out") where it is
 * not NULL. */
enum el_status el_folder_make(const char *path, const char *advice);
/* Removes those files in a folder whose names `is_ours`, and the folder, if that leaves it empty. Links are not
 * followed: of a link nothing but the link is removed. Whether the path is gone; errno says why not. */
bool el_folder_remove(const char *path, bool (*is_ours)(const char *name));

/* Opens a file that a user or a stranger named, to read it: a regular file of `most_bytes` at most. A pipe or a device
 * is refused and never waited for. `what` stands before the path in messages ("data file "; "": nothing). Errors:
 * EL_ERR_IO, EL_ERR_INVALID (too large). */
enum el_status el_file_open(const char *what, const char *path, int64_t most_bytes, int *file_p);
/* The same as a stream. Ownership: fclose. */
enum el_status el_file_stream(const char *what, const char *path, int64_t most_bytes, FILE **stream_p);
/* The last part of a path that fits a message together with its reason. */
const char *el_path_tail(const char *path);

/* What follows `key` on the first line that begins with it (of the whole file where it is ""), without the line's end;
 * a longer one is cut. false, and "": no such line, or no file that can be read. */
bool el_file_line(const char *path, const char *key, char *text, size_t bytes);

enum { EL_PATH_BYTES = 1024, EL_TEMPORARY_BYTES = 21 /* ".tmp." and 16 digits */ };

/* Opens what will be "<path>.tmp.<random>" (NULL and errno: could not), and has no name until it is whole, where the
 * file system can do that: then nothing is left of a writer that was killed. Room for `temporary`: as above; a name may
 * not be longer with what follows the path. A link is followed: what it leads to is replaced. What is
 * there and no regular file (a device, a pipe) is written in place, and `temporary` is "" then; a folder is EISDIR, a
 * pipe that nobody reads ENXIO. */
FILE *el_file_begin(const char *path, char *temporary, size_t capacity);
enum el_status el_file_end(FILE *file, const char *temporary, const char *path);
/* Closes it, and what was there stays as it was. A NULL `file` is legal. */
void el_file_drop(FILE *file, const char *temporary);
