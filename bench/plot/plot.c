/* Draws a run's figures: finds gnuplot and the scripts, starts gnuplot once a picture, and says what came of it.
 *
 * gnuplot is started with posix_spawn and an argument list, never through a shell; what it complains about goes to
 * DIR/plots/gnuplot.log, which stays only where a picture failed. Without gnuplot the command that draws is printed. */
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

#include "bench/options/config.h"
#include "bench/record/record.h"
#include "runtime/base/clock.h"

extern char **environ;

/* Where the sources were built: the last place the scripts are looked for. */
#ifndef EL_SOURCE_DIR
#define EL_SOURCE_DIR "."
#endif

enum { TEXT_BYTES = 2 * EL_PATH_BYTES, TAIL_BYTES = 32, GNUPLOT_S = 60, GNUPLOT_STOPPED = 256 };

static const char *const figures[] = {"memory", "throughput", "step", "utilization", "timeline"};
/* Figures of subcommands that write their data themselves: drawn again where those lie. */
static const char *const others[] = {"scale", "imbalance"};
static const char *const figure_of_watch = "watch";
/* `end`: what the last bytes of such a file have in them. */
static const struct format {
    const char *name, *terminal, *end;
} formats[] = {{"svg", "svg", "</svg>"}, {"png", "pngcairo", "IEND"}, {"pdf", "pdfcairo", "%%EOF"}};
enum { N_FIGURES = sizeof figures / sizeof figures[0], N_OTHERS = sizeof others / sizeof others[0] };
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

struct drawing {
    char scripts[EL_PATH_BYTES]; /* the folder of the gnuplot scripts; "": not found */
    char data[EL_PATH_BYTES];    /* DIR/plots */
    char log[TEXT_BYTES];
    bool have_gnuplot;
    bool have_format[N_FORMATS];
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

/* Runs gnuplot with these arguments; its output goes to `log`, standard output too where `quiet`.
 * Returns its exit status, 127 where it could not be started. */
static int run_gnuplot(const char *const *arguments, const char *log, bool quiet)
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
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (quiet) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    int failed = posix_spawnp(&child, "gnuplot", &actions, &attributes, (char *const *)(uintptr_t)arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed != 0 ? 127 : wait_for_gnuplot(child);
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

/* A terminal is there if gnuplot can set it. */
static void find_gnuplot(struct drawing *d)
{
    const char *version[] = {"gnuplot", "--version", NULL};
    d->have_gnuplot = run_gnuplot(version, "/dev/null", true) == 0;
    for (int f = 0; f < N_FORMATS && d->have_gnuplot; f++) {
        char command[64];
        snprintf(command, sizeof command, "set terminal %s", formats[f].terminal);
        const char *probe[] = {"gnuplot", "-e", command, NULL};
        d->have_format[f] = run_gnuplot(probe, "/dev/null", true) == 0;
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
static bool draw(const struct drawing *d, const char *figure, const struct format *format)
{
    char script[TEXT_BYTES], data[TEXT_BYTES], out[TEXT_BYTES], temporary[TEXT_BYTES + 32];
    snprintf(script, sizeof script, "%s/%s.gnuplot", d->scripts, figure);
    snprintf(data, sizeof data, "%s/%s.dat", d->data, figure);
    snprintf(out, sizeof out, "%s/%s.%s", d->data, figure, format->name);
    snprintf(temporary, sizeof temporary, "%s.tmp.%ld", out, (long)getpid());
    const char *arguments[] = {"gnuplot", "-d", "-c", script, data, temporary, format->name, NULL};
    int status = run_gnuplot(arguments, d->log, true);
    bool drawn = status == 0;
    if (drawn && is_whole(temporary, format->end) && rename(temporary, out) == 0) {
        fprintf(d->messages, "%s\n", out);
        unlink(d->log);
        return true;
    }
    unlink(temporary);
    if (drawn) {
        fprintf(d->messages, "%s could not be written: is the disk full?\n", out);
        unlink(d->log);
    } else {
        fprintf(d->messages, "%s could not be drawn as %s%s: see %s\n", figure, format->name,
                status == GNUPLOT_STOPPED ? " in a minute" : "", d->log);
    }
    return false;
}

/* To standard output, as letters. */
static void draw_text(const struct drawing *d, const char *figure)
{
    char script[TEXT_BYTES], data[TEXT_BYTES];
    snprintf(script, sizeof script, "%s/%s.gnuplot", d->scripts, figure);
    snprintf(data, sizeof data, "%s/%s.dat", d->data, figure);
    const char *arguments[] = {"gnuplot", "-d", "-c", script, data, "", "text", NULL};
    fflush(stdout);
    if (run_gnuplot(arguments, d->log, false) == 0)
        unlink(d->log);
    else
        fprintf(d->messages, "%s could not be drawn as text: see %s\n", figure, d->log);
}

static void say_command(const struct drawing *d, const char *const *names, int n)
{
    fprintf(d->messages, "gnuplot is not installed, so nothing was drawn. Where it is (apt install gnuplot-nox), "
                         "the same command draws, or a figure at a time:\n");
    for (int i = 0; i < n; i++) {
        if (!has_data(d, names[i])) continue;
        fprintf(d->messages, "  gnuplot -d -c %s/%s.gnuplot %s/%s.dat %s.svg svg\n", d->scripts, names[i], d->data,
                names[i], names[i]);
    }
}

static void draw_all(const struct drawing *d, const char *const *names, int n, bool term)
{
    for (int f = 0; f < N_FORMATS; f++) {
        if (d->have_format[f]) continue;
        fprintf(d->messages, "no %s: this gnuplot has no terminal '%s' (apt install gnuplot-nox)\n", formats[f].name,
                formats[f].terminal);
    }
    for (int i = 0; i < n; i++) {
        if (!has_data(d, names[i])) {
            fprintf(
                d->messages,
                "no figure '%s': the run has no data for it (it failed, was too short, ran with --no-record, or was "
                "recorded by an evenload that did not measure it)\n",
                names[i]);
            continue;
        }
        for (int f = 0; f < N_FORMATS; f++) {
            if (d->have_format[f]) draw(d, names[i], &formats[f]);
        }
        if (term) draw_text(d, names[i]);
    }
}

/* From data files that are there. */
static enum el_status draw_figures(const char *plots_dir, const char *const *names, int n, bool term, FILE *messages)
{
    struct drawing d = {.messages = messages};
    if ((size_t)snprintf(d.data, sizeof d.data, "%s", plots_dir) >= sizeof d.data)
        return el_fail(EL_ERR_INVALID, "%s: the path is too long", plots_dir);
    snprintf(d.log, sizeof d.log, "%s/gnuplot.log", d.data);
    if (messages == NULL) d.messages = fopen("/dev/null", "w");
    if (d.messages == NULL) return el_fail_errno("/dev/null");
    find_scripts(&d);
    find_gnuplot(&d);
    if (d.scripts[0] == '\0') {
        fprintf(d.messages, "the folder plots/ with the gnuplot scripts was not found; the data lie in %s\n", d.data);
    } else if (!d.have_gnuplot) {
        say_command(&d, names, n);
    } else {
        draw_all(&d, names, n, term);
    }
    if (messages == NULL) fclose(d.messages);
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
