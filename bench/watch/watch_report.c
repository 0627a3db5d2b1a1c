/* The tables and sentences of a watch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "bench/watch/late.h"
#include "bench/watch/watch.h"

enum { ROWS_MAX = 16, NAME_COLUMNS = 23 };
static const double EVEN_RATIO = 1.01, UNSEEN_RATIO = 1.05;
static const double GROWN_RATIO = 1.05; /* beyond the last reading of Pss */

static const char *mib_at(const json_t *object, const char *key, char *text)
{
    return el_text_mib(el_json_number(object, key), text);
}

#define PROCESS EL_TEXT("process", -NAME_COLUMNS, "shown", .gap = 2)

static const struct el_column process_columns[] =
    EL_COLUMNS(EL_COUNT("pid", 7, "pid"), EL_COUNT("rank", 5, "rank"), PROCESS, EL_FIGURE("alive s", 8, "alive_s"),
               EL_MIB("peak MiB", 9, "peak_bytes"), EL_MIB("anon MiB", 9, "own_peak_bytes"),
               EL_MIB("mean MiB", 9, "mean_bytes"), EL_TEXT("Pss MiB", 8, "pss"), EL_FIGURE("share %", 8, "share_pct"),
               EL_FIGURE("CPU s", 6, "cpu_s"), EL_FIGURE("CPU %", 6, "cpu_pct"));
static const struct el_column use_columns[] =
    EL_COLUMNS(EL_COUNT("pid", 7, "pid"), EL_COUNT("rank", 5, "rank"), PROCESS, EL_TEXT("GPU", 8, "on"),
               EL_MIB("peak MiB", 10, "peak_bytes"), EL_MIB("mean MiB", 10, "mean_bytes"),
               EL_FIGURE("share %", 9, "share_pct"), EL_FIGURE("busy %", 9, "busy_pct"));
static const struct el_column imbalance_columns[] =
    EL_COLUMNS(EL_TEXT("compared", -30, "of"), EL_FIGURE("max/mean - 1", 14, "max_over_mean_minus_1"),
               EL_FIGURE("imbalance %", 14, "imbalance_pct"), EL_FIGURE("mean/max", 11, "lb"), EL_FIGURE("CV", 9, "cv"),
               EL_FIGURE("first/rest", 13, "first_over_rest"));

/* Peers first, by rank, then by peak; unknown counts as 0. */
static int by_weight(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    bool peer = json_is_true(json_object_get(x, "peer"));
    if (peer != json_is_true(json_object_get(y, "peer"))) return peer ? -1 : 1;
    double own = peer ? -el_json_number(x, "rank") : el_json_number(x, "peak_bytes");
    double other = peer ? -el_json_number(y, "rank") : el_json_number(y, "peak_bytes");
    return (fmax(own, -1e9) < fmax(other, -1e9)) - (fmax(own, -1e9) > fmax(other, -1e9));
}

/* "python train.py --epochs ...", of several hosts "node2: python train..." */
static void name_text(const json_t *process, char text[EL_CELL_BYTES])
{
    size_t cut = 0, used = 0;
    const char *host = el_json_text(process, "host", "");
    if (*host) used = (size_t)snprintf(text, EL_CELL_BYTES, "%.10s: ", host);
    el_table_command(el_json_text(process, "command", el_json_text(process, "name", "?")), text + used,
                     EL_CELL_BYTES - used);
    used = 0;
    for (int n = 0; text[used] && n < NAME_COLUMNS; n++) { /* by UTF-8 character */
        if (n == NAME_COLUMNS - 3) cut = used;
        for (used++; ((unsigned char)text[used] & 0xc0) == 0x80;) used++;
    }
    if (text[used]) snprintf(text + cut, 4, "...");
}

