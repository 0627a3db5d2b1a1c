/* Reading a trace event by event: a whole document of it would take ten times the file's size in memory. */
#include "profiles/kineto_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/grow.h"

/* A device's event that may count, and a host's event that tells of one. */
struct work {
    int64_t device, correlation; /* -1: it has none */
    int class;
    struct el_span span;
};
struct launch {
    int64_t correlation, begin_ns;
};

struct reader {
    struct el_scan scan;
    struct el_kineto_trace *trace;
    bool found; /* an array of events */
    struct work *works;
    struct launch *launches;
    size_t n_works, works_room, n_launches, launches_room;
    struct el_kineto_call *announced; /* by record_param_comms */
    size_t n_announced, announced_room;
    int64_t steps_end_ns;
    struct el_kineto_lane *named; /* lanes that have nothing but a name */
    size_t n_named, named_room;
};

/* Sets of a host are united from so many spans on. */
enum { UNITED_FROM = 4096 };
#define BASE_MAX (INT64_C(1) << 61)

/* ---- events ---- */

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
    struct el_scan_text number = {name.at + sizeof word - 1, name.n - (sizeof word - 1)};
    if (!el_scan_begins(name, word) || !el_scan_whole(number, &step.number)) return EL_OK;
    if (span.end_ns > reader->steps_end_ns) reader->steps_end_ns = span.end_ns;
    if (!EL_GROW(trace->steps, trace->steps_room, trace->n_steps + 1)) return fail_memory(reader);
    trace->steps[trace->n_steps++] = step;
    return EL_OK;
}

