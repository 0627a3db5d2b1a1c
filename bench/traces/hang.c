/* What a job hangs in, by the dumps of its ranks.
 *
 * A rank waits in its first call of a group that has not ended. The members that did not enter it are waited for, and
 * those of them that wait in another call wait for its missing members in turn: the ranks at the ends of these chains
 * are the cause, or the ranks of a circle. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/traces/flight.h"

enum { SENTENCE_BYTES = 1024, NAMED_MAX = 4 };

/* A rank's, by its place in flight->ranks. */
struct state {
    bool waits;    /* has a call that has not ended */
    bool reached;  /* is waited for */
    bool followed; /* and whom it waits for has been looked at */
};

struct hang {
    const struct el_flight *flight;
    struct state *states;
    enum el_hang_kind kind;
    bool no_majority;                   /* of an other call: neither is the odd one */
    const struct el_flight_call *call;  /* that waits */
    const struct el_flight_call *other; /* what the first of the ranks called in its place */
    json_t *ranks, *waiting;            /* the cause, and who is in `call` */
};

const char *el_hang_name(enum el_hang_kind kind)
{
#define NAME(id, name) name,
    static const char *const names[] = {EL_HANGS(NAME)};
    return names[kind];
}

/* Of these each rank has its own size; of those that gather or scatter equal parts too if it ended, as lists may. */
static bool may_be_uneven(const struct el_flight_call *call)
{
    const char *name = call->operation;
    bool own = strstr(name, "all_to_all") || strstr(name, "alltoall") || strstr(name, "_v") ||
               !strncmp(name, "gather", 6) || !strncmp(name, "scatter", 7);
    return own || (call->ended && (strstr(name, "gather") || strstr(name, "scatter")));
}

static bool differs(const struct el_flight_call *a, const struct el_flight_call *b)
{
    if (a->operation != b->operation && a->from < 0) return true;
    if (may_be_uneven(a) || may_be_uneven(b)) return false;
    return strcmp(a->type, b->type) != 0 || a->elements != b->elements;
}

/* Whether the rank, without this call in its dump, did not enter it: an older call is not in the buffer any more. */
static bool has_not_entered(const struct el_flight_rank *rank, const struct el_flight_call *call)
{
    for (size_t i = 0; i < rank->n && call->from < 0; i++) {
        const struct el_flight_call *its = &rank->calls[i];
        if (its->group == call->group && its->from < 0 && its->number > call->number) return false;
    }
    return true;
}

static void see_missing(struct hang *h, int64_t number, const struct el_flight_call *call);

/* The members that a call waits for. Where the dumps do not say a group's ranks, and all that are known entered, it may
 * be any other. */
static void follow_call(struct hang *h, const struct el_flight_call *call)
{
    const struct el_flight_group *group = &h->flight->groups[call->group];
    size_t n = 0;
    for (size_t i = 0; i < group->n; i++) {
        const struct el_flight_rank *rank = el_flight_rank_at(h->flight, group->ranks[i]);
        if (call->from >= 0 && group->ranks[i] != call->from && group->ranks[i] != call->to) continue;
        if (rank && (el_flight_find(rank, call) || !has_not_entered(rank, call))) continue;
        see_missing(h, group->ranks[i], call);
        n++;
    }
    for (size_t i = 0; n == 0 && !group->given && i < h->flight->n_ranks; i++)
        if (!el_flight_find(&h->flight->ranks[i], call)) see_missing(h, h->flight->ranks[i].rank, call);
}

static void follow(struct hang *h, const struct el_flight_rank *rank)
{
    struct state *state = &h->states[rank - h->flight->ranks];
    const struct el_flight_call *call = NULL;
    if (state->followed) return;
    state->followed = true;
    while ((call = el_flight_next_waiting(rank, call))) follow_call(h, call);
}