/* Pss is ">402.1" if the process grew by more than 5 % after that reading. */
static json_t *row_of(const json_t *thing, const json_t *process, double share_pct)
{
    json_t *row = json_copy((json_t *)(uintptr_t)thing);
    char name[EL_CELL_BYTES], pss[EL_FIGURE_BYTES];
    bool grew = el_json_number(thing, "peak_bytes") > GROWN_RATIO * el_json_number(thing, "pss_resident_bytes");
    name_text(process, name);
    el_json_put_text(row, "shown", name);
    el_json_put_real(row, "alive_s", el_json_number(thing, "end_s") - el_json_number(thing, "begin_s"));
    el_json_put(row, "pss", json_sprintf("%s%s", grew ? ">" : "", mib_at(thing, "pss_bytes", pss)));
    el_json_put(row, "on", json_sprintf("gpu:%.0f", el_json_number(thing, "gpu")));
    el_json_put_real(row, "share_pct", share_pct);
    return row;
}

static void put_processes(const json_t *watch, FILE *out)
{
    const json_t *processes = json_object_get(watch, "processes");
    json_t *rows = json_array();
    size_t n = json_array_size(processes);
    const json_t **list = malloc((n + 1) * sizeof(*list));
    double peers_bytes = 0, most_bytes = 0, cpu_s = 0;
    char peak[EL_FIGURE_BYTES], cpu[EL_FIGURE_BYTES];
    if (!list) return;
    for (size_t i = 0; i < n; i++) {
        list[i] = json_array_get(processes, i);
        if (json_is_true(json_object_get(list[i], "peer"))) peers_bytes += el_json_number(list[i], "own_peak_bytes");
    }
    qsort(list, n, sizeof(*list), by_weight);
    for (size_t i = 0; i < n; i++) {
        bool peer = json_is_true(json_object_get(list[i], "peer"));
        double share_pct = peer ? 100 * el_json_number(list[i], "own_peak_bytes") / peers_bytes : NAN;
        if (i < ROWS_MAX) json_array_append_new(rows, row_of(list[i], list[i], share_pct));
        if (i < ROWS_MAX) continue;
        most_bytes = fmax(most_bytes, el_json_number(list[i], "peak_bytes"));
        cpu_s += el_json_number(list[i], "cpu_s");
    }
    el_table_list(&(struct el_table){.columns = process_columns, .out = out}, "", rows);
    if (n > ROWS_MAX)
        fprintf(out, "%7s        and %zu more: none above %s MiB, %s s of CPU time together\n", "", n - ROWS_MAX,
                el_text_mib(most_bytes, peak), el_text_figure(cpu_s, cpu));
    free(list);
}

static void put_uses(const json_t *watch, FILE *out)
{
    const json_t *uses = json_object_get(watch, "gpu_processes"), *processes = json_object_get(watch, "processes");
    json_t *rows = json_array();
    double sum_bytes = 0;
    EL_EACH(use, uses) sum_bytes += el_json_number(use, "peak_bytes");
    EL_EACH(use, uses) {
        const json_t *process = json_array_get(processes, (size_t)el_json_whole(use, "process"));
        json_array_append_new(rows, row_of(use, process, 100 * el_json_number(use, "peak_bytes") / sum_bytes));
    }
    el_table_list(&(struct el_table){.columns = use_columns, .out = out}, "\n", rows);
}

static void put_gpus(const json_t *watch, FILE *out)
{
    const json_t *gpus = json_object_get(watch, "gpus");
    EL_EACH(gpu, gpus) {
        char ours[EL_FIGURE_BYTES], others[EL_FIGURE_BYTES], used[EL_FIGURE_BYTES], total[EL_FIGURE_BYTES];
        char busy[EL_FIGURE_BYTES], head[64];
        const char *host = el_json_text(gpu, "host", "");
        snprintf(head, sizeof head, "  gpu:%.0f%s%.16s, ", el_json_number(gpu, "gpu"), *host ? " of " : "", host);
        el_text_say(head, "    ", out,
                    "%s: busy %s %%; at most %s of %s MiB used: %s by this command, %s by other processes",
                    el_json_text(gpu, "name", "?"), el_text_figure(el_json_number(gpu, "busy_pct"), busy),
                    mib_at(gpu, "used_peak_bytes", used), mib_at(gpu, "total_bytes", total),
                    mib_at(gpu, "ours_peak_bytes", ours), mib_at(gpu, "others_peak_bytes", others));
    }
}

