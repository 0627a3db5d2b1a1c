/* What a trace says of a communicator's operations, in the words of PyTorch's profiler. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "profiles/kineto_internal.h"
#include "runtime/base/hash.h"

struct el_kineto_call el_kineto_call_none(void)
{
    return (struct el_kineto_call){.device = -1,
                                   .external_id = -1,
                                   .correlation = -1,
                                   .verb = EL_COMM_VERB_COUNT,
                                   .sequence = -1,
                                   .step = -1,
                                   .size = -1,
                                   .rank = -1,
                                   .src = -1,
                                   .dst = -1};
}

/* Of a type as PyTorch ("Float") or its gloo events ("float") call it; 0: none that is known. */
static double bytes_of(struct el_scan_text type)
{
    static const struct {
        const char *begin;
        double bytes;
    } types[] = {{"double", 8},        {"long", 8},  {"float8", 1}, {"float", 4}, {"int", 4},
                 {"half", 2},          {"c10::", 2}, {"bfloat", 2}, {"short", 2}, {"byte", 1},
                 {"unsigned char", 1}, {"char", 1},  {"bool", 1}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t n = strlen(types[i].begin);
        if (type.n >= n && !strncasecmp(type.at, types[i].begin, n)) return types[i].bytes;
    }
    return 0;
}

