#include "bench/regress/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/regress/changes.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"
#include "runtime/base/utf8.h"

enum { SHOWN = 5, COMMIT_LETTERS = 18 };

/* ---- the sessions ---- */

struct entry {
    json_t *session;
    size_t place; /* in the store */
};

static const char *time_of(const json_t *session)
{
    return el_json_text(session, "time_utc", "");
}

static int by_time(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(time_of(x->session), time_of(y->session));
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* Of a run that was added and accepted later the later entry, in order of time; the newest. */
static json_t *in_order(const json_t *sessions)
{
    size_t n = json_array_size(sessions), kept = 0;
    struct entry *entries = calloc(n + 1, sizeof *entries);
    json_t *last = json_object(), *ordered = json_array();
    EL_EACH(session, sessions) json_object_set(last, el_json_text(session, "run", ""), session);
    EL_EACH(session, entries ? sessions : NULL)
        if (json_object_get(last, el_json_text(session, "run", "")) == session)
            entries[kept++] = (struct entry){session, session_at.i};
    if (entries) qsort(entries, kept, sizeof *entries, by_time);
    for (size_t i = kept > EL_HISTORY_MAX ? kept - EL_HISTORY_MAX : 0; i < kept; i++)
        json_array_append(ordered, entries[i].session);
    json_decref(last);
    free(entries);
    return ordered;
}

static const char *machine_of(const json_t *sessions, size_t i)
{
    return el_json_text(json_array_get(sessions, i), "machine.fingerprint", "");
}

/* How often the machine changes from one session to the next. */
static size_t count_switches(const json_t *sessions)
{
    size_t switches = 0;
    for (size_t i = 1; i < json_array_size(sessions); i++)
        switches += strcmp(machine_of(sessions, i - 1), machine_of(sessions, i)) != 0;
    return switches;
}

json_t *el_history_of(const json_t *machines, const json_t *machine, const json_t *sessions)
{
    json_t *all = json_array(), *history, *workload = el_workload_of(json_array_get(sessions, 0));
    size_t n_machines = 0;
    EL_EACH(other, machines) {
        const json_t *its = el_store_sessions(machines, other, workload);
        if (!el_fingerprint_same_hardware(json_object_get(machine, "fields"), json_object_get(other, "fields")))
            continue;
        n_machines += json_array_size(its) > 0;
        json_array_extend(all, (json_t *)(uintptr_t)its);
    }
    history = in_order(all);
    json_decref(all);
    json_decref(workload);
    /* There and back, for each but the first. */
    if (count_switches(history) > 2 * (n_machines - 1)) {
        json_decref(history);
        return in_order(sessions);
    }
    if (strcmp(machine_of(history, json_array_size(history) - 1), el_json_text(machine, "fingerprint", "")) == 0)
        return history;
    json_decref(history);
    return NULL;
}

json_t *el_history_sessions(const json_t *history)
{
    json_t *sessions = json_array();
    EL_EACH(session, history) {
        json_array_append_new(sessions,
                              el_json_of(EL_KEY("time_utc", el_json_text(session, "time_utc", NULL)),
                                         EL_KEY("commit", el_json_text(session, "commit", NULL)),
                                         EL_KEY("accepted", (bool)json_is_true(json_object_get(session, "accepted"))),
                                         EL_KEY("fingerprint", machine_of(history, session_at.i))));
    }
    return sessions;
}

/* ---- a figure's history ---- */

/* The sessions that have the figure. */
struct values {
    const json_t *history;
    double *value;
    size_t *number; /* the session's, counted from 1 */
    bool *accepted;
    size_t n;
};

static void gather(const char *name, const char *unit, struct values *v)
{
    EL_EACH(session, v->history) {
        const json_t *figure = json_object_get(json_object_get(session, "figures"), name);
        double value = el_json_number(figure, "value");
        if (json_is_true(json_object_get(session, "accepted"))) v->accepted[v->n] = true;
        if (!(value > 0) || !isfinite(value) || !el_json_is(figure, "unit", unit)) continue;
        v->value[v->n] = value;
        v->number[v->n++] = session_at.i + 1;
    }
}

static double pct(double ratio)
{
    return 100 * (ratio - 1);
}

/* true or false; null for a figure without a better direction. */
static json_t *is_worse(enum el_better better, double ratio)
{
    return better == EL_BETTER_NEITHER ? json_null() : json_boolean((ratio > 1) == (better == EL_BETTER_LOWER));
}

static json_t *change_of(const struct values *v, const struct el_change *change, enum el_better better)
{
    const json_t *before = json_array_get(v->history, v->number[change->low - 1] - 1);
    const json_t *after = json_array_get(v->history, v->number[change->high] - 1);
    const json_t *first = json_array_get(v->history, v->number[change->at] - 1);
    return el_json_of(EL_KEY("session", (int64_t)v->number[change->at]),
                      EL_KEY("between", json_pack("[I, I]", (json_int_t)v->number[change->low - 1],
                                                  (json_int_t)v->number[change->high])),
                      EL_KEY("time_utc", el_json_text(first, "time_utc", NULL)),
                      EL_KEY("commit", el_json_text(first, "commit", NULL)),
                      EL_KEY("commits", json_pack("[s?, s?]", el_json_text(before, "commit", NULL),
                                                  el_json_text(after, "commit", NULL))),
                      EL_KEY("change_pct", pct(change->ratio)),
                      EL_KEY("ci95_pct", el_json_interval(pct(change->ratio_low), pct(change->ratio_high))),
                      EL_KEY("worse", is_worse(better, change->ratio)), EL_KEY("accepted", change->accepted),
                      EL_KEY("environment", el_fingerprint_changes(el_json_at(before, "machine.fields"),
                                                                   el_json_at(after, "machine.fields"))));
}

static json_t *piece_of(const struct values *v, const struct el_piece *piece, enum el_better better)
{
    size_t last = piece->first + piece->n - 1;
    double drift = el_piece_drift(piece);
    return el_json_of(EL_KEY("first", (int64_t)v->number[piece->first]), EL_KEY("last", (int64_t)v->number[last]),
                      EL_KEY("sessions", (int64_t)piece->n), EL_KEY("level", exp(piece->level)),
                      EL_KEY("level_last", exp(piece->level) * drift), EL_KEY("creeps", (bool)(piece->slope != 0)),
                      EL_KEY("per_session_pct", pct(exp(piece->slope))), EL_KEY("drift_pct", pct(drift)),
                      EL_KEY("p", piece->p),
                      EL_KEY("worse", piece->slope != 0 ? is_worse(better, drift) : json_null()));
}

static json_t *describe(const struct values *v, const struct el_changes *c, enum el_better better)
{
    json_t *values = json_array(), *partition = json_array(), *pieces = json_array(), *changes = json_array();
    for (size_t i = 0, at = 0; i < json_array_size(v->history); i++) {
        bool has = at < v->n && v->number[at] == i + 1;
        json_array_append_new(values, el_json_real(has ? v->value[at] : NAN));
        at += has;
    }
    for (size_t i = 0; i < c->n_cuts; i++)
        json_array_append_new(partition, json_integer((json_int_t)v->number[c->cuts[i]]));
    for (size_t i = 0; i < c->n_pieces; i++) json_array_append_new(pieces, piece_of(v, &c->pieces[i], better));
    for (size_t i = 0; i < c->n_changes; i++) json_array_append_new(changes, change_of(v, &c->changes[i], better));
    const json_t *last = json_array_get(pieces, c->n_pieces - 1);
    bool creeps = json_is_true(json_object_get(last, "creeps"));
    return el_json_of(EL_KEY("values", values), EL_KEY("sd_pct", pct(exp(c->sd))), EL_KEY("penalty", c->penalty),
                      EL_KEY("partition", partition), EL_KEY("changes", changes),
                      EL_KEY("creep", creeps ? json_deep_copy(last) : json_null()), EL_KEY("pieces", pieces));
}

json_t *el_history_figure(const json_t *history, const char *name, const json_t *figure)
{
    size_t n = json_array_size(history);
    struct values v = {.history = history};
    struct el_changes changes;
    json_t *described = NULL;
    v.value = calloc(n + 1, sizeof *v.value);
    v.number = calloc(n + 1, sizeof *v.number);
    v.accepted = calloc(n + 1, sizeof *v.accepted);
    if (v.value && v.number && v.accepted) {
        gather(name, el_json_text(figure, "unit", ""), &v);
        if (el_changes_of(v.value, v.accepted, v.n, el_figure_is_exact(figure), EL_LEVEL_FLOOR_RATIO, &changes) ==
            EL_OK) {
            described = describe(&v, &changes, el_figure_better(figure));
            el_changes_free(&changes);
        }
    }
    free(v.value);
    free(v.number);
    free(v.accepted);
    return described;
}

/* ---- and as sentences ---- */

static const char *word_of(const json_t *of)
{
    const json_t *worse = json_object_get(of, "worse");
    return json_is_true(worse) ? ", worse" : json_is_false(worse) ? ", better" : "";
}

/* "2026-01-31 14:25" */
static void put_time(const json_t *session, char text[32])
{
    snprintf(text, 32, "%.16s", el_json_text(session, "time_utc", "?"));
    if (strchr(text, 'T')) *strchr(text, 'T') = ' ';
}

/* " (commit b, before a)", or that it is the same one. */
static void put_commit(const json_t *change, char *text, size_t bytes)
{
    const json_t *commits = json_object_get(change, "commits");
    const char *before = json_string_value(json_array_get(commits, 0)), *now = el_json_text(change, "commit", NULL);
    const char *after = json_string_value(json_array_get(commits, 1));
    if (!now) return;
    el_text_append(text, bytes, " (commit %.*s", COMMIT_LETTERS, now);
    if (before && after && !strcmp(before, after))
        el_text_append(text, bytes, ", as before");
    else if (before)
        el_text_append(text, bytes, "; before: %.*s", COMMIT_LETTERS, before);
    el_text_append(text, bytes, ")");
}

static void print_change(const json_t *change, size_t n_sessions, FILE *out)
{
    const json_t *environment = json_object_get(change, "environment");
    char text[1024], at[32];
    double low = el_json_number(change, "ci95_pct.0"), high = el_json_number(change, "ci95_pct.1");
    put_time(change, at);
    snprintf(text, sizeof text, "since %s", at);
    put_commit(change, text, sizeof text);
    el_text_append(text, sizeof text, ": %+.1f %%%s", el_json_number(change, "change_pct"), word_of(change));
    if (!isnan(low)) el_text_append(text, sizeof text, " (95 %%: %.1f to %.1f)", low, high);
    el_text_append(text, sizeof text, ", change between sessions %.0f and %.0f of %zu",
                   el_json_number(change, "between.0"), el_json_number(change, "between.1"), n_sessions);
    if (json_is_true(json_object_get(change, "accepted"))) el_text_append(text, sizeof text, ", accepted");
    if (json_object_size(environment)) el_text_append(text, sizeof text, "; ");
    el_fingerprint_changes_text(environment, text, sizeof text);
    el_utf8_printable(text);
    el_text_say("  ", "    ", out, "%s", text);
}

static void print_creep(const json_t *piece, const json_t *sessions, FILE *out)
{
    double first = el_json_number(piece, "first"), last = el_json_number(piece, "last");
    char span[64], at[32];
    put_time(json_array_get(sessions, (size_t)first - 1), at);
    el_utf8_printable(at);
    if (last == (double)json_array_size(sessions))
        snprintf(span, sizeof span, "the last %.0f sessions", el_json_number(piece, "sessions"));
    else
        snprintf(span, sizeof span, "sessions %.0f to %.0f", first, last);
    el_text_say("  ", "    ", out, "creep: %+.2g %% a session over %s, from %s: %+.1f %% in all%s",
                el_json_number(piece, "per_session_pct"), span, at, el_json_number(piece, "drift_pct"), word_of(piece));
}

void el_history_print(const json_t *workload, const json_t *figure, FILE *out)
{
    const json_t *sessions = json_object_get(workload, "history"), *changes = el_json_at(figure, "history.changes");
    size_t n = json_array_size(changes), skipped = n > SHOWN ? n - SHOWN : 0;
    if (skipped)
        el_text_say("  ", "    ", out, "%zu earlier change%s (--json has them)", skipped, skipped == 1 ? "" : "s");
    EL_EACH(change, changes)
        if (change_at.i >= skipped) print_change(change, json_array_size(sessions), out);
    EL_EACH(piece, el_json_at(figure, "history.pieces"))
        if (json_is_true(json_object_get(piece, "creeps"))) print_creep(piece, sessions, out);
}
