/* Calls of a communicator in a trace. */
#include "profiles/kineto_calls.h"

#include <stdlib.h>

#include "profiles/kineto_names.h"
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

/* "[[2, 3], [4]]": 10. */
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
    if (el_scan_is(key, "Collective name")) call->verb = el_kineto_verb(text);
    bool group = el_scan_is(key, "Process Group Name");
    if (group) call->local = el_scan_is(text, "local");
    if (group || el_scan_is(key, "Process Group Ranks"))
        call->group ^= el_hash(el_hash(EL_HASH_BEGIN, key.at, key.n), text.at, text.n);
    if (el_scan_is(key, "dtype")) call->element_bytes = el_kineto_type_bytes(text);
    if (el_scan_is(key, "Input type")) call->element_bytes = el_kineto_type_bytes(first_string(value));
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
    if (call->verb == EL_COMM_VERB_COUNT) call->verb = el_kineto_verb(name);
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

/* In older PyTorch a kernel's event has only its announcement's id. */
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
