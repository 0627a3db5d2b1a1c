/* Reading a trace event by event: a whole document of it would take ten times the file's size in memory. */
#include "profiles/kineto.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
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

enum { VALUE_BYTES_MAX = 8 << 20 };

struct reader {
    FILE *file;
    const char *name;
    uint64_t position, most; /* bytes that were taken, and that may be */
    size_t given;            /* bytes of the value that is being taken */
    int last;                /* of them */
    bool failed;             /* reading did, and has left its message */
    struct el_kineto_trace *trace;
    bool found; /* an array of events */
    struct work *works;
    struct launch *launches;
    size_t n_works, works_room, n_launches, launches_room;
    char step[64]; /* the name of one of the profiler's steps */
    bool steps;    /* there are others */
    int64_t steps_end_ns;
};

/* ---- pieces of JSON ---- */

static enum el_status fail_at(const struct reader *reader, uint64_t position, const char *what)
{
    if (reader->failed) return EL_ERR_INVALID;
    return el_fail(EL_ERR_INVALID, "%s: %s at byte %" PRIu64 ": the file is damaged, cut off, or no trace",
                   reader->name, what, position);
}

static enum el_status fail_here(const struct reader *reader, const char *what)
{
    return fail_at(reader, reader->position, what);
}

/* EOF: the end, or what was read cannot be gone on with. */
static int next_byte(struct reader *reader)
{
    int next = reader->failed ? EOF : getc(reader->file);
    if (next == EOF && !reader->failed && ferror(reader->file)) {
        el_fail_errno("%s could not be read", reader->name);
        reader->failed = true;
    } else if (next != EOF && reader->position == reader->most) {
        el_fail(EL_ERR_INVALID,
                "%s: unpacks to more than %d times its size, or 4 GiB, which no profiler's trace does: unpack it first "
                "if you trust it",
                reader->name, EL_KINETO_UNPACKED_RATIO);
        reader->failed = true;
        return EOF;
    }
    reader->position += next != EOF;
    return next;
}

static void put_back(struct reader *reader, int byte)
{
    if (byte == EOF) return;
    ungetc(byte, reader->file);
    reader->position--;
}

/* The next character that is no blank; 0 at the end. */
static char look(struct reader *reader)
{
    int next;
    do next = next_byte(reader);
    while (next > 0 && strchr(" \t\r\n", next));
    put_back(reader, next);
    return next == EOF ? 0 : (char)next;
}

/* The same, and beyond it. */
static char take(struct reader *reader)
{
    char next = look(reader);
    if (next) next_byte(reader);
    return next;
}

/* For jansson, byte by byte, so that none is taken beyond the value but the one that ends a number; a value that is too
 * large ends as a file that is cut off does. */
static size_t give(void *to, size_t most, void *context)
{
    struct reader *reader = context;
    (void)most;
    reader->last = reader->given < VALUE_BYTES_MAX ? next_byte(reader) : EOF;
    if (reader->last == EOF) return 0;
    *(char *)to = (char)reader->last;
    reader->given++;
    return 1;
}

static enum el_status take_value(struct reader *reader, json_t **value_p)
{
    json_error_t error;
    look(reader);
    uint64_t begin = reader->position;
    reader->given = 0;
    *value_p = json_load_callback(give, reader, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &error);
    if (*value_p && reader->given > (size_t)error.position) put_back(reader, reader->last);
    if (*value_p) return EL_OK;
    return fail_at(reader, begin, reader->given < VALUE_BYTES_MAX ? "no JSON" : "a value of more than 8 MiB");
}

/* ---- events ---- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_one_of(const char *text, const char *const *words)
{
    while (*words && strcmp(text, *words) != 0) words++;
    return *words != NULL;
}

/* -1: the event is not counted. */
static int class_on_device(const char *cat, const char *name)
{
    static const char *const kernels[] = {"kernel", "Kernel", NULL}, *const copies[] = {"gpu_memcpy", "gpu_memset",
                                                                                        "Memcpy", "Memset", NULL};
    if (is_one_of(cat, copies)) return begins(name, "Memcpy PtoP") ? EL_KINETO_COMM : EL_KINETO_COPY;
    if (!is_one_of(cat, kernels)) return -1;
    if (begins(name, "nccl") && strstr(name, "Kernel")) return EL_KINETO_COMM;
    return begins(name, "Memcpy") || begins(name, "Memset") ? EL_KINETO_COPY : EL_KINETO_COMPUTE;
}

