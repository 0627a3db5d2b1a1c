/* Draws a run's figures: finds gnuplot and the scripts, starts gnuplot once a picture, and says what came of it.
 *
 * gnuplot is started with posix_spawn and an argument list, never through a shell, in the folder DIR/plots: it takes a
 * path that begins with '<' or '|' for a command, so no path of the user's is given to it. It reads <figure>.dat there
 * and writes the picture to its standard output, a file that we opened. What it complains about goes to gnuplot.log
 * there, which stays only where a picture failed. */
#include "bench/plot/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/text.h"
#include "bench/options/config.h"
#include "bench/record/record.h"
#include "runtime/base/clock.h"
#include "runtime/launch/launch.h"

extern char **environ;

/* Where the sources were built: the last place the scripts are looked for. */
#ifndef EL_SOURCE_DIR
#define EL_SOURCE_DIR "."
#endif

enum { TEXT_BYTES = 2 * EL_PATH_BYTES, TAIL_BYTES = 32, GNUPLOT_S = 60, GNUPLOT_STOPPED = 256 };

static const char *const figures[] = {"memory", "throughput", "step", "utilization", "timeline"};
/* Figures of subcommands that write their data themselves: drawn again where those lie. */
static const char *const others[] = {"scale", "buckets", "imbalance"};
static const char *const figure_of_watch = "watch";
/* `end`: what the last bytes of such a file have in them. */
static const struct format {
    const char *name, *terminal, *end;
} formats[] = {{"svg", "svg", "</svg>"}, {"png", "pngcairo", "IEND"}, {"pdf", "pdfcairo", "%%EOF"}};
enum { N_FIGURES = sizeof figures / sizeof figures[0], N_OTHERS = sizeof others / sizeof others[0] };
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

#define LOG_NAME "gnuplot.log"

struct drawing {
    char scripts[EL_PATH_BYTES]; /* the folder of the gnuplot scripts, absolute; "": not found */
    char data[EL_PATH_BYTES];    /* DIR/plots */
    char gnuplot[EL_PATH_BYTES]; /* absolute, for it runs in another folder; "": not found */
    bool have_format[N_FORMATS];
    int n_drawn, n_failed, n_refused; /* of the failed: by gnuplot, whose log says why */
    FILE *messages;
};

/* As any program is started, whatever the caller has blocked or ignored: Ctrl-C ends it. */
static void set_signals(posix_spawnattr_t *attributes)
{
    sigset_t none, pipe;
    sigemptyset(&none);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &pipe);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* Its exit status; 128: a signal ended it; GNUPLOT_STOPPED: ours, for it took longer than GNUPLOT_S. */
static int wait_for_gnuplot(pid_t child)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    int64_t until_ns = el_clock_ns() + (int64_t)GNUPLOT_S * 1000000000;
    int state = 0;
    bool late = false;
    for (bool ended = false; !ended;) {
        pid_t got = waitpid(child, &state, WNOHANG);
        if (got < 0 && errno != EINTR) return 127;
        ended = got == child;
        late = late || (got == 0 && el_clock_ns() > until_ns);
        if (got == 0 && late) kill(child, SIGKILL);
        if (got == 0) nanosleep(&pause, NULL);
    }
    if (late && !WIFEXITED(state)) return GNUPLOT_STOPPED;
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128;
}

/* Runs gnuplot with these arguments in `folder`; what it complains about goes to `log` there, its standard output to
 * the new file `out` there, or to ours where that is NULL. Returns its exit status, 127 where it could not be started.
 */
static int run_gnuplot(const char *program, const char *const *arguments, const char *folder, const char *log,
                       const char *out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t child;
    if (posix_spawn_file_actions_init(&actions) != 0) return 127;
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return 127;
    }
    set_signals(&attributes);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0666);
    if (out != NULL) posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_EXCL, 0666);
    int failed = posix_spawn(&child, program, &actions, &attributes, (char *const *)(uintptr_t)arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed != 0 ? 127 : wait_for_gnuplot(child);
}

/* Without a word: whether it does that. */
static bool gnuplot_can(const struct drawing *d, const char *words)
{
    const char *arguments[] = {"gnuplot", "-d", "-e", words, NULL};
    return run_gnuplot(d->gnuplot, arguments, "/", "/dev/null", NULL) == 0;
}

static bool is_scripts_folder(const char *folder)
{
    char file[TEXT_BYTES];
    snprintf(file, sizeof file, "%s/style.gnuplot", folder);
    return access(file, R_OK) == 0;
}

