/* Reads what the hook recorded. */
#include "bench/watch/hook.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/program.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/ranks.h"
#include "bench/traces/flight.h"
#include "bench/traces/traces.h"
#include "profiles/kineto_names.h"
#include "runtime/base/grow.h"
#include "runtime/base/hash.h"

#define HOOK_FILE "sitecustomize.py"
enum { RECORDED_CALLS = 4000, LINE_BYTES = 128, STEPS_MAX = 10000000, TROUBLE_MAX = 16 };

void el_watch_hook_begin(const char *store_dir, struct el_watch_hook *hook_p)
{
    struct el_watch_hook hook = {.folder = ""};
    char own[EL_PATH_BYTES], whole[PATH_MAX];
    const char *before = getenv("PYTHONPATH");
    if (el_shared_folder("hook", HOOK_FILE, own) && realpath(store_dir, whole) &&
        strlen(whole) + sizeof "/hook" <= sizeof hook.folder) {
        el_text_append(hook.folder, sizeof hook.folder, "%s/hook", whole);
        snprintf(hook.path, sizeof hook.path, "%s%s%s", own, before && *before ? ":" : "", before ? before : "");
    }
    *hook_p = hook;
}

void el_watch_hook_environment(const struct el_watch_hook *hook)
{
    char calls[16];
    if (!hook->folder[0]) return;
    snprintf(calls, sizeof calls, "%d", RECORDED_CALLS);
    setenv("EVENLOAD_HOOK", hook->folder, 1);
    setenv("PYTHONPATH", hook->path, 1);
    setenv("TORCH_FR_BUFFER_SIZE", calls, 0);
}

/* ---- a process' steps ---- */

struct trainer {
    int64_t pid, rank; /* rank -1: it wrote no flight recorder's dump */
    int64_t *ends_ns;  /* of its steps, since 1970 */
    size_t n, room;
    double data_ns, samples; /* sums, without the first step's */
};

struct training {
    struct trainer *list; /* by rank, then pid */
    size_t n, room;
    json_t *trouble;
};

static enum el_status read_steps(const char *path, struct trainer *trainer)
{
    char line[LINE_BYTES];
    long long end_ns, data_ns, samples;
    FILE *file;
    EL_TRY(el_file_stream("", path, INT64_MAX, &file));
    while (fgets(line, sizeof line, file) && trainer->n < STEPS_MAX) {
        if (sscanf(line, "%lld %lld %lld", &end_ns, &data_ns, &samples) != 3 || end_ns < 0) continue;
        if (!EL_GROW(trainer->ends_ns, trainer->room, trainer->n + 1)) break;
        if (trainer->n > 0) trainer->data_ns += (double)data_ns, trainer->samples += (double)samples;
        trainer->ends_ns[trainer->n++] = end_ns;
    }
    fclose(file);
    return EL_OK;
}

static void read_trouble(const char *path, json_t *trouble)
{
    char line[256];
    FILE *file;
    if (el_file_stream("", path, INT64_MAX, &file) != EL_OK) return;
    while (fgets(line, sizeof line, file) && json_array_size(trouble) < TROUBLE_MAX) {
        bool known = false;
        line[strcspn(line, "\n")] = 0;
        EL_EACH(item, trouble) known = known || !strcmp(json_string_value(item), line);
        if (!known && *line) json_array_append_new(trouble, el_json_string(line));
    }
    fclose(file);
}

/* "flight_4711_rank_3" is of process 4711. */
static int64_t rank_of(const char *folder, int64_t pid)
{
    long long its, rank;
    int64_t found = -1;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (sscanf(entry->d_name, "flight_%lld_rank_%lld", &its, &rank) == 2 && its == pid && rank >= 0) found = rank;
    if (dir) closedir(dir);
    return found;
}

static int by_rank(const void *a, const void *b)
{
    const struct trainer *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void read_folder(const char *folder, struct training *training)
{
    char path[2 * EL_PATH_BYTES];
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        long long pid;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!strncmp(entry->d_name, "trouble-", 8)) read_trouble(path, training->trouble);
        if (sscanf(entry->d_name, "steps-%lld", &pid) != 1) continue;
        if (!EL_GROW(training->list, training->room, training->n + 1)) break;
        struct trainer trainer = {.pid = pid, .rank = rank_of(folder, pid)};
        if (read_steps(path, &trainer) == EL_OK && trainer.n > 0) training->list[training->n++] = trainer;
    }
    if (dir) closedir(dir);
    if (training->n) qsort(training->list, training->n, sizeof *training->list, by_rank);
}

