/* Folders made with those above them, and what small files of the system say. Threads: any. */
#ifndef EL_BASE_FILES_H
#define EL_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/status.h"

/* mkdir -p. Errors: EL_ERR_IO naming the folder that cannot be made, with `advice` ("give another --out") where it is
 * not NULL. */
enum el_status el_folder_make(const char *path, const char *advice);

/* What follows `key` on the first line that begins with it (of the whole file where it is ""), without the line's end;
 * a longer one is cut. false, and "": no such line, or no file that can be read. */
bool el_file_line(const char *path, const char *key, char *text, size_t bytes);

#endif
