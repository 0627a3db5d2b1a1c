/* Finds and opens modules. Modules stay open: their libraries (MPI above all) do not survive dlclose. */
#include "runtime/base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool el_module_folder(char *folder, size_t bytes)
{
    /* A build's folder; bin/ of an installation; the folders of tests' programs. */
    static const char *const near[] = {"/modules", "/../lib/evenload/modules", "/../modules", "/../../modules"};
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return false;
    program[length] = 0;
    char *slash = strrchr(program, '/');
    if (!slash) return false;
    *slash = 0;
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        int written = snprintf(folder, bytes, "%s%s", program, near[i]);
        if (written > 0 && (size_t)written < bytes && access(folder, X_OK) == 0) return true;
    }
    return false;
}

/* Writes the path of an existing module into `path`; false if none. */
static bool find(const char *name, char *path, size_t bytes)
{
    if (!el_module_folder(path, bytes)) return false;
    size_t used = strlen(path);
    int written = snprintf(path + used, bytes - used, "/el_%s.so", name);
    return written > 0 && (size_t)written < bytes - used && access(path, R_OK) == 0;
}

bool el_module_exists(const char *name)
{
    char path[PATH_MAX];
    return find(name, path, sizeof path);
}

enum el_status el_module_open(const char *name, const char *symbol, void **symbol_p)
{
    char path[PATH_MAX];
    if (!find(name, path, sizeof path))
        return el_fail(EL_ERR_ABSENT, "%s: not built (its library was missing when evenload was built)", name);
    void *handle;
    EL_TRY(el_library_open(name, path, &handle));
    void *found = dlsym(handle, symbol);
    if (!found) return el_fail(EL_ERR_ABSENT, "%s: no symbol %s in %s: build again", name, symbol, path);
    *symbol_p = found;
    return EL_OK;
}

enum el_status el_module_table(const char *name, const char *symbol, const void **table_p)
{
    void *found;
    const void *(*get)(void);
    EL_TRY(el_module_open(name, symbol, &found));
    memcpy(&get, &found, sizeof get); /* C has no conversion from an object's to a function's pointer */
    *table_p = get();
    return EL_OK;
}