/* Ends of chains are the cause. */
static void see_missing(struct hang *h, int64_t number, const struct el_flight_call *call)
{
    const struct el_flight_rank *rank = el_flight_rank_at(h->flight, number);
    if (!rank) {
        if (json_array_size(h->ranks) == 0) h->call = call;
        if (json_array_size(h->ranks) == 0 || h->kind == EL_HANG_NO_DUMP) {
            h->kind = EL_HANG_NO_DUMP;
            el_flight_add_rank(h->ranks, number);
        }
        return;
    }
    struct state *state = &h->states[rank - h->flight->ranks];
    state->reached = true;
    if (state->waits) return follow(h, rank);
    if (h->kind == EL_HANG_NO_DUMP) json_array_clear(h->ranks); /* a rank with a dump is known not to be there */
    if (json_array_size(h->ranks) == 0) h->call = call;
    h->kind = EL_HANG_NOT_ENTERED;
    el_flight_add_rank(h->ranks, number);
}

/* ---- what ranks called under one number ---- */

/* Ranks that differ from what most called; all of them if there is no majority. */
static void find_odd(struct hang *h, const struct el_flight_call *call)
{
    const struct el_flight *flight = h->flight;
    const struct el_flight_call *most = NULL;
    size_t n_most = 0, n_all = 0;
    for (size_t i = 0; i < flight->n_ranks; i++) {
        const struct el_flight_call *its = el_flight_find(&flight->ranks[i], call);
        size_t n = 0;
        n_all += its != NULL;
        for (size_t j = 0; its && j < flight->n_ranks; j++) {
            const struct el_flight_call *other = el_flight_find(&flight->ranks[j], call);
            n += other && !differs(its, other);
        }
        if (n > n_most) n_most = n, most = its;
    }
    for (size_t i = 0; i < flight->n_ranks; i++) {
        const struct el_flight_call *its = el_flight_find(&flight->ranks[i], call);
        if (!its) continue;
        if (differs(most, its)) {
            if (!h->other) h->other = its;
            el_flight_add_rank(h->ranks, flight->ranks[i].rank);
        } else
            el_flight_add_rank(h->waiting, flight->ranks[i].rank);
    }
    h->call = most;
    h->no_majority = 2 * n_most <= n_all;
}

/* The earliest call that ranks made in different ways: later ones follow from it. */
static bool find_other_call(struct hang *h)
{
    const struct el_flight *flight = h->flight;
    const struct el_flight_call *first = NULL;
    for (size_t i = 0; i < flight->n_ranks; i++)
        for (size_t c = 0; c < flight->ranks[i].n; c++) {
            const struct el_flight_call *call = &flight->ranks[i].calls[c];
            const struct el_flight_group *group = &flight->groups[call->group];
            if (call->from >= 0 && call->ended) continue;
            if (first && call->entered_ns >= first->entered_ns) continue;
            /* each rank against its group's first that has the call: differences are found all the same */
            for (size_t m = 0; m < group->n; m++) {
                const struct el_flight_rank *rank = el_flight_rank_at(flight, group->ranks[m]);
                const struct el_flight_call *other = rank ? el_flight_find(rank, call) : NULL;
                if (!other) continue;
                if (differs(call, other)) first = call;
                break;
            }
        }
    if (!first) return false;
    h->kind = EL_HANG_OTHER_CALL;
    find_odd(h, first);
    return true;
}

/* ---- sentences ---- */

/* "rank 1", "ranks 0 and 2", "ranks 0, 1, 2, 3 and 60 more" */
static const char *name_ranks(const json_t *ranks, char text[SENTENCE_BYTES])
{
    size_t n = json_array_size(ranks), shown = n > NAMED_MAX + 1 ? NAMED_MAX : n;
    snprintf(text, SENTENCE_BYTES, "rank%s ", n == 1 ? "" : "s");
    for (size_t i = 0; i < shown; i++)
        el_text_append(text, SENTENCE_BYTES, "%s%" JSON_INTEGER_FORMAT,
                       i == 0       ? ""
                       : i + 1 == n ? " and "
                                    : ", ",
                       json_integer_value(json_array_get(ranks, i)));
    if (shown < n) el_text_append(text, SENTENCE_BYTES, " and %zu more", n - shown);
    return text;
}

