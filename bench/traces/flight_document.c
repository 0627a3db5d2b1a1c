/* What is told of dumps: the ranks, who came last, the cause. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/traces/flight.h"
#include "profiles/intervals.h"
#include "runtime/base/grow.h"

/* Of the time of all calls: less is not spoken of. Of all lateness: one rank's share. */
#define LATE_WORTH 0.05
#define LATE_ONE   0.8

enum { SENTENCE_BYTES = 256, LATE_CALLS = 5, LISTED_MAX = 64 };

void el_flight_add_rank(json_t *ranks, int64_t rank)
{
    EL_EACH(item, ranks)
        if (json_integer_value(item) == rank) return;
    json_array_append_new(ranks, json_integer(rank));
}

json_t *el_flight_missing(const struct el_flight *flight)
{
    json_t *list = json_array();
    for (size_t g = 0; g < flight->n_groups; g++)
        for (size_t i = 0; i < flight->groups[g].n && json_array_size(list) < LISTED_MAX; i++)
            if (!el_flight_rank_at(flight, flight->groups[g].ranks[i]))
                el_flight_add_rank(list, flight->groups[g].ranks[i]);
    return list;
}

/* ---- who came last ---- */

struct lateness {
    double *late_s; /* [calls to which it came last] */
    size_t n, room;
    double caused_s; /* after the one before it */
};

/* Of one call that all members of its group entered and that ended. */
static bool add_arrivals(const struct el_flight *flight, const struct el_flight_call *call, struct lateness *rows)
{
    const struct el_flight_group *group = &flight->groups[call->group];
    int64_t last_ns = INT64_MIN, before_ns = INT64_MIN;
    double sum_s = 0;
    size_t who = 0;
    for (size_t i = 0; i < group->n; i++) {
        const struct el_flight_rank *rank = el_flight_rank_at(flight, group->ranks[i]);
        const struct el_flight_call *its = rank ? el_flight_find(rank, call) : NULL;
        if (!its || !its->ended) return false;
        sum_s += (double)(its->entered_ns - call->entered_ns) * 1e-9;
        if (its->entered_ns > last_ns)
            before_ns = last_ns, last_ns = its->entered_ns, who = (size_t)(rank - flight->ranks);
        else if (its->entered_ns > before_ns)
            before_ns = its->entered_ns;
    }
    if (group->n < 2) return false;
    struct lateness *row = &rows[who];
    double own_s = (double)(last_ns - call->entered_ns) * 1e-9;
    if (!EL_GROW(row->late_s, row->room, row->n + 1)) return false;
    row->late_s[row->n++] = own_s - (sum_s - own_s) / (double)(group->n - 1);
    row->caused_s += (double)(last_ns - before_ns) * 1e-9;
    return true;
}

static json_t *late_json(const struct el_flight *flight, const struct lateness *rows, size_t n_calls, double span_s)
{
    char sentence[SENTENCE_BYTES] = "", late[EL_FIGURE_BYTES];
    double all_s = 0;
    size_t most = 0;
    json_t *list = json_array();
    for (size_t i = 0; i < flight->n_ranks; i++) {
        all_s += rows[i].caused_s;
        if (rows[i].caused_s > rows[most].caused_s) most = i;
        json_array_append_new(
            list, el_json_of(EL_KEY("rank", flight->ranks[i].rank),
                             EL_KEY("last_pct", 100 * (double)rows[i].n / (double)n_calls),
                             EL_KEY("late_ms", rows[i].n ? 1e3 * el_median(rows[i].late_s, rows[i].n) : NAN),
                             EL_KEY("caused_ms", 1e3 * rows[i].caused_s)));
    }
    bool one = rows[most].caused_s >= LATE_ONE * all_s && all_s >= LATE_WORTH * span_s && rows[most].n >= LATE_CALLS;
    if (one)
        snprintf(sentence, sizeof sentence,
                 "Rank %" PRId64 " came last to %zu of the %zu calls that all entered, by %s ms (median)",
                 flight->ranks[most].rank, rows[most].n, n_calls,
                 el_text_figure(1e3 * el_median(rows[most].late_s, rows[most].n), late));
    return el_json_of(EL_KEY("calls", n_calls), EL_KEY("ranks", list),
                      EL_KEY("rank", one ? json_integer(flight->ranks[most].rank) : json_null()),
                      EL_KEY("sentence", (const char *)sentence));
}

