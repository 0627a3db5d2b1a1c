/* A shell in a process group of its own, and a guard that ends it and its children should this process be killed; what
 * it prints, whole. */
#include "bench/regress/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/files.h"
#include "runtime/launch/children.h"
#include "runtime/launch/guard.h"
#include "runtime/launch/process_set.h"

#define TOKEN "EL_SHELL_TOKEN"

enum { OUT = 0, ERR = 1, TEXT_MAX = 16 << 20, TAIL_LINES = 3, TICK_MS = 100, PATIENCE_MS = 2000, PAUSE_MS = 10 };

/* What came out of a pipe. */
struct stream {
    int file; /* -1: at its end */
    FILE *memory;
    char *text;
    size_t n;
};

struct running {
    char token[80]; /* in the environment of all that it starts */
    struct el_child child;
    struct el_guard guard;
    struct stream streams[2];
};

static void close_stream(struct stream *stream)
{
    if (stream->file >= 0) close(stream->file);
    if (stream->memory) fclose(stream->memory);
    free(stream->text);
    *stream = (struct stream){.file = -1};
}

static enum el_status open_stream(const char *command, struct stream *stream, int *end_p)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return el_fail_errno("a pipe for '%.60s'", command);
    *end_p = ends[1];
    stream->file = ends[0];
    stream->memory = open_memstream(&stream->text, &stream->n);
    return stream->memory ? EL_OK : el_fail_errno("'%.60s': what it prints", command);
}

