/* Modules stay open: MPI does not survive dlclose. */
#include "runtime/base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether only those can change the folder who can change the program. A link has an owner too. */
static bool is_safe(const char *path, const struct stat *program, const struct stat *beside)
{
    struct stat entry, folder;
    if (lstat(path, &entry) != 0 || stat(path, &folder) != 0 || !S_ISDIR(folder.st_mode)) return false;
    const uid_t owners[] = {entry.st_uid, folder.st_uid};
    for (int i = 0; i < 2; i++)
        if (owners[i] != 0 && owners[i] != geteuid() && owners[i] != program->st_uid && owners[i] != beside->st_uid)
            return false;
    return !(folder.st_mode & ~program->st_mode & S_IWOTH);
}

static bool are_safe(const char *path, size_t from, const struct stat *program, const struct stat *beside)
{
    char part[PATH_MAX];
    for (size_t n = from; path[n]; n += path[n] == '/') {
        n += strcspn(path + n, "/");
        snprintf(part, sizeof part, "%.*s", (int)n, path);
        if (!is_safe(part, program, beside)) return false;
    }
    return true;
}

enum el_status el_own_folder(const char *beside, const char *installed, const char *file, char folder[PATH_MAX])
{
    const char *const places[] = {beside, installed};
    char program[PATH_MAX], path[PATH_MAX];
    struct stat of_program, of_folder;
    enum el_status status = EL_ERR_ABSENT;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    while (n > 0 && program[n - 1] != '/') n--;
    program[n > 0 ? n : 0] = '\0';
    if (stat("/proc/self/exe", &of_program) != 0 || stat(program, &of_folder) != 0) return status;
    for (int i = 0; i < 2; i++) {
        size_t up = (size_t)n + (strncmp(places[i], "../", 3) == 0 ? 3 : 0);
        if (snprintf(path, sizeof path, "%s%s/%s", program, places[i], file) >= PATH_MAX || access(path, R_OK) != 0)
            continue;
        snprintf(folder, PATH_MAX, "%s%s", program, places[i]);
        if (are_safe(folder, up, &of_program, &of_folder)) return EL_OK;
        status =
            el_fail(EL_ERR_INVALID, "%s is not used: it belongs to another user, or others may write to it", folder);
    }
    return status;
}

static enum el_status module_folder(char folder[PATH_MAX])
{
    return el_own_folder("modules", "../lib/evenload/modules", "", folder);
}

bool el_module_folder(char folder[PATH_MAX])
{
    return module_folder(folder) == EL_OK;
}

static enum el_status find(const char *name, char path[PATH_MAX])
{
    char folder[PATH_MAX];
    EL_TRY(module_folder(folder));
    int written = snprintf(path, PATH_MAX, "%s/el_%s.so", folder, name);
    return written < PATH_MAX && access(path, R_OK) == 0 ? EL_OK : EL_ERR_ABSENT;
}

bool el_module_exists(const char *name)
{
    char path[PATH_MAX];
    return find(name, path) != EL_ERR_ABSENT;
}

enum el_status el_module_open(const char *name, const char *symbol, void **symbol_p)
{
    char path[PATH_MAX];
    enum el_status status = find(name, path);
    if (status == EL_ERR_ABSENT)
        return el_fail(status, "%s: not built (its library was missing when evenload was built)", name);
    EL_TRY(status);
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
    memcpy(&get, &found, sizeof get); /* ISO C cannot convert object to function pointers */
    *table_p = get();
    return EL_OK;
}
