/* The traces of a job as a document. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/comm/wire.h"
#include "bench/report/ranks.h"
#include "bench/traces/traces.h"

static bool ends(const char *name, size_t n, const char *with)
{
    size_t m = strlen(with);
    return n > m && !memcmp(name + n - m, with, m);
}

static int is_trace(const struct dirent *entry)
{
    const char *name = entry->d_name;
    size_t n = strlen(name);
    return ends(name, n, ".json") || ends(name, n, ".json.gz");
}

/* "host_12" of host_12.1795632979574216681.pt.trace.json.gz, as named by torch's tensorboard_trace_handler. 0: another
 * name. */
static size_t worker_length(const char *name)
{
    size_t n = strlen(name), digits;
    if (ends(name, n, ".gz")) n -= strlen(".gz");
    if (!ends(name, n, ".pt.trace.json")) return 0;
    n -= strlen(".pt.trace.json");
    for (digits = 0; digits < n && name[n - 1 - digits] >= '0' && name[n - 1 - digits] <= '9';) digits++;
    return digits > 0 && digits + 1 < n && name[n - 1 - digits] == '.' ? n - 1 - digits : n;
}

static bool of_one_worker(const char *a, const char *b)
{
    size_t n = worker_length(a);
    return n > 0 && n == worker_length(b) && !memcmp(a, b, n);
}

static enum el_status add_file(const char *path, struct el_traces *traces)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    EL_TRY(el_kineto_read_file(path, &traces->list[traces->n]));
    snprintf(traces->files[traces->n], sizeof traces->files[0], "%s", name);
    traces->n++;
    return EL_OK;
}

static enum el_status make_room(size_t n, struct el_traces *traces)
{
    traces->list = calloc(n, sizeof *traces->list);
    traces->files = calloc(n, sizeof *traces->files);
    traces->left_out = json_array();
    if (!traces->list || !traces->files) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu traces", n);
    return EL_OK;
}

/* By name, so that a worker's last file comes last. */
static enum el_status add_entries(const char *folder, struct dirent **entries, int n, struct el_traces *traces)
{
    EL_TRY(make_room((size_t)n, traces));
    for (int i = 0; i < n; i++) {
        char path[2 * EL_PATH_BYTES];
        bool older = i + 1 < n && of_one_worker(entries[i]->d_name, entries[i + 1]->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (older)
            json_array_append_new(traces->left_out, el_json_string(entries[i]->d_name));
        else
            EL_TRY(add_file(path, traces));
    }
    return EL_OK;
}

static enum el_status add_folder(const char *folder, struct el_traces *traces)
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
    enum el_status status = n ? add_entries(folder, entries, n, traces)
                              : el_fail(EL_ERR_INVALID,
                                        "%s: no .json and no .json.gz is in it; give a folder of traces (as "
                                        "run --trace writes)",
                                        folder);
    for (int i = 0; i < n; i++) free(entries[i]);
    free(entries);
    return status;
}

enum el_status el_traces_read(const char *path, struct el_traces *traces_p)
{
    struct stat info;
    struct el_traces traces = {.n = 0};
    if (stat(path, &info) != 0) return el_fail_errno("%s", path);
    snprintf(traces.folder, sizeof traces.folder, "%s", path);
    enum el_status status = S_ISDIR(info.st_mode) ? add_folder(path, &traces) : make_room(1, &traces);
    if (status == EL_OK && !S_ISDIR(info.st_mode)) status = add_file(path, &traces);
    if (status == EL_OK) status = el_relate(traces.list, traces.n, &traces.relation);
    if (status == EL_OK)
        *traces_p = traces;
    else
        el_traces_free(&traces);
    return status;
}

void el_traces_free(struct el_traces *traces)
{
    for (size_t i = 0; i < traces->n; i++) el_kineto_free(&traces->list[i]);
    free(traces->list);
    free(traces->files);
    json_decref(traces->left_out);
    el_relation_free(&traces->relation);
    *traces = (struct el_traces){0};
}

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

static enum el_status add_lanes(const struct el_traces *traces, json_t *lanes)
{
    for (size_t t = 0; t < traces->n; t++) {
        const struct el_kineto_trace *trace = &traces->list[t];
        for (size_t i = 0; i < trace->n_lanes; i++) {
            struct el_kineto_figures figures;
            EL_TRY(el_kineto_figures(&trace->lanes[i], &figures));
            json_array_append_new(lanes, lane_json(traces->files[t], trace, &trace->lanes[i], &figures));
        }
    }
    return EL_OK;
}

void el_traces_name(const struct el_traces *traces, const struct el_relation_member *member,
                    char name[EL_TRACES_NAME_BYTES])
{
    const struct el_kineto_trace *trace = &traces->list[member->trace];
    bool several = trace->n_lanes > 1;
    name[0] = 0;
    for (size_t i = 0; i < trace->n_lanes; i++)
        if (trace->lanes[i].device == member->device)
            el_text_append(name, EL_TRACES_NAME_BYTES, "%s", trace->lanes[i].name);
    if (name[0]) return;
    if (member->rank >= 0)
        el_text_append(name, EL_TRACES_NAME_BYTES, "rank %" PRId64, member->rank);
    else
        el_text_append(name, EL_TRACES_NAME_BYTES, "%.40s", traces->files[member->trace]);
    if (several) el_text_append(name, EL_TRACES_NAME_BYTES, ", device %" PRId64, member->device);
}

