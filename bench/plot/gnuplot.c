/* Runs gnuplot once per picture, without a shell, in DIR/plots: it treats paths that begin with '<' or '|' as commands,
 * so it never gets a user's path. It writes to its standard output, a file that we open. gnuplot.log is kept only after
 * a failure. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/base/program.h"
#include "bench/base/text.h"
#include "bench/options/config.h"
#include "bench/plot/plot.h"
#include "runtime/launch/children.h"
#include "runtime/launch/launch.h"

enum { TEXT_BYTES = 2 * EL_PATH_BYTES, TAIL_BYTES = 32, GNUPLOT_S = 60, GNUPLOT_STOPPED = 256 };

/* `end`: found in the last bytes of a complete file; NULL: text for standard output. */
static const struct format {
    const char *name, *terminal, *end;
} formats[] = {
    {"svg", "svg", "</svg>"}, {"png", "pngcairo", "IEND"}, {"pdf", "pdfcairo", "%%EOF"}, {"text", "dumb", NULL}};
enum { N_FORMATS = sizeof formats / sizeof formats[0], SVG = 0, TEXT = N_FORMATS - 1 };

#define LOG_NAME "gnuplot.log"

struct drawing {
    char scripts[EL_PATH_BYTES]; /* absolute; "": not found */
    const char *data;            /* DIR/plots */
    char gnuplot[EL_PATH_BYTES]; /* absolute, because it runs in another folder; "": not found */
    bool wanted[N_FORMATS];
    char look[64];                    /* passed to style.gnuplot */
    double width_pt;                  /* 0: the figure's own */
    int n_drawn, n_failed, n_refused; /* n_refused: failed in gnuplot, whose log has the reason */
    FILE *messages;
};

/* stderr goes to `log`, stdout to the new file `out`, or to ours if NULL. */
struct call {
    const char *program, *const *arguments, *folder, *log, *out;
};

/* In the child: default signals, so that Ctrl-C ends it. The alarm survives exec and ends a gnuplot that hangs. */
static void become_gnuplot(const void *context)
{
    const struct call *call = context;
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(call->folder) != 0) return;
    int in = open("/dev/null", O_RDONLY), err = open(call->log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0666);
    int picture = call->out ? open(call->out, O_WRONLY | O_CREAT | O_EXCL, 0666) : STDOUT_FILENO;
    if (dup2(in, STDIN_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0 || dup2(picture, STDOUT_FILENO) < 0) return;
    alarm(GNUPLOT_S);
    execv(call->program, (char *const *)(uintptr_t)call->arguments);
}

/* 127: not started, 128: ended by a signal, GNUPLOT_STOPPED: longer than GNUPLOT_S. */
static int run_gnuplot(const struct call *call)
{
    int state = 0;
    pid_t child = el_child_fork(become_gnuplot, call, -1);
    if (child < 0) return 127;
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR) return 127;
    if (WIFSIGNALED(state)) return WTERMSIG(state) == SIGALRM ? GNUPLOT_STOPPED : 128;
    return WEXITSTATUS(state);
}

bool el_plot_scripts(char folder[EL_PATH_BYTES])
{
    return el_shared_folder("plots", "style.gnuplot", folder);
}

/* A gnuplot without any terminal counts as none. */
static void find_gnuplot(struct drawing *d)
{
    char *path = NULL, *absolute = NULL, command[64];
    bool any = false;
    if (el_launch_find_program("gnuplot", &path) == EL_OK) absolute = realpath(path, NULL);
    for (int f = 0; f < N_FORMATS && absolute != NULL; f++) {
        const char *arguments[] = {"gnuplot", "-d", "-e", command, NULL};
        snprintf(command, sizeof command, "set terminal %s", formats[f].terminal);
        d->wanted[f] = run_gnuplot(&(struct call){absolute, arguments, "/", "/dev/null", NULL}) == 0;
        any |= d->wanted[f];
    }
    if (any) snprintf(d->gnuplot, sizeof d->gnuplot, "%s", absolute);
    free(path);
    free(absolute);
}

/* gnuplot exits with 0 on a full disk, so the picture's end is checked. */
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

/* gnuplot's SVG lacks width and height. */
static bool size_svg(const char *path, double width_pt)
{
    char *line = NULL, sized[TEXT_BYTES + 64];
    size_t room = 0;
    double width, height;
    snprintf(sized, sizeof sized, "%s.sized", path);
    unlink(sized); /* of an earlier process with this number */
    FILE *in = fopen(path, "r"), *out = in ? fopen(sized, "wx") : NULL;
    while (out && getline(&line, &room, in) >= 0) {
        if (sscanf(line, " viewBox=\"0 0 %lf %lf\"", &width, &height) == 2 && width > 0)
            fprintf(out, " width=\"%gpt\" height=\"%gpt\"\n", width_pt, width_pt * height / width);
        fputs(line, out);
    }
    free(line);
    bool whole = out && !ferror(in) && !ferror(out);
    if (in) fclose(in);
    if (out) whole &= fclose(out) == 0;
    if (whole && rename(sized, path) == 0) return true;
    unlink(sized);
    return false;
}