static void put_imbalance(const json_t *trial, const json_t *watch, FILE *out)
{
    static const char *const measures[] = {"memory", "busy"};
    struct el_column columns[sizeof imbalance_columns / sizeof imbalance_columns[0]];
    json_t *rows = json_array();
    bool gpu = strcmp(el_json_text(trial, "per_device.0.device", "cpu"), "cpu") != 0;
    char head[64];
    memcpy(columns, imbalance_columns, sizeof columns);
    columns[0].head = head;
    snprintf(head, sizeof head, "%.0f %s compared", el_json_number(watch, "compared.n"),
             el_json_text(watch, "compared.what", ""));
    for (int m = 0; m < 2 && json_is_object(json_object_get(trial, "imbalance")); m++) {
        json_t *row = json_copy(json_object_get(json_object_get(trial, "imbalance"), measures[m]));
        el_json_put_text(row, "of", m == 0 ? "  memory" : gpu ? "  busy %" : "  CPU %");
        json_array_append_new(rows, row);
    }
    el_table_list(&(struct el_table){.columns = columns, .out = out}, "\n", rows);
}

/* "rank 1 (process 4711)", "gpu:0", "process 4711 on gpu:0"; of several hosts "gpu:0 of node2". */
static void peer_text(const json_t *device, bool hosts, char *text, size_t bytes)
{
    const char *name = el_json_text(device, "device", "?");
    double rank = el_json_number(device, "rank"), pid = el_json_number(device, "pid");
    bool gpu = strcmp(name, "cpu") != 0;
    if (isnan(pid))
        snprintf(text, bytes, "%s%s%.40s", name, hosts ? " of " : "", hosts ? el_json_text(device, "host", "?") : "");
    else if (isnan(rank))
        snprintf(text, bytes, "process %.0f%s%s", pid, gpu ? " on " : "", gpu ? name : "");
    else
        snprintf(text, bytes, "rank %.0f (process %.0f%s%s)", rank, pid, gpu ? " on " : "", gpu ? name : "");
}

