/* Files, written and read whole. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* With the folders on its way that are below `root`, which `path` begins with. */
static inline void put_file(const char *root, const char *path, const void *bytes, size_t n)
{
    char above[4096];
    snprintf(above, sizeof above, "%s", path);
    for (char *slash = strchr(above + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(above, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* Ended by 0; to be freed. *n_p (may be NULL): its length. */
static inline char *read_whole(const char *path, size_t *n_p)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    char *text = calloc(1, (size_t)info.st_size + 1);
    assert_non_null(text);
    size_t n = fread(text, 1, (size_t)info.st_size, file);
    assert_int_equal(n, info.st_size);
    fclose(file);
    if (n_p) *n_p = n;
    return text;
}
