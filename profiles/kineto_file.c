/* A trace's file: as it is, or what gzip makes of it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiles/kineto.h"
#include "runtime/base/files.h"

#define UNPACKED_ALWAYS ((uint64_t)64 << 20)
#define UNPACKED_MAX    ((uint64_t)4 << 30)

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);
    return n >= m && strcmp(text + n - m, with) == 0;
}

/* The child that unpacks; *from_p is what it writes to. Negative: errno. */
static pid_t begin_gzip(int packed, FILE **from_p)
{
    int ends_of[2];
    if (pipe2(ends_of, O_CLOEXEC) != 0) return -1;
    *from_p = fdopen(ends_of[0], "r");
    pid_t child = *from_p ? fork() : -1;
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); /* its exit status is enough */
        dup2(packed, STDIN_FILENO);
        dup2(ends_of[1], STDOUT_FILENO);
        if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
        execlp("gzip", "gzip", "-dcq", (char *)NULL);
        _exit(127);
    }
    close(ends_of[1]);
    if (child < 0) *from_p ? fclose(*from_p) : close(ends_of[0]);
    return child;
}

static uint64_t most_of(int packed)
{
    struct stat info;
    uint64_t most = fstat(packed, &info) == 0 ? (uint64_t)info.st_size * EL_KINETO_UNPACKED_RATIO : 0;
    if (most < UNPACKED_ALWAYS) most = UNPACKED_ALWAYS;
    return most < UNPACKED_MAX ? most : UNPACKED_MAX;
}

/* Where the trace is refused before its end, gzip ends by the closed pipe. */
static enum el_status read_packed(const char *name, int packed, struct el_kineto_trace *trace_p)
{
    FILE *from;
    int ended = 0;
    pid_t child = begin_gzip(packed, &from);
    if (child < 0) return el_fail_errno("%s: gzip", name);
    enum el_status status = el_kineto_read(from, most_of(packed), name, trace_p);
    bool whole = feof(from);
    fclose(from);
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) continue;
    int code = whole && WIFEXITED(ended) ? WEXITSTATUS(ended) : 0; /* what we broke off is not damaged */
    if (code == 0) return status;
    if (status == EL_OK) el_kineto_free(trace_p);
    if (code == 127) return el_fail(EL_ERR_ABSENT, "%s: gzip is not installed; unpack it first", name);
    return el_fail(EL_ERR_INVALID, "%s: gzip cannot unpack it: the file is damaged", name);
}

enum el_status el_kineto_read_file(const char *path, struct el_kineto_trace *trace_p)
{
    FILE *file;
    EL_TRY(el_file_stream("", path, INT64_MAX, &file));
    enum el_status status = ends(path, ".gz") ? read_packed(el_path_tail(path), fileno(file), trace_p)
                                              : el_kineto_read(file, UINT64_MAX, path, trace_p);
    fclose(file);
    return status;
}