/* Beside the program (build/evenload: ../plots), where it is installed, or where it was built. */
static void find_scripts(struct drawing *d)
{
    static const char *const near[] = {"/../plots", "/plots", "/../share/evenload/plots"};
    char program[EL_PATH_BYTES];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    char *slash = NULL;
    if (n > 0) {
        program[n] = '\0';
        slash = strrchr(program, '/');
    }
    for (size_t i = 0; slash != NULL && i < sizeof near / sizeof near[0]; i++) {
        *slash = '\0';
        if ((size_t)snprintf(d->scripts, sizeof d->scripts, "%s%s", program, near[i]) >= sizeof d->scripts) continue;
        if (is_scripts_folder(d->scripts)) return;
    }
    snprintf(d->scripts, sizeof d->scripts, "%s", EL_SOURCE_DIR "/plots");
    if (!is_scripts_folder(d->scripts)) d->scripts[0] = '\0';
}

/* A terminal is there if gnuplot can set it; the command is ours. */
static void find_gnuplot(struct drawing *d)
{
    char *path = NULL, *absolute = NULL;
    if (el_launch_find_program("gnuplot", &path) == EL_OK) absolute = realpath(path, NULL);
    free(path);
    if (absolute != NULL && strlen(absolute) < sizeof d->gnuplot) memcpy(d->gnuplot, absolute, strlen(absolute) + 1);
    free(absolute);
    if (*d->gnuplot && !gnuplot_can(d, "exit")) *d->gnuplot = '\0';
    for (int f = 0; f < N_FORMATS && *d->gnuplot; f++) {
        char command[64];
        snprintf(command, sizeof command, "set terminal %s", formats[f].terminal);
        d->have_format[f] = gnuplot_can(d, command);
    }
}

static bool has_data(const struct drawing *d, const char *figure)
{
    char data[TEXT_BYTES];
    snprintf(data, sizeof data, "%s/%s.dat", d->data, figure);
    return access(data, R_OK) == 0;
}

/* Whether a picture has the end of its kind: gnuplot has exit status 0 where the disk is full. */
static bool is_whole(const char *path, const char *end)
{
    char tail[TAIL_BYTES + 1] = "";
    FILE *file = fopen(path, "rb");
    if (file == NULL) return false;
    if (fseek(file, -TAIL_BYTES, SEEK_END) != 0) rewind(file);
    size_t n = fread(tail, 1, TAIL_BYTES, file);
    fclose(file);
    return memmem(tail, n, end, strlen(end)) != NULL;
}

/* Under another name first, so that no half picture is taken for one. Returns whether the picture is there. */
static bool draw(struct drawing *d, const char *figure, const struct format *format)
{
    char script[TEXT_BYTES], data[64], name[96], out[TEXT_BYTES], temporary[TEXT_BYTES + 32];
    snprintf(script, sizeof script, "%s/%s.gnuplot", d->scripts, figure);
    snprintf(data, sizeof data, "%s.dat", figure);
    snprintf(name, sizeof name, "%s.%s.tmp.%ld", figure, format->name, (long)getpid());
    snprintf(out, sizeof out, "%s/%s.%s", d->data, figure, format->name);
    snprintf(temporary, sizeof temporary, "%s/%s", d->data, name);
    const char *arguments[] = {"gnuplot", "-d", "-c", script, data, format->name, NULL};
    unlink(temporary); /* of an earlier process with this number */
    int status = run_gnuplot(d->gnuplot, arguments, d->data, LOG_NAME, name);
    if (status == 0 && is_whole(temporary, format->end) && rename(temporary, out) == 0) {
        el_text_line(d->messages, "%s", out);
        return true;
    }
    unlink(temporary);
    d->n_refused += status != 0;
    if (status == 0)
        el_text_line(d->messages, "%s could not be written: is the disk full?", out);
    else
        el_text_line(d->messages, "%s could not be drawn as %s%s: see %s/" LOG_NAME, figure, format->name,
                     status == GNUPLOT_STOPPED ? " in a minute" : "", d->data);
    return false;
}

/* What gnuplot drew as letters, without its form feeds: they clear some terminals. */
static bool copy_text(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    for (int c; (c = getc(file)) != EOF;)
        if (c == '\n' || c >= ' ') putchar(c);
    fclose(file);
    return true;
}

/* To standard output, as letters. */
static bool draw_text(struct drawing *d, const char *figure)
{
    char script[TEXT_BYTES], data[64], name[96], path[TEXT_BYTES];
    snprintf(script, sizeof script, "%s/%s.gnuplot", d->scripts, figure);
    snprintf(data, sizeof data, "%s.dat", figure);
    snprintf(name, sizeof name, "%s.text.tmp.%ld", figure, (long)getpid());
    snprintf(path, sizeof path, "%s/%s", d->data, name);
    const char *arguments[] = {"gnuplot", "-d", "-c", script, data, "text", NULL};
    unlink(path);
    bool drawn = run_gnuplot(d->gnuplot, arguments, d->data, LOG_NAME, name) == 0 && copy_text(path);
    unlink(path);
    if (drawn) return true;
    d->n_refused++;
    el_text_line(d->messages, "%s could not be drawn as text: see %s/" LOG_NAME, figure, d->data);
    return false;
}

