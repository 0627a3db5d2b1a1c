/* Packed files. */
#include "profiles/gzip.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_PROGRAM = 127 };

static void become_gzip(int in, int out, const char *how)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); /* its exit status is enough */
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
    execlp("gzip", "gzip", how, (char *)NULL);
    _exit(NO_PROGRAM);
}

enum el_status el_gzip_begin(const char *name, int file, bool packs, struct el_gzip *gzip_p)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return el_fail_errno("%s: gzip", name);
    const int ours = packs, theirs = !packs;
    struct el_gzip gzip = {.name = name, .packs = packs, .child = -1};
    gzip.stream = fdopen(ends[ours], packs ? "w" : "r");
    if (gzip.stream) gzip.child = fork();
    if (gzip.child == 0) become_gzip(packs ? ends[0] : file, packs ? file : ends[1], packs ? "-1cq" : "-dcq");
    close(ends[theirs]);
    if (gzip.child < 0) {
        gzip.stream ? fclose(gzip.stream) : close(ends[ours]);
        return el_fail_errno("%s: gzip", name);
    }
    if (packs) gzip.sigpipe = signal(SIGPIPE, SIG_IGN);
    *gzip_p = gzip;
    return EL_OK;
}

enum el_status el_gzip_end(struct el_gzip *gzip, bool whole)
{
    int ended = 0;
    const bool failed = fclose(gzip->stream) != 0 && gzip->packs;
    const int error = errno;
    while (waitpid(gzip->child, &ended, 0) < 0 && errno == EINTR) continue;
    if (gzip->packs) signal(SIGPIPE, gzip->sigpipe);
    const int code = whole && WIFEXITED(ended) ? WEXITSTATUS(ended) : 0;
    if (code == NO_PROGRAM)
        return el_fail(EL_ERR_ABSENT, "%s: gzip is not installed: %s", gzip->name,
                       gzip->packs ? "give a name without .gz" : "unpack it first");
    if (gzip->packs && code) return el_fail(EL_ERR_IO, "%s: gzip cannot write it", gzip->name);
    if (code) return el_fail(EL_ERR_INVALID, "%s: gzip cannot unpack it: the file is damaged", gzip->name);
    errno = error;
    return failed ? el_fail_errno("%s", gzip->name) : EL_OK;
}
