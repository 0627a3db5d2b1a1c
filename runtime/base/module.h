/* Modules: heavy libraries (oneDNN, MPI, CUDA) are in shared objects `el_<name>.so`, opened at first use, so that the
 * program starts anywhere. A module exports one symbol: its table, or a function that returns it. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/status.h"

/* The folder with `file` ("": any): `beside` in the program's folder (a build), else `installed`
 * ("../lib/evenload/modules"). Its files are executed, so it is refused if others may write to it, or its owner is not
 * root, this user, or the owner of the program or its folder. Errors: EL_ERR_ABSENT (without text), EL_ERR_INVALID:
 * refused. */
enum el_status el_own_folder(const char *beside, const char *installed, const char *file, char folder[PATH_MAX]);

/* False: none, or refused. */
bool el_module_folder(char folder[PATH_MAX]);
/* True also if the folder is refused. Loads nothing. */
bool el_module_exists(const char *name);

/* Never closed. Threads: any. Errors: EL_ERR_ABSENT with the loader's text (not built, or its library is missing);
 * EL_ERR_INVALID: folder refused. */
enum el_status el_module_open(const char *name, const char *symbol, void **symbol_p);
/* For a symbol that is a function without parameters returning the table. */
enum el_status el_module_table(const char *name, const char *symbol, const void **table_p);

/* Opens `path`, with missing libraries from Python environments (pip's nvidia packages, conda): the program's own,
 * VIRTUAL_ENV, CONDA_PREFIX, the PATH's python3's, ~/.local, /usr/local. Errors: EL_ERR_ABSENT with what is missing. */
enum el_status el_library_open(const char *name, const char *path, void **handle_p);
/* Its symbols serve no other library: several may define the same ones. */
enum el_status el_library_open_apart(const char *name, const char *path, void **handle_p);
/* NVML, initialized once; use dlsym(). Threads: any. Errors: EL_ERR_ABSENT: no driver, or it fails. */
enum el_status el_nvml_library(void **library_p);
/* The path of an opened library by name prefix ("libcudart.so"). False: none. */
bool el_library_path(const char *begin, char *path, size_t bytes);