/* Without form feeds, which clear some terminals. */
static bool copy_text(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    for (int c; (c = getc(file)) != EOF;)
        if (c == '\n' || c >= ' ') putchar(c);
    fclose(file);
    return true;
}

static bool draw(struct drawing *d, const char *figure, const struct format *format)
{
    char script[TEXT_BYTES], data[64], name[96], out[TEXT_BYTES], temporary[TEXT_BYTES + 32];
    snprintf(script, sizeof script, "%s/%s.gnuplot", d->scripts, figure);
    snprintf(data, sizeof data, "%s.dat", figure);
    snprintf(name, sizeof name, "%s.%s.tmp.%ld", figure, format->name, (long)getpid());
    snprintf(out, sizeof out, "%s/%s.%s", d->data, figure, format->name);
    snprintf(temporary, sizeof temporary, "%s/%s", d->data, name);
    const char *arguments[] = {"gnuplot", "-d", "-e", d->look, "-c", script, data, format->name, NULL};
    unlink(temporary); /* of an earlier process with this number */
    int status = run_gnuplot(&(struct call){d->gnuplot, arguments, d->data, LOG_NAME, name});
    bool sized = d->width_pt > 0 && format == &formats[SVG];
    bool drawn = status == 0 && (!sized || size_svg(temporary, d->width_pt)) &&
                 (format->end ? is_whole(temporary, format->end) && rename(temporary, out) == 0 : copy_text(temporary));
    if (!drawn || !format->end) unlink(temporary);
    d->n_refused += status != 0;
    if (drawn && format->end)
        el_text_line(d->messages, "%s", out);
    else if (status == 0 && !drawn)
        el_text_line(d->messages, "%s could not be written: is the disk full?", out);
    else if (status != 0)
        el_text_line(d->messages, "%s could not be drawn as %s%s: see %s/" LOG_NAME, figure, format->name,
                     status == GNUPLOT_STOPPED ? " in a minute" : "", d->data);
    return drawn;
}

static void draw_figure(struct drawing *d, const char *figure)
{
    char data[TEXT_BYTES];
    snprintf(data, sizeof data, "%s/%s.dat", d->data, figure);
    if (access(data, R_OK) != 0) {
        el_text_line(d->messages,
                     "no figure '%s': the run has no data for it (it failed, was too short, ran with --no-record, "
                     "or was recorded by an evenload that did not measure it)",
                     figure);
        return;
    }
    for (int f = 0; f < N_FORMATS; f++)
        if (d->wanted[f]) d->n_failed += !draw(d, figure, &formats[f]);
    d->n_drawn++;
}

enum el_status el_plot_draw(const char *plots_dir, const char *const *figures, int n, const struct el_plot_look *look,
                            FILE *messages)
{
    struct drawing d = {.data = plots_dir, .messages = messages ? messages : fopen("/dev/null", "w")};
    char log[TEXT_BYTES];
    if (d.messages == NULL) return el_fail_errno("/dev/null");
    d.width_pt = look ? look->width_pt : 0;
    snprintf(d.look, sizeof d.look, "paper = %.6f; untitled = %d", d.width_pt, look && look->untitled);
    snprintf(log, sizeof log, "%s/" LOG_NAME, d.data);
    if (el_plot_scripts(d.scripts)) find_gnuplot(&d);
    d.wanted[TEXT] &= look && look->term;
    bool ready = *d.gnuplot;
    if (ready) unlink(log);
    for (int f = 0; f < TEXT && ready; f++)
        if (!d.wanted[f])
            el_text_line(d.messages, "no %s: this gnuplot has no terminal '%s' (apt install gnuplot-nox)",
                         formats[f].name, formats[f].terminal);
    for (int i = 0; i < n && ready; i++) draw_figure(&d, figures[i]);
    if (ready && d.n_refused == 0) unlink(log);
    if (messages == NULL) fclose(d.messages);
    if (d.scripts[0] == '\0')
        return el_fail(EL_ERR_ABSENT,
                       "the folder plots/ with the gnuplot scripts was not found; the data files lie in %s", plots_dir);
    if (!ready)
        return el_fail(EL_ERR_ABSENT,
                       "gnuplot is not installed (apt install gnuplot-nox); the data files lie in %s, and 'evenload "
                       "plot' draws them",
                       plots_dir);
    if (d.n_failed > 0)
        return el_fail(EL_ERR_IO, "%s: %d picture%s could not be drawn", plots_dir, d.n_failed,
                       d.n_failed == 1 ? "" : "s");
    return d.n_drawn > 0 ? EL_OK : el_fail(EL_ERR_INVALID, "%s: nothing to draw", plots_dir);
}
