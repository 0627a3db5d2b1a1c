/* Who comes late in a watched training: each rank's calls as a trace of its own, on the host's clock. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/ranks.h"
#include "bench/report/report.h"
#include "bench/traces/flight.h"
#include "bench/traces/traces.h"
#include "bench/watch/late.h"
#include "profiles/kineto_names.h"
#include "runtime/base/files.h"
#include "runtime/base/hash.h"

enum { LINE_BYTES = 128, MARKS_MAX = 1 << 20 };
#define MORE_RATIO 1.1 /* numbers in a rank's batches, over the others' */

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

/* The recorder keeps the last calls alone, and more steps may have been made since its dump: those count that begin
 * within the calls of all ranks. */
static struct el_span common_of(const struct el_flight *flight)
{
    struct el_span common = {INT64_MIN, INT64_MAX};
    for (size_t r = 0; r < flight->n_ranks; r++) {
        struct el_span own = {INT64_MAX, INT64_MIN};
        for (size_t c = 0; c < flight->ranks[r].n; c++) {
            const int64_t ns = flight->ranks[r].calls[c].entered_ns;
            if (ns < own.begin_ns) own.begin_ns = ns;
            if (ns > own.end_ns) own.end_ns = ns;
        }
        if (own.begin_ns > common.begin_ns) common.begin_ns = own.begin_ns;
        if (own.end_ns < common.end_ns) common.end_ns = own.end_ns;
    }
    return common;
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

static void read_marks(const struct el_python_hook *hook, const struct el_trainer *trainer,
                       struct el_kineto_trace *trace)
{
    static const char *const kinds[EL_KINETO_PHASES] = {"pause", "data", "backward", "optimizer"};
    char folder[EL_PATH_BYTES + 16], path[2 * EL_PATH_BYTES], line[LINE_BYTES], kind[16];
    long long begin_ns, end_ns;
    FILE *file;
    el_python_hook_folder(hook, trainer->host, folder);
    snprintf(path, sizeof path, "%s/marks_%" PRId64 "_rank_%" PRId64, folder, trainer->pid, trainer->rank);
    if (el_file_stream("", path, INT64_MAX, &file) != EL_OK) return;
    for (size_t n = 0; n < MARKS_MAX && fgets(line, sizeof line, file); n++) {
        if (sscanf(line, "%15s %lld %lld", kind, &begin_ns, &end_ns) != 3) continue;
        for (int p = 0; p < EL_KINETO_PHASES; p++)
            if (!strcmp(kind, kinds[p]))
                el_intervals_add(&trace->phases[p], (struct el_span){el_python_hook_time(hook, trainer->host, begin_ns),
                                                                     el_python_hook_time(hook, trainer->host, end_ns)});
    }
    fclose(file);
    for (int p = 0; p < EL_KINETO_PHASES; p++) el_intervals_unite(&trace->phases[p]);
}

static bool make_trace(const struct el_python_hook *hook, const struct el_trainer *trainer,
                       const struct el_flight *flight, struct el_span common, struct el_kineto_trace *trace)
{
    const struct el_flight_rank *rank = el_flight_rank_at(flight, trainer->rank);
    *trace = (struct el_kineto_trace){.rank = trainer->rank,
                                      .world = (int64_t)flight->n_ranks,
                                      .groups = -1,
                                      .smallest_group = -1,
                                      .cpu_only = true,
                                      .common_clock = true,
                                      .no_ends = true};
    trace->lanes = calloc(1, sizeof *trace->lanes);
    trace->steps = calloc(trainer->n_kept + 1, sizeof *trace->steps);
    trace->calls = calloc((rank ? rank->n : 0) + 1, sizeof *trace->calls);
    if (!trace->lanes || !trace->steps || !trace->calls || !rank) return false;
    trace->lanes[trace->n_lanes++].device = -1;
    for (size_t s = 1; s < trainer->n_kept; s++)
        if (trainer->ends_ns[s - 1] >= common.begin_ns && trainer->ends_ns[s - 1] < common.end_ns &&
            trainer->ends_ns[s] >= trainer->ends_ns[s - 1])
            trace->steps[trace->n_steps++] = (struct el_kineto_step){(int64_t)(trainer->n - trainer->n_kept + s) + 1,
                                                                     {trainer->ends_ns[s - 1], trainer->ends_ns[s]}};
    for (size_t c = 0; c < rank->n; c++) add_call(flight, &rank->calls[c], trace);
    if (trace->n_calls) qsort(trace->calls, trace->n_calls, sizeof *trace->calls, by_begin);
    read_marks(hook, trainer, trace);
    return trace->n_steps > 0 && !trace->lanes[0].sets[EL_KINETO_COMM].failed;
}

static const char *relate(const struct el_python_hook *hook, const struct el_training *training,
                          const struct el_flight *flight, json_t **job_p)
{
    struct el_traces traces = {.n = training->n};
    const struct el_span common = common_of(flight);
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
        if (!make_trace(hook, &training->list[i], flight, common, &traces.list[i]))
            reason = "no whole step is among the flight recorder's last calls";
    if (!reason && el_relate(traces.list, traces.n, &traces.relation) != EL_OK) reason = "there is no memory for it";
    for (size_t m = 0; m < traces.relation.n_members; m++) traces.relation.members[m].row.compute_s = NAN;
    if (!reason) *job_p = el_traces_job(&traces);
    if (!reason && !json_is_object(*job_p)) reason = "its ranks share no collective";
    if (!traces.list) traces.n = 0;
    el_traces_free(&traces);
    return reason;
}

/* gloo's recorder does not say when a call ends: who leaves later may have waited for the wire. */
static void doubt_late(json_t *job)
{
    json_t *blame = json_object_get(job, "blame");
    if (!el_json_is(blame, "cause.part", "earlier")) return;
    char sentence[EL_RANKS_SENTENCE_BYTES];
    snprintf(
        sentence, sizeof sentence,
        "who is late cannot be said: %s leaves collectives later than the others, and the flight recorder does not "
        "tell transfers from the rest; --profile does",
        el_json_text(blame, "rank", "a rank"));
    el_json_put_all(blame, EL_KEY("kind", "unknown"), EL_KEY("rank", json_null()), EL_KEY("stays", false),
                    EL_KEY("late_steps", json_array()), EL_KEY("cause", json_null()),
                    EL_KEY("sentence", (const char *)sentence));
}

/* To the first host's clock. */
static void shift_calls(const struct el_python_hook *hook, const struct el_training *training, struct el_flight *flight)
{
    for (size_t r = 0; r < flight->n_ranks; r++)
        for (size_t i = 0; i < training->n; i++)
            for (size_t c = 0; c < flight->ranks[r].n && training->list[i].rank == flight->ranks[r].rank; c++)
                flight->ranks[r].calls[c].entered_ns =
                    el_python_hook_time(hook, training->list[i].host, flight->ranks[r].calls[c].entered_ns);
}

static const char *by_recorders(const struct el_python_hook *hook, const struct el_training *training, json_t **job_p)
{
    struct el_flight flight;
    if (training->n < 2) return "one process steps";
    if (el_flight_read(hook->folder, &flight) != EL_OK) return "the ranks left no dump of PyTorch's flight recorder";
    if (hook->clocks) shift_calls(hook, training, &flight);
    const char *reason = relate(hook, training, &flight, job_p);
    el_flight_free(&flight);
    if (!reason) doubt_late(*job_p);
    return reason;
}

static const char *by_traces(const char *folder, json_t **job_p)
{
    struct el_traces traces;
    if (el_traces_read(folder, NULL, &traces) != EL_OK) return "torch.profiler's traces could not be read";
    *job_p = el_traces_job(&traces);
    el_traces_free(&traces);
    return json_is_object(*job_p) ? NULL : "torch.profiler's traces share no collective";
}

/* By the traces that were written, else by the flight recorders' dumps; null, and why. */
static json_t *late_json(const struct el_python_hook *hook, const struct el_training *training, const char **from_p,
                         const char **reason_p)
{
    json_t *job = NULL;
    struct stat info;
    const bool traced = *hook->traces && stat(hook->traces, &info) == 0;
    *reason_p = traced ? by_traces(hook->traces, &job) : by_recorders(hook, training, &job);
    *from_p = *reason_p ? NULL : traced ? "torch.profiler" : "flight recorder";
    return job ? job : json_null();
}

/* ---- what else is known of the rank that is blamed ---- */

static double mean_of_others(const struct el_training *training, size_t who,
                             double (*figure)(const struct el_trainer *))
{
    double sum = 0;
    for (size_t i = 0; i < training->n; i++)
        if (i != who) sum += figure(&training->list[i]);
    return sum / (double)(training->n - 1);
}

static double per_step(const struct el_trainer *trainer, double sum)
{
    return trainer->n > 1 ? sum / (double)(trainer->n - 1) : NAN;
}

static double delay_ms(const struct el_trainer *trainer)
{
    return 1e-6 * per_step(trainer, trainer->delay_ns);
}

static double numbers(const struct el_trainer *trainer)
{
    return per_step(trainer, trainer->numbers);
}

static json_t *notes_json(const struct el_training *training, const json_t *job)
{
    json_t *notes = json_array();
    const char *name = el_json_text(job, "blame.rank", "");
    const double late_ms = el_json_number(job, "blame.cause.late_ms");
    size_t who = 0;
    char own[EL_FIGURE_BYTES], others[EL_FIGURE_BYTES], called[32];
    for (; who < training->n; who++) {
        snprintf(called, sizeof called, "rank %" PRId64, training->list[who].rank);
        if (!strcmp(called, name)) break;
    }
    if (who == training->n || training->n < 2) return notes;
    const double delayed = delay_ms(&training->list[who]), rest = mean_of_others(training, who, delay_ms);
    if (delayed - rest >= late_ms / 2)
        json_array_append_new(notes, json_sprintf("In each step %s waits %s ms for a processor, the others %s: its "
                                                  "cores are shared, or it has too few",
                                                  name, el_text_figure(delayed, own), el_text_figure(rest, others)));
    const double more = numbers(&training->list[who]) / mean_of_others(training, who, numbers);
    if (more >= MORE_RATIO && isfinite(more))
        json_array_append_new(
            notes, json_sprintf("Its batches hold %s times as many numbers as the others'", el_text_figure(more, own)));
    return notes;
}

json_t *el_late_document(const struct el_python_hook *hook)
{
    const char *from, *reason;
    struct el_training training;
    if (el_training_read(hook, &training) != EL_OK) return json_null();
    json_t *job = late_json(hook, &training, &from, &reason);
    json_t *document =
        el_json_of(EL_KEY("ranks", el_training_ranks(&training)), EL_KEY("step_ms", el_training_step_ms(&training)),
                   EL_KEY("samples_per_s", el_training_samples_per_s(&training)), EL_KEY("late", job),
                   EL_KEY("late_reason", reason), EL_KEY("late_from", from),
                   EL_KEY("notes", notes_json(&training, job)), EL_KEY("trouble", json_incref(training.trouble)));
    el_training_free(&training);
    return document;
}

/* ---- the table ---- */

#define COLUMNS                                                                                                        \
    EL_COUNT("rank", 5, "rank"), EL_COUNT("steps", 8, "steps"), EL_FIGURE("samples/s", 11, "samples_per_s"),           \
        EL_FIGURE("step ms", 9, "step_ms"), EL_FIGURE("data", 8, "data_ms"),                                           \
        EL_FIGURE("forward", 9, "parts_ms.forward"), EL_FIGURE("backward", 10, "parts_ms.backward"),                   \
        EL_FIGURE("optimizer", 11, "parts_ms.optimizer"), EL_FIGURE("wait", 8, "parts_ms.wait"),                       \
        EL_FIGURE("late ms", 9, "late_ms"), EL_PERCENT("last %", 8, "last_pct")
static const struct el_column columns[] = EL_COLUMNS(COLUMNS);
static const struct el_column gpu_columns[] =
    EL_COLUMNS(COLUMNS, EL_MIB("alloc MiB", 11, "allocated_bytes"), EL_MIB("reserved", 10, "reserved_bytes"));

/* A rank of several devices has several rows: none is its own. */
static const json_t *late_of(const json_t *late, const json_t *rank)
{
    char name[32];
    snprintf(name, sizeof name, "rank %.0f", el_json_number(rank, "rank"));
    EL_EACH(row, late)
        if (!strcmp(el_json_text(row, "rank", ""), name)) return row;
    return NULL;
}

static void say(FILE *out, const char *before, const char *text)
{
    if (text && *text) EL_ITEM(out, "%s%s.", before, text);
}

void el_late_print(const json_t *training, FILE *out)
{
    const json_t *late = el_json_at(training, "late.ranks");
    if (!json_is_object(training)) return;
    json_t *rows = json_array();
    EL_EACH(rank, json_object_get(training, "ranks")) {
        json_t *row = json_copy(rank);
        const json_t *its = late_of(late, rank);
        el_json_put_all(row, EL_KEY("late_ms", el_json_number(its, "late_ms")),
                        EL_KEY("last_pct", el_json_number(its, "last_pct")),
                        EL_KEY("parts_ms", json_incref(json_object_get(its, "parts_ms"))));
        json_array_append_new(rows, row);
    }
    const bool gpus = el_json_highest(rows, "allocated_bytes") >= 0;
    el_table_list(&(struct el_table){.columns = gpus ? gpu_columns : columns, .out = out}, "\n", rows);
    fputc('\n', out);
    const char *sentence = el_json_text(training, "late.blame.sentence", "");
    if (*sentence)
        EL_ITEM(out, "%s. Of %s %.0f steps, by when each rank came to each collective.", sentence,
                el_json_is(training, "late_from", "torch.profiler") ? "torch.profiler's" : "the last",
                el_json_number(training, "late.steps"));
    else
        say(out, "Who comes late is not known: ", el_json_text(training, "late_reason", "?"));
    say(out, "", el_json_text(training, "late.blame.cause.sentence", ""));
    EL_EACH(note, json_object_get(training, "notes")) say(out, "", json_string_value(note));
    EL_EACH(line, json_object_get(training, "trouble")) say(out, "Not recorded: ", json_string_value(line));
}
