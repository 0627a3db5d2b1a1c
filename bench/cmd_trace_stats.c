/* `evenload trace-stats DIR`: exposed communication, overlap and idle time in traces of PyTorch's profiler. The
 * arithmetic is profiles/kineto.h's. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/commands.h"
#include "profiles/kineto.h"

static json_t *lane_json(const char *file, const struct el_kineto_trace *trace, const struct el_kineto_lane *lane,
                         const struct el_kineto_figures *f)
{
    double window_s = f->window_s > 0 ? f->window_s : 1;
    const double covered_pct = f->comm_s > 0 ? 100 * f->overlapped_s / f->comm_s : NAN;
    json_t *events = el_json_of(EL_KEY("compute", lane->counts[EL_KINETO_COMPUTE]),
                                EL_KEY("communication", lane->counts[EL_KINETO_COMM]),
                                EL_KEY("copies", lane->counts[EL_KINETO_COPY]));
    return el_json_of(
        EL_KEY("file", file), EL_KEY("rank", el_json_count(trace->rank)), EL_KEY("device", el_json_count(lane->device)),
        EL_KEY("events", events), EL_KEY("window_ms", f->window_s * 1e3), EL_KEY("compute_ms", f->compute_s * 1e3),
        EL_KEY("comm_ms", f->comm_s * 1e3), EL_KEY("overlapped_ms", f->overlapped_s * 1e3),
        EL_KEY("exposed_ms", f->exposed_s * 1e3), EL_KEY("copies_ms", f->other_s * 1e3),
        EL_KEY("idle_ms", f->idle_s * 1e3), EL_KEY("compute_pct", 100 * f->compute_s / window_s),
        EL_KEY("exposed_pct", 100 * f->exposed_s / window_s), EL_KEY("copies_pct", 100 * f->other_s / window_s),
        EL_KEY("idle_pct", 100 * f->idle_s / window_s), EL_KEY("overlap_pct", covered_pct));
}

static enum el_status add_file(const char *path, json_t *lanes)
{
    struct el_kineto_trace trace;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    EL_TRY(el_kineto_read_file(path, &trace));
    enum el_status status = EL_OK;
    for (size_t i = 0; i < trace.n_lanes && status == EL_OK; i++) {
        struct el_kineto_figures figures;
        status = el_kineto_figures(&trace.lanes[i], &figures);
        if (status == EL_OK) json_array_append_new(lanes, lane_json(name, &trace, &trace.lanes[i], &figures));
    }
    el_kineto_free(&trace);
    return status;
}

static int is_trace(const struct dirent *entry)
{
    const char *name = entry->d_name;
    size_t n = strlen(name);
    return (n > 5 && !strcmp(name + n - 5, ".json")) || (n > 8 && !strcmp(name + n - 8, ".json.gz"));
}

static enum el_status add_folder(const char *folder, json_t *lanes)
{
    struct dirent **entries;
    char record[2 * EL_PATH_BYTES];
    snprintf(record, sizeof record, "%s/results.json", folder);
    if (access(record, F_OK) == 0)
        return el_fail(EL_ERR_INVALID,
                       "%s is a run's folder, with its record; its traces are where 'evenload run "
                       "--trace DIR' wrote them: give that folder",
                       folder);
    int n = scandir(folder, &entries, is_trace, versionsort);
    if (n < 0) return el_fail_errno("%s", folder);
    enum el_status status = n ? EL_OK
                              : el_fail(EL_ERR_INVALID,
                                        "%s: no .json and no .json.gz is in it; give a folder of traces (as "
                                        "run --trace writes)",
                                        folder);
    for (int i = 0; i < n; i++) {
        char path[2 * EL_PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (status == EL_OK) status = add_file(path, lanes);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static void show_device(const json_t *lane, const json_t *context, char *text)
{
    (void)context;
    int64_t device = el_json_whole(lane, "device");
    snprintf(text, EL_CELL_BYTES, device < 0 ? "CPU" : "%d", (int)device);
}

static const struct el_column columns[] = {EL_NAME("trace", 22, "file"),
                                           EL_SHOWN("device", 7, show_device),
                                           EL_FIGURE("window ms", 11, "window_ms"),
                                           EL_PERCENT("compute %", 11, "compute_pct"),
                                           EL_PERCENT("exposed %", 11, "exposed_pct"),
                                           EL_PERCENT("copies %", 10, "copies_pct"),
                                           EL_PERCENT("idle %", 8, "idle_pct"),
                                           EL_FIGURE("comm. ms", 10, "comm_ms"),
                                           EL_PERCENT("hidden %", 10, "overlap_pct"),
                                           EL_NO_MORE};

static void print(const json_t *lanes, bool cpu_only)
{
    const struct el_table table = {.columns = columns, .out = stdout};
    size_t counts[3] = {0};
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(lane, lanes) {
        el_table_row(&table, EL_TABLE_PLAIN, lane);
        counts[0] += (size_t)el_json_whole(lane, "events.compute");
        counts[1] += (size_t)el_json_whole(lane, "events.communication");
        counts[2] += (size_t)el_json_whole(lane, "events.copies");
    }
    printf("\n");
    el_text_say("", "", EL_REPORT_COLUMNS, stdout, "Counted: %zu %s as computation, %zu %s as communication, %zu %s.",
                counts[0], cpu_only ? "CPU ops (cat cpu_op)" : "kernels", counts[1],
                cpu_only ? "ops (gloo:, mpi:, nccl:, ucc:)" : "(nccl...Kernel, Memcpy PtoP)", counts[2],
                "other copies and memsets");
    if (cpu_only)
        el_text_say(
            "", "", EL_REPORT_COLUMNS, stdout,
            "These traces have no device: all CPU threads count together, and idle is the time in which none worked.");
    el_text_say(
        "", "", EL_REPORT_COLUMNS, stdout,
        "Compute, exposed, copies and idle are parts of the window, from the first counted event to the end of the "
        "last one; hidden is the part of communication beside computation.");
}

enum el_status el_cmd_trace_stats(struct el_options *options, int *exit_status_p)
{
    struct stat info;
    (void)exit_status_p;
    if (!options->dir[0])
        return el_fail(EL_ERR_INVALID, "trace-stats: which traces? give their folder: evenload trace-stats log/...");
    if (stat(options->dir, &info) != 0) return el_fail_errno("%s", options->dir);
    json_t *lanes = json_array();
    enum el_status status = S_ISDIR(info.st_mode) ? add_folder(options->dir, lanes) : add_file(options->dir, lanes);
    bool cpu_only = true;
    EL_EACH(lane, lanes) cpu_only = cpu_only && el_json_whole(lane, "device") < 0;
    if (status == EL_OK && options->json) {
        json_t *document = json_pack("{s:b, s:O}", "cpu_only", cpu_only, "devices", lanes);
        status = el_print_json(document, stdout);
        json_decref(document);
    } else if (status == EL_OK) {
        print(lanes, cpu_only);
    }
    json_decref(lanes);
    return status;
}