/* ---- its figures ---- */

static double step_ms(const struct trainer *trainer, size_t s)
{
    return (double)(trainer->ends_ns[s] - trainer->ends_ns[s - 1]) * 1e-6;
}

static double median_step_ms(const struct trainer *trainer)
{
    double *steps = calloc(trainer->n + 1, sizeof *steps), median = NAN;
    for (size_t s = 1; s < trainer->n && steps; s++) steps[s - 1] = step_ms(trainer, s);
    if (steps && trainer->n > 1) median = el_median(steps, trainer->n - 1);
    free(steps);
    return median;
}

static double lived_s(const struct trainer *trainer)
{
    return trainer->n > 1 ? (double)(trainer->ends_ns[trainer->n - 1] - trainer->ends_ns[0]) * 1e-9 : NAN;
}

static double samples_per_s(const struct trainer *trainer)
{
    return trainer->samples > 0 ? trainer->samples / lived_s(trainer) : NAN;
}

/* Of the mean over the ranks of each step that all have. */
static json_t *steps_json(const struct training *training)
{
    size_t least = SIZE_MAX;
    double sum = 0;
    for (size_t i = 0; i < training->n; i++)
        if (training->list[i].n < least) least = training->list[i].n;
    double *steps = calloc(least + 1, sizeof *steps);
    const size_t n = least - 1;
    for (size_t s = 0; s < n && steps; s++) {
        for (size_t i = 0; i < training->n; i++) steps[s] += step_ms(&training->list[i], s + 1) / (double)training->n;
        sum += steps[s];
    }
    const double median = steps && n ? el_median(steps, n) : NAN; /* sorts */
    json_t *json = el_json_of(EL_KEY("median", median), EL_KEY("mean", n ? sum / (double)n : NAN),
                              EL_KEY("p95", steps && n ? steps[(n - 1) * 95 / 100] : NAN));
    free(steps);
    return json;
}

/* ---- who comes late: each rank's calls as a trace of its own, on the host's clock ---- */

static int64_t latest_ns(const struct el_flight *flight, const struct el_flight_call *call)
{
    int64_t latest = call->entered_ns;
    for (size_t i = 0; i < flight->groups[call->group].n; i++) {
        const struct el_flight_rank *rank = el_flight_rank_at(flight, flight->groups[call->group].ranks[i]);
        const struct el_flight_call *its = rank ? el_flight_find(rank, call) : NULL;
        if (its && its->entered_ns > latest) latest = its->entered_ns;
    }
    return latest;
}

/* The recorder keeps the last calls alone: a step counts from the first one on that all ranks still have. */
static int64_t first_ns_of(const struct el_flight *flight)
{
    int64_t first_ns = INT64_MIN;
    for (size_t r = 0; r < flight->n_ranks; r++) {
        int64_t own_ns = INT64_MAX;
        for (size_t c = 0; c < flight->ranks[r].n; c++)
            if (flight->ranks[r].calls[c].entered_ns < own_ns) own_ns = flight->ranks[r].calls[c].entered_ns;
        if (own_ns > first_ns) first_ns = own_ns;
    }
    return first_ns;
}

