/* Reads a trace event by event. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "profiles/gzip.h"
#include "profiles/json_scan.h"
#include "profiles/kineto.h"
#include "profiles/kineto_calls.h"
#include "profiles/kineto_names.h"
#include "profiles/kineto_phases.h"
#include "runtime/base/files.h"
#include "runtime/base/grow.h"
#include "runtime/base/hash.h"

struct el_kineto_event {
    struct el_scan_text ph, cat, name, ts, dur, pid, tid, args;
    int64_t correlation, device, external_id; /* from its arguments; -1: none */
};

#define UNPACKED_ALWAYS ((uint64_t)64 << 20)
#define UNPACKED_MAX    ((uint64_t)4 << 30)

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);
    return n >= m && strcmp(text + n - m, with) == 0;
}

/* What is made of a stream. */
struct reading {
    const char *named;
    struct el_kineto_trace *trace_p;
    enum el_status (*each)(void *of, struct el_scan_text event); /* NULL: a trace is */
    void *of;
};

static enum el_status read_stream(FILE *file, uint64_t most_bytes, const char *name, const struct reading *reading);

static uint64_t most_of(int packed)
{
    struct stat info;
    uint64_t most = fstat(packed, &info) == 0 ? (uint64_t)info.st_size * EL_KINETO_UNPACKED_RATIO : 0;
    if (most < UNPACKED_ALWAYS) most = UNPACKED_ALWAYS;
    return most < UNPACKED_MAX ? most : UNPACKED_MAX;
}

/* A trace that is refused is not damaged. */
static enum el_status read_packed(const char *name, int packed, const struct reading *reading)
{
    struct el_gzip gzip;
    EL_TRY(el_gzip_begin(name, packed, false, &gzip));
    enum el_status status = read_stream(gzip.stream, most_of(packed), name, reading);
    enum el_status unpacked = el_gzip_end(&gzip, feof(gzip.stream) != 0);
    if (unpacked == EL_OK) return status;
    if (status == EL_OK && reading->trace_p) el_kineto_free(reading->trace_p);
    return unpacked;
}

static enum el_status read_file(const char *path, const struct reading *reading)
{
    FILE *file;
    EL_TRY(el_file_stream("", path, INT64_MAX, &file));
    enum el_status status = ends(path, ".gz") ? read_packed(el_path_tail(path), fileno(file), reading)
                                              : read_stream(file, UINT64_MAX, path, reading);
    fclose(file);
    return status;
}

enum el_status el_kineto_read_file(const char *path, const char *named, struct el_kineto_trace *trace_p)
{
    return read_file(path, &(struct reading){.named = named, .trace_p = trace_p});
}

enum el_status el_kineto_each(const char *path, enum el_status (*each)(void *of, struct el_scan_text event), void *of)
{
    return read_file(path, &(struct reading){.each = each, .of = of});
}

static int64_t kineto_event_device(const struct el_kineto_event *event)
{
    int64_t pid;
    if (event->device >= 0) return event->device;
    return el_scan_whole(event->pid, &pid) && pid >= 0 ? pid : 0;
}

static bool kineto_event_fields(struct el_scan_text rest, struct el_kineto_event *event)
{
    struct el_scan_text key, value;
    int more;
    *event = (struct el_kineto_event){.correlation = -1, .device = -1, .external_id = -1};
    while ((more = el_scan_member(&rest, &key, &value)) > 0) {
        struct el_scan_text *to = el_scan_is(key, "ph")     ? &event->ph
                                  : el_scan_is(key, "cat")  ? &event->cat
                                  : el_scan_is(key, "name") ? &event->name
                                                            : NULL;
        if (to) *to = el_scan_string(value);
        if (el_scan_is(key, "ts")) event->ts = el_scan_unquoted(value);
        if (el_scan_is(key, "dur")) event->dur = el_scan_unquoted(value);
        if (el_scan_is(key, "pid")) event->pid = value;
        if (el_scan_is(key, "tid")) event->tid = value;
        if (el_scan_is(key, "args")) event->args = value;
    }
    return more == 0;
}

