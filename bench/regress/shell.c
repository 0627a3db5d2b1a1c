/* A shell in a process group of its own, and a guard that ends it and its children should this process be killed; its
 * standard output whole, of its standard error the end. */
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
#include "runtime/launch/children.h"
#include "runtime/launch/guard.h"

#define TOKEN "EL_SHELL_TOKEN"

enum { TEXT_MAX = 16 << 20, TAIL_BYTES = 1024, TAIL_LINES = 3, TICK_MS = 100, GRACE_MS = 2000 };

/* What came out of one pipe: all of it, or (`tail`) no more than the last TAIL_BYTES to 2 * TAIL_BYTES. */
struct stream {
    int file; /* -1: at its end */
    bool tail;
    char *text;
    size_t n, capacity;
};

struct running {
    pid_t pid;
    struct el_guard guard;
    struct stream out, err;
    bool ended, lost; /* lost: ended, and nobody can say how */
    int wait_status;
};

static enum el_status open_pipe(const char *command, int ends[2])
{
    return pipe2(ends, O_CLOEXEC) == 0 ? EL_OK : el_fail_errno("a pipe for '%.60s'", command);
}

/* With TOKEN in its environment, by which the guard finds it and its children. */
static enum el_status start_shell(const char *command, struct running *running)
{
    int out[2], err[2];
    char *const words[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    struct el_child child;
    EL_TRY(open_pipe(command, out));
    enum el_status status = open_pipe(command, err);
    if (status != EL_OK) {
        close(out[0]), close(out[1]);
        return status;
    }
    const struct el_child_spec spec = {.program = "/bin/sh",
                                       .command = words,
                                       .environment = environ,
                                       .out = out[1],
                                       .err = err[1],
                                       .death_signal = SIGKILL,
                                       .kept_file = -1};
    status = el_child_start(&spec, &child);
    close(out[1]), close(err[1]);
    running->out = (struct stream){.file = out[0]};
    running->err = (struct stream){.file = err[0], .tail = true};
    if (status == EL_OK)
        running->pid = child.pid;
    else
        close(out[0]), close(err[0]);
    return status;
}

static enum el_status start(const char *command, struct running *running)
{
    char token[80], value[64];
    *running = (struct running){.pid = -1};
    snprintf(value, sizeof value, "%d-%lld.", (int)getpid(), (long long)el_clock_ns());
    snprintf(token, sizeof token, TOKEN "=%s", value);
    /* Ignored, the kernel would throw away what an ended child was; and whoever loses its parent shall come to us. */
    signal(SIGCHLD, SIG_DFL);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return el_fail_errno("'%.60s': its processes cannot be adopted", command);
    EL_TRY(el_guard_start(token, &running->guard));
    setenv(TOKEN, value, 1); /* what is started inherits it */
    enum el_status status = start_shell(command, running);
    unsetenv(TOKEN);
    if (status != EL_OK) el_guard_stop(&running->guard);
    return status;
}

/* Room for one more read. */
static enum el_status make_room(struct stream *stream)
{
    if (stream->tail && stream->text != NULL && stream->n > 2 * TAIL_BYTES) {
        memmove(stream->text, stream->text + stream->n - TAIL_BYTES, TAIL_BYTES);
        stream->n = TAIL_BYTES;
    }
    if (stream->capacity - stream->n > 4096) return EL_OK;
    size_t capacity = 2 * stream->capacity + 8192;
    char *text = realloc(stream->text, capacity);
    if (text == NULL) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
    stream->text = text;
    stream->capacity = capacity;
    return EL_OK;
}

static enum el_status take(struct stream *stream)
{
    EL_TRY(make_room(stream));
    ssize_t got = read(stream->file, stream->text + stream->n, stream->capacity - stream->n - 1);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return EL_OK;
    if (got <= 0) {
        close(stream->file);
        stream->file = -1;
        got = 0;
    }
    stream->n += (size_t)got;
    stream->text[stream->n] = 0;
    if (!stream->tail && stream->n > TEXT_MAX) return el_fail(EL_ERR_INVALID, "printed more than 16 MiB");
    return EL_OK;
}

/* Takes what has come, for at most `patience_ms`. */
static enum el_status take_both(struct running *running, int patience_ms)
{
    struct pollfd polls[2] = {{.fd = running->out.file, .events = POLLIN}, {.fd = running->err.file, .events = POLLIN}};
    if (poll(polls, 2, patience_ms) <= 0) return EL_OK;
    if (polls[0].revents) EL_TRY(take(&running->out));
    if (polls[1].revents) EL_TRY(take(&running->err));
    return EL_OK;
}

static void reap(struct running *running)
{
    if (running->ended) return;
    pid_t pid = waitpid(running->pid, &running->wait_status, WNOHANG);
    running->lost = pid < 0 && errno != EINTR;
    running->ended = pid > 0 || running->lost;
}

/* Until the shell has ended and its pipes are read. A process that it left behind may hold the pipes open: they get one
 * tick more. */
static enum el_status see_to_its_end(const struct el_shell_spec *spec, struct running *running, bool *cancelled_p)
{
    int64_t begin_ns = el_clock_ns();
    while (!running->ended) {
        bool open_pipes = running->out.file >= 0 || running->err.file >= 0;
        if (spec->go_on && !spec->go_on()) {
            *cancelled_p = true;
            return EL_OK;
        }
        if ((double)(el_clock_ns() - begin_ns) > spec->timeout_s * 1e9)
            return el_fail(EL_ERR_TIMEOUT, "did not end within %g s (--timeout)", spec->timeout_s);
        EL_TRY(take_both(running, open_pipes ? TICK_MS : 1));
        reap(running);
    }
    int64_t last_ns = el_clock_ns() + TICK_MS * 1000000L;
    while ((running->out.file >= 0 || running->err.file >= 0) && el_clock_ns() < last_ns)
        EL_TRY(take_both(running, TICK_MS / 4));
    return EL_OK;
}

/* Ends whatever is left of the group: asked first where the shell itself still runs. */
static void end_group(struct running *running)
{
    if (!running->ended) kill(-running->pid, SIGTERM);
    for (int waited = 0; !running->ended && waited < GRACE_MS; waited += 10) {
        poll(NULL, 0, 10);
        reap(running);
    }
    kill(-running->pid, SIGKILL);
    while (!running->ended && waitpid(running->pid, &running->wait_status, 0) < 0 && errno == EINTR) continue;
    el_guard_stop(&running->guard);
    el_shell_end_adopted();
}

/* The last lines, in one: "a | b | c". */
static void last_lines(const struct running *running, char *text, size_t bytes)
{
    const struct stream *from = running->err.n > 0 ? &running->err : &running->out;
    size_t n = from->n, lines = 0, begin;
    while (n > 0 && strchr("\n\r \t", from->text[n - 1])) n--;
    for (begin = n; begin > 0 && n - begin + 4 * lines + 1 < bytes - 1; begin--)
        if (from->text[begin - 1] == '\n' && ++lines == TAIL_LINES) break;
    size_t used = 0;
    for (size_t i = begin; i < n && used + 4 < bytes; i++) {
        if (from->text[i] == '\n')
            used += (size_t)snprintf(text + used, bytes - used, " | ");
        else
            text[used++] = from->text[i];
    }
    text[used] = 0;
}

static enum el_status judge_end(const struct running *running)
{
    char lines[240];
    int status = running->wait_status;
    last_lines(running, lines, sizeof lines);
    const char *words = *lines ? "; its last lines: " : "";
    if (running->lost) return el_fail(EL_ERR_INVALID, "exit status lost: has another thread waited for it?");
    if (WIFSIGNALED(status))
        return el_fail(EL_ERR_INVALID, "was ended by signal %d (%s)%s%s", WTERMSIG(status), strsignal(WTERMSIG(status)),
                       words, lines);
    if (WEXITSTATUS(status) != 0)
        return el_fail(EL_ERR_INVALID, "ended with exit status %d%s%s", WEXITSTATUS(status), words, lines);
    return EL_OK;
}

enum el_status el_shell_run(const struct el_shell_spec *spec, struct el_shell_output *output_p)
{
    struct running running;
    bool cancelled = false;
    *output_p = (struct el_shell_output){0};
    EL_TRY(start(spec->command, &running));
    enum el_status status = see_to_its_end(spec, &running, &cancelled);
    end_group(&running);
    if (status == EL_OK && !cancelled) status = judge_end(&running);
    if (status == EL_OK && running.out.text == NULL) status = make_room(&running.out);
    for (int i = 0; i < 2; i++)
        if ((i ? running.err : running.out).file >= 0) close((i ? running.err : running.out).file);
    free(running.err.text);
    if (status == EL_OK && running.out.text != NULL) {
        running.out.text[running.out.n] = 0;
        for (size_t i = 0; i < running.out.n; i++)
            if (running.out.text[i] == 0) running.out.text[i] = ' '; /* what comes behind it counts too */
        *output_p = (struct el_shell_output){.text = running.out.text, .cancelled = cancelled};
    } else {
        free(running.out.text);
    }
    return status;
}
