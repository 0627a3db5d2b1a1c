/* `trace-stats --without`: the step without each cause, and `--merge`: the job's traces as one. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/ranks.h"
#include "bench/traces/traces.h"
#include "profiles/merge.h"
#include "profiles/replay.h"

enum { RANKS_OF_ALL = 8 };

static const char op_word[] = "op:", rank_word[] = "rank:";

const char *el_traces_named(const char *causes)
{
    for (const char *at = causes; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, op_word, strlen(op_word))) return at + strlen(op_word);
    return NULL;
}

/* What is asked of one replay. */
struct asked {
    const struct el_traces *traces;
    struct el_replay *replay;
    bool *members;
    json_t *list;
};

static enum el_status ask(struct asked *asked, enum el_replay_kind kind, const char *called)
{
    const double whole_s = asked->traces->relation.step_s;
    double step_s = 0;
    EL_TRY(el_replay_step(asked->replay, &(struct el_replay_cause){kind, asked->members}, &step_s));
    json_array_append_new(asked->list,
                          el_json_of(EL_KEY("cause", called), EL_KEY("step_ms", step_s * 1e3),
                                     EL_KEY("gain_ms", (whole_s - step_s) * 1e3),
                                     EL_KEY("gain_pct", whole_s > 0 ? 100 * (1 - step_s / whole_s) : NAN)));
    return EL_OK;
}

/* "3", "rank 3", or a name in the table of ranks. */
static bool choose(struct asked *asked, const char *called)
{
    const struct el_traces *traces = asked->traces;
    char with_word[EL_TRACES_NAME_BYTES], number[32];
    bool any = false;
    snprintf(with_word, sizeof with_word, "rank %.40s", called);
    for (size_t m = 0; m < traces->relation.n_members; m++) {
        char name[EL_TRACES_NAME_BYTES];
        el_traces_name(traces, &traces->relation.members[m], name);
        snprintf(number, sizeof number, "%" PRId64, traces->relation.members[m].rank);
        asked->members[m] = !strcmp(name, called) || !strcmp(name, with_word) || !strcmp(number, called);
        any |= asked->members[m];
    }
    return any;
}

static enum el_status ask_rank(struct asked *asked, const char *called)
{
    char name[EL_TRACES_NAME_BYTES] = "";
    if (!choose(asked, called))
        return el_fail(EL_ERR_INVALID,
                       "--without rank:%s: these traces have no such rank; the table of ranks names them", called);
    for (size_t m = 0; m < asked->traces->relation.n_members && !*name; m++)
        if (asked->members[m]) el_traces_name(asked->traces, &asked->traces->relation.members[m], name);
    return ask(asked, EL_REPLAY_RANK, name);
}

static bool any_load(const struct el_traces *traces)
{
    for (size_t t = 0; t < traces->n; t++)
        if (traces->list[t].phases[EL_KINETO_LOADS].n) return true;
    return false;
}

static enum el_status ask_named(struct asked *asked, const char *called)
{
    char text[EL_LIST_BYTES + 8];
    bool any = false;
    for (size_t t = 0; t < asked->traces->n; t++)
        for (size_t i = 0; i < asked->traces->list[t].n_lanes; i++) any |= asked->traces->list[t].lanes[i].named.n > 0;
    if (!any)
        return el_fail(EL_ERR_INVALID,
                       "--without op:%s: no kernel and no annotation has this in its name (of traces without a device: "
                       "no op)",
                       called);
    snprintf(text, sizeof text, "op %s", called);
    return ask(asked, EL_REPLAY_NAMED, text);
}

/* The ranks that others wait for most. */
static enum el_status ask_all(struct asked *asked)
{
    const struct el_relation *relation = &asked->traces->relation;
    bool *told = calloc(relation->n_members + 1, sizeof *told);
    enum el_status status = told ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu ranks", relation->n_members);
    for (int k = 0; k < RANKS_OF_ALL && status == EL_OK; k++) {
        size_t most = SIZE_MAX;
        for (size_t m = 0; m < relation->n_members; m++)
            if (!told[m] && relation->members[m].row.caused_s > 0 &&
                (most == SIZE_MAX || relation->members[m].row.caused_s > relation->members[most].row.caused_s))
                most = m;
        if (most == SIZE_MAX) break;
        char name[EL_TRACES_NAME_BYTES];
        told[most] = true;
        el_traces_name(asked->traces, &relation->members[most], name);
        status = ask_rank(asked, name);
    }
    free(told);
    if (status == EL_OK) status = ask(asked, EL_REPLAY_WAITS, "waits");
    if (status == EL_OK) status = ask(asked, EL_REPLAY_TRANSFERS, "transfers");
    return status == EL_OK && any_load(asked->traces) ? ask(asked, EL_REPLAY_DATA, "data") : status;
}

static enum el_status ask_one(struct asked *asked, const char *cause)
{
    if (!strcmp(cause, "all")) return ask_all(asked);
    if (!strcmp(cause, "waits")) return ask(asked, EL_REPLAY_WAITS, cause);
    if (!strcmp(cause, "transfers")) return ask(asked, EL_REPLAY_TRANSFERS, cause);
    if (!strncmp(cause, rank_word, strlen(rank_word)) && cause[strlen(rank_word)])
        return ask_rank(asked, cause + strlen(rank_word));
    if (!strncmp(cause, op_word, strlen(op_word)) && cause[strlen(op_word)])
        return ask_named(asked, cause + strlen(op_word));
    if (strcmp(cause, "data") != 0)
        return el_fail(EL_ERR_INVALID,
                       "--without %s: not a cause: give rank:N, waits, transfers, data, all, or, as the last one, "
                       "op:NAME",
                       cause);
    if (!any_load(asked->traces))
        return el_fail(EL_ERR_INVALID, "--without data: no event of PyTorch's DataLoader is in these traces; where "
                                       "record_function marks the loading, give op:NAME");
    return ask(asked, EL_REPLAY_DATA, cause);
}