/* `flight` NULL: without number and group. */
static const char *name_call(const struct el_flight *flight, const struct el_flight_call *call,
                             char text[SENTENCE_BYTES])
{
    snprintf(text, SENTENCE_BYTES, "%s", call->operation);
    if (flight)
        el_text_append(text, SENTENCE_BYTES, " no. %" PRId64 " of %s", call->number, flight->groups[call->group].name);
    if (*call->sizes) el_text_append(text, SENTENCE_BYTES, " (%s %s)", call->type, call->sizes);
    return text;
}

static void add_where(const char *before, const struct el_flight_call *call, char text[SENTENCE_BYTES])
{
    if (call && *call->where) el_text_append(text, SENTENCE_BYTES, "%s%s", before, call->where);
}

static bool many(const json_t *ranks)
{
    return json_array_size(ranks) != 1;
}

static void say_last(const struct hang *h, char text[SENTENCE_BYTES])
{
    char name[SENTENCE_BYTES];
    const struct el_flight_rank *rank = el_flight_rank_at(h->flight, json_integer_value(json_array_get(h->ranks, 0)));
    const struct el_flight_call *last = rank ? el_flight_last(rank) : NULL;
    if (!last) return;
    el_text_append(text, SENTENCE_BYTES, "; %s last call was %s", many(h->ranks) ? "the first one's" : "its",
                   name_call(h->flight, last, name));
    add_where(", from ", last, text);
}

static void say_cause(const struct hang *h, char text[SENTENCE_BYTES])
{
    char ranks[SENTENCE_BYTES], waiting[SENTENCE_BYTES], call[SENTENCE_BYTES], other[SENTENCE_BYTES];
    bool several = many(h->ranks), wait = many(h->waiting);
    name_ranks(h->ranks, ranks);
    name_ranks(h->waiting, waiting);
    if (h->call) name_call(h->flight, h->call, call);
    *text = 0;
    switch (h->kind) {
    case EL_HANG_NOT_ENTERED:
        el_text_append(text, SENTENCE_BYTES, "%s did not enter %s, in which %s wait%s", ranks, call, waiting,
                       wait ? "" : "s");
        say_last(h, text);
        break;
    case EL_HANG_NO_DUMP:
        if (!h->call)
            el_text_append(text, SENTENCE_BYTES,
                           "no rank waits, but %s left no dump: the process died, and what the others called has "
                           "failed, or its dump is elsewhere",
                           ranks);
        else
            el_text_append(text, SENTENCE_BYTES,
                           "%s left no dump, and %s wait%s for %s in %s: the process died, or its dump is elsewhere",
                           ranks, waiting, wait ? "" : "s", several ? "them" : "it", call);
        break;
    case EL_HANG_OTHER_CALL:
        name_call(h->flight, h->other, other);
        name_call(NULL, h->call, call);
        el_text_append(text, SENTENCE_BYTES, "%s called %s", ranks, other);
        add_where(" from ", h->other, text);
        el_text_append(text, SENTENCE_BYTES, "%s %s called %s", h->no_majority ? ", and" : ", where", waiting, call);
        add_where(" from ", h->call, text);
        break;
    case EL_HANG_OTHER_ORDER:
        if (h->call)
            el_text_append(text, SENTENCE_BYTES, "%s called in another order: others are in %s", ranks, call);
        else
            el_text_append(text, SENTENCE_BYTES, "%s wait for each other in different calls", ranks);
        for (size_t i = 0; i < json_array_size(h->ranks) && i < NAMED_MAX; i++) {
            int64_t rank = json_integer_value(json_array_get(h->ranks, i));
            const struct el_flight_call *its = el_flight_waits_in(el_flight_rank_at(h->flight, rank));
            el_text_append(text, SENTENCE_BYTES, "%srank %" PRId64 " in %s", i ? ", " : ": ", rank,
                           name_call(h->flight, its, call));
            add_where(" from ", its, text);
        }
        break;
    case EL_HANG_NOT_BEGUN:
        el_text_append(text, SENTENCE_BYTES,
                       "all ranks entered %s, but the device%s of %s ha%s not begun it: what is before it in %s still "
                       "runs",
                       call, several ? "s" : "", ranks, several ? "ve" : "s", several ? "their streams" : "its stream");
        break;
    case EL_HANG_ALL_ENTERED:
        el_text_append(text, SENTENCE_BYTES,
                       "all ranks entered %s and it has not ended: look at the transport between them (a link, a card, "
                       "a network), or they were dumped while it ran",
                       call);
        break;
    default:
        el_text_append(text, SENTENCE_BYTES, "nothing hangs: every call in these dumps has ended");
    }
}

