/* A trace's file, read piece by piece: as it is, or what gzip makes of it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiles/kineto.h"
#include "runtime/base/files.h"

/* A file that unpacks to more was made to fill the memory: profilers' traces come to 10 to 30 times their size. */
#define UNPACKED_ALWAYS ((uint64_t)64 << 20)
#define UNPACKED_MAX    ((uint64_t)4 << 30)
enum { UNPACKED_RATIO_MAX = 50 };

struct input {
    const char *path;
    int file;
    uint64_t left; /* bytes that are still taken */
    bool ended;    /* all was read */
};

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);
    return n >= m && strcmp(text + n - m, with) == 0;
}

static ptrdiff_t read_input(void *context, char *to, size_t most)
{
    struct input *input = context;
    ssize_t n;
    do n = read(input->file, to, most);
    while (n < 0 && errno == EINTR);
    if (n < 0) el_fail_errno("%s could not be read", el_path_tail(input->path));
    if (n > 0 && (uint64_t)n > input->left) {
        el_fail(EL_ERR_INVALID,
                "%s: unpacks to more than %d times its size, or 4 GiB, which no profiler's trace does: unpack it first "
                "if you trust it",
                el_path_tail(input->path), UNPACKED_RATIO_MAX);
        n = -1;
    }
    if (n > 0) input->left -= (uint64_t)n;
    input->ended = n == 0;
    return n;
}

static enum el_status read_source(struct input *input, struct el_kineto_trace *trace_p)
{
    return el_kineto_read_from(&(struct el_kineto_source){read_input, input}, input->path, trace_p);
}

/* The child that unpacks; *from_p is what it writes to. Negative: errno. */
static pid_t begin_gzip(int packed, int *from_p)
{
    int ends_of[2];
    if (pipe2(ends_of, O_CLOEXEC) != 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); /* its exit status is enough */
        dup2(packed, STDIN_FILENO);
        dup2(ends_of[1], STDOUT_FILENO);
        if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
        execlp("gzip", "gzip", "-dcq", (char *)NULL);
        _exit(127);
    }
    close(ends_of[1]);
    if (child < 0) close(ends_of[0]);
    *from_p = ends_of[0];
    return child;
}

static uint64_t most_of(int packed)
{
    struct stat info;
    uint64_t most = fstat(packed, &info) == 0 ? (uint64_t)info.st_size * UNPACKED_RATIO_MAX : 0;
    if (most < UNPACKED_ALWAYS) most = UNPACKED_ALWAYS;
    return most < UNPACKED_MAX ? most : UNPACKED_MAX;
}

/* What stands behind the document: gzip finds damage at the end. */
static enum el_status read_rest(struct input *input)
{
    char rest[4096];
    ptrdiff_t n;
    do n = read_input(input, rest, sizeof rest);
    while (n > 0);
    return n == 0 ? EL_OK : EL_ERR_INVALID;
}

/* Where the trace is refused before its end, gzip ends by the closed pipe. */
static enum el_status read_packed(const char *path, int packed, struct el_kineto_trace *trace_p)
{
    struct input input = {.path = path, .left = most_of(packed)};
    int ended = 0;
    pid_t child = begin_gzip(packed, &input.file);
    if (child < 0) return el_fail_errno("%s: gzip", el_path_tail(path));
    enum el_status status = read_source(&input, trace_p), whole = status == EL_OK ? read_rest(&input) : EL_OK;
    close(input.file);
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) continue;
    int code = input.ended && WIFEXITED(ended) ? WEXITSTATUS(ended) : 0; /* what we broke off is not damaged */
    if (status == EL_OK && (whole != EL_OK || code != 0)) el_kineto_free(trace_p);
    if (code == 127) return el_fail(EL_ERR_ABSENT, "%s: gzip is not installed; unpack it first", el_path_tail(path));
    if (code != 0) return el_fail(EL_ERR_INVALID, "%s: gzip cannot unpack it: the file is damaged", el_path_tail(path));
    return status == EL_OK ? whole : status;
}

enum el_status el_kineto_read_file(const char *path, struct el_kineto_trace *trace_p)
{
    struct input input = {.path = path, .left = UINT64_MAX};
    EL_TRY(el_file_open("", path, INT64_MAX, &input.file));
    enum el_status status = ends(path, ".gz") ? read_packed(path, input.file, trace_p) : read_source(&input, trace_p);
    close(input.file);
    return status;
}