static bool kineto_event_arguments(struct el_kineto_event *event, struct el_kineto_call *call)
{
    struct el_scan_text rest = event->args, key, value;
    int more = 0;
    if (rest.n == 0 || *rest.at != '{') return true;
    while ((more = el_scan_member(&rest, &key, &value)) > 0) {
        if (el_scan_is(key, "correlation")) el_scan_whole(value, &event->correlation);
        if (el_scan_is(key, "device")) el_scan_whole(value, &event->device);
        if (el_scan_is(key, "External id")) el_scan_whole(value, &event->external_id);
        if (call) el_kineto_call_argument(call, key, value);
    }
    return more == 0;
}

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

/* A device's copy of a host's step begins later, so the first one stays. */
static void kineto_steps_finish(struct el_kineto_trace *trace)
{
    size_t n = 0;
    if (trace->n_steps) qsort(trace->steps, trace->n_steps, sizeof *trace->steps, by_number);
    for (size_t i = 0; i < trace->n_steps; i++)
        if (n == 0 || trace->steps[n - 1].number != trace->steps[i].number) trace->steps[n++] = trace->steps[i];
    trace->n_steps = n;
    if (n) qsort(trace->steps, n, sizeof *trace->steps, by_step_begin);
}

struct work {
    int64_t device, correlation; /* -1: none */
    int class;                   /* below 0: it only has a name */
    bool named;
    struct el_span span;
};
struct launch {
    int64_t correlation, begin_ns;
};
/* Of a thread of the host. */
struct host_op {
    struct el_span span;
    uint32_t thread;
    int8_t class;
    bool named;
};

struct reader {
    struct el_scan scan;
    struct el_kineto_trace *trace;
    bool found; /* an array of events */
    struct work *works;
    struct launch *launches;
    struct host_op *host_ops; /* while there is no device */
    size_t n_works, works_room, n_launches, launches_room, n_host_ops, host_ops_room;
    struct el_kineto_call *announced; /* by record_param_comms */
    size_t n_announced, announced_room;
    int64_t steps_end_ns;
    struct el_kineto_lane *called; /* lanes with only a name */
    size_t n_called, called_room;
    const struct reading *reading;
};

/* A host's sets are united from this many spans on. */
enum { UNITED_FROM = 4096 };
#define BASE_MAX (INT64_C(1) << 61)

static struct el_kineto_lane *lane_of(struct el_kineto_trace *trace, int64_t device)
{
    size_t i = 0;
    while (i < trace->n_lanes && trace->lanes[i].device != device) i++;
    if (i == EL_KINETO_LANES_MAX) return NULL;
    if (i == trace->n_lanes) trace->lanes[trace->n_lanes++].device = device;
    return &trace->lanes[i];
}

static enum el_status fail_memory(const struct reader *reader)
{
    return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for its events", reader->scan.name);
}

static enum el_status note_step(struct reader *reader, struct el_scan_text name, struct el_span span)
{
    static const char word[] = "ProfilerStep#";
    struct el_kineto_trace *trace = reader->trace;
    struct el_kineto_step step = {.span = span};
    if (!el_scan_begins(name, word)) return EL_OK;
    struct el_scan_text number = {name.at + sizeof word - 1, name.n - (sizeof word - 1)};
    if (!el_scan_whole(number, &step.number)) return EL_OK;
    if (span.end_ns > reader->steps_end_ns) reader->steps_end_ns = span.end_ns;
    if (!EL_GROW(trace->steps, trace->steps_room, trace->n_steps + 1)) return fail_memory(reader);
    trace->steps[trace->n_steps++] = step;
    return EL_OK;
}

/* Uniting now and then keeps a host's nested ops small. */
static enum el_status add_span(const struct reader *reader, struct el_intervals *set, struct el_span span)
{
    if (set->n >= UNITED_FROM && set->n == set->room) {
        el_intervals_unite(set);
        set->failed |= set->n > set->room / 2 && !EL_GROW(set->spans, set->room, set->room + 1);
    }
    el_intervals_add(set, span);
    return set->failed ? fail_memory(reader) : EL_OK;
}

static enum el_status count(struct reader *reader, const struct work *work)
{
    struct el_kineto_lane *lane = lane_of(reader->trace, work->device);
    if (!lane) return el_fail(EL_ERR_INVALID, "%s: more than %d devices", reader->scan.name, EL_KINETO_LANES_MAX - 1);
    if (work->named) EL_TRY(add_span(reader, &lane->named, work->span));
    if (work->class < 0) return EL_OK;
    if (reader->reading->named && !work->named && work->class == EL_KINETO_COMPUTE)
        EL_TRY(add_span(reader, &lane->others, work->span));
    lane->counts[work->class]++;
    return add_span(reader, &lane->sets[work->class], work->span);
}

