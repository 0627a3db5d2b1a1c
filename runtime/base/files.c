/* Plain calls of POSIX. Files written whole are bench/base/io.c's. */
#include "runtime/base/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool make_one(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

enum el_status el_folder_make(const char *path, const char *advice)
{
    char *part = strdup(path);
    bool made = part != NULL;
    if (!part) return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for its name", path);
    for (char *at = strchr(part + (*part != 0), '/'); at && made; at = made ? strchr(at + 1, '/') : NULL) {
        *at = 0;
        made = make_one(part);
        if (made) *at = '/';
    }
    if (made) made = make_one(part);
    enum el_status status =
        made ? EL_OK : el_fail_errno("%s: cannot make this folder%s%s", part, advice ? "; " : "", advice ? advice : "");
    free(part);
    return status;
}

bool el_file_line(const char *path, const char *key, char *text, size_t bytes)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0, n = strlen(key);
    bool found = false;
    while (file && !found && getline(&line, &capacity, file) > 0) found = strncmp(line, key, n) == 0;
    snprintf(text, bytes, "%.*s", found ? (int)strcspn(line + n, "\n") : 0, found ? line + n : "");
    free(line);
    if (file) fclose(file);
    return found;
}
