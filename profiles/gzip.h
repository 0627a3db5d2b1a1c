/* Packed files, by the program gzip.
 *
 *     el_gzip_begin(name, file, false, &gzip);       gzip.stream gives what is packed in `file`
 *     el_gzip_begin(name, file, true, &gzip);        gzip.stream takes what is packed into `file`
 *     status = el_gzip_end(&gzip, whole);            closes the stream
 *
 * Threads: one at a time: SIGPIPE is ignored while packing. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "runtime/base/status.h"

struct el_gzip {
    FILE *stream;
    const char *name;
    pid_t child;
    bool packs;
    void (*sigpipe)(int);
};

enum el_status el_gzip_begin(const char *name, int file, bool packs, struct el_gzip *gzip_p);
/* `whole`: false where the reader stopped early, which ends gzip. Errors: EL_ERR_ABSENT (no gzip), EL_ERR_INVALID
 * (damaged), EL_ERR_IO. */
enum el_status el_gzip_end(struct el_gzip *gzip, bool whole);
