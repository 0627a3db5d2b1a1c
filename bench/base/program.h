/* The program's files, where `make` or `make install` put them, and a hash of the build, so that a resumed run never
 * mixes builds. */
#pragma once

#include <stdbool.h>

#include "runtime/base/files.h"
#include "runtime/base/hash.h"

/* The absolute folder `name` ("plots", "hardware") with `file`: beside the program, or in share/evenload
 * (el_own_folder). "" and false: none. */
bool el_shared_folder(const char *name, const char *file, char folder[EL_PATH_BYTES]);

/* Hash of the program's file and modules, computed once. Threads: the first call alone. */
uint64_t el_build_hash(void);
