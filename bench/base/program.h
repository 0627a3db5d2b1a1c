/* The program itself: the files that it needs beside itself, in the source tree or where `make install` put them; and a
 * hash of what was built, so that a run that is gone on with never mixes two builds. */
#pragma once

#include <stdbool.h>

#include "runtime/base/files.h"
#include "runtime/base/hash.h"

/* The absolute path of the folder that has `file`: `in_tree` of the source tree, or `installed` of share/evenload. The
 * one nearest to the program is taken. "" and false: there is none. */
bool el_shared_folder(const char *in_tree, const char *installed, const char *file, char folder[EL_PATH_BYTES]);

/* Over this program's file and its modules, once per process. Threads: the first call by one of them alone. */
uint64_t el_build_hash(void);
