/* Opens shared objects, with libraries from pip's and conda's folders, where the loader does not look. The loader's
 * own finds come first. */
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/module.h"

/* cuDNN's dependencies go no deeper. */
enum { DEPTH_MAX = 4, WORDS_BYTES = 512 };

static const char *home_prefix(char text[PATH_MAX])
{
    const char *home = getenv("HOME");
    snprintf(text, PATH_MAX, "%s/.local", home ? home : "");
    return text;
}

enum { PREFIX_BYTES = PATH_MAX + 16 };

/* Prefixes of the PATH's python3 (not started): above its folder, as in a venv, and above its link target's. "":
 * none. */
static void python_prefixes(char venv[PREFIX_BYTES], char real[PREFIX_BYTES])
{
    const char *at = getenv("PATH");
    bool is_found = false;
    for (size_t n; at && *at && !is_found; at += n + (at[n] == ':')) {
        n = strcspn(at, ":");
        snprintf(venv, PREFIX_BYTES, "%.*s/python3", (int)(n < PATH_MAX ? n : 0), at);
        is_found = *at == '/' && access(venv, X_OK) == 0 && realpath(venv, real);
    }
    if (!is_found) *venv = *real = 0;
    if (is_found) strcpy(strrchr(venv, '/'), "/..");
    if (is_found) strcpy(strrchr(real, '/'), "/..");
}

static bool find(const char *name, char found[PATH_MAX])
{
    char own[PATH_MAX], home[PATH_MAX], venv[PREFIX_BYTES], real[PREFIX_BYTES], pattern[PATH_MAX + 128];
    bool has_own = el_own_folder("..", "..", "lib", own) == EL_OK; /* beside bin/ */
    python_prefixes(venv, real);
    const char *const prefixes[] = {has_own ? own : NULL, getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"), venv, real,
                                    home_prefix(home),    "/usr/local"};
    bool is_found = false;
    for (size_t i = 0; !is_found && i < sizeof prefixes / sizeof prefixes[0]; i++) {
        glob_t paths;
        if (!prefixes[i] || !*prefixes[i]) continue;
        snprintf(pattern, sizeof pattern, "%s/lib/{python3*/*-packages/nvidia/*/lib/,}%s", prefixes[i], name);
        if (glob(pattern, GLOB_BRACE, NULL, &paths) != 0) continue;
        is_found = snprintf(found, PATH_MAX, "%s", paths.gl_pathv[0]) < PATH_MAX;
        globfree(&paths);
    }
    return is_found;
}

/* Parses the loader's message "libx.so.1: cannot open shared object file: ...". */
static bool misses(const char *words, char name[NAME_MAX])
{
    const char *end = strstr(words, ": cannot open shared object file");
    return end && end - words < NAME_MAX && sprintf(name, "%.*s", (int)(end - words), words) > 0 && !strchr(name, '/');
}

static void *open_with(const char *path, int scope, char words[WORDS_BYTES], int depth)
{
    char name[NAME_MAX], last[NAME_MAX] = "", found[PATH_MAX];
    for (;;) {
        void *handle = dlopen(path, RTLD_NOW | scope);
        if (handle) return handle;
        snprintf(words, WORDS_BYTES, "%s", dlerror());
        if (depth == 0 || !misses(words, name) || strcmp(name, last) == 0 || !find(name, found)) return NULL;
        if (!open_with(found, scope, words, depth - 1)) return NULL;
        strcpy(last, name);
    }
}

static enum el_status open_in(int scope, const char *name, const char *path, void **handle_p)
{
    char words[WORDS_BYTES], missing[NAME_MAX];
    void *handle = open_with(path, scope, words, DEPTH_MAX);
    if (!handle && misses(words, missing))
        return el_fail(EL_ERR_ABSENT, "%s: no %s: install it, by pip too, or name its folder in LD_LIBRARY_PATH", name,
                       missing);
    if (!handle) return el_fail(EL_ERR_ABSENT, "%s: %s", name, words);
    *handle_p = handle;
    return EL_OK;
}

enum el_status el_library_open(const char *name, const char *path, void **handle_p)
{
    return open_in(RTLD_GLOBAL, name, path, handle_p);
}

enum el_status el_library_open_apart(const char *name, const char *path, void **handle_p)
{
    return open_in(RTLD_LOCAL, name, path, handle_p);
}

struct search {
    const char *begin;
    char *path;
    size_t bytes;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct search *search = context;
    const char *slash = strrchr(info->dlpi_name, '/');
    (void)size;
    if (!slash || strncmp(slash + 1, search->begin, strlen(search->begin)) != 0) return 0;
    snprintf(search->path, search->bytes, "%s", info->dlpi_name);
    return 1;
}

bool el_library_path(const char *begin, char *path, size_t bytes)
{
    struct search search = {begin, path, bytes};
    return dl_iterate_phdr(look_at, &search) == 1;
}
