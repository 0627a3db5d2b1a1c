/* Where the program's own files are: looked for beside it, then above it, then where its sources were built. */
#include "bench/base/shared.h"

#include <stdio.h>
#include <unistd.h>

#ifndef EL_SOURCE_DIR
#define EL_SOURCE_DIR "."
#endif

static bool has(const char *folder, const char *file)
{
    char path[2 * EL_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return access(path, R_OK) == 0;
}

bool el_shared_folder(const char *in_tree, const char *installed, const char *file, char folder[EL_PATH_BYTES])
{
    const char *const near[][2] = {{"../", in_tree}, {"", in_tree}, {"../share/evenload/", installed}};
    char program[EL_PATH_BYTES];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    while (n > 0 && program[n - 1] != '/') n--;
    for (size_t i = 0; n > 0 && i < sizeof near / sizeof near[0]; i++) {
        int used = snprintf(folder, EL_PATH_BYTES, "%.*s%s%s", (int)n, program, near[i][0], near[i][1]);
        if (used < EL_PATH_BYTES && has(folder, file)) return true;
    }
    snprintf(folder, EL_PATH_BYTES, "%s/%s", EL_SOURCE_DIR, in_tree);
    if (!has(folder, file)) folder[0] = '\0';
    return folder[0] != '\0';
}
