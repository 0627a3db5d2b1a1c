/* A shell as a job of one process, and a thread that reads what it prints, while it runs. Of standard error, in a file
 * that has no name, only the end is of interest. */
#include "bench/regress/launches.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/text.h"
#include "runtime/launch/launch.h"

enum { TEXT_MAX = 16 << 20, TAIL_LINES = 3, TICK_MS = 25 };

struct running {
    const struct el_shell_spec *spec;
    int ends[2]; /* of the pipe for standard output */
    int err;
    FILE *memory; /* what came out of the pipe */
    char *text;
    size_t n;
    atomic_bool over, too_much, lost; /* lost: no memory for what came */
};

/* Until the pipe is at its end. A process that the shell left behind and that nobody finds may hold it open: when all
 * is over, one tick more. */
static void *read_all(void *context)
{
    struct running *running = context;
    struct pollfd one = {.fd = running->ends[0], .events = POLLIN};
    char chunk[65536];
    while (!running->too_much && !running->lost) {
        bool over = running->over;
        if (poll(&one, 1, TICK_MS) <= 0) {
            if (over) break;
            continue;
        }
        ssize_t got = read(one.fd, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        for (ssize_t i = 0; i < got; i++)
            if (chunk[i] == 0) chunk[i] = ' '; /* what comes behind it counts too */
        running->lost = fwrite(chunk, 1, (size_t)got, running->memory) != (size_t)got || fflush(running->memory) != 0;
        running->too_much = running->n > TEXT_MAX;
    }
    return NULL;
}

static bool go_on(void *context, double elapsed_s)
{
    struct running *running = context;
    struct stat err;
    (void)elapsed_s;
    if (fstat(running->err, &err) == 0 && err.st_size > TEXT_MAX && ftruncate(running->err, 0) != 0)
        running->lost = true;
    return !running->too_much && !running->lost && (!running->spec->go_on || running->spec->go_on());
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

static enum el_status judge(const struct running *running, const struct el_launch_result *result)
{
    char lines[240];
    if (running->lost) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
    if (running->too_much) return el_fail(EL_ERR_INVALID, "printed more than 16 MiB");
    if (result->timed_out)
        return el_fail(EL_ERR_TIMEOUT, "did not end within %g s (--timeout)%s", running->spec->timeout_s,
                       result->stopped ? ": its shell was stopped (SIGSTOP)" : "");
    if (result->ok || result->cancelled) return EL_OK;
    last_lines(running, lines, sizeof lines);
    const char *words = *lines ? "; its last lines: " : "";
    if (result->signal)
        return el_fail(EL_ERR_INVALID, "was ended by signal %d (%s)%s%s", result->signal, strsignal(result->signal),
                       words, lines);
    return el_fail(EL_ERR_INVALID, "ended with exit status %d%s%s", result->exit_status, words, lines);
}

static enum el_status run(struct running *running, struct el_launch_result *result)
{
    char *const words[] = {(char *)"/bin/sh", (char *)"-c", (char *)running->spec->command, NULL};
    const struct el_launch_spec spec = {.argv = words,
                                        .procs = 1,
                                        .environment = running->spec->environment,
                                        .out = running->ends[1],
                                        .err = running->err,
                                        .timeout_s = running->spec->timeout_s,
                                        .progress = go_on,
                                        .context = running};
    pthread_t reader;
    signal(SIGCHLD, SIG_DFL); /* ignored, the kernel would throw away what an ended child was */
    errno = pthread_create(&reader, NULL, read_all, running);
    if (errno) return el_fail_errno("'%.60s': what it prints", running->spec->command);
    enum el_status status = el_launch_run(&spec, result);
    close(running->ends[1]);
    running->ends[1] = -1;
    running->over = true;
    pthread_join(reader, NULL);
    return status;
}

enum el_status el_shell_run(const struct el_shell_spec *spec, struct el_shell_output *output_p)
{
    struct running running = {.spec = spec, .ends = {-1, -1}, .err = memfd_create("err", MFD_CLOEXEC)};
    struct el_launch_result result = {.cancelled = spec->go_on && !spec->go_on()};
    *output_p = (struct el_shell_output){0};
    running.memory = open_memstream(&running.text, &running.n);
    bool made = running.memory && running.err >= 0 && fcntl(running.err, F_SETFL, O_APPEND) == 0 &&
                pipe2(running.ends, O_CLOEXEC) == 0;
    enum el_status status = made ? EL_OK : el_fail_errno("'%.60s': what it prints", spec->command);
    if (made && !result.cancelled) status = run(&running, &result);
    if (running.memory && fclose(running.memory) != 0) running.lost = true;
    if (status == EL_OK) status = judge(&running, &result);
    for (int i = 0; i < 2; i++)
        if (running.ends[i] >= 0) close(running.ends[i]);
    if (running.err >= 0) close(running.err);
    if (status == EL_OK)
        *output_p = (struct el_shell_output){.text = running.text,
                                             .cancelled = result.cancelled,
                                             .wall_s = result.wall_s,
                                             .cpu_s = result.cpu_s,
                                             .peak_bytes = result.peak_bytes};
    else
        free(running.text);
    return status;
}
