/* Finds and opens modules. Modules stay open: their libraries (MPI above all) do not survive dlclose. */
#include "runtime/base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LEVELS = 3 };

/* Writes the path of an existing module into `path`; false if none. */
static int find(const char *name, char *path, size_t bytes)
{
    char folder[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length < 0) return 0;
    folder[length] = 0;
    for (int level = 0; level < LEVELS; level++) {
        char *slash = strrchr(folder, '/');
        if (!slash) return 0;
        *slash = 0;
        int written = snprintf(path, bytes, "%s/modules/el_%s.so", folder, name);
        if (written > 0 && (size_t)written < bytes && access(path, R_OK) == 0) return 1;
    }
    return 0;
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
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!handle) return el_fail(EL_ERR_ABSENT, "%s: %s", name, dlerror());
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