/* ---- the cause ---- */

static void find_waiting(struct hang *h)
{
    for (size_t i = 0; i < h->flight->n_ranks; i++) {
        const struct el_flight_call *its = el_flight_find(&h->flight->ranks[i], h->call);
        if (its && !its->ended) el_flight_add_rank(h->waiting, h->flight->ranks[i].rank);
    }
}

/* Everybody entered the calls that have not ended. */
static void find_not_begun(struct hang *h)
{
    const struct el_flight *flight = h->flight;
    for (size_t i = 0; i < flight->n_ranks; i++) {
        const struct el_flight_call *call = el_flight_waits_in(&flight->ranks[i]);
        if (call &&
            (!h->call || (call->begun == h->call->begun ? call->entered_ns < h->call->entered_ns : call->begun)))
            h->call = call;
    }
    size_t begun = 0, elsewhere = 0;
    for (size_t i = 0; i < flight->n_ranks; i++) {
        const struct el_flight_call *its = el_flight_find(&flight->ranks[i], h->call);
        begun += its && its->begun;
        if (!its || its->begun) continue;
        const struct el_flight_call *in = el_flight_waits_in(&flight->ranks[i]);
        elsewhere += in && in->begun;
        el_flight_add_rank(h->ranks, flight->ranks[i].rank);
    }
    h->kind = !begun || json_array_size(h->ranks) == 0 ? EL_HANG_ALL_ENTERED
              : elsewhere                              ? EL_HANG_OTHER_ORDER
                                                       : EL_HANG_NOT_BEGUN;
    if (h->kind == EL_HANG_ALL_ENTERED) json_array_clear(h->ranks);
}

/* A peer's death ends calls with an error. Of a few dumps of many ranks nothing is said. */
static void find_dead(struct hang *h)
{
    json_t *missing = el_flight_missing(h->flight);
    if (json_array_size(missing) && json_array_size(missing) < h->flight->n_ranks) {
        h->kind = EL_HANG_NO_DUMP;
        json_array_extend(h->ranks, missing);
    }
    json_decref(missing);
}

static void find_cause(struct hang *h)
{
    const struct el_flight *flight = h->flight;
    size_t n_waiting = 0, n_missing = 0;
    for (size_t i = 0; i < flight->n_ranks; i++) {
        h->states[i].waits = el_flight_waits_in(&flight->ranks[i]) != NULL;
        n_waiting += h->states[i].waits;
    }
    if (find_other_call(h)) return;
    if (n_waiting == 0) return find_dead(h);
    for (size_t i = 0; i < flight->n_ranks; i++) follow(h, &flight->ranks[i]);
    if (json_array_size(h->ranks)) return find_waiting(h);
    for (size_t i = 0; i < flight->n_ranks; i++) n_missing += h->states[i].reached;
    if (n_missing == 0) return find_not_begun(h);
    h->kind = EL_HANG_OTHER_ORDER;
    for (size_t i = 0; i < flight->n_ranks; i++)
        if (h->states[i].reached) el_flight_add_rank(h->ranks, flight->ranks[i].rank);
}

enum el_status el_hang_find(const struct el_flight *flight, json_t **cause_p)
{
    struct hang hang = {.flight = flight, .ranks = json_array(), .waiting = json_array()};
    char sentence[SENTENCE_BYTES];
    hang.states = calloc(flight->n_ranks + 1, sizeof *hang.states);
    if (!hang.states) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu ranks", flight->n_ranks);
    find_cause(&hang);
    say_cause(&hang, sentence);
    *cause_p = el_json_of(EL_KEY("kind", el_hang_name(hang.kind)), EL_KEY("ranks", hang.ranks),
                          EL_KEY("waiting", hang.waiting), EL_KEY("call", el_flight_call_json(flight, hang.call)),
                          EL_KEY("sentence", (const char *)sentence));
    free(hang.states);
    return EL_OK;
}