static enum el_status keep_call(struct reader *reader, const struct el_kineto_call *call, bool announces)
{
    struct el_kineto_trace *trace = reader->trace;
    struct el_kineto_call **list = announces ? &reader->announced : &trace->calls;
    size_t *n = announces ? &reader->n_announced : &trace->n_calls;
    if (!EL_GROW(*list, *(announces ? &reader->announced_room : &trace->calls_room), *n + 1))
        return fail_memory(reader);
    (*list)[(*n)++] = *call;
    return EL_OK;
}

/* A device's events are filtered after reading. */
static enum el_status keep_work(struct reader *reader, struct work work)
{
    if (work.device < 0) return work.class < 0 ? EL_OK : count(reader, &work);
    if (work.class < 0 && !work.named) return EL_OK;
    if (!EL_GROW(reader->works, reader->works_room, reader->n_works + 1)) return fail_memory(reader);
    reader->works[reader->n_works++] = work;
    return EL_OK;
}

static enum el_status keep_host_op(struct reader *reader, const struct work *work, struct el_scan_text thread)
{
    struct host_op op = {work->span, (uint32_t)el_hash(EL_HASH_BEGIN, thread.n ? thread.at : "", thread.n),
                         (int8_t)work->class, work->named};
    if (reader->n_works) return EL_OK; /* the host only issues what the devices do */
    if (!EL_GROW(reader->host_ops, reader->host_ops_room, reader->n_host_ops + 1)) return fail_memory(reader);
    reader->host_ops[reader->n_host_ops++] = op;
    return EL_OK;
}

static void note_doubt(struct el_kineto_trace *trace, struct el_scan_text name)
{
    if (trace->n_doubtful++ == 0)
        snprintf(trace->doubtful, sizeof trace->doubtful, "%.*s", (int)(name.n < 80 ? name.n : 80), name.at);
}

static enum el_status note_name(struct reader *reader, const struct el_kineto_event *event)
{
    struct el_scan_text rest = event->args, key, value;
    struct el_kineto_lane lane = {.device = kineto_event_device(event)};
    if (!reader->trace->common_clock || !el_scan_is(event->name, "process_name")) return EL_OK;
    if (el_scan_member(&rest, &key, &value) <= 0) return EL_OK;
    value = el_scan_string(value);
    snprintf(lane.name, sizeof lane.name, "%.*s", (int)(value.n < sizeof lane.name ? value.n : 0), value.at);
    if (!EL_GROW(reader->called, reader->called_room, reader->n_called + 1)) return fail_memory(reader);
    reader->called[reader->n_called++] = lane;
    return EL_OK;
}

static bool is_named(const struct reader *reader, struct el_scan_text name)
{
    const char *named = reader->reading->named;
    return named && name.n && memmem(name.at, name.n, named, strlen(named));
}