static int64_t step_of(const struct el_kineto_trace *trace, int64_t ns)
{
    size_t low = 0, high = trace->n_steps;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (trace->steps[middle].span.end_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trace->n_steps && trace->steps[low].span.begin_ns <= ns ? trace->steps[low].number : -1;
}

static void add_call(const struct el_flight *flight, const struct el_flight_call *call, struct el_kineto_trace *trace)
{
    const struct el_scan_text name = {call->operation, strlen(call->operation)};
    const uint64_t group = (uint64_t)call->group;
    const struct el_span span = {call->entered_ns, latest_ns(flight, call)};
    if (call->from >= 0 || !call->ended) return;
    trace->calls[trace->n_calls++] = (struct el_kineto_call){.device = -1,
                                                             .external_id = -1,
                                                             .correlation = -1,
                                                             .verb = el_kineto_verb(name),
                                                             .group = el_hash(EL_HASH_BEGIN, &group, sizeof group),
                                                             .sequence = call->number,
                                                             .step = step_of(trace, call->entered_ns),
                                                             .size = (int64_t)flight->groups[call->group].n,
                                                             .rank = trace->rank,
                                                             .src = -1,
                                                             .dst = -1,
                                                             .span = span};
    el_intervals_add(&trace->lanes[0].sets[EL_KINETO_COMM], span);
}

static int by_begin(const void *a, const void *b)
{
    const struct el_kineto_call *x = a, *y = b;
    return (x->span.begin_ns > y->span.begin_ns) - (x->span.begin_ns < y->span.begin_ns);
}

static bool make_trace(const struct trainer *trainer, const struct el_flight *flight, int64_t first_ns,
                       struct el_kineto_trace *trace)
{
    const struct el_flight_rank *rank = el_flight_rank_at(flight, trainer->rank);
    *trace = (struct el_kineto_trace){.rank = trainer->rank,
                                      .world = (int64_t)flight->n_ranks,
                                      .groups = -1,
                                      .smallest_group = -1,
                                      .cpu_only = true,
                                      .common_clock = true};
    trace->lanes = calloc(1, sizeof *trace->lanes);
    trace->steps = calloc(trainer->n + 1, sizeof *trace->steps);
    trace->calls = calloc((rank ? rank->n : 0) + 1, sizeof *trace->calls);
    if (!trace->lanes || !trace->steps || !trace->calls || !rank) return false;
    trace->lanes[trace->n_lanes++].device = -1;
    for (size_t s = 1; s < trainer->n; s++)
        if (trainer->ends_ns[s - 1] >= first_ns && trainer->ends_ns[s] >= trainer->ends_ns[s - 1])
            trace->steps[trace->n_steps++] =
                (struct el_kineto_step){(int64_t)s + 1, {trainer->ends_ns[s - 1], trainer->ends_ns[s]}};
    for (size_t c = 0; c < rank->n; c++) add_call(flight, &rank->calls[c], trace);
    if (trace->n_calls) qsort(trace->calls, trace->n_calls, sizeof *trace->calls, by_begin);
    return trace->n_steps > 0 && !trace->lanes[0].sets[EL_KINETO_COMM].failed;
}

static const char *relate(const struct training *training, const struct el_flight *flight, json_t **job_p)
{
    struct el_traces traces = {.n = training->n};
    const int64_t first_ns = first_ns_of(flight);
    const char *reason = NULL;
    for (size_t i = 0; i < training->n && !reason; i++)
        if (training->list[i].rank < 0 || (i > 0 && training->list[i].rank == training->list[i - 1].rank))
            reason = "not each process that steps is one rank";
    if (reason) return reason;
    traces.list = calloc(training->n + 1, sizeof *traces.list);
    traces.files = calloc(training->n + 1, sizeof *traces.files);
    traces.paths = calloc(training->n + 1, sizeof *traces.paths);
    if (!traces.list || !traces.files || !traces.paths) reason = "there is no memory for it";
    for (size_t i = 0; i < training->n && !reason; i++)
        if (!make_trace(&training->list[i], flight, first_ns, &traces.list[i]))
            reason = "no whole step is among the flight recorder's last calls";
    if (!reason && el_relate(traces.list, traces.n, &traces.relation) != EL_OK) reason = "there is no memory for it";
    for (size_t m = 0; m < traces.relation.n_members; m++) traces.relation.members[m].row.compute_s = NAN;
    if (!reason) *job_p = el_traces_job(&traces);
    if (!reason && !json_is_object(*job_p)) reason = "its ranks share no collective";
    if (!traces.list) traces.n = 0;
    el_traces_free(&traces);
    return reason;
}

/* NULL: it is said. */
static const char *say_late(const struct training *training, const char *folder, json_t **job_p)
{
    struct el_flight flight;
    if (training->n < 2) return "one process steps";
    if (el_flight_read(folder, &flight) != EL_OK) return "the ranks left no dump of PyTorch's flight recorder";
    const char *reason = relate(training, &flight, job_p);
    el_flight_free(&flight);
    return reason;
}

static json_t *ranks_json(const struct training *training)
{
    json_t *list = json_array();
    for (size_t i = 0; i < training->n; i++) {
        const struct trainer *t = &training->list[i];
        json_array_append_new(list,
                              el_json_of(EL_KEY("rank", el_json_count(t->rank)), EL_KEY("pid", t->pid),
                                         EL_KEY("steps", t->n), EL_KEY("step_ms", median_step_ms(t)),
                                         EL_KEY("data_ms", t->n > 1 ? t->data_ns * 1e-6 / (double)(t->n - 1) : NAN),
                                         EL_KEY("samples_per_s", samples_per_s(t))));
    }
    return list;
}

static json_t *training_json(const struct training *training, const char *folder)
{
    json_t *job = json_null();
    const char *reason = say_late(training, folder, &job);
    double all_per_s = 0;
    for (size_t i = 0; i < training->n; i++) all_per_s += samples_per_s(&training->list[i]);
    return el_json_of(EL_KEY("ranks", ranks_json(training)), EL_KEY("step_ms", steps_json(training)),
                      EL_KEY("samples_per_s", all_per_s), EL_KEY("late", job), EL_KEY("late_reason", reason),
                      EL_KEY("trouble", json_incref(training->trouble)));
}

static bool is_ours(const char *name)
{
    return !strncmp(name, "steps-", 6) || !strncmp(name, "flight_", 7) || !strncmp(name, "trouble-", 8);
}

json_t *el_watch_hook_read(const struct el_watch_hook *hook)
{
    struct training training = {.n = 0};
    if (!hook->folder[0]) return json_null();
    training.trouble = json_array();
    read_folder(hook->folder, &training);
    json_t *json = training.n ? training_json(&training, hook->folder) : json_null();
    for (size_t i = 0; i < training.n; i++) free(training.list[i].ends_ns);
    free(training.list);
    json_decref(training.trouble);
    el_folder_remove(hook->folder, is_ours);
    return json;
}

/* ---- the table ---- */

static const struct el_column columns[] = {EL_COUNT("rank", 5, "rank"),
                                           EL_COUNT("pid", 10, "pid"),
                                           EL_COUNT("steps", 8, "steps"),
                                           EL_FIGURE("step ms", 10, "step_ms"),
                                           EL_FIGURE("data ms", 10, "data_ms"),
                                           EL_FIGURE("samples/s", 11, "samples_per_s"),
                                           EL_FIGURE("late ms", 10, "late_ms"),
                                           EL_PERCENT("last %", 8, "last_pct"),
                                           EL_NO_MORE};

void el_watch_hook_print(const json_t *training, FILE *out)
{
    const json_t *late = el_json_at(training, "late.ranks");
    if (!json_is_object(training)) return;
    json_t *rows = json_array();
    EL_EACH(rank, json_object_get(training, "ranks")) {
        json_t *row = json_copy(rank);
        const json_t *its = json_array_get(late, rank_at.i);
        el_json_put_all(row, EL_KEY("late_ms", el_json_number(its, "late_ms")),
                        EL_KEY("last_pct", el_json_number(its, "last_pct")));
        json_array_append_new(rows, row);
    }
    el_table_list(&(struct el_table){.columns = columns, .out = out}, "\n", rows);
    fputc('\n', out);
    const char *sentence = el_json_text(training, "late.blame.sentence", "");
    if (*sentence)
        el_text_say("* ", "  ", EL_REPORT_COLUMNS, out,
                    "%s. Of the last %.0f steps, by when each rank came to each collective.", sentence,
                    el_json_number(training, "late.steps"));
    else
        el_text_say("* ", "  ", EL_REPORT_COLUMNS, out, "Who comes late is not known: %s.",
                    el_json_text(training, "late_reason", "?"));
    EL_EACH(line, json_object_get(training, "trouble"))
        el_text_say("* ", "  ", EL_REPORT_COLUMNS, out, "Not recorded: %s.", json_string_value(line));
}
