/* The program itself: the files that it needs, where `make` or `make install` put them; and a hash of what was built,
 * so that a run that is gone on with never mixes two builds. */
#pragma once

#include <stdbool.h>

#include "runtime/base/files.h"
#include "runtime/base/hash.h"

/* The absolute path of the folder `name` ("plots", "hardware") that has `file`: beside the program, or of
 * share/evenload (el_own_folder). "" and false: there is none. */
bool el_shared_folder(const char *name, const char *file, char folder[EL_PATH_BYTES]);

/* Over this program's file and its modules, once per process. Threads: the first call by one of them alone. */
uint64_t el_build_hash(void);
