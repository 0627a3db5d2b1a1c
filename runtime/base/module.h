/* Modules: heavy libraries (oneDNN, MPI, CUDA) live in shared objects of ours, opened at first use, so that the
 * program starts in milliseconds anywhere and an absent library is a reason, not a failure to start.
 *
 * A module is `el_<name>.so` in the folder of modules, and offers one symbol: its table, or a function that gives it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/status.h"

/* The folder of the program's own files that has `file` ("": any): `beside` in the program's folder, where a build has
 * it, else `installed` ("../lib/evenload/modules"). Both are relative to the program's own file, so that an
 * installation may be moved. What lies there is run: a folder that others may write to is refused, and so is one that
 * belongs to somebody else than root, this user, and the owners of the program and of the program's folder. Errors:
 * EL_ERR_ABSENT (without words) there is none, EL_ERR_INVALID it is refused. */
enum el_status el_own_folder(const char *beside, const char *installed, const char *file, char folder[PATH_MAX]);

/* The folder of modules. False: none, or refused. */
bool el_module_folder(char folder[PATH_MAX]);
/* Whether module `name` was built, or its folder is refused. Loads nothing. */
bool el_module_exists(const char *name);

/* Opens module `name` for good and looks `symbol` up. Threads: any. Errors: EL_ERR_ABSENT with the loader's words: not
 * built, or its library is missing; EL_ERR_INVALID: its folder is refused. */
enum el_status el_module_open(const char *name, const char *symbol, void **symbol_p);
/* The same where the symbol is a function without parameters that returns the table. */
enum el_status el_module_table(const char *name, const char *symbol, const void **table_p);

/* Opens the shared object `path`, with libraries that it needs and the loader does not find from a Python environment
 * (pip's nvidia packages, conda): the program's own, VIRTUAL_ENV, CONDA_PREFIX, that of the PATH's python3, ~/.local,
 * /usr/local. `name` is for the failure. Errors: EL_ERR_ABSENT with what is missing. */
enum el_status el_library_open(const char *name, const char *path, void **handle_p);
/* NVML, started at the first call; its functions are for dlsym(). Threads: any. Errors: EL_ERR_ABSENT: no driver, or it
 * does not start. */
enum el_status el_nvml_library(void **library_p);
/* Which file an opened library is: the first whose name begins so ("libcudart.so"). False: none. */
bool el_library_path(const char *begin, char *path, size_t bytes);
