/* The program's own files are looked for beside it, then above it, then where its sources were built. What was built is
 * known by its bytes: the commit would not do, as a build from a changed tree has the same. The linker's hash of them
 * (--build-id) is among the first 4 KiB of a file. */
#include "bench/base/program.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/text.h"
#include "runtime/base/module.h"

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

static uint64_t hash_head(uint64_t hash, const char *path)
{
    char head[4096];
    FILE *file = fopen(path, "rb");
    if (!file) return hash;
    hash = el_hash(hash, head, fread(head, 1, sizeof head, file));
    fclose(file);
    return hash;
}

uint64_t el_build_hash(void)
{
    static uint64_t hash;
    char path[PATH_MAX];
    if (hash) return hash;
    uint64_t found = hash_head(EL_HASH_BEGIN, "/proc/self/exe");
    glob_t modules;
    if (el_module_folder(path, sizeof path - 16)) {
        el_text_append(path, sizeof path, "/el_*.so");
        if (glob(path, 0, NULL, &modules) == 0) {
            for (size_t i = 0; i < modules.gl_pathc; i++) found = hash_head(found, modules.gl_pathv[i]);
            globfree(&modules);
        }
    }
    return hash = found ? found : 1;
}
