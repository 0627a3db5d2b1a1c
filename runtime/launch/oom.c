/* The kernel's count of processes that it ended because memory ran out. It names none of them. */
#include "runtime/launch/oom.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/files.h"

int64_t el_oom_kills(const char *root)
{
    char path[EL_PATH_BYTES], number[32];
    snprintf(path, sizeof path, "%s/proc/vmstat", root);
    return el_file_line(path, "oom_kill ", number, sizeof number) ? strtoll(number, NULL, 10) : -1;
}

bool el_oom_explain(int64_t before, int64_t after, char *text, size_t bytes)
{
    text[0] = '\0';
    if (before < 0 || after < 0)
        snprintf(text, bytes, ", by another process, or by the kernel because memory ran out (see dmesg)");
    else if (after > before)
        snprintf(text, bytes,
                 ", because memory ran out: the kernel's out-of-memory killer ended %" PRId64 " process%s of this host "
                 "meanwhile; take a smaller batch or fewer devices, or allow more memory",
                 after - before, after - before == 1 ? "" : "es");
    return before >= 0 && after > before;
}
