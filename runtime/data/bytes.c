/* Files of data into memory, and their names into messages. What is in them is the readers' business. */
#include "runtime/data/samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SHOWN_BYTES = 250 };
#define FILE_BYTES_MAX ((off_t)2 << 30) /* samples are kept in memory, by every rank */

const char *el_path_tail(const char *path)
{
    size_t length = strlen(path);
    return length > PATH_SHOWN_BYTES ? path + length - PATH_SHOWN_BYTES : path;
}

enum el_status el_file_check(const char *what, const char *path, const struct stat *info)
{
    if (S_ISREG(info->st_mode)) return EL_OK;
    if (S_ISDIR(info->st_mode))
        return el_fail(EL_ERR_IO, "%s%s: is a directory; give a file in it%s", what, el_path_tail(path),
                       *what ? " (a folder is for images)" : "");
    return el_fail(EL_ERR_IO, "%s%s: is not a regular file, and it is read more than once", what, el_path_tail(path));
}

static enum el_status check_file(const char *path, struct stat *info_p)
{
    const char *shown = el_path_tail(path);
    if (stat(path, info_p) != 0) return el_fail_errno("data file %s", shown);
    EL_TRY(el_file_check("data file ", path, info_p));
    if (info_p->st_size > FILE_BYTES_MAX)
        return el_fail(EL_ERR_INVALID, "data file %s: larger than 2 GiB; a set is kept in memory", shown);
    return EL_OK;
}

enum el_status el_bytes_load(const char *path, struct el_text *text_p)
{
    struct stat info;
    EL_TRY(check_file(path, &info));
    const size_t size = (size_t)info.st_size;
    FILE *file = fopen(path, "rb");
    if (!file) return el_fail_errno("data file %s", el_path_tail(path));
    struct el_text text = {.bytes = malloc(size + 1)};
    if (text.bytes) text.length = fread(text.bytes, 1, size, file);
    int failed = !text.bytes ? ENOMEM : ferror(file) ? errno : 0;
    fclose(file);
    if (failed) {
        free(text.bytes);
        errno = failed;
        return el_fail_errno("data file %s", el_path_tail(path));
    }
    text.bytes[text.length] = 0;
    *text_p = text;
    return EL_OK;
}