static int by_gain(const void *a, const void *b)
{
    double x = el_json_number(*(json_t *const *)a, "gain_ms"), y = el_json_number(*(json_t *const *)b, "gain_ms");
    return (x < y) - (x > y);
}

static void sort_by_gain(json_t *list)
{
    const size_t n = json_array_size(list);
    json_t **rows = calloc(n + 1, sizeof *rows);
    if (!rows) return;
    for (size_t i = 0; i < n; i++) rows[i] = json_incref(json_array_get(list, i));
    qsort(rows, n, sizeof *rows, by_gain);
    json_array_clear(list);
    for (size_t i = 0; i < n; i++) json_array_append_new(list, rows[i]);
    free(rows);
}

/* What is after op: is one name, with its commas. */
static enum el_status ask_each(struct asked *asked, const char *causes)
{
    char cause[EL_LIST_BYTES];
    for (const char *at = causes; at;) {
        const bool last = !strncmp(at, op_word, strlen(op_word)) || !strchr(at, ',');
        snprintf(cause, sizeof cause, "%.*s", (int)(last ? strlen(at) : strcspn(at, ",")), at);
        EL_TRY(ask_one(asked, cause));
        at = last ? NULL : at + strcspn(at, ",") + 1;
    }
    sort_by_gain(asked->list);
    return EL_OK;
}

enum el_status el_traces_without(const struct el_traces *traces, const json_t *job, const char *causes, json_t **list_p)
{
    struct asked asked = {.traces = traces, .list = json_array()};
    if (!json_is_object(job) || el_json_is(job, "blame.kind", "unknown")) {
        json_decref(asked.list);
        return el_fail(EL_ERR_INVALID, "--without needs to know who waits for whom: %s",
                       el_json_text(job, "blame.sentence", "no collective is in two of these traces of one run"));
    }
    asked.members = calloc(traces->relation.n_members + 1, sizeof *asked.members);
    enum el_status status =
        asked.members ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu ranks", traces->relation.n_members);
    if (status == EL_OK) status = el_replay_begin(traces->list, &traces->relation, &asked.replay);
    if (status == EL_OK) status = ask_each(&asked, causes);
    el_replay_free(asked.replay);
    free(asked.members);
    if (status == EL_OK)
        *list_p = asked.list;
    else
        json_decref(asked.list);
    return status;
}

static const struct el_column without_columns[] =
    EL_COLUMNS(EL_NAME("without", 34, "cause"), EL_FIGURE("step ms", 11, "step_ms"),
               EL_FIGURE("gain ms", 11, "gain_ms"), EL_PERCENT("gain %", 9, "gain_pct"));

void el_traces_print_without(const json_t *document, FILE *out)
{
    json_t *list = json_object_get(document, "without");
    char title[96];
    if (!json_is_array(list)) return;
    snprintf(title, sizeof title, "\nWhat the step of %.3g ms would be, by replaying the traces\n",
             el_json_number(document, "job.step_ms"));
    el_table_list(&(struct el_table){.columns = without_columns, .out = out}, title, json_incref(list));
    el_text_say("", "", out,
                "A rank: it comes no later than the last of the others. Waits: all ranks come at the mean of their "
                "times, with the same work spread evenly. docs/watch.md says how near this came to steps that were "
                "measured without the cause.");
}

enum el_status el_traces_merge(const struct el_traces *traces, const json_t *job, const char *path, json_t **merged_p)
{
    const struct el_relation *relation = &traces->relation;
    struct el_merge_figures figures;
    if (!json_is_object(job))
        return el_fail(EL_ERR_INVALID, "--merge: no collective is in two of these traces of one run, so their clocks "
                                       "cannot be related");
    char(*texts)[EL_TRACES_NAME_BYTES] = calloc(relation->n_members + 1, sizeof *texts);
    const char **names = calloc(relation->n_members + 1, sizeof *names);
    enum el_status status = texts && names ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory to merge traces");
    for (size_t m = 0; m < relation->n_members && status == EL_OK; m++) {
        el_traces_name(traces, &relation->members[m], texts[m]);
        names[m] = texts[m];
    }
    const struct el_merge_job merge = {traces->list, relation, traces->paths, names, traces->n};
    if (status == EL_OK) status = el_merge_write(&merge, path, &figures);
    if (status == EL_OK)
        *merged_p =
            el_json_of(EL_KEY("file", path), EL_KEY("events", figures.n_events), EL_KEY("waits", figures.n_waits),
                       EL_KEY("wait_ms", figures.wait_s * 1e3), EL_KEY("error_ms", figures.error_s * 1e3));
    free(texts);
    free(names);
    return status;
}

void el_traces_print_merged(const json_t *document, FILE *out)
{
    const json_t *merged = json_object_get(document, "merged");
    if (!json_is_object(merged)) return;
    fputc('\n', out);
    el_text_say("", "", out,
                "%s: %" PRId64 " events of %zu traces on one clock, to %.3g ms, and %" PRId64
                " waits with their arrows. Open it in ui.perfetto.dev.",
                el_json_text(merged, "file", "?"), el_json_whole(merged, "events"),
                json_array_size(el_json_at(document, "job.clocks")), el_json_number(merged, "error_ms"),
                el_json_whole(merged, "waits"));
}
