/* A trace's file as one piece of memory: mapped, or what gzip makes of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiles/kineto.h"

/* Beyond, a small file may have been made to fill the memory. */
static const size_t UNPACKED_MAX = (size_t)4 << 30;

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);
    return n >= m && strcmp(text + n - m, with) == 0;
}

static enum el_status read_plain(const char *path, struct el_kineto_trace *trace_p)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return el_fail_errno("%s", path);
    bool regular = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
    void *text = regular ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (!regular) return el_fail(EL_ERR_INVALID, "%s: is empty, or no file", path);
    if (text == MAP_FAILED) return el_fail_errno("%s", path);
    enum el_status status = el_kineto_read(text, (size_t)info.st_size, path, trace_p);
    munmap(text, (size_t)info.st_size);
    return status;
}

/* The child that unpacks; *from_p is what it writes to. Negative: errno. */
static pid_t begin_gzip(const char *path, int *from_p)
{
    int ends_of[2];
    if (pipe2(ends_of, O_CLOEXEC) != 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); /* its exit status is enough */
        dup2(ends_of[1], STDOUT_FILENO);
        if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
        execlp("gzip", "gzip", "-dcq", "--", path, (char *)NULL);
        _exit(127);
    }
    close(ends_of[1]);
    if (child < 0) close(ends_of[0]);
    *from_p = ends_of[0];
    return child;
}

/* All that comes; NULL: no memory, or too much. */
static char *read_all(int from, size_t *bytes_p)
{
    size_t capacity = 1 << 20, n = 0;
    char *text = malloc(capacity);
    while (text) {
        ssize_t got = read(from, text + n, capacity - n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        n += (size_t)got;
        if (n < capacity) continue;
        char *more = capacity < UNPACKED_MAX ? realloc(text, capacity * 2) : NULL;
        if (!more) free(text);
        text = more;
        capacity *= 2;
    }
    *bytes_p = n;
    return text;
}

static enum el_status read_packed(const char *path, struct el_kineto_trace *trace_p)
{
    int from, ended = 0;
    size_t bytes;
    pid_t child = begin_gzip(path, &from);
    if (child < 0) return el_fail_errno("%s: gzip", path);
    char *text = read_all(from, &bytes);
    close(from); /* where it was too much, gzip ends by that */
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) continue;
    int code = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    enum el_status status = EL_OK;
    if (!text)
        status = el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for it unpacked, or more than 4 GiB", path);
    else if (code == 127)
        status = el_fail(EL_ERR_ABSENT, "%s: gzip is not installed; unpack it first", path);
    else if (code != 0)
        status = el_fail(EL_ERR_INVALID, "%s: gzip cannot unpack it: the file is damaged", path);
    if (status == EL_OK) status = el_kineto_read(text, bytes, path, trace_p);
    free(text);
    return status;
}

enum el_status el_kineto_read_file(const char *path, struct el_kineto_trace *trace_p)
{
    return ends(path, ".gz") ? read_packed(path, trace_p) : read_plain(path, trace_p);
}