/* By any name of it: "_allgather_base", "gloo:all_gather", "ncclDevKernel_AllGather_RING_LL". */
static enum el_comm_verb verb_of(struct el_scan_text name)
{
    static const struct {
        const char *word;
        enum el_comm_verb verb;
    } words[] = {{"allreduce", EL_COMM_ALL_REDUCE},
                 {"reducescatter", EL_COMM_REDUCE_SCATTER},
                 {"allgather", EL_COMM_ALL_GATHER},
                 {"alltoall", EL_COMM_ALL_TO_ALL},
                 {"barrier", EL_COMM_BARRIER},
                 {"broadcast", EL_COMM_BROADCAST},
                 {"sendrecv", EL_COMM_VERB_COUNT},
                 {"reduce", EL_COMM_REDUCE},
                 {"gather", EL_COMM_GATHER},
                 {"scatter", EL_COMM_SCATTER},
                 {"send", EL_COMM_SEND},
                 {"recv", EL_COMM_RECV}};
    char letters[64];
    size_t n = 0;
    for (size_t i = 0; i < name.n && n + 1 < sizeof letters; i++) {
        char c = name.at[i];
        if (c != '_') letters[n++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    letters[n] = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(letters, words[i].word)) return words[i].verb;
    return EL_COMM_VERB_COUNT;
}

/* "[[2, 3], [4]]" are 10. */
static double elements_of(struct el_scan_text dims)
{
    double sum = 0, product = 1, number = 0;
    bool in_number = false, any = false;
    for (size_t i = 0; i < dims.n; i++) {
        char c = dims.at[i];
        bool digit = c >= '0' && c <= '9';
        if (digit) number = number * 10 + (c - '0');
        if (!digit && in_number) {
            product *= number;
            number = 0;
            any = true;
        }
        if (c == ']' && any) {
            sum += product;
            product = 1;
            any = false;
        }
        in_number = digit;
    }
    return sum;
}

/* In a list of strings, the first one. */
static struct el_scan_text first_string(struct el_scan_text list)
{
    size_t n = 0;
    if (list.n < 4 || list.at[0] != '[' || list.at[1] != '"') return (struct el_scan_text){"", 0};
    while (n + 2 < list.n && list.at[n + 2] != '"') n++;
    return (struct el_scan_text){list.at + 2, n};
}

void el_kineto_call_argument(struct el_kineto_call *call, struct el_scan_text key, struct el_scan_text value)
{
    int64_t whole, peer = -1;
    struct el_scan_text text = el_scan_string(value);
    const struct {
        const char *key;
        int64_t *to;
    } numbers[] = {{"Seq", &call->sequence}, {"Group size", &call->size}, {"Rank", &call->rank},
                   {"Src Rank", &call->src}, {"Dst Rank", &call->dst},    {"Peer", &peer}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (el_scan_is(key, numbers[i].key) && el_scan_whole(value, &whole) && whole >= 0) *numbers[i].to = whole;
    if (peer >= 0) call->peer_given = true, call->dst = peer;
    if (el_scan_is(key, "Collective name")) call->verb = verb_of(text);
    bool group = el_scan_is(key, "Process Group Name");
    if (group) call->local = el_scan_is(text, "local");
    if (group || el_scan_is(key, "Process Group Ranks"))
        call->group ^= el_hash(el_hash(EL_HASH_BEGIN, key.at, key.n), text.at, text.n);
    if (el_scan_is(key, "dtype")) call->element_bytes = bytes_of(text);
    if (el_scan_is(key, "Input type")) call->element_bytes = bytes_of(first_string(value));
    if (el_scan_is(key, "sent bytes") && el_scan_whole(value, &whole)) call->sent_bytes = (double)whole;
    double elements = 0;
    if ((el_scan_is(key, "In msg nelems") || el_scan_is(key, "Out msg nelems")) && el_scan_whole(value, &whole))
        elements = (double)whole;
    bool dims = el_scan_is(key, "Input Dims");
    if (dims) elements = elements_of(value);
    call->is_part |= dims;
    if (elements > call->elements) call->elements = elements;
}

void el_kineto_call_name(struct el_kineto_call *call, struct el_scan_text name)
{
    if (call->verb == EL_COMM_VERB_COUNT) call->verb = verb_of(name);
}

/* ---- when all is read ---- */

static int by_number(const void *a, const void *b)
{
    const struct el_kineto_step *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x->span.begin_ns > y->span.begin_ns) - (x->span.begin_ns < y->span.begin_ns);
}

static int by_step_begin(const void *a, const void *b)
{
    const struct el_kineto_step *x = a, *y = b;
    return (x->span.begin_ns > y->span.begin_ns) - (x->span.begin_ns < y->span.begin_ns);
}

/* A device's copy of a host's step begins later. */
void el_kineto_steps_finish(struct el_kineto_trace *trace)
{
    size_t n = 0;
    if (trace->n_steps) qsort(trace->steps, trace->n_steps, sizeof *trace->steps, by_number);
    for (size_t i = 0; i < trace->n_steps; i++)
        if (n == 0 || trace->steps[n - 1].number != trace->steps[i].number) trace->steps[n++] = trace->steps[i];
    trace->n_steps = n;
    if (n) qsort(trace->steps, n, sizeof *trace->steps, by_step_begin);
}

static int by_begin(const void *a, const void *b)
{
    const struct el_kineto_call *x = a, *y = b;
    return (x->span.begin_ns > y->span.begin_ns) - (x->span.begin_ns < y->span.begin_ns);
}

static int by_id(const void *a, const void *b)
{
    const struct el_kineto_call *x = a, *y = b;
    return (x->external_id > y->external_id) - (x->external_id < y->external_id);
}

/* The kernel's event of an older PyTorch has only the id of what announced it. */
static void ask_announced(struct el_kineto_call *call, const struct el_kineto_call *announced, size_t n)
{
    const struct el_kineto_call *of = NULL;
    if (n && call->group == 0 && call->sequence < 0 && call->external_id >= 0)
        of = bsearch(call, announced, n, sizeof *announced, by_id);
    if (!of) return;
    struct el_kineto_call own = *call;
    *call = *of;
    call->device = own.device;
    call->span = own.span;
    if (call->verb == EL_COMM_VERB_COUNT) call->verb = own.verb;
}

/* The bytes, and a message's ends from who says it and whom it names. */
static void conclude(struct el_kineto_call *call, const struct el_kineto_trace *trace)
{
    bool receives = call->verb == EL_COMM_RECV;
    if (call->size < 0) call->size = trace->world;
    if (call->rank < 0) call->rank = trace->rank;
    if (call->verb != EL_COMM_VERB_COUNT && !el_comm_verb_row(call->verb)->is_link) call->src = call->dst = -1;
    if (call->peer_given && receives) call->src = call->dst, call->dst = call->rank;
    if (call->peer_given && call->verb == EL_COMM_SEND) call->src = call->rank;
    call->bytes = call->elements * call->element_bytes;
    bool whole = call->verb == EL_COMM_ALL_GATHER && call->is_part && call->size > 0;
    if (whole) call->bytes *= (double)call->size;
}

void el_kineto_calls_finish(struct el_kineto_trace *trace, struct el_kineto_call *announced, size_t n_announced)
{
    size_t n = 0, at = 0;
    if (n_announced) qsort(announced, n_announced, sizeof *announced, by_id);
    for (size_t i = 0; i < trace->n_calls; i++) {
        struct el_kineto_call *call = &trace->calls[i];
        if (call->device < 0 && !trace->cpu_only) continue;
        ask_announced(call, announced, n_announced);
        conclude(call, trace);
        trace->calls[n++] = *call;
    }
    trace->n_calls = n;
    if (n) qsort(trace->calls, n, sizeof *trace->calls, by_begin);
    for (size_t i = 0; i < n; i++) {
        while (at < trace->n_steps && trace->steps[at].span.end_ns <= trace->calls[i].span.begin_ns) at++;
        bool inside = at < trace->n_steps && trace->steps[at].span.begin_ns <= trace->calls[i].span.begin_ns;
        if (inside) trace->calls[i].step = trace->steps[at].number;
    }
}
