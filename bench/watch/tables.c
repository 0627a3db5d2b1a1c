/* The tables of a watch: a row a process, a row a process and GPU, the imbalance of the peers; from the document alone.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/parts.h"
#include "bench/watch/watch.h"

enum { ROWS_MAX = 16, NAME_COLUMNS = 23, NAME_BYTES = 4 * NAME_COLUMNS + 8, LINE_COLUMNS = 105 };
static const double GROWN_RATIO = 1.05; /* beyond what a reading of Pss covers */

const char *el_watch_mib(const json_t *object, const char *key, char *text)
{
    return el_text_mib(el_json_number(object, key), text);
}

/* Where the character after `n` others begins, or the end; each counts as one column. */
static size_t characters(const char *text, int n)
{
    size_t i = 0;
    for (; text[i] != '\0'; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80 && n-- == 0) break;
    return i;
}

/* "python train.py --epochs ...": cut to the column or filled with blanks to it. */
static void name_text(const json_t *process, char text[NAME_BYTES])
{
    el_table_command(el_json_text(process, "command", el_json_text(process, "name", "?")), text, NAME_BYTES);
    if (text[characters(text, NAME_COLUMNS)] != '\0') snprintf(text + characters(text, NAME_COLUMNS - 3), 4, "...");
    int n = 0;
    while (text[characters(text, n)] != '\0') n++;
    size_t used = strlen(text);
    snprintf(text + used, NAME_BYTES - used, "%*s", NAME_COLUMNS - n, "");
}

static const char *rank_text(const json_t *process, char text[EL_FIGURE_BYTES])
{
    double rank = el_json_number(process, "rank");
    if (isnan(rank)) return "-";
    snprintf(text, EL_FIGURE_BYTES, "%.0f", rank);
    return text;
}

/* Peers first, then by their peaks. */
static int by_weight(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int peer_x = json_is_true(json_object_get(x, "peer")), peer_y = json_is_true(json_object_get(y, "peer"));
    double bytes_x = fmax(0, el_json_number(x, "peak_bytes")),
           bytes_y = fmax(0, el_json_number(y, "peak_bytes")); /* unknown: 0 */
    if (peer_x != peer_y) return peer_y - peer_x;
    double rank_x = el_json_number(x, "rank"), rank_y = el_json_number(y, "rank");
    if (peer_x && rank_x != rank_y && !isnan(rank_x) && !isnan(rank_y)) return (rank_x > rank_y) - (rank_x < rank_y);
    return peer_x ? 0 : (bytes_x < bytes_y) - (bytes_x > bytes_y);
}

/* In the order of the table; to be freed. */
static const json_t **sorted(const json_t *processes)
{
    size_t n = json_array_size(processes);
    const json_t **list = malloc((n + 1) * sizeof(*list));
    for (size_t i = 0; i < n && list; i++) list[i] = json_array_get(processes, i);
    if (list) qsort(list, n, sizeof(*list), by_weight);
    return list;
}

static double sum_peers(const json_t *list, const char *key)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_false(json_object_get(json_array_get(list, i), "peer")))
            sum += el_json_number(json_array_get(list, i), key);
    return sum;
}

/* ">402.1": the process grew by more than 5 % beyond what the reading covers. */
static const char *pss_text(const json_t *process, char text[EL_FIGURE_BYTES + 1])
{
    bool grew = el_json_number(process, "peak_bytes") > GROWN_RATIO * el_json_number(process, "pss_resident_bytes");
    text[0] = '>';
    el_watch_mib(process, "pss_bytes", text + 1);
    return grew ? text : text + 1;
}

static void put_process(const json_t *process, double peers_bytes, FILE *out)
{
    char name[NAME_BYTES], rank[EL_FIGURE_BYTES], alive[EL_FIGURE_BYTES], peak[EL_FIGURE_BYTES];
    char mean[EL_FIGURE_BYTES], pss[EL_FIGURE_BYTES + 1], cpu[EL_FIGURE_BYTES], busy[EL_FIGURE_BYTES];
    char share[EL_FIGURE_BYTES], own[EL_FIGURE_BYTES];
    bool peer = json_is_true(json_object_get(process, "peer"));
    name_text(process, name);
    fprintf(out, "%7.0f %4s  %s %7s %8s %8s %8s %8s %7s %8s %7s\n", el_json_number(process, "pid"),
            rank_text(process, rank), name,
            el_text_figure(el_json_number(process, "end_s") - el_json_number(process, "begin_s"), alive),
            el_watch_mib(process, "peak_bytes", peak), el_watch_mib(process, "own_peak_bytes", own),
            el_watch_mib(process, "mean_bytes", mean), pss_text(process, pss),
            el_text_figure(peer ? 100 * el_json_number(process, "own_peak_bytes") / peers_bytes : NAN, share),
            el_text_figure(el_json_number(process, "cpu_s"), cpu),
            el_text_figure(el_json_number(process, "cpu_pct"), busy));
}

/* The processes beyond the last row, in one line. */
static void put_rest(const json_t *const *list, size_t n, FILE *out)
{
    double most_bytes = 0, cpu_s = 0;
    char peak[EL_FIGURE_BYTES], cpu[EL_FIGURE_BYTES];
    if (n <= ROWS_MAX) return;
    for (size_t i = ROWS_MAX; i < n; i++) {
        most_bytes = fmax(most_bytes, el_json_number(list[i], "peak_bytes"));
        cpu_s += el_json_number(list[i], "cpu_s");
    }
    fprintf(out, "%7s        and %zu more: none above %s MiB, %s s of CPU time together\n", "", n - ROWS_MAX,
            el_text_mib(most_bytes, peak), el_text_figure(cpu_s, cpu));
}