static enum el_status take_event(struct reader *reader, struct el_scan_text text)
{
    struct el_kineto_event event;
    struct el_kineto_call call = el_kineto_call_none();
    if (!kineto_event_fields(text, &event))
        return el_scan_fail(&reader->scan, reader->scan.position, "an event that is no JSON");
    if (el_scan_is(event.ph, "M")) return note_name(reader, &event);
    if (!el_scan_is(event.ph, "X")) return EL_OK;
    const bool named =
        event.args.n && memmem(event.args.at, event.args.n, "Collective name", strlen("Collective name"));
    const bool may_call = el_scan_begins(event.name, EL_KINETO_ANNOUNCES) || named ||
                          el_kineto_on_device(event.cat, event.name, false) == EL_KINETO_COMM ||
                          el_kineto_on_host(event.cat, event.name) == EL_KINETO_COMM;
    if (!kineto_event_arguments(&event, may_call ? &call : NULL))
        return el_scan_fail(&reader->scan, reader->scan.position, "an event whose args are no JSON");
    int on_device = el_kineto_on_device(event.cat, event.name, call.verb != EL_COMM_VERB_COUNT);
    int on_host = on_device < 0 ? el_kineto_on_host(event.cat, event.name) : EL_KINETO_NO_WORK;
    struct work work = {.class = on_device < 0 ? on_host : on_device};
    bool announces = el_scan_begins(event.name, EL_KINETO_ANNOUNCES);
    bool calls = announces || (work.class == EL_KINETO_COMM && !el_scan_begins(event.name, "Memcpy"));
    int64_t length_ns;
    if (!el_scan_thousandths(event.ts, &work.span.begin_ns) || !el_scan_thousandths(event.dur, &length_ns))
        return work.class < 0 ? EL_OK : el_scan_fail(&reader->scan, reader->scan.position, "an event without a time");
    work.span.end_ns = work.span.begin_ns + (length_ns > 0 ? length_ns : 0); /* some are negative */
    work.named = is_named(reader, event.name);
    const bool annotates = work.named && el_scan_is(event.cat, "gpu_user_annotation");
    if (work.named && on_host == EL_KINETO_NO_WORK && el_scan_is(event.cat, "user_annotation"))
        on_host = work.class = EL_KINETO_CONTAINER;
    const int phase = el_kineto_phase(event.cat, event.name);
    if (phase >= 0) EL_TRY(add_span(reader, &reader->trace->phases[phase], work.span));
    work.device = on_device < 0 && !annotates ? -1 : kineto_event_device(&event);
    work.correlation = event.correlation;
    if (on_device < 0) EL_TRY(note_step(reader, event.name, work.span));
    if (on_device < 0 && work.correlation >= 0) {
        if (!EL_GROW(reader->launches, reader->launches_room, reader->n_launches + 1)) return fail_memory(reader);
        reader->launches[reader->n_launches++] = (struct launch){work.correlation, work.span.begin_ns};
    }
    if (calls) {
        el_kineto_call_name(&call, event.name);
        call.device = work.device;
        call.span = work.span;
        call.external_id = event.external_id;
        call.correlation = event.correlation;
        EL_TRY(keep_call(reader, &call, announces));
    }
    if (on_device == EL_KINETO_COMPUTE && el_kineto_doubtful(event.name)) note_doubt(reader->trace, event.name);
    if (on_host == EL_KINETO_COMPUTE || on_host == EL_KINETO_CONTAINER || on_host == EL_KINETO_COMM)
        EL_TRY(keep_host_op(reader, &work, event.tid));
    return on_host == EL_KINETO_COMPUTE || on_host == EL_KINETO_CONTAINER ? EL_OK : keep_work(reader, work);
}

