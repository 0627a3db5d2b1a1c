/* Files of data into memory. What is in them is the readers' business. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runtime/data/samples.h"

#define FILE_BYTES_MAX ((int64_t)2 << 30) /* samples are kept in memory, by every rank */

enum el_status el_bytes_load(const char *path, struct el_text *text_p)
{
    struct stat info;
    FILE *file;
    EL_TRY(el_file_stream("data file ", path, FILE_BYTES_MAX, &file));
    struct el_text text = {.bytes = NULL};
    bool good = fstat(fileno(file), &info) == 0 && (text.bytes = malloc((size_t)info.st_size + 1)) != NULL;
    if (good) text.length = fread(text.bytes, 1, (size_t)info.st_size, file);
    good = good && !ferror(file);
    enum el_status status = good ? EL_OK : el_fail_errno("data file %s", el_path_tail(path));
    fclose(file);
    if (!good) {
        free(text.bytes);
        return status;
    }
    text.bytes[text.length] = 0;
    *text_p = text;
    return EL_OK;
}
