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

static int is_folder(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
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

/* `alone`: the user named it. Else what is no trace is left out. */
static enum el_status add_file(const char *path, bool alone, const char *named, struct el_traces *traces)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    EL_TRY(el_kineto_read_file(path, named, &traces->list[traces->n]));
    if (traces->list[traces->n].foreign) {
        el_kineto_free(&traces->list[traces->n]);
        if (alone)
            return el_fail(EL_ERR_INVALID, "%s is no trace of a rank: it has no traceEvents, or is a merged one", path);
        json_array_append_new(traces->foreign, el_json_string(name));
        return EL_OK;
    }
    snprintf(traces->files[traces->n], sizeof traces->files[0], "%s", name);
    traces->paths[traces->n] = strdup(path);
    traces->n++;
    return traces->paths[traces->n - 1] ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", path);
}

static enum el_status make_room(size_t n, struct el_traces *traces)
{
    traces->list = calloc(n, sizeof *traces->list);
    traces->files = calloc(n, sizeof *traces->files);
    traces->paths = calloc(n, sizeof *traces->paths);
    traces->left_out = json_array();
    traces->foreign = json_array();
    if (!traces->list || !traces->files || !traces->paths)
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu traces", n);
    return EL_OK;
}

/* Of a folder, or of the folders in it (a node's each): by name, so that a worker's last file comes last. */
static enum el_status list_paths(const char *folder, bool below, json_t *paths)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, below ? is_folder : is_trace, versionsort);
    enum el_status status = n < 0 ? el_fail_errno("%s", folder) : EL_OK;
    for (int i = 0; i < n; i++) {
        char path[2 * EL_PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (below && status == EL_OK)
            status = list_paths(path, false, paths);
        else if (!below)
            json_array_append_new(paths, el_json_string(path));
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    return status;
}

static enum el_status add_folder(const char *folder, const char *named, struct el_traces *traces)
{
    char record[2 * EL_PATH_BYTES];
    json_t *paths = json_array();
    snprintf(record, sizeof record, "%s/results.json", folder);
    enum el_status status = access(record, F_OK) == 0
                                ? el_fail(EL_ERR_INVALID,
                                          "%s is a run's folder, with its record; its traces are where 'evenload run "
                                          "--trace DIR' wrote them: give that folder",
                                          folder)
                                : list_paths(folder, false, paths);
    if (status == EL_OK && json_array_size(paths) == 0) status = list_paths(folder, true, paths);
    if (status == EL_OK) status = make_room(json_array_size(paths) + 1, traces);
    EL_EACH(path, paths) {
        const char *text = json_string_value(path), *next = json_string_value(json_array_get(paths, path_at.i + 1));
        if (status != EL_OK) break;
        if (next && of_one_worker(text, next))
            json_array_append_new(traces->left_out, el_json_string(strrchr(text, '/') + 1));
        else
            status = add_file(text, false, named, traces);
    }
    if (status == EL_OK && traces->n == 0)
        status = el_fail(EL_ERR_INVALID,
                         "%s: no .json and no .json.gz is in it%s; give a folder of traces (as run --trace writes), or "
                         "of flight recorder dumps, whose names end with the rank",
                         folder, json_array_size(paths) ? " that has traceEvents" : "");
    json_decref(paths);
    return status;
}

enum el_status el_traces_read(const char *path, const char *named, struct el_traces *traces_p)
{
    struct stat info;
    struct el_traces traces = {.n = 0};
    if (stat(path, &info) != 0) return el_fail_errno("%s", path);
    snprintf(traces.folder, sizeof traces.folder, "%s", path);
    enum el_status status = S_ISDIR(info.st_mode) ? add_folder(path, named, &traces) : make_room(1, &traces);
    if (status == EL_OK && !S_ISDIR(info.st_mode)) status = add_file(path, true, named, &traces);
    if (status == EL_OK) status = el_relate(traces.list, traces.n, &traces.relation);
    if (status == EL_OK)
        *traces_p = traces;
    else
        el_traces_free(&traces);
    return status;
}

void el_traces_free(struct el_traces *traces)
{
    for (size_t i = 0; i < traces->n; i++) {
        el_kineto_free(&traces->list[i]);
        free(traces->paths[i]);
    }
    free(traces->paths);
    free(traces->list);
    free(traces->files);
    json_decref(traces->left_out);
    json_decref(traces->foreign);
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

/* Which ranks an operation is of is not known: it has no group, and there are groups of some ranks only. */
static bool any_unnamed(const struct el_traces *traces)
{
    for (size_t t = 0; t < traces->n; t++) {
        const struct el_kineto_trace *trace = &traces->list[t];
        const bool parts = trace->smallest_group < 0 || trace->smallest_group < trace->world;
        for (size_t c = 0; c < trace->n_calls && trace->groups > 1 && parts; c++)
            if (trace->calls[c].group == 0) return true;
    }
    return false;
}

/* Why nothing is said of who is late; "": it can be said. */
static void say_doubt(const struct el_traces *traces, const struct el_ranks_blame *blame,
                      char text[EL_RANKS_SENTENCE_BYTES])
{
    const char *name = NULL;
    size_t n = 0;
    *text = 0;
    for (size_t t = 0; t < traces->n; t++) {
        n += traces->list[t].n_doubtful;
        if (!name && traces->list[t].n_doubtful) name = traces->list[t].doubtful;
    }
    if (any_unnamed(traces))
        snprintf(
            text, EL_RANKS_SENTENCE_BYTES,
            "who is late cannot be said: the job has groups of some of its ranks, and these traces do not say which "
            "group an operation is of");
    else if (name && (blame->kind == EL_BLAME_EVEN || blame->kind == EL_BLAME_WIRE || blame->kind == EL_BLAME_WANDERS))
        snprintf(text, EL_RANKS_SENTENCE_BYTES,
                 "who is late cannot be said: %zu kernels are called like communication and are of no library that is "
                 "known here, so they count as computation (the first: %s)",
                 n, name);
}

/* {"steps": [the profiler's number], "late_ms": [rank: [step]]}; null: the traces have no steps. */
static json_t *by_step_json(const struct el_relation *relation)
{
    if (!relation->has_steps || !relation->steps) return json_null();
    json_t *steps = json_array(), *late = json_array();
    for (size_t s = 0; s < relation->n_steps; s++) json_array_append_new(steps, json_integer(relation->steps[s]));
    for (size_t m = 0; m < relation->n_members; m++) {
        json_t *row = json_array();
        for (size_t s = 0; s < relation->n_steps; s++)
            json_array_append_new(row, el_json_real(1e3 * relation->members[m].late_s[s]));
        json_array_append_new(late, row);
    }
    return el_json_of(EL_KEY("steps", steps), EL_KEY("late_ms", late));
}

/* In which steps the blamed rank is late by what is worth speaking of. */
static json_t *late_steps_json(const struct el_relation *relation, const struct el_ranks_blame *blame)
{
    json_t *list = json_array();
    for (size_t s = 0; s < relation->n_steps && blame->who >= 0 && relation->steps; s++)
        if (relation->members[blame->who].late_s[s] > EL_RANKS_WORTH * relation->step_s)
            json_array_append_new(list, json_integer(relation->steps[s]));
    return list;
}

static json_t *blame_json(const struct el_traces *traces, const struct el_rank_row *rows, int n)
{
    struct el_ranks_blame blame;
    char doubt[EL_RANKS_SENTENCE_BYTES];
    el_ranks_blame(rows, n, traces->relation.step_s, &blame);
    if (blame.step >= 0 && traces->relation.steps) blame.step = traces->relation.steps[blame.step];
    json_t *told = el_ranks_blame_json(rows, n, &blame);
    el_json_put(told, "late_steps", late_steps_json(&traces->relation, &blame));
    say_doubt(traces, &blame, doubt);
    const bool named = blame.stays || blame.kind == EL_BLAME_ONCE || blame.kind == EL_BLAME_AT_TIMES;
    el_json_put(told, "cause", el_traces_cause(traces, *doubt || !named ? -1 : blame.who));
    if (*doubt)
        el_json_put_all(told, EL_KEY("kind", "unknown"), EL_KEY("rank", json_null()), EL_KEY("stays", false),
                        EL_KEY("late_steps", json_array()), EL_KEY("sentence", (const char *)doubt));
    return told;
}

static void put_ranks(const struct el_traces *traces, json_t *job)
{
    const struct el_relation *relation = &traces->relation;
    int n = (int)relation->n_members;
    struct el_rank_row *rows = calloc(relation->n_members + 1, sizeof *rows);
    char(*names)[EL_TRACES_NAME_BYTES] = calloc(relation->n_members + 1, sizeof *names);
    struct el_step_parts *parts = calloc(relation->n_members + 1, sizeof *parts);
    for (int m = 0; m < n && rows && names; m++) {
        el_traces_name(traces, &relation->members[m], names[m]);
        rows[m] = relation->members[m].row;
        rows[m].name = names[m];
    }
    if (rows && names && parts && el_causes_steps(traces->list, relation, parts) == EL_OK) {
        json_t *list = el_ranks_json(rows, n);
        EL_EACH(row, list) {
            const struct el_relation_member *member = &relation->members[row_at.i];
            el_json_put_all(row, EL_KEY("file", (const char *)traces->files[member->trace]),
                            EL_KEY("device", el_json_count(member->device)), EL_KEY("calls", member->n_calls),
                            EL_KEY("alone", member->n_alone), EL_KEY("parts_ms", el_traces_parts(&parts[row_at.i])));
        }
        el_json_put_all(job, EL_KEY("ranks", list), EL_KEY("blame", blame_json(traces, rows, n)));
    }
    free(rows);
    free(names);
    free(parts);
}

json_t *el_traces_job(const struct el_traces *traces)
{
    const struct el_relation *relation = &traces->relation;
    if (relation->n_collectives == 0 || rank_of_two(traces) >= 0) return json_null();
    size_t alone = 0;
    bool common = true;
    for (size_t m = 0; m < relation->n_members; m++) alone += relation->members[m].n_alone;
    for (size_t t = 0; t < traces->n; t++) common = common && traces->list[t].common_clock;
    json_t *job =
        el_json_of(EL_KEY("steps", relation->has_steps ? el_json_count((int64_t)relation->n_steps) : json_null()),
                   EL_KEY("step_ms", relation->step_s * 1e3), EL_KEY("operations", relation->n_collectives),
                   EL_KEY("alone", alone), EL_KEY("steps_left_out", relation->n_left_out),
                   EL_KEY("clocks", clocks_json(traces)), EL_KEY("common_clock", common),
                   EL_KEY("missing_ranks", missing_json(traces)), EL_KEY("by_step", by_step_json(relation)),
                   EL_KEY("groups_unnamed", any_unnamed(traces)), EL_KEY("bandwidth", bandwidth_json(relation)));
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
                       EL_KEY("foreign", json_incref(traces->foreign)),
                       EL_KEY("rank_of_two", el_json_count(rank_of_two(traces))), EL_KEY("job", el_traces_job(traces)));
    json_decref(lanes);
    return status;
}
