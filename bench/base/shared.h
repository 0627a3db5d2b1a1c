/* Files that the program needs beside itself: in the source tree, or where `make install` put them. */
#ifndef EL_BENCH_SHARED_H
#define EL_BENCH_SHARED_H

#include <stdbool.h>

#include "runtime/base/files.h"

/* The absolute path of the folder that has `file`: `in_tree` of the source tree, or `installed` of share/evenload. The
 * one nearest to the program is taken. "" and false: there is none. */
bool el_shared_folder(const char *in_tree, const char *installed, const char *file, char folder[EL_PATH_BYTES]);

#endif
