/* A build is identified by its bytes: a changed tree may have the same commit. The linker's hash (--build-id) is in a
 * file's first 4 KiB. */
#include "bench/base/program.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "bench/base/text.h"
#include "runtime/base/module.h"

bool el_shared_folder(const char *name, const char *file, char folder[EL_PATH_BYTES])
{
    char found[PATH_MAX], installed[64];
    snprintf(installed, sizeof installed, "../share/evenload/%s", name);
    bool is_found = el_own_folder(name, installed, file, found) == EL_OK && strlen(found) < EL_PATH_BYTES;
    snprintf(folder, EL_PATH_BYTES, "%.*s", EL_PATH_BYTES - 1, is_found ? found : "");
    return is_found;
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
    if (el_module_folder(path)) {
        el_text_append(path, sizeof path, "/el_*.so");
        if (glob(path, 0, NULL, &modules) == 0) {
            for (size_t i = 0; i < modules.gl_pathc; i++) found = hash_head(found, modules.gl_pathv[i]);
            globfree(&modules);
        }
    }
    return hash = found ? found : 1;
}
