/* A shell in a process group of its own, and a guard that ends it and its children should this process be killed.
 * Standard output comes through a pipe and is kept whole; of standard error, in a file that has no name, only the end
 * is of interest. */
#include "bench/regress/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/base/text.h"
#include "runtime/base/clock.h"
#include "runtime/base/files.h"
#include "runtime/launch/children.h"

#define TOKEN    "EL_SHELL_TOKEN"
#define CHILDREN "/proc/thread-self/children"

enum { TEXT_MAX = 16 << 20, TAIL_LINES = 3, TICK_MS = 100, PATIENCE_MS = 2000, PAUSE_MS = 10, CHILDREN_BYTES = 4096 };

struct running {
    char token[80]; /* in the environment of all that it starts */
    struct el_child child;
    struct el_guard guard;
    int was_subreaper;
    char before[CHILDREN_BYTES]; /* the numbers of children that this thread had already */
    int out;                     /* the pipe's end; -1: at its end */
    int err;
    FILE *memory; /* what came out of it */
    char *text;
    size_t n;
};

/* With TOKEN in its environment, by which the guard finds it and its children. */
static enum el_status start_shell(const char *command, struct running *running)
{
    char *const words[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    int ends[2];
    running->memory = open_memstream(&running->text, &running->n);
    running->err = memfd_create("err", MFD_CLOEXEC);
    if (!running->memory || running->err < 0 || fcntl(running->err, F_SETFL, O_APPEND) != 0 ||
        pipe2(ends, O_CLOEXEC) != 0)
        return el_fail_errno("'%.60s': what it prints", command);
    running->out = ends[0];
    const struct el_child_spec spec = {.program = "/bin/sh",
                                       .command = words,
                                       .environment = environ,
                                       .out = ends[1],
                                       .err = running->err,
                                       .death_signal = SIGKILL,
                                       .kept_file = -1};
    enum el_status status = el_child_start(&spec, &running->child);
    close(ends[1]);
    return status;
}

static enum el_status start(const char *command, struct running *running)
{
    char value[64];
    snprintf(value, sizeof value, "%d-%lld.", (int)getpid(), (long long)el_clock_ns());
    snprintf(running->token, sizeof running->token, TOKEN "=%s", value);
    /* Ignored, the kernel would throw away what an ended child was; and whoever loses its parent shall come to us. */
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_GET_CHILD_SUBREAPER, &running->was_subreaper);
    el_file_line(CHILDREN, "", running->before, sizeof running->before);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return el_fail_errno("'%.60s': its processes cannot be adopted", command);
    EL_TRY(el_guard_start(running->token, "", &running->guard));
    setenv(TOKEN, value, 1); /* what is started inherits it */
    enum el_status status = start_shell(command, running);
    unsetenv(TOKEN);
    if (status == EL_OK) return EL_OK;
    el_guard_stop(&running->guard);
    prctl(PR_SET_CHILD_SUBREAPER, running->was_subreaper);
    return status;
}

/* Takes what has come, for at most `patience_ms`; too much is an error. */
static enum el_status take(struct running *running, int patience_ms)
{
    struct pollfd one = {.fd = running->out, .events = POLLIN};
    struct stat err;
    char chunk[65536];
    if (fstat(running->err, &err) == 0 && err.st_size > TEXT_MAX && ftruncate(running->err, 0) != 0)
        return el_fail_errno("what it prints on standard error");
    if (running->out < 0 || poll(&one, 1, patience_ms) <= 0) return EL_OK;
    ssize_t got = read(running->out, chunk, sizeof chunk);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return EL_OK;
    if (got <= 0) {
        close(running->out);
        running->out = -1;
        return EL_OK;
    }
    for (ssize_t i = 0; i < got; i++)
        if (chunk[i] == 0) chunk[i] = ' '; /* what comes behind it counts too */
    if (fwrite(chunk, 1, (size_t)got, running->memory) != (size_t)got || fflush(running->memory) != 0)
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
    return running->n <= TEXT_MAX ? EL_OK : el_fail(EL_ERR_INVALID, "printed more than 16 MiB");
}

static bool is_stopped(pid_t pid)
{
    char path[48], state[16];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return el_file_line(path, "State:\t", state, sizeof state) && *state == 'T';
}

/* Until the shell has ended and its pipe is read. A process that it left behind may hold the pipe open: it gets one
 * tick more. */
