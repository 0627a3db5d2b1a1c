/* What was built is known by its bytes: the commit would not do, as a build from a changed tree has the same.
 */
#include "bench/base/hash.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/module.h"

#include "bench/base/text.h"

/* A word at a time: a program of some megabytes is read in a few milliseconds. */
static uint64_t hash_file(uint64_t hash, const char *path)
{
    uint64_t words[4096];
    FILE *file = fopen(path, "rb");
    if (!file) return hash;
    for (size_t n; (n = fread(words, 1, sizeof words, file)) > 0;) {
        memset((char *)words + n, 0, -n % 8);
        for (size_t i = 0; i < (n + 7) / 8; i++) hash = (hash ^ words[i]) * EL_HASH_PRIME;
    }
    fclose(file);
    return hash;
}

uint64_t el_build_hash(void)
{
    static uint64_t hash;
    char path[PATH_MAX];
    if (hash) return hash;
    uint64_t found = hash_file(EL_HASH_BEGIN, "/proc/self/exe");
    glob_t modules;
    if (el_module_folder(path, sizeof path - 16)) {
        el_text_append(path, sizeof path, "/el_*.so");
        if (glob(path, 0, NULL, &modules) == 0) {
            for (size_t i = 0; i < modules.gl_pathc; i++) found = hash_file(found, modules.gl_pathv[i]);
            globfree(&modules);
        }
    }
    return hash = found ? found : 1;
}