static json_t *find_late(const struct el_flight *flight)
{
    struct lateness *rows = calloc(flight->n_ranks + 1, sizeof *rows);
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
    size_t n = 0;
    for (size_t i = 0; i < flight->n_ranks && rows; i++)
        for (size_t c = 0; c < flight->ranks[i].n; c++) {
            const struct el_flight_call *call = &flight->ranks[i].calls[c];
            if (call->entered_ns < first_ns) first_ns = call->entered_ns;
            if (call->ended && call->entered_ns > last_ns) last_ns = call->entered_ns;
            if (call->from < 0 && flight->groups[call->group].ranks[0] == flight->ranks[i].rank)
                n += add_arrivals(flight, call, rows);
        }
    json_t *late = n > 0 ? late_json(flight, rows, n, (double)(last_ns - first_ns) * 1e-9) : json_null();
    for (size_t i = 0; i < flight->n_ranks && rows; i++) free(rows[i].late_s);
    free(rows);
    return late;
}

/* ---- the document ---- */

json_t *el_flight_call_json(const struct el_flight *flight, const struct el_flight_call *call)
{
    char utc[64];
    struct tm parts;
    if (!call) return json_null();
    time_t s = (time_t)(call->entered_ns / 1000000000);
    gmtime_r(&s, &parts);
    size_t n = strftime(utc, sizeof utc, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(utc + n, sizeof utc - n, ".%03dZ", (int)(call->entered_ns / 1000000 % 1000));
    return el_json_of(EL_KEY("group", flight->groups[call->group].name), EL_KEY("number", call->number),
                      EL_KEY("operation", call->operation), EL_KEY("type", call->type), EL_KEY("sizes", call->sizes),
                      EL_KEY("entered_utc", (const char *)utc),
                      EL_KEY("state", call->ended   ? "ended"
                                      : call->begun ? "begun"
                                                    : "entered"),
                      EL_KEY("where", call->where));
}

static json_t *ranks_json(const struct el_flight *flight)
{
    json_t *list = json_array();
    for (size_t i = 0; i < flight->n_ranks; i++) {
        const struct el_flight_rank *rank = &flight->ranks[i];
        size_t ended = 0;
        for (size_t c = 0; c < rank->n; c++) ended += rank->calls[c].ended;
        json_array_append_new(list,
                              el_json_of(EL_KEY("rank", rank->rank), EL_KEY("file", rank->file),
                                         EL_KEY("calls", rank->n), EL_KEY("ended", ended),
                                         EL_KEY("waits_in", el_flight_call_json(flight, el_flight_waits_in(rank))),
                                         EL_KEY("last", el_flight_call_json(flight, el_flight_last(rank)))));
    }
    return list;
}

enum el_status el_flight_document(const struct el_flight *flight, json_t **document_p)
{
    json_t *cause;
    size_t calls = 0;
    EL_TRY(el_hang_find(flight, &cause));
    for (size_t i = 0; i < flight->n_ranks; i++) calls += flight->ranks[i].n;
    *document_p = el_json_of(
        EL_KEY("schema", EL_FLIGHT_SCHEMA), EL_KEY("kind", "flight"), EL_KEY("folder", flight->folder),
        EL_KEY("version", flight->version), EL_KEY("dumps", flight->n_ranks), EL_KEY("calls", calls),
        EL_KEY("missing_dumps", el_flight_missing(flight)), EL_KEY("left_out", json_incref(flight->left_out)),
        EL_KEY("ranks", ranks_json(flight)), EL_KEY("cause", cause), EL_KEY("late", find_late(flight)));
    return EL_OK;
}