static enum el_status see_to_its_end(const struct el_shell_spec *spec, struct running *running, bool *cancelled_p)
{
    int64_t begin_ns = el_clock_ns();
    while (!running->child.ended) {
        if (spec->go_on && !spec->go_on()) {
            *cancelled_p = true;
            return EL_OK;
        }
        if ((double)(el_clock_ns() - begin_ns) > spec->timeout_s * 1e9)
            return el_fail(EL_ERR_TIMEOUT, "did not end within %g s (--timeout)%s", spec->timeout_s,
                           is_stopped(running->child.pid) ? ": its shell was stopped (SIGSTOP)" : "");
        EL_TRY(take(running, TICK_MS));
        el_children_wait(&running->child, 1, running->out >= 0 ? 0 : TICK_MS * 1000000L);
    }
    int64_t last_ns = el_clock_ns() + TICK_MS * 1000000L;
    while (running->out >= 0 && el_clock_ns() < last_ns) EL_TRY(take(running, TICK_MS / 4));
    return EL_OK;
}

static bool has_number(const char *numbers, long wanted)
{
    char *at = (char *)(uintptr_t)numbers;
    for (long number; (number = strtol(at, &at, 10)) > 0;)
        if (number == wanted) return true;
    return false;
}

/* Processes that left their group and lost their parent: they are children of ours by now, and would disturb every
 * later launch. Children that were there before are others' business. Where the kernel does not list children, those
 * that have kept the token are found. */
static void end_adopted(const struct running *running)
{
    char children[CHILDREN_BYTES];
    for (int waited = 0; waited < PATIENCE_MS; waited += PAUSE_MS) {
        bool any = false;
        if (access(CHILDREN, R_OK) != 0) el_process_set_kill(running->token);
        el_file_line(CHILDREN, "", children, sizeof children);
        char *at = children;
        for (long child; (child = strtol(at, &at, 10)) > 0;) {
            if (has_number(running->before, child)) continue;
            kill((pid_t)child, SIGKILL);
            waitpid((pid_t)child, NULL, WNOHANG);
            any = true;
        }
        if (!any) return;
        poll(NULL, 0, PAUSE_MS);
    }
}

/* Ends whatever is left of the group: asked first where the shell itself still runs. */
static void end_group(struct running *running)
{
    struct el_child *child = &running->child;
    el_children_signal(child, 1, SIGTERM);
    for (int waited = 0; !child->ended && waited < PATIENCE_MS; waited += PAUSE_MS)
        el_children_wait(child, 1, PAUSE_MS * 1000000L);
    kill(-child->pid, SIGKILL);
    while (!child->ended) el_children_wait(child, 1, TICK_MS * 1000000L);
    el_guard_stop(&running->guard);
    end_adopted(running);
    prctl(PR_SET_CHILD_SUBREAPER, running->was_subreaper);
}

/* The last lines of standard error, or where there are none of standard output, in one: "a | b | c". */
static void last_lines(const struct running *running, char *text, size_t bytes)
{
    char tail[240];
    const char *from = running->text;
    off_t size = lseek(running->err, 0, SEEK_END), most = (off_t)sizeof tail - 1;
    if (size > 0) {
        ssize_t got = pread(running->err, tail, sizeof tail - 1, size > most ? size - most : 0);
        tail[got > 0 ? got : 0] = 0;
        from = tail;
    }
    size_t n = strlen(from), begin;
    int lines = 0;
    while (n > 0 && strchr("\n\r \t", from[n - 1])) n--;
    for (begin = n; begin > 0 && n - begin < bytes - 12; begin--)
        if (from[begin - 1] == '\n' && ++lines == TAIL_LINES) break;
    for (*text = 0; begin < n; begin++)
        el_text_append(text, bytes, "%.*s", from[begin] == '\n' ? 3 : 1, from[begin] == '\n' ? " | " : from + begin);
}

static enum el_status judge_end(const struct running *running)
{
    char lines[240];
    int status = running->child.wait_status;
    last_lines(running, lines, sizeof lines);
    const char *words = *lines ? "; its last lines: " : "";
    if (WIFSIGNALED(status))
        return el_fail(EL_ERR_INVALID, "was ended by signal %d (%s)%s%s", WTERMSIG(status), strsignal(WTERMSIG(status)),
                       words, lines);
    if (WEXITSTATUS(status) != 0)
        return el_fail(EL_ERR_INVALID, "ended with exit status %d%s%s", WEXITSTATUS(status), words, lines);
    return EL_OK;
}

enum el_status el_shell_run(const struct el_shell_spec *spec, struct el_shell_output *output_p)
{
    struct running running = {.out = -1, .err = -1};
    bool cancelled = false;
    *output_p = (struct el_shell_output){0};
    enum el_status status = start(spec->command, &running);
    if (status == EL_OK) {
        status = see_to_its_end(spec, &running, &cancelled);
        end_group(&running);
    }
    if (running.memory && fclose(running.memory) != 0 && status == EL_OK)
        status = el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
    if (status == EL_OK && !cancelled) status = judge_end(&running);
    if (running.out >= 0) close(running.out);
    if (running.err >= 0) close(running.err);
    if (status == EL_OK)
        *output_p = (struct el_shell_output){.text = running.text, .cancelled = cancelled};
    else
        free(running.text);
    return status;
}