/* With TOKEN in its environment, by which the guard finds it and its children. */
static enum el_status start_shell(const char *command, struct running *running)
{
    char *const words[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    int ends[2] = {-1, -1};
    enum el_status status = EL_OK;
    for (int i = OUT; i <= ERR && status == EL_OK; i++) status = open_stream(command, &running->streams[i], &ends[i]);
    const struct el_child_spec spec = {.program = "/bin/sh",
                                       .command = words,
                                       .environment = environ,
                                       .out = ends[OUT],
                                       .err = ends[ERR],
                                       .death_signal = SIGKILL,
                                       .kept_file = -1};
    if (status == EL_OK) status = el_child_start(&spec, &running->child);
    for (int i = OUT; i <= ERR; i++)
        if (ends[i] >= 0) close(ends[i]);
    return status;
}

static enum el_status start(const char *command, struct running *running)
{
    char value[64];
    snprintf(value, sizeof value, "%d-%lld.", (int)getpid(), (long long)el_clock_ns());
    snprintf(running->token, sizeof running->token, TOKEN "=%s", value);
    /* Ignored, the kernel would throw away what an ended child was; and whoever loses its parent shall come to us. */
    signal(SIGCHLD, SIG_DFL);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return el_fail_errno("'%.60s': its processes cannot be adopted", command);
    EL_TRY(el_guard_start(running->token, &running->guard));
    setenv(TOKEN, value, 1); /* what is started inherits it */
    enum el_status status = start_shell(command, running);
    unsetenv(TOKEN);
    if (status != EL_OK) el_guard_stop(&running->guard);
    return status;
}

/* What has come. Too much is an error; of standard error it is only the beginning that is forgotten. */
static enum el_status take(struct running *running, int which)
{
    struct stream *stream = &running->streams[which];
    char chunk[65536];
    ssize_t got = read(stream->file, chunk, sizeof chunk);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return EL_OK;
    if (got <= 0) {
        close(stream->file);
        stream->file = -1;
        return EL_OK;
    }
    for (ssize_t i = 0; i < got; i++)
        if (chunk[i] == 0) chunk[i] = ' '; /* what comes behind it counts too */
    if (which == ERR && stream->n > TEXT_MAX) rewind(stream->memory);
    if (fwrite(chunk, 1, (size_t)got, stream->memory) != (size_t)got || fflush(stream->memory) != 0)
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
    if (which == OUT && stream->n > TEXT_MAX) return el_fail(EL_ERR_INVALID, "printed more than 16 MiB");
    return EL_OK;
}

static bool is_open(const struct running *running)
{
    return running->streams[OUT].file >= 0 || running->streams[ERR].file >= 0;
}

/* Takes what has come, for at most `patience_ms`. */
static enum el_status take_both(struct running *running, int patience_ms)
{
    struct pollfd polls[2] = {{.fd = running->streams[OUT].file, .events = POLLIN},
                              {.fd = running->streams[ERR].file, .events = POLLIN}};
    if (!is_open(running) || poll(polls, 2, patience_ms) <= 0) return EL_OK;
    for (int i = OUT; i <= ERR; i++)
        if (polls[i].revents) EL_TRY(take(running, i));
    return EL_OK;
}

/* Until the shell has ended and its pipes are read. A process that it left behind may hold the pipes open: they get one
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
            return el_fail(EL_ERR_TIMEOUT, "did not end within %g s (--timeout)", spec->timeout_s);
        EL_TRY(take_both(running, TICK_MS));
        el_children_wait(&running->child, 1, is_open(running) ? 0 : TICK_MS * 1000000L);
    }
    int64_t last_ns = el_clock_ns() + TICK_MS * 1000000L;
    while (is_open(running) && el_clock_ns() < last_ns) EL_TRY(take_both(running, TICK_MS / 4));
    return EL_OK;
}

/* Processes that left their group and lost their parent: they are children of ours by now, and would disturb every
 * later launch. Where the kernel does not list children, those that have kept the token are found. */
static void end_adopted(const char *token)
{
    char children[4096];
    for (int waited = 0; waited < PATIENCE_MS;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0 && errno != EINTR) return; /* there are none */
        if (pid != 0) continue;
        if (!el_file_line("/proc/thread-self/children", "", children, sizeof children)) el_process_set_kill(token);
        char *at = children;
        for (long child; (child = strtol(at, &at, 10)) > 0;) kill((pid_t)child, SIGKILL);
        poll(NULL, 0, PAUSE_MS);
        waited += PAUSE_MS;
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
    end_adopted(running->token);
}

/* The last lines, in one: "a | b | c". */
static void last_lines(const struct stream *from, char *text, size_t bytes)
{
    size_t n = from->n, begin = 0, used = 0;
    int lines = 0;
    while (n > 0 && strchr("\n\r \t", from->text[n - 1])) n--;
    for (begin = n; begin > 0 && n - begin < bytes - 12; begin--)
        if (from->text[begin - 1] == '\n' && ++lines == TAIL_LINES) break;
    for (size_t i = begin; i < n && used + 4 < bytes; i++) {
        bool end = from->text[i] == '\n';
        memcpy(text + used, end ? " | " : from->text + i, end ? 3 : 1);
        used += end ? 3 : 1;
    }
    text[used] = 0;
}

static enum el_status judge_end(const struct running *running)
{
    char lines[240];
    int status = running->child.wait_status;
    last_lines(&running->streams[running->streams[ERR].n > 0 ? ERR : OUT], lines, sizeof lines);
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
    struct running running = {.streams = {{.file = -1}, {.file = -1}}};
    bool cancelled = false;
    *output_p = (struct el_shell_output){0};
    enum el_status status = start(spec->command, &running);
    if (status == EL_OK) {
        status = see_to_its_end(spec, &running, &cancelled);
        end_group(&running);
    }
    if (status == EL_OK && !cancelled) status = judge_end(&running);
    if (status == EL_OK && fflush(running.streams[OUT].memory) == 0) {
        fclose(running.streams[OUT].memory);
        *output_p = (struct el_shell_output){.text = running.streams[OUT].text, .cancelled = cancelled};
        running.streams[OUT].memory = NULL;
        running.streams[OUT].text = NULL;
    }
    for (int i = OUT; i <= ERR; i++) close_stream(&running.streams[i]);
    return status;
}
