/* Where a program lies, by the rules of a shell: on PATH, or where its name says. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/launch/launch.h"

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

enum el_status el_launch_find_program(const char *name, char **path_p)
{
    char path[PATH_MAX];
    if (strchr(name, '/')) {
        if (!is_program(name)) return el_fail(EL_ERR_ABSENT, "%s: no such program", name);
        *path_p = strdup(name);
        return *path_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", name);
    }
    const char *folders = getenv("PATH");
    for (const char *at = folders ? folders : ""; *at;) {
        size_t length = strcspn(at, ":");
        int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
        if (length > 0 && written > 0 && (size_t)written < sizeof path && is_program(path)) {
            *path_p = strdup(path);
            return *path_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", name);
        }
        at += length + (at[length] == ':');
    }
    return el_fail(EL_ERR_ABSENT, "%s: not found on PATH", name);
}