static json_t *clocks_json(const struct el_traces *traces)
{
    json_t *list = json_array();
    for (size_t t = 0; t < traces->n; t++) {
        const struct el_relation_clock *clock = &traces->relation.clocks[t];
        json_array_append_new(
            list, el_json_of(EL_KEY("file", (const char *)traces->files[t]), EL_KEY("offset_ms", clock->offset_s * 1e3),
                             EL_KEY("drift_ppm", clock->drift_ppm), EL_KEY("error_ms", clock->error_s * 1e3),
                             EL_KEY("ends", clock->n_ends)));
    }
    return list;
}

static json_t *bandwidth_json(const struct el_relation *relation)
{
    json_t *list = json_array();
    for (size_t i = 0; i < relation->n_sizes; i++) {
        const struct el_relation_size *size = &relation->sizes[i];
        double factor = size->n_ranks > 1 ? el_wire_bus_factor(size->verb, size->n_ranks) : NAN;
        double rate = size->transfer_s > 0 ? factor * size->bytes / size->transfer_s * 1e-9 : NAN;
        json_array_append_new(
            list, el_json_of(EL_KEY("operation", el_comm_verb_row(size->verb)->name), EL_KEY("ranks", size->n_ranks),
                             EL_KEY("bytes", el_json_rounded(size->bytes)), EL_KEY("calls", size->n),
                             EL_KEY("transfer_ms", size->transfer_s * 1e3), EL_KEY("busbw_gb_per_s", rate)));
    }
    return list;
}

static json_t *missing_json(const struct el_traces *traces)
{
    int64_t world = 0;
    json_t *list = json_array();
    for (size_t t = 0; t < traces->n; t++)
        if (traces->list[t].world > world) world = traces->list[t].world;
    for (int64_t rank = 0; rank < world && json_array_size(list) < 64; rank++) {
        bool found = false;
        for (size_t t = 0; t < traces->n; t++) found = found || traces->list[t].rank == rank;
        if (!found) json_array_append_new(list, json_integer(rank));
    }
    return list;
}

static int64_t rank_of_two(const struct el_traces *traces)
{
    for (size_t t = 1; t < traces->n; t++)
        for (size_t u = 0; u < t && traces->list[t].rank >= 0; u++)
            if (traces->list[u].rank == traces->list[t].rank) return traces->list[t].rank;
    return -1;
}

static bool any_unnamed(const struct el_traces *traces)
{
    for (size_t t = 0; t < traces->n; t++)
        for (size_t c = 0; c < traces->list[t].n_calls && traces->list[t].groups > 1; c++)
            if (traces->list[t].calls[c].group == 0) return true;
    return false;
}

static void put_ranks(const struct el_traces *traces, json_t *job)
{
    const struct el_relation *relation = &traces->relation;
    struct el_ranks_blame blame;
    int n = (int)relation->n_members;
    struct el_rank_row *rows = calloc(relation->n_members + 1, sizeof *rows);
    char(*names)[EL_TRACES_NAME_BYTES] = calloc(relation->n_members + 1, sizeof *names);
    for (int m = 0; m < n && rows && names; m++) {
        el_traces_name(traces, &relation->members[m], names[m]);
        rows[m] = relation->members[m].row;
        rows[m].name = names[m];
    }
    if (rows && names) {
        json_t *list = el_ranks_json(rows, n);
        EL_EACH(row, list) {
            const struct el_relation_member *member = &relation->members[row_at.i];
            el_json_put_all(row, EL_KEY("file", (const char *)traces->files[member->trace]),
                            EL_KEY("device", el_json_count(member->device)), EL_KEY("calls", member->n_calls),
                            EL_KEY("alone", member->n_alone));
        }
        el_ranks_blame(rows, n, relation->step_s, &blame);
        el_json_put_all(job, EL_KEY("ranks", list), EL_KEY("blame", el_ranks_blame_json(rows, n, &blame)));
    }
    free(rows);
    free(names);
}

json_t *el_traces_job(const struct el_traces *traces)
{
    const struct el_relation *relation = &traces->relation;
    if (relation->n_operations == 0 || rank_of_two(traces) >= 0) return json_null();
    size_t alone = 0;
    bool common = true;
    for (size_t m = 0; m < relation->n_members; m++) alone += relation->members[m].n_alone;
    for (size_t t = 0; t < traces->n; t++) common = common && traces->list[t].common_clock;
    json_t *job =
        el_json_of(EL_KEY("steps", relation->has_steps ? el_json_count((int64_t)relation->n_steps) : json_null()),
                   EL_KEY("step_ms", relation->step_s * 1e3), EL_KEY("operations", relation->n_operations),
                   EL_KEY("alone", alone), EL_KEY("clocks", clocks_json(traces)), EL_KEY("common_clock", common),
                   EL_KEY("missing_ranks", missing_json(traces)), EL_KEY("groups_unnamed", any_unnamed(traces)),
                   EL_KEY("bandwidth", bandwidth_json(relation)));
    put_ranks(traces, job);
    return job;
}

enum el_status el_traces_document(const struct el_traces *traces, json_t **document_p)
{
    json_t *lanes = json_array();
    enum el_status status = add_lanes(traces, lanes);
    bool cpu_only = true;
    EL_EACH(lane, lanes) cpu_only = cpu_only && el_json_whole(lane, "device") < 0;
    if (status == EL_OK)
        *document_p =
            el_json_of(EL_KEY("schema", EL_TRACES_SCHEMA), EL_KEY("kind", "trace-stats"),
                       EL_KEY("folder", (const char *)traces->folder), EL_KEY("cpu_only", cpu_only),
                       EL_KEY("devices", json_incref(lanes)), EL_KEY("left_out", json_incref(traces->left_out)),
                       EL_KEY("rank_of_two", el_json_count(rank_of_two(traces))), EL_KEY("job", el_traces_job(traces)));
    json_decref(lanes);
    return status;
}