/* The lanes' sets are united now and then, so that a host's ops, which lie in one another, take little memory. */
static enum el_status count(struct reader *reader, const struct work *work)
{
    struct el_kineto_lane *lane = lane_of(reader->trace, work->device);
    if (!lane) return el_fail(EL_ERR_INVALID, "%s: more than %d devices", reader->scan.name, EL_KINETO_LANES_MAX - 1);
    struct el_intervals *set = &lane->sets[work->class];
    lane->counts[work->class]++;
    if (set->n >= UNITED_FROM && set->n == set->room) {
        el_intervals_unite(set);
        set->failed |= set->n > set->room / 2 && !EL_GROW(set->spans, set->room, set->room + 1);
    }
    el_intervals_add(set, work->span);
    if (set->failed) return fail_memory(reader);
    return EL_OK;
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

/* Of a device what counts is known when all is read. */
static enum el_status keep_work(struct reader *reader, struct work work)
{
    if (work.device < 0) return work.class < 0 ? EL_OK : count(reader, &work);
    if (!EL_GROW(reader->works, reader->works_room, reader->n_works + 1)) return fail_memory(reader);
    reader->works[reader->n_works++] = work;
    return EL_OK;
}

/* The process of a device of our own traces. */
static enum el_status note_name(struct reader *reader, const struct el_kineto_event *event)
{
    struct el_scan_text rest = event->args, key, value;
    struct el_kineto_lane lane = {.device = el_kineto_event_device(event)};
    if (!reader->trace->common_clock || !el_scan_is(event->name, "process_name")) return EL_OK;
    if (el_scan_member(&rest, &key, &value) <= 0) return EL_OK;
    value = el_scan_string(value);
    snprintf(lane.name, sizeof lane.name, "%.*s", (int)(value.n < sizeof lane.name ? value.n : 0), value.at);
    if (!EL_GROW(reader->named, reader->named_room, reader->n_named + 1)) return fail_memory(reader);
    reader->named[reader->n_named++] = lane;
    return EL_OK;
}

static enum el_status take_event(struct reader *reader, struct el_scan_text text)
{
    struct el_kineto_event event;
    struct el_kineto_call call = el_kineto_call_none();
    if (!el_kineto_event_fields(text, &event))
        return el_scan_fail(&reader->scan, reader->scan.position, "an event that is no JSON");
    if (el_scan_is(event.ph, "M")) return note_name(reader, &event);
    if (!el_scan_is(event.ph, "X")) return EL_OK;
    int on_device = el_kineto_class_on_device(event.cat, event.name);
    int on_host = on_device < 0 ? el_kineto_class_on_host(event.cat, event.name) : -1;
    struct work work = {.class = on_device < 0 ? on_host : on_device};
    bool announces = el_scan_begins(event.name, EL_KINETO_ANNOUNCES);
    bool calls = announces || (work.class == EL_KINETO_COMM && !el_scan_begins(event.name, "Memcpy"));
    int64_t length_ns;
    if (!el_kineto_event_arguments(&event, calls ? &call : NULL))
        return el_scan_fail(&reader->scan, reader->scan.position, "an event whose args are no JSON");
    if (!el_scan_thousandths(event.ts, &work.span.begin_ns) || !el_scan_thousandths(event.dur, &length_ns))
        return work.class < 0 ? EL_OK : el_scan_fail(&reader->scan, reader->scan.position, "an event without a time");
    work.span.end_ns = work.span.begin_ns + length_ns;
    work.device = on_device < 0 ? -1 : el_kineto_event_device(&event);
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
    return keep_work(reader, work);
}

/* ---- what of them counts ---- */

static int by_correlation(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    if (x->correlation != y->correlation) return x->correlation < y->correlation ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Of a trace of several steps what no host asked for, or only after the last one, is no part of them. */
static bool is_of_steps(const struct reader *reader, int64_t device, int64_t correlation)
{
    size_t low = 0, high = reader->n_launches;
    if (reader->trace->n_steps < 2 || device < 0 || correlation < 0) return true;
    while (low < high) { /* the first of the correlation, which is its earliest */
        size_t middle = low + (high - low) / 2;
        if (reader->launches[middle].correlation < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    return low < reader->n_launches && reader->launches[low].correlation == correlation &&
           reader->launches[low].begin_ns <= reader->steps_end_ns;
}

static enum el_status count_works(struct reader *reader)
{
    struct el_kineto_trace *trace = reader->trace;
    size_t n = 0;
    el_kineto_steps_finish(trace);
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
        if (*scan->value == '{') EL_TRY(take_event(reader, (struct el_scan_text){scan->value, scan->n}));
        char next = el_scan_take(scan);
        if (next == ']') return EL_OK;
        if (next != ',') return el_scan_fail(scan, scan->position, "no , or ]");
    }
}

/* ---- the document: an object with traceEvents, or an array of events ---- */

static void take_info(struct el_kineto_trace *trace, struct el_scan_text rest)
{
    struct el_scan_text key, value;
    int64_t whole;
    while (el_scan_member(&rest, &key, &value) > 0) {
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
    enum { OTHER, EVENTS, INFO, BASE, CLOCK } what = OTHER;
    static const char *const names[] = {"", "\"traceEvents\"", "\"distributedInfo\"", "\"baseTimeNanoseconds\"",
                                        "\"clock\""};
    EL_TRY(el_scan_value(scan));
    for (int i = EVENTS; i <= CLOCK; i++)
        if (el_scan_is((struct el_scan_text){scan->value, scan->n}, names[i])) what = i;
    if (*scan->value != '"' || el_scan_take(scan) != ':')
        return el_scan_fail(scan, scan->position, "no name of a member");
    if (what == EVENTS && el_scan_look(scan) == '[') return take_events(reader);
    EL_TRY(el_scan_value(scan));
    const struct el_scan_text value = {scan->value, scan->n};
    if (what == INFO) take_info(trace, value);
    if (what == BASE && (!el_scan_whole(value, &trace->base_ns) || llabs(trace->base_ns) > BASE_MAX))
        trace->base_ns = 0;
    if (what == CLOCK) trace->common_clock = el_scan_is(value, "\"" EL_KINETO_COMMON_CLOCK "\"");
    return EL_OK;
}

static enum el_status take_document(struct reader *reader)
{
    struct el_scan *scan = &reader->scan;
    char first = el_scan_look(scan);
    if (first == '[') return take_events(reader);
    if (first != '{') return el_scan_fail(scan, scan->position, "no { or [");
    el_scan_take(scan);
    if (el_scan_look(scan) == '}') return el_scan_fail(scan, scan->position, "no traceEvents");
    for (char next = ','; next == ',';) {
        EL_TRY(take_member(reader));
        next = el_scan_take(scan);
        if (next != ',' && next != '}') return el_scan_fail(scan, scan->position, "no , or }");
    }
    return reader->found ? EL_OK : el_scan_fail(scan, scan->position, "no traceEvents");
}

static int by_device(const void *a, const void *b)
{
    const struct el_kineto_lane *x = a, *y = b;
    return (x->device > y->device) - (x->device < y->device);
}

static void free_lane(struct el_kineto_lane *lane)
{
    for (int c = 0; c < EL_KINETO_CLASSES; c++) el_intervals_free(&lane->sets[c]);
}

/* What a device has, its host only asked for. */
static void finish_lanes(const struct reader *reader)
{
    struct el_kineto_trace *trace = reader->trace;
    for (size_t i = 0; i < reader->n_named; i++)
        for (size_t l = 0; l < trace->n_lanes; l++)
            if (trace->lanes[l].device == reader->named[i].device)
                snprintf(trace->lanes[l].name, sizeof trace->lanes[l].name, "%s", reader->named[i].name);
    qsort(trace->lanes, trace->n_lanes, sizeof *trace->lanes, by_device);
    trace->cpu_only = trace->n_lanes == 1 && trace->lanes[0].device < 0;
    if (trace->cpu_only || trace->lanes[0].device >= 0) return;
    free_lane(&trace->lanes[0]);
    memmove(trace->lanes, trace->lanes + 1, --trace->n_lanes * sizeof *trace->lanes);
}

enum el_status el_kineto_read(FILE *file, uint64_t most_bytes, const char *name, struct el_kineto_trace *trace_p)
{
    struct el_kineto_trace trace = {
        .rank = -1, .world = -1, .groups = -1, .lanes = calloc(EL_KINETO_LANES_MAX, sizeof *trace.lanes)};
    struct reader reader = {.trace = &trace, .steps_end_ns = INT64_MIN};
    reader.scan.file = file;
    reader.scan.name = name;
    reader.scan.most = most_bytes;
    enum el_status status = trace.lanes ? take_document(&reader) : el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", name);
    if (status == EL_OK && !el_scan_rest(&reader.scan)) status = EL_ERR_INVALID; /* damage that shows at the end */
    if (status == EL_OK) status = count_works(&reader);
    el_scan_free(&reader.scan);
    free(reader.works);
    free(reader.launches);
    if (status == EL_OK && trace.n_lanes == 0)
        status = el_fail(EL_ERR_INVALID, "%s: none of its events is counted: no kernel, copy or cpu_op", name);
    if (status == EL_OK) {
        finish_lanes(&reader);
        el_kineto_calls_finish(&trace, reader.announced, reader.n_announced);
        *trace_p = trace;
    } else {
        el_kineto_free(&trace);
    }
    free(reader.announced);
    free(reader.named);
    return status;
}

void el_kineto_free(struct el_kineto_trace *trace)
{
    for (size_t i = 0; i < trace->n_lanes; i++) free_lane(&trace->lanes[i]);
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