static void draw_figure(struct drawing *d, const char *figure, bool term)
{
    int n_failed = 0;
    for (int f = 0; f < N_FORMATS; f++)
        if (d->have_format[f]) n_failed += !draw(d, figure, &formats[f]);
    if (term) n_failed += !draw_text(d, figure);
    d->n_failed += n_failed;
    d->n_drawn++;
}

static void draw_all(struct drawing *d, const char *const *names, int n, bool term)
{
    for (int f = 0; f < N_FORMATS; f++) {
        if (d->have_format[f]) continue;
        el_text_line(d->messages, "no %s: this gnuplot has no terminal '%s' (apt install gnuplot-nox)", formats[f].name,
                     formats[f].terminal);
    }
    for (int i = 0; i < n; i++) {
        if (has_data(d, names[i]))
            draw_figure(d, names[i], term);
        else
            el_text_line(d->messages,
                         "no figure '%s': the run has no data for it (it failed, was too short, ran with --no-record, "
                         "or was recorded by an evenload that did not measure it)",
                         names[i]);
    }
}

/* What stands in the way of any picture, said as a failure. */
static enum el_status check(const struct drawing *d)
{
    if (d->scripts[0] == '\0')
        return el_fail(EL_ERR_ABSENT,
                       "the folder plots/ with the gnuplot scripts was not found; "
                       "the data files lie in %s",
                       d->data);
    if (!*d->gnuplot)
        return el_fail(EL_ERR_ABSENT,
                       "gnuplot is not installed (apt install gnuplot-nox); the data files lie in "
                       "%s, and 'evenload plot' draws them",
                       d->data);
    return EL_OK;
}

/* From data files that are there. */
static enum el_status draw_figures(const char *plots_dir, const char *const *names, int n, bool term, FILE *messages)
{
    char log[TEXT_BYTES];
    struct drawing d = {.messages = messages};
    if ((size_t)snprintf(d.data, sizeof d.data, "%s", plots_dir) >= sizeof d.data)
        return el_fail(EL_ERR_INVALID, "%s: the path is too long", plots_dir);
    find_scripts(&d);
    if (d.scripts[0] != '\0') find_gnuplot(&d);
    EL_TRY(check(&d));
    if (messages == NULL) d.messages = fopen("/dev/null", "w");
    if (d.messages == NULL) return el_fail_errno("/dev/null");
    snprintf(log, sizeof log, "%s/" LOG_NAME, d.data);
    unlink(log); /* of an earlier drawing */
    draw_all(&d, names, n, term);
    if (d.n_refused == 0) unlink(log);
    if (messages == NULL) fclose(d.messages);
    if (d.n_failed > 0)
        return el_fail(EL_ERR_IO, "%s: %d picture%s could not be drawn", plots_dir, d.n_failed,
                       d.n_failed == 1 ? "" : "s");
    if (d.n_drawn == 0) return el_fail(EL_ERR_INVALID, "%s: nothing to draw", plots_dir);
    return EL_OK;
}

enum el_status el_plot_draw(const char *plots_dir, const char *figure, FILE *messages)
{
    return draw_figures(plots_dir, &figure, 1, false, messages);
}

/* The figures of every run, and those of other subcommands. Returns how many. */
static int list_figures(const char *plots_dir, const char **names)
{
    struct drawing d = {.messages = NULL};
    int n = 0;
    snprintf(d.data, sizeof d.data, "%s", plots_dir);
    for (int i = 0; i < N_FIGURES; i++) names[n++] = figures[i];
    for (int i = 0; i < N_OTHERS; i++)
        if (has_data(&d, others[i])) names[n++] = others[i];
    return n;
}

enum el_status el_plot_run(const char *dir, bool term, FILE *messages)
{
    const char *names[N_FIGURES + N_OTHERS];
    char path[EL_PATH_BYTES], plots[EL_PATH_BYTES];
    json_t *run = NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/results.json", dir) >= sizeof path) {
        return el_fail(EL_ERR_INVALID, "%s: the path is too long", dir);
    }
    EL_TRY(el_record_read(path, &run));
    snprintf(plots, sizeof plots, "%s/plots", dir);
    enum el_status status = el_plot_data(run, plots, NULL);
    bool watched = json_object_get(run, "watch") != NULL;
    json_decref(run);
    if (status != EL_OK) return status;
    if (watched) return draw_figures(plots, &figure_of_watch, 1, term, messages);
    return draw_figures(plots, names, list_figures(plots, names), term, messages);
}
