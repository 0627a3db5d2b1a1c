/* The sentences of a watch, round its tables (tables.c); from the document alone. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/watch/watch.h"

static const double EVEN_RATIO = 1.01, UNSEEN_RATIO = 1.05;

const char *el_watch_mib(const json_t *object, const char *key, char *text)
{
    return el_text_mib(el_json_number(object, key), text);
}

static void say(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(FILE *out, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    el_text_wrap(text, "* ", "  ", EL_WATCH_LINE_COLUMNS, out);
}

/* "rank 1 (process 4711)", "gpu:0", "process 4711 on gpu:0". */
static void peer_text(const json_t *device, char *text, size_t bytes)
{
    const char *name = el_json_text(device, "device", "?");
    double rank = el_json_number(device, "rank"), pid = el_json_number(device, "pid");
    bool gpu = strcmp(name, "cpu") != 0;
    if (isnan(pid))
        snprintf(text, bytes, "%s", name);
    else if (isnan(rank))
        snprintf(text, bytes, "process %.0f%s%s", pid, gpu ? " on " : "", gpu ? name : "");
    else
        snprintf(text, bytes, "rank %.0f (process %.0f%s%s)", rank, pid, gpu ? " on " : "", gpu ? name : "");
}

/* Whether the largest process was not sampled at its peak: then the rows do not show which one it is. */
static bool is_largest_unseen(const json_t *watch)
{
    const json_t *processes = json_object_get(watch, "processes");
    double most = 0;
    for (size_t i = 0; i < json_array_size(processes); i++)
        most = fmax(most, el_json_number(json_array_get(processes, i), "peak_bytes"));
    return el_json_number(watch, "largest_bytes") > UNSEEN_RATIO * most;
}

static void say_uneven(const json_t *trial, const json_t *watch, FILE *out)
{
    const json_t *devices = json_object_get(trial, "per_device");
    const char *rule = el_json_text(watch, "compared.rule", "?");
    size_t n = json_array_size(devices), largest = 0;
    double sum = 0;
    char name[96], more[EL_FIGURE_BYTES], times[EL_FIGURE_BYTES];
    for (size_t i = 0; i < n; i++) {
        double bytes = el_json_number(json_array_get(devices, i), "memory.peak_bytes");
        if (bytes > el_json_number(json_array_get(devices, largest), "memory.peak_bytes")) largest = i;
        sum += bytes;
    }
    if (n < 2) {
        say(out, "Nothing is compared: %s.", rule);
    } else if (is_largest_unseen(watch) && !strcmp(el_json_text(trial, "per_device.0.device", "cpu"), "cpu")) {
        say(out, "The largest process is unknown: it was not sampled at its peak.");
    } else {
        double most = el_json_number(json_array_get(devices, largest), "memory.peak_bytes");
        double others = (sum - most) / (double)(n - 1);
        peer_text(json_array_get(devices, largest), name, sizeof name);
        say(out, "%s %s holds %s MiB more than the %s, %s times as much. Compared: %s.",
            most / others < EVEN_RATIO ? "Memory is even: at its peak" : "At its peak", name,
            el_text_mib(most - others, more), n > 2 ? "mean of the others" : "other",
            el_text_figure(most / others, times), rule);
    }
}

static void say_unseen(const json_t *watch, FILE *out)
{
    char figure[EL_FIGURE_BYTES];
    size_t n = json_array_size(json_object_get(watch, "processes"));
    double unseen_s = el_json_number(watch, "unseen_cpu_s"), lost = el_json_number(watch, "not_followed");
    if (unseen_s > 0.05 + 0.02 * (double)n && unseen_s > 0.01 * el_json_number(watch, "cpu_s"))
        say(out, "Unattributed CPU time: %s s, of processes that lived between samples, and after last samples.",
            el_text_figure(unseen_s, figure));
    if (is_largest_unseen(watch))
        say(out, "A process that was not sampled at its peak held %s MiB.",
            el_watch_mib(watch, "largest_bytes", figure));
    if (lost > 0) say(out, "%.0f processes were not followed: the limit is %d.", lost, EL_TREE_PROCESSES_MAX);
}

static void say_left(const json_t *watch, FILE *out)
{
    const json_t *processes = json_object_get(watch, "processes");
    char pids[256] = "";
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(processes); i++) {
        const json_t *process = json_array_get(processes, i);
        if (!json_is_true(json_object_get(process, "left_running"))) continue;
        if (n++ < 8) el_text_append(pids, sizeof pids, " %.0f", el_json_number(process, "pid"));
    }
    if (n == 0) return;
    bool ended = json_is_true(json_object_get(watch, "waiting_ended"));
    say(out, "When the command ended, %zu of its processes still ran:%s%s%s.", n, pids, n > 8 ? " ..." : "",
        ended ? "; a signal ended the wait for them" : " (--wait-all waits for them)");
}

static void say_cost(const json_t *watch, FILE *out)
{
    char cost[EL_FIGURE_BYTES], share[EL_FIGURE_BYTES], every[EL_FIGURE_BYTES], found[EL_FIGURE_BYTES], of[48] = "";
    double share_pct = el_json_number(watch, "sampler.cpu_pct_of_a_core");
    if (!isnan(share_pct)) snprintf(of, sizeof of, ", %s %% of one core", el_text_figure(share_pct, share));
    say(out, "Watching took %s s of CPU time%s: CPU time and memory every %s ms, new processes every %s ms.",
        el_text_figure(el_json_number(watch, "sampler.cpu_s"), cost), of,
        el_text_figure(el_json_number(watch, "sampler.activities.1.every_ms"), every),
        el_text_figure(el_json_number(watch, "sampler.activities.0.every_ms"), found));
}

static void put_head(const json_t *trial, const json_t *watch, FILE *out)
{
    char text[256], lived[EL_FIGURE_BYTES], peak[EL_FIGURE_BYTES], cpu[EL_FIGURE_BYTES];
    size_t n = json_array_size(json_object_get(watch, "processes"));
    const char *command = el_json_text(trial, "model", "?"), *slash = strrchr(command, '/');
    snprintf(text, sizeof text,
             "%.24s: %s s, exit status %.0f; %zu process%s, at most %s MiB in total (shared pages counted in each), %s"
             " s of CPU time",
             slash && slash[1] ? slash + 1 : command, el_text_figure(el_json_number(watch, "seconds"), lived),
             el_json_number(watch, "exit_status"), n, n == 1 ? "" : "es",
             el_watch_mib(watch, "resident_peak_bytes", peak), el_text_figure(el_json_number(watch, "cpu_s"), cpu));
    fputc('\n', out);
    el_text_wrap(text, "", "  ", EL_WATCH_LINE_COLUMNS, out);
    fputc('\n', out);
}

void el_watch_print(const json_t *document, const char *dir, FILE *out)
{
    const json_t *trial = json_array_get(json_object_get(document, "trials"), 0);
    const json_t *watch = json_object_get(document, "watch");
    const char *gpu_reason = el_json_text(watch, "gpu_reason", "");
    put_head(trial, watch, out);
    el_watch_print_tables(document, out);
    fputc('\n', out);
    say_uneven(trial, watch, out);
    say_unseen(watch, out);
    say_left(watch, out);
    say_cost(watch, out);
    if (*gpu_reason) say(out, "No GPU was sampled: %s.", gpu_reason);
    fputc('\n', out);
    el_text_line(out, "%s/results.json", dir);
    el_text_line(out, "%s/trials.csv", dir);
}