static int class_on_host(const char *cat, const char *name)
{
    static const char *const movers[] = {"gloo:", "mpi:", "nccl:", "ucc:"};
    bool op = !strcmp(cat, "cpu_op");
    if (!op && strcmp(cat, "user_annotation") != 0) return -1;
    for (size_t i = 0; i < sizeof movers / sizeof movers[0]; i++)
        if (begins(name, movers[i])) return EL_KINETO_COMM;
    return !op || begins(name, "c10d::") || begins(name, "record_param_comms") ? -1 : EL_KINETO_COMPUTE;
}

static struct el_kineto_lane *lane_of(struct el_kineto_trace *trace, int64_t device)
{
    size_t i = 0;
    while (i < trace->n_lanes && trace->lanes[i].device != device) i++;
    if (i == EL_KINETO_LANES_MAX) return NULL;
    if (i == trace->n_lanes) trace->lanes[trace->n_lanes++].device = device;
    return &trace->lanes[i];
}

/* Microseconds of a trace: since 1970 they are 1.8e15, and differences of such times fit into 64 bits of nanoseconds.
 */
static bool take_ns(const json_t *value, int64_t *ns_p)
{
    double us = json_number_value(value);
    if (!json_is_number(value) || !(fabs(us) < 2.2e15)) return false;
    *ns_p = json_is_integer(value) ? json_integer_value(value) * 1000 : llround(us * 1e3);
    return true;
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

/* The event's own device, or the process that stands for it. */
static int64_t device_of(const json_t *event)
{
    const json_t *device = json_object_get(json_object_get(event, "args"), "device");
    if (!json_is_integer(device)) device = json_object_get(event, "pid");
    return json_is_integer(device) && json_integer_value(device) >= 0 ? json_integer_value(device) : 0;
}

static enum el_status fail_memory(const struct reader *reader)
{
    return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for its events", reader->name);
}

static void note_step(struct reader *reader, const char *name, struct el_span span)
{
    if (!begins(name, "ProfilerStep")) return;
    if (*reader->step && strncmp(reader->step, name, sizeof reader->step - 1) != 0) reader->steps = true;
    if (!*reader->step) snprintf(reader->step, sizeof reader->step, "%s", name);
    if (span.end_ns > reader->steps_end_ns) reader->steps_end_ns = span.end_ns;
}

static enum el_status take_event(struct reader *reader, const json_t *event)
{
    const char *cat = text_of(event, "cat"), *name = text_of(event, "name");
    const json_t *correlation = json_object_get(json_object_get(event, "args"), "correlation");
    struct work work = {.correlation = json_is_integer(correlation) ? json_integer_value(correlation) : -1};
    int on_device = class_on_device(cat, name), on_host = on_device < 0 ? class_on_host(cat, name) : -1;
    int64_t length_ns;
    if (strcmp(text_of(event, "ph"), "X") != 0) return EL_OK;
    bool timed = take_ns(json_object_get(event, "ts"), &work.span.begin_ns) &&
                 take_ns(json_object_get(event, "dur"), &length_ns);
    if (!timed) return on_device < 0 && on_host < 0 ? EL_OK : fail_here(reader, "an event without a time");
    work.span.end_ns = work.span.begin_ns + length_ns;
    work.class = on_device < 0 ? on_host : on_device;
    work.device = on_device < 0 ? -1 : device_of(event);
    if (on_device < 0) note_step(reader, name, work.span);
    if (!EL_GROW(reader->works, reader->works_room, reader->n_works + 1) ||
        !EL_GROW(reader->launches, reader->launches_room, reader->n_launches + 1))
        return fail_memory(reader);
    if (on_device < 0 && work.correlation >= 0)
        reader->launches[reader->n_launches++] = (struct launch){work.correlation, work.span.begin_ns};
    if (work.class >= 0) reader->works[reader->n_works++] = work;
    return EL_OK;
}

/* ---- what of them counts ---- */

static int by_correlation(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    if (x->correlation != y->correlation) return x->correlation < y->correlation ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Of a trace of several steps what no host asked for, or only after the last one, is no part of them. */
static bool is_of_steps(const struct reader *reader, const struct work *work)
{
    size_t low = 0, high = reader->n_launches;
    if (!reader->steps || work->device < 0 || work->correlation < 0) return true;
    while (low < high) { /* the first of the correlation, which is its earliest */
        size_t middle = low + (high - low) / 2;
        if (reader->launches[middle].correlation < work->correlation)
            low = middle + 1;
        else
            high = middle;
    }
    return low < reader->n_launches && reader->launches[low].correlation == work->correlation &&
           reader->launches[low].begin_ns <= reader->steps_end_ns;
}

static enum el_status count_works(struct reader *reader)
{
    if (reader->n_launches) qsort(reader->launches, reader->n_launches, sizeof *reader->launches, by_correlation);
    for (size_t i = 0; i < reader->n_works; i++) {
        const struct work *work = &reader->works[i];
        if (!is_of_steps(reader, work)) continue;
        struct el_kineto_lane *lane = lane_of(reader->trace, work->device);
        if (!lane) return el_fail(EL_ERR_INVALID, "%s: more than %d devices", reader->name, EL_KINETO_LANES_MAX - 1);
        lane->counts[work->class]++;
        el_intervals_add(&lane->sets[work->class], work->span);
        if (lane->sets[work->class].failed) return fail_memory(reader);
    }
    return EL_OK;
}

static enum el_status take_events(struct reader *reader)
{
    take(reader);
    reader->found = true;
    if (look(reader) == ']') {
        take(reader);
        return EL_OK;
    }
    for (;;) {
        json_t *event;
        EL_TRY(take_value(reader, &event));
        enum el_status status = json_is_object(event) ? take_event(reader, event) : EL_OK;
        json_decref(event);
        EL_TRY(status);
        char next = take(reader);
        if (next == ']') return EL_OK;
        if (next != ',') return fail_here(reader, "no , or ]");
    }
}

/* ---- the document: an object with traceEvents, or an array of events ---- */

static enum el_status take_member(struct reader *reader)
{
    json_t *key, *value = NULL;
    EL_TRY(take_value(reader, &key));
    bool is_text = json_is_string(key), events = is_text && !strcmp(json_string_value(key), "traceEvents");
    bool info = is_text && !strcmp(json_string_value(key), "distributedInfo");
    json_decref(key);
    if (!is_text || take(reader) != ':') return fail_here(reader, "no name of a member");
    if (events && look(reader) == '[') return take_events(reader);
    EL_TRY(take_value(reader, &value));
    const json_t *rank = info ? json_object_get(value, "rank") : NULL;
    if (json_is_integer(rank) && json_integer_value(rank) >= 0) reader->trace->rank = json_integer_value(rank);
    json_decref(value);
    return EL_OK;
}

static enum el_status take_document(struct reader *reader)
{
    char first = look(reader);
    if (first == '[') return take_events(reader);
    if (first != '{') return fail_here(reader, "no { or [");
    take(reader);
    if (look(reader) == '}') return fail_here(reader, "no traceEvents");
    for (char next = ','; next == ',';) {
        EL_TRY(take_member(reader));
        next = take(reader);
        if (next != ',' && next != '}') return fail_here(reader, "no , or }");
    }
    return reader->found ? EL_OK : fail_here(reader, "no traceEvents");
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

enum el_status el_kineto_read(FILE *file, uint64_t most_bytes, const char *name, struct el_kineto_trace *trace_p)
{
    struct el_kineto_trace trace = {.rank = -1, .lanes = calloc(EL_KINETO_LANES_MAX, sizeof *trace.lanes)};
    struct reader reader = {.file = file, .name = name, .most = most_bytes, .trace = &trace, .steps_end_ns = INT64_MIN};
    enum el_status status = trace.lanes ? take_document(&reader) : el_fail(EL_ERR_HOST_MEMORY, "%s: no memory", name);
    while (status == EL_OK && next_byte(&reader) != EOF) continue; /* what is packed is found damaged at its end */
    if (status == EL_OK && reader.failed) status = EL_ERR_INVALID;
    if (status == EL_OK) status = count_works(&reader);
    free(reader.works);
    free(reader.launches);
    if (status == EL_OK && trace.n_lanes == 0)
        status = el_fail(EL_ERR_INVALID, "%s: none of its events is counted: no kernel, copy or cpu_op", name);
    if (status != EL_OK) {
        el_kineto_free(&trace);
        return status;
    }
    qsort(trace.lanes, trace.n_lanes, sizeof *trace.lanes, by_device);
    trace.cpu_only = trace.n_lanes == 1 && trace.lanes[0].device < 0;
    if (!trace.cpu_only && trace.lanes[0].device < 0) { /* what a device has, its host only asked for */
        free_lane(&trace.lanes[0]);
        memmove(trace.lanes, trace.lanes + 1, --trace.n_lanes * sizeof *trace.lanes);
    }
    *trace_p = trace;
    return EL_OK;
}

void el_kineto_free(struct el_kineto_trace *trace)
{
    for (size_t i = 0; i < trace->n_lanes; i++) free_lane(&trace->lanes[i]);
    free(trace->lanes);
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