static void put_processes(const json_t *watch, FILE *out)
{
    const json_t *processes = json_object_get(watch, "processes");
    const json_t **list = sorted(processes);
    size_t n = json_array_size(processes);
    fprintf(out, "%7s%5s  %-*s%8s%9s%9s%9s%9s%8s%9s%8s\n", "pid", "rank", NAME_COLUMNS, "process", "alive s",
            "peak MiB", "own MiB", "mean MiB", "Pss MiB", "share %", "CPU s", "CPU %");
    for (size_t i = 0; i < n && i < ROWS_MAX && list; i++)
        put_process(list[i], sum_peers(processes, "own_peak_bytes"), out);
    if (list) put_rest(list, n, out);
    free(list);
}

static void put_uses(const json_t *watch, FILE *out)
{
    const json_t *uses = json_object_get(watch, "gpu_processes");
    double sum_bytes = sum_peers(uses, "peak_bytes");
    if (json_array_size(uses) == 0) return;
    fprintf(out, "\n%7s%5s  %-*s%8s%10s%10s%9s%9s\n", "pid", "rank", NAME_COLUMNS, "process", "GPU", "peak MiB",
            "mean MiB", "share %", "busy %");
    for (size_t k = 0; k < json_array_size(uses); k++) {
        const json_t *use = json_array_get(uses, k);
        const json_t *process =
            json_array_get(json_object_get(watch, "processes"), (size_t)el_json_whole(use, "process"));
        char name[NAME_BYTES], gpu[EL_FIGURE_BYTES], rank[EL_FIGURE_BYTES], peak[EL_FIGURE_BYTES];
        char mean[EL_FIGURE_BYTES], busy[EL_FIGURE_BYTES], share[EL_FIGURE_BYTES];
        name_text(process, name);
        snprintf(gpu, sizeof gpu, "gpu:%.0f", el_json_number(use, "gpu"));
        fprintf(out, "%7.0f %4s  %s %7s %9s %9s %8s %8s\n", el_json_number(use, "pid"), rank_text(use, rank), name, gpu,
                el_watch_mib(use, "peak_bytes", peak), el_watch_mib(use, "mean_bytes", mean),
                el_text_figure(100 * el_json_number(use, "peak_bytes") / sum_bytes, share),
                el_text_figure(el_json_number(use, "busy_pct"), busy));
    }
}

static void put_gpus(const json_t *watch, FILE *out)
{
    const json_t *gpus = json_object_get(watch, "gpus");
    for (size_t g = 0; g < json_array_size(gpus); g++) {
        const json_t *gpu = json_array_get(gpus, g);
        char ours[EL_FIGURE_BYTES], others[EL_FIGURE_BYTES], used[EL_FIGURE_BYTES], total[EL_FIGURE_BYTES];
        char busy[EL_FIGURE_BYTES], text[512], head[32];
        snprintf(head, sizeof head, "  gpu:%zu, ", g);
        snprintf(text, sizeof text,
                 "%s: busy %s %%; at most %s of %s MiB used: %s by this command, %s by other processes",
                 el_json_text(gpu, "name", "?"), el_text_figure(el_json_number(gpu, "busy_pct"), busy),
                 el_watch_mib(gpu, "used_peak_bytes", used), el_watch_mib(gpu, "total_bytes", total),
                 el_watch_mib(gpu, "ours_peak_bytes", ours), el_watch_mib(gpu, "others_peak_bytes", others));
        el_text_wrap(text, head, "    ", LINE_COLUMNS, out);
    }
}

static void put_measures(const json_t *imbalance, const char *of, FILE *out)
{
    char ratio[EL_FIGURE_BYTES], share[EL_FIGURE_BYTES], lb[EL_FIGURE_BYTES], cv[EL_FIGURE_BYTES];
    char first[EL_FIGURE_BYTES];
    fprintf(out, "  %-28s %13s %13s %10s %8s %12s\n", of,
            el_text_figure(el_json_number(imbalance, "max_over_mean_minus_1"), ratio),
            el_text_figure(el_json_number(imbalance, "imbalance_pct"), share),
            el_text_figure(el_json_number(imbalance, "lb"), lb), el_text_figure(el_json_number(imbalance, "cv"), cv),
            el_text_figure(el_json_number(imbalance, "first_over_rest"), first));
}

static void put_imbalance(const json_t *trial, const json_t *watch, FILE *out)
{
    char head[64];
    const json_t *imbalance = json_object_get(trial, "imbalance");
    if (!json_is_object(imbalance)) return;
    snprintf(head, sizeof head, "%.0f %s compared", el_json_number(watch, "compared.n"),
             el_json_text(watch, "compared.what", ""));
    fprintf(out, "\n%-30s%14s%14s%11s%9s%13s\n", head, "max/mean - 1", "imbalance %", "mean/max", "CV", "first/rest");
    put_measures(json_object_get(imbalance, "memory"), "memory", out);
    bool gpu = strcmp(el_json_text(trial, "per_device.0.device", "cpu"), "cpu") != 0;
    put_measures(json_object_get(imbalance, "busy"), gpu ? "busy %" : "CPU %", out);
}

void el_watch_print_tables(const json_t *document, FILE *out)
{
    const json_t *watch = json_object_get(document, "watch");
    put_processes(watch, out);
    put_uses(watch, out);
    put_gpus(watch, out);
    put_imbalance(json_array_get(json_object_get(document, "trials"), 0), watch, out);
}