static int by_correlation(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    if (x->correlation != y->correlation) return x->correlation < y->correlation ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* In a trace of several steps, work without a host launch, or launched after the last step, does not count. */
static bool is_of_steps(const struct reader *reader, int64_t device, int64_t correlation)
{
    size_t low = 0, high = reader->n_launches;
    if (reader->trace->n_steps < 2 || device < 0 || correlation < 0) return true;
    while (low < high) { /* the correlation's first, which is its earliest */
        size_t middle = low + (high - low) / 2;
        if (reader->launches[middle].correlation < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    return low < reader->n_launches && reader->launches[low].correlation == correlation &&
           reader->launches[low].begin_ns <= reader->steps_end_ns;
}

/* A thread's ops, the outer one first. */
static int by_nesting(const void *a, const void *b)
{
    const struct host_op *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->span.begin_ns != y->span.begin_ns) return x->span.begin_ns < y->span.begin_ns ? -1 : 1;
    return (x->span.end_ns < y->span.end_ns) - (x->span.end_ns > y->span.end_ns);
}

enum { NESTED_MAX = 256 };

/* An op's own time, without that of the ops within it. */
struct nest {
    struct host_op op[NESTED_MAX];
    size_t depth, n_named;
    int64_t from_ns; /* what is before is told */
};

static enum el_status tell_own(struct reader *reader, struct nest *nest, int64_t to_ns)
{
    const struct host_op *op = &nest->op[nest->depth - 1];
    const struct work work = {
        .device = -1, .class = op->class, .named = nest->n_named > 0, .span = {nest->from_ns, to_ns}};
    const bool any = op->class == EL_KINETO_COMPUTE && to_ns > nest->from_ns;
    if (to_ns > nest->from_ns) nest->from_ns = to_ns;
    return any ? count(reader, &work) : EL_OK;
}

static enum el_status leave(struct reader *reader, struct nest *nest, int64_t before_ns)
{
    for (; nest->depth && nest->op[nest->depth - 1].span.end_ns <= before_ns; nest->depth--) {
        EL_TRY(tell_own(reader, nest, nest->op[nest->depth - 1].span.end_ns));
        nest->n_named -= nest->op[nest->depth - 1].named;
    }
    return EL_OK;
}

/* An op that does not lie within the one before it (rounded times, no thread ids) counts whole. */
static enum el_status enter(struct reader *reader, struct nest *nest, const struct host_op *op)
{
    const struct work whole = {.device = -1, .class = op->class, .named = op->named, .span = op->span};
    EL_TRY(leave(reader, nest, op->span.begin_ns));
    if (op->named) EL_TRY(count(reader, &(struct work){.device = -1, .class = -1, .named = true, .span = op->span}));
    if (nest->depth == NESTED_MAX || (nest->depth && op->span.end_ns > nest->op[nest->depth - 1].span.end_ns))
        return op->class == EL_KINETO_COMPUTE ? count(reader, &whole) : EL_OK;
    if (nest->depth) EL_TRY(tell_own(reader, nest, op->span.begin_ns));
    nest->op[nest->depth++] = *op;
    nest->n_named += op->named;
    nest->from_ns = op->span.begin_ns;
    return EL_OK;
}

static enum el_status count_host_ops(struct reader *reader)
{
    struct nest nest = {.depth = 0};
    size_t n_compute = 0;
    if (reader->n_works) return EL_OK;
    if (reader->n_host_ops) qsort(reader->host_ops, reader->n_host_ops, sizeof *reader->host_ops, by_nesting);
    for (size_t i = 0; i < reader->n_host_ops; i++) {
        const bool other = i > 0 && reader->host_ops[i].thread != reader->host_ops[i - 1].thread;
        if (other) EL_TRY(leave(reader, &nest, INT64_MAX));
        EL_TRY(enter(reader, &nest, &reader->host_ops[i]));
        n_compute += reader->host_ops[i].class == EL_KINETO_COMPUTE;
    }
    EL_TRY(leave(reader, &nest, INT64_MAX));
    if (n_compute) lane_of(reader->trace, -1)->counts[EL_KINETO_COMPUTE] = n_compute; /* ops, not their parts */
    return EL_OK;
}

static enum el_status count_works(struct reader *reader)
{
    struct el_kineto_trace *trace = reader->trace;
    size_t n = 0;
    kineto_steps_finish(trace);
    EL_TRY(count_host_ops(reader));
    if (reader->n_launches) qsort(reader->launches, reader->n_launches, sizeof *reader->launches, by_correlation);
    for (size_t i = 0; i < reader->n_works; i++)
        if (is_of_steps(reader, reader->works[i].device, reader->works[i].correlation))
            EL_TRY(count(reader, &reader->works[i]));
    for (size_t i = 0; i < trace->n_calls; i++)
        if (is_of_steps(reader, trace->calls[i].device, trace->calls[i].correlation))
            trace->calls[n++] = trace->calls[i];
    trace->n_calls = n;
    return EL_OK;
}

static enum el_status take_events(struct reader *reader)
{
    struct el_scan *scan = &reader->scan;
    el_scan_take(scan);
    reader->found = true;
    if (el_scan_look(scan) == ']') {
        el_scan_take(scan);
        return EL_OK;
    }
    for (;;) {
        EL_TRY(el_scan_value(scan));
        const struct el_scan_text event = {scan->value, scan->n};
        if (*scan->value == '{')
            EL_TRY(reader->reading->each ? reader->reading->each(reader->reading->of, event)
                                         : take_event(reader, event));
        char next = el_scan_take(scan);
        if (next == ']') return EL_OK;
        if (next != ',') return el_scan_fail(scan, scan->position, "no , or ]");
    }
}

/* ---- the document: an object with traceEvents, or an array of events ---- */

/* [{"pg_name": "1", "pg_size": 2, "ranks": [0, 1]}, ...]: the size of the smallest group of several ranks. */
static int64_t smallest_group(struct el_scan_text groups)
{
    static const char word[] = "\"pg_size\":";
    const char *at = groups.at, *end = groups.at + groups.n;
    int64_t least = -1;
    while ((at = memmem(at, (size_t)(end - at), word, sizeof word - 1))) {
        int64_t size = 0;
        for (at += sizeof word - 1; at < end && *at == ' ';) at++;
        for (; at < end && *at >= '0' && *at <= '9' && size < INT32_MAX; at++) size = size * 10 + (*at - '0');
        if (size > 1 && (least < 0 || size < least)) least = size;
    }
    return least;
}

static void take_info(struct el_kineto_trace *trace, struct el_scan_text rest)
{
    struct el_scan_text key, value;
    int64_t whole;
    while (el_scan_member(&rest, &key, &value) > 0) {
        if (el_scan_is(key, "pg_config")) trace->smallest_group = smallest_group(value);
        if (!el_scan_whole(value, &whole) || whole < 0) continue;
        if (el_scan_is(key, "rank")) trace->rank = whole;
        if (el_scan_is(key, "world_size")) trace->world = whole;
        if (el_scan_is(key, "pg_count")) trace->groups = whole;
    }
}

static enum el_status take_member(struct reader *reader)
{
    struct el_scan *scan = &reader->scan;
    struct el_kineto_trace *trace = reader->trace;
    enum { OTHER, EVENTS, INFO, BASE, CLOCK, MERGED } what = OTHER;
    static const char *const names[] = {"",      "traceEvents",   "distributedInfo", "baseTimeNanoseconds",
                                        "clock", EL_KINETO_MERGED};
    EL_TRY(el_scan_value(scan));
    for (int i = EVENTS; i <= MERGED; i++)
        if (el_scan_is(el_scan_string((struct el_scan_text){scan->value, scan->n}), names[i])) what = i;
    if (*scan->value != '"' || el_scan_take(scan) != ':')
        return el_scan_fail(scan, scan->position, "no name of a member");
    if (what == EVENTS && el_scan_look(scan) == '[') return take_events(reader);
    EL_TRY(el_scan_value(scan));
    const struct el_scan_text value = {scan->value, scan->n};
    if (what == INFO) take_info(trace, value);
    trace->foreign |= what == MERGED;
    if (what == BASE && (!el_scan_whole(value, &trace->base_ns) || llabs(trace->base_ns) > BASE_MAX))
        trace->base_ns = 0;
    if (what == CLOCK) trace->common_clock = el_scan_is(value, "\"" EL_KINETO_COMMON_CLOCK "\"");
    return EL_OK;
}

static enum el_status take_document(struct reader *reader)
{
    struct el_scan *scan = &reader->scan;
    static const char mark[] = "\xef\xbb\xbf"; /* a byte order mark */
    char first = el_scan_look(scan);
    for (int i = 0; i < 3 && first == mark[i]; i++) {
        el_scan_take(scan);
        first = el_scan_look(scan);
    }
    if (first == '[') return take_events(reader);
    if (first != '{') return el_scan_fail(scan, scan->position, "no { or [");
    el_scan_take(scan);
    if (el_scan_look(scan) == '}') {
        reader->trace->foreign = true;
        return EL_OK;
    }
    for (char next = ','; next == ',';) {
        EL_TRY(take_member(reader));
        if (reader->trace->foreign) return EL_OK;
        next = el_scan_take(scan);
        if (next != ',' && next != '}') return el_scan_fail(scan, scan->position, "no , or }");
    }
    reader->trace->foreign = !reader->found;
    return EL_OK;
}

static int by_device(const void *a, const void *b)
{
    const struct el_kineto_lane *x = a, *y = b;
    return (x->device > y->device) - (x->device < y->device);
}

static void free_lane(struct el_kineto_lane *lane)
{
    for (int c = 0; c < EL_KINETO_CLASSES; c++) el_intervals_free(&lane->sets[c]);
    el_intervals_free(&lane->named);
    el_intervals_free(&lane->others);
}

/* Host lanes only issued the work if there are devices. */
static void finish_lanes(const struct reader *reader)
{
    struct el_kineto_trace *trace = reader->trace;
    for (size_t i = 0; i < reader->n_called; i++)
        for (size_t l = 0; l < trace->n_lanes; l++)
            if (trace->lanes[l].device == reader->called[i].device)
                snprintf(trace->lanes[l].name, sizeof trace->lanes[l].name, "%s", reader->called[i].name);
    qsort(trace->lanes, trace->n_lanes, sizeof *trace->lanes, by_device);
    trace->cpu_only = trace->n_lanes == 1 && trace->lanes[0].device < 0;
    if (trace->cpu_only || trace->lanes[0].device >= 0) return;
    free_lane(&trace->lanes[0]);
    memmove(trace->lanes, trace->lanes + 1, --trace->n_lanes * sizeof *trace->lanes);
}

/* `reader` has taken all events. */
static enum el_status finish_trace(struct reader *reader)
{
    struct el_kineto_trace *trace = reader->trace;
    if (trace->foreign) return EL_OK;
    EL_TRY(count_works(reader));
    if (trace->n_lanes == 0)
        return el_fail(EL_ERR_INVALID, "%s: none of its events is counted: no kernel, copy or cpu_op",
                       reader->scan.name);
    finish_lanes(reader);
    if (!el_kineto_phases_finish(trace)) return fail_memory(reader);
    el_kineto_calls_finish(trace, reader->announced, reader->n_announced);
    return EL_OK;
}

static enum el_status read_stream(FILE *file, uint64_t most_bytes, const char *name, const struct reading *reading)
{
    struct el_kineto_trace trace = {.rank = -1,
                                    .world = -1,
                                    .groups = -1,
                                    .smallest_group = -1,
                                    .lanes = calloc(EL_KINETO_LANES_MAX, sizeof *trace.lanes)};
    struct reader reader = {.trace = &trace, .reading = reading, .steps_end_ns = INT64_MIN};
    reader.scan.file = file;
    reader.scan.name = name;
    reader.scan.most = most_bytes;
    enum el_status status = trace.lanes ? take_document(&reader) : el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", name);
    if (status == EL_OK && !el_scan_rest(&reader.scan)) status = EL_ERR_INVALID; /* damage near the end */
    if (status == EL_OK && !reading->each) status = finish_trace(&reader);
    el_scan_free(&reader.scan);
    free(reader.works);
    free(reader.host_ops);
    free(reader.launches);
    free(reader.announced);
    free(reader.called);
    if (status == EL_OK && reading->trace_p)
        *reading->trace_p = trace;
    else
        el_kineto_free(&trace);
    return status;
}

enum el_status el_kineto_read(FILE *file, uint64_t most_bytes, const char *name, const char *named,
                              struct el_kineto_trace *trace_p)
{
    return read_stream(file, most_bytes, name, &(struct reading){.named = named, .trace_p = trace_p});
}

void el_kineto_free(struct el_kineto_trace *trace)
{
    for (size_t i = 0; i < trace->n_lanes; i++) free_lane(&trace->lanes[i]);
    for (int p = 0; p < EL_KINETO_PHASES; p++) el_intervals_free(&trace->phases[p]);
    free(trace->lanes);
    free(trace->calls);
    free(trace->steps);
    *trace = (struct el_kineto_trace){0};
}

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

enum el_status el_kineto_figures(struct el_kineto_lane *lane, struct el_kineto_figures *figures_p)
{
    struct el_intervals *compute = &lane->sets[EL_KINETO_COMPUTE], *comm = &lane->sets[EL_KINETO_COMM], all = {0};
    for (int c = 0; c < EL_KINETO_CLASSES; c++) {
        el_intervals_unite(&lane->sets[c]);
        for (size_t i = 0; i < lane->sets[c].n; i++) el_intervals_add(&all, lane->sets[c].spans[i]);
    }
    el_intervals_unite(&all);
    bool enough = !all.failed;
    int64_t busy = el_intervals_measure(&all), common = el_intervals_common(compute, comm);
    int64_t window = all.n ? all.spans[all.n - 1].end_ns - all.spans[0].begin_ns : 0;
    int64_t compute_ns = el_intervals_measure(compute), comm_ns = el_intervals_measure(comm);
    el_intervals_free(&all);
    if (!enough) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a trace's intervals");
    *figures_p = (struct el_kineto_figures){.window_s = seconds(window),
                                            .compute_s = seconds(compute_ns),
                                            .comm_s = seconds(comm_ns),
                                            .overlapped_s = seconds(common),
                                            .exposed_s = seconds(comm_ns - common),
                                            .other_s = seconds(busy - compute_ns - comm_ns + common),
                                            .idle_s = seconds(window - busy)};
    return EL_OK;
}