static void say_uneven(const json_t *trial, const json_t *watch, FILE *out)
{
    const json_t *devices = json_object_get(trial, "per_device");
    const char *rule = el_json_text(watch, "compared.rule", "?");
    size_t n = json_array_size(devices), largest = 0;
    double sum = 0;
    char name[96], more[EL_FIGURE_BYTES], times[EL_FIGURE_BYTES];
    for (size_t i = 0; i < n; i++) {
        double bytes = el_json_number(json_array_get(devices, i), el_at_device_peak_bytes);
        if (bytes > el_json_number(json_array_get(devices, largest), el_at_device_peak_bytes)) largest = i;
        sum += bytes;
    }
    if (n < 2) {
        EL_ITEM(out, "Nothing is compared: %s.", rule);
    } else {
        double most = el_json_number(json_array_get(devices, largest), el_at_device_peak_bytes);
        double others = (sum - most) / (double)(n - 1);
        peer_text(json_array_get(devices, largest), json_is_array(json_object_get(watch, "hosts")), name, sizeof name);
        EL_ITEM(out, "%s %s holds %s MiB more than the %s, %s times as much. Compared: %s.",
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
        EL_ITEM(out, "Unattributed CPU time: %s s, of processes that lived between samples, and after last samples.",
                el_text_figure(unseen_s, figure));
    /* a process grew beyond every sample, so no row shows its peak */
    double most = fmax(0, el_json_highest(json_object_get(watch, "processes"), "peak_bytes"));
    if (el_json_number(watch, "largest_bytes") > UNSEEN_RATIO * most)
        EL_ITEM(out,
                "Left out: a process reached %s MiB between samples, and no row shows which. If it is one of those "
                "compared, it held more than its row says.",
                mib_at(watch, "largest_bytes", figure));
    if (lost > 0) EL_ITEM(out, "%.0f processes were not followed: the limit is %d.", lost, EL_TREE_PROCESSES_MAX);
}

static void say_left(const json_t *watch, FILE *out)
{
    const json_t *processes = json_object_get(watch, "processes");
    char pids[256] = "";
    size_t n = 0;
    EL_EACH(process, processes) {
        if (!json_is_true(json_object_get(process, "left_running"))) continue;
        if (n++ < 8) el_text_append(pids, sizeof pids, " %.0f", el_json_number(process, "pid"));
    }
    if (n == 0) return;
    bool ended = json_is_true(json_object_get(watch, "waiting_ended"));
    EL_ITEM(out, "When the command ended, %zu of its processes still ran:%s%s%s.", n, pids, n > 8 ? " ..." : "",
            ended ? "; a signal ended the wait for them" : " (--wait-all waits for them)");
}

static void say_cost(const json_t *watch, FILE *out)
{
    char cost[EL_FIGURE_BYTES], share[EL_FIGURE_BYTES], every[EL_FIGURE_BYTES], found[EL_FIGURE_BYTES], of[48] = "";
    double share_pct = el_json_number(watch, "sampler.cpu_pct_of_a_core");
    if (!isnan(share_pct)) snprintf(of, sizeof of, ", %s %% of one core", el_text_figure(share_pct, share));
    EL_ITEM(out, "Watching took %s s of CPU time%s: CPU time and memory every %s ms, new processes every %s ms.",
            el_text_figure(el_json_number(watch, "sampler.cpu_s"), cost), of,
            el_text_figure(el_json_number(watch, "sampler.activities.1.every_ms"), every),
            el_text_figure(el_json_number(watch, "sampler.activities.0.every_ms"), found));
}

static void put_head(const json_t *trial, const json_t *watch, FILE *out)
{
    char lived[EL_FIGURE_BYTES], peak[EL_FIGURE_BYTES], cpu[EL_FIGURE_BYTES];
    size_t n = json_array_size(json_object_get(watch, "processes"));
    const char *command = el_json_text(trial, "model", "?"), *slash = strrchr(command, '/');
    EL_SAY(out,
           "%.24s: %s s, exit status %.0f; %zu process%s, at most %s MiB in total (shared pages counted in each), "
           "%s s of CPU time",
           slash && slash[1] ? slash + 1 : command, el_text_figure(el_json_number(watch, "seconds"), lived),
           el_json_number(watch, "exit_status"), n, n == 1 ? "" : "es", mib_at(watch, "resident_peak_bytes", peak),
           el_text_figure(el_json_number(watch, "cpu_s"), cpu));
    fputc('\n', out);
}

static void say_hosts(const json_t *watch, FILE *out)
{
    const json_t *hosts = json_object_get(watch, "hosts");
    char error[EL_FIGURE_BYTES];
    if (json_is_array(hosts))
        EL_ITEM(out, "Of %zu hosts; their clocks are related within %s us.", json_array_size(hosts),
                el_text_figure(el_json_highest(hosts, "clock_error_us"), error));
    EL_EACH(host, hosts)
        if (el_json_number(host, "exit_status") != 0)
            EL_ITEM(out, "On host %s the command's exit status is %.0f.", el_json_text(host, "host", "?"),
                    el_json_number(host, "exit_status"));
}

void el_watch_print(const json_t *document, FILE *out)
{
    const json_t *trial = json_array_get(json_object_get(document, "trials"), 0);
    const json_t *watch = json_object_get(document, "watch");
    const char *gpu_reason = el_json_text(watch, "gpu_reason", "");
    const char *no_steps = el_json_text(watch, "training_reason", "");
    put_head(trial, watch, out);
    put_processes(watch, out);
    put_uses(watch, out);
    put_gpus(watch, out);
    put_imbalance(trial, watch, out);
    el_late_print(json_object_get(watch, "training"), out);
    fputc('\n', out);
    say_uneven(trial, watch, out);
    say_unseen(watch, out);
    say_left(watch, out);
    say_cost(watch, out);
    if (*no_steps) EL_ITEM(out, "Of PyTorch no step is known: %s.", no_steps);
    say_hosts(watch, out);
    if (*gpu_reason) EL_ITEM(out, "No GPU was sampled: %s.", gpu_reason);
}
