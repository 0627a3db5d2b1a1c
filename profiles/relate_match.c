/* Which calls of several traces are one operation. */
#include <stdlib.h>
#include <string.h>

#include "profiles/relate_internal.h"
#include "runtime/base/hash.h"

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_member(const void *a, const void *b)
{
    const struct el_relate_entry *x = a, *y = b;
    if (x->class != y->class) return compare(x->class, y->class);
    if (x->member != y->member) return compare(x->member, y->member);
    return compare(x->call, y->call);
}

static int by_operation(const void *a, const void *b)
{
    const struct el_relate_entry *x = a, *y = b;
    if (x->class != y->class) return compare(x->class, y->class);
    if (x->order != y->order) return compare(x->order, y->order);
    return compare(x->member, y->member);
}

static struct el_relate_entry entry_of(const struct el_relation_member *member, const struct el_kineto_call *call)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(call->verb);
    const uint64_t kind[] = {call->group, call->local ? member->trace + 1 : 0, row->is_link ? EL_COMM_SEND : call->verb,
                             (uint64_t)call->src, (uint64_t)call->dst};
    return (struct el_relate_entry){.class = el_hash(EL_HASH_BEGIN, kind, sizeof kind),
                                    .step = call->step,
                                    .link = row->is_link,
                                    .syncs = !row->is_link && !row->has_root};
}

static bool is_known(const struct el_kineto_call *call)
{
    if (call->verb == EL_COMM_VERB_COUNT) return false;
    return !el_comm_verb_row(call->verb)->is_link || (call->src >= 0 && call->dst >= 0);
}

/* From the first trace's first call on: what is 30 years away is no part of the job, and sums of times stay in range.
 */
static bool place(const struct el_relate *relate, size_t trace, const struct el_span *span, struct el_span *to)
{
    const int64_t most = (int64_t)1e18, base = relate->traces[trace].base_ns - relate->traces[0].base_ns;
    int64_t begin = span->begin_ns - relate->origin_ns, length = span->end_ns - span->begin_ns;
    if (llabs(begin) > most || llabs(base) > most || length < 0 || length > most) return false;
    *to = (struct el_span){begin + base, begin + base + length};
    return true;
}

static void collect(struct el_relate *relate)
{
    for (size_t m = 0; m < relate->relation->n_members; m++) {
        struct el_relation_member *member = &relate->relation->members[m];
        const struct el_kineto_trace *trace = &relate->traces[member->trace];
        for (size_t c = 0; c < trace->n_calls; c++) {
            const struct el_kineto_call *call = &trace->calls[c];
            if (call->device != member->device) continue;
            member->n_calls++;
            struct el_relate_entry *entry = &relate->entries[relate->n];
            struct el_span span;
            if (!is_known(call) || !place(relate, member->trace, &call->span, &span)) continue;
            *entry = entry_of(member, call);
            entry->span = span;
            relate->n++;
            entry->member = m;
            entry->call = c;
        }
    }
}

/* Behind the entries of the same member, or class. */
static size_t behind(const struct el_relate *relate, size_t at, bool of_member)
{
    const struct el_relate_entry *first = &relate->entries[at];
    while (at < relate->n && relate->entries[at].class == first->class &&
           (!of_member || relate->entries[at].member == first->member))
        at++;
    return at;
}

enum by { BY_SEQUENCE, BY_ORDER, BY_STEP };

static enum by choose(const struct el_relate *relate, size_t from, size_t to)
{
    size_t count = behind(relate, from, true) - from;
    bool numbered = !relate->entries[from].link, equal = true;
    for (size_t i = from; i < to && numbered; i++) {
        const struct el_relation_member *member = &relate->relation->members[relate->entries[i].member];
        numbered = relate->traces[member->trace].calls[relate->entries[i].call].sequence >= 0;
    }
    for (size_t i = from, next; i < to; i = next) {
        next = behind(relate, i, true);
        equal = equal && next - i == count;
    }
    return numbered ? BY_SEQUENCE : equal ? BY_ORDER : BY_STEP;
}

/* Of one member's entries of one class, in order of time. */
static void number(struct el_relate *relate, size_t from, size_t to, enum by by)
{
    const struct el_relation_member *member = &relate->relation->members[relate->entries[from].member];
    const struct el_kineto_call *calls = relate->traces[member->trace].calls;
    uint64_t last = 0, same = 0;
    for (size_t i = from; i < to; i++) {
        struct el_relate_entry *entry = &relate->entries[i];
        uint64_t is = by == BY_SEQUENCE ? (uint64_t)calls[entry->call].sequence
                      : by == BY_STEP   ? (uint64_t)(entry->step + 1)
                                        : 0;
        same = i > from && is == last ? same + 1 : 0;
        last = is;
        entry->order = is << 24 | (same & 0xffffff);
    }
}

enum el_status el_relate_match(struct el_relate *relate)
{
    size_t n = 1;
    for (size_t t = relate->n_traces; t-- > 0; n += relate->traces[t].n_calls)
        if (relate->traces[t].n_calls) relate->origin_ns = relate->traces[t].calls->span.begin_ns;
    relate->entries = calloc(n, sizeof *relate->entries);
    if (!relate->entries) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu collectives of traces", n);
    collect(relate);
    if (relate->n) qsort(relate->entries, relate->n, sizeof *relate->entries, by_member);
    for (size_t from = 0, to; from < relate->n; from = to) {
        to = behind(relate, from, false);
        enum by by = choose(relate, from, to);
        for (size_t i = from, next; i < to; i = next) {
            next = behind(relate, i, true);
            number(relate, i, next, by);
        }
    }
    if (relate->n) qsort(relate->entries, relate->n, sizeof *relate->entries, by_operation);
    return EL_OK;
}

size_t el_relate_run(const struct el_relate *relate, size_t first)
{
    size_t at = first;
    while (at < relate->n && relate->entries[at].class == relate->entries[first].class &&
           relate->entries[at].order == relate->entries[first].order)
        at++;
    return at;
}
