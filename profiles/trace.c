/* A rank's trace file: what the lanes are called, the steps in it, phases, memory, and who waits for whom. What one op
 * is written as is trace_op.c's. */
#include "profiles/kineto.h"
#include "profiles/trace_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiles/recorder_internal.h"
#include "runtime/base/files.h"
#include "runtime/device/device.h"

/* ---- pieces of JSON ---- */

void el_trace_text(struct el_trace *trace, const char *text)
{
    fputc('"', trace->file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', trace->file);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, trace->file);
    }
    fputc('"', trace->file);
}

/* A time of the rank's clock on rank 0's; a virtual one from the first step on. */
static int64_t common_ns(const struct el_trace *trace, int64_t own_ns)
{
    const struct el_trace_rank *rank = trace->rank;
    if (!rank->recorder->simulated) return el_clock_common(&rank->begin, &rank->end, own_ns);
    return rank->shifts_ns ? rank->shifts_ns[trace->step] + own_ns : own_ns;
}

static void put_us(struct el_trace *trace, const char *key, int64_t ns)
{
    fprintf(trace->file, ", \"%s\": %" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

void el_trace_begin(struct el_trace *trace, char ph, const char *cat, const char *name, int pid, int tid, int64_t at_ns)
{
    fprintf(trace->file, "%s\n{\"ph\": \"%c\", ", trace->comma ? "," : "", ph);
    if (cat) fprintf(trace->file, "\"cat\": \"%s\", ", cat);
    fputs("\"name\": ", trace->file);
    el_trace_text(trace, name);
    fprintf(trace->file, ", \"pid\": %d, \"tid\": %d", pid, tid);
    put_us(trace, "ts", ph == 'M' ? 0 : common_ns(trace, at_ns));
    trace->comma = true;
}

void el_trace_duration(struct el_trace *trace, struct el_span span)
{
    put_us(trace, "dur", common_ns(trace, span.end_ns) - common_ns(trace, span.begin_ns));
    fputs(", \"args\": {", trace->file);
}

/* ---- lanes ---- */

int el_trace_thread(const struct el_op_info *op)
{
    return (op->device + 1) * 1000 + op->stream;
}

static void put_name(struct el_trace *trace, const char *what, int pid, int tid, const char *key, const char *text)
{
    el_trace_begin(trace, 'M', NULL, what, pid, tid, 0);
    fprintf(trace->file, ", \"args\": {\"%s\": ", key);
    el_trace_text(trace, text);
    fputs("}}", trace->file);
}

static void put_order(struct el_trace *trace, const char *what, int pid, int tid, int place)
{
    el_trace_begin(trace, 'M', NULL, what, pid, tid, 0);
    fprintf(trace->file, ", \"args\": {\"sort_index\": %d}}", place);
}

/* The streams that a device's ops have in this step's list. */
static void name_streams(struct el_trace *trace, const struct el_step_event *step, int device)
{
    const char *name = trace->rank->devices[device - trace->first].name;
    char text[96];
    uint64_t seen = 0;
    for (int i = 0; i < step->n_ops; i++) {
        const struct el_op_info *op = &step->ops[i];
        if (op->device != device || op->stream >= 64 || (seen >> op->stream & 1)) continue;
        seen |= UINT64_C(1) << op->stream;
        snprintf(text, sizeof text, "%s stream %d%s", name, op->stream, op->stream ? "" : " (compute)");
        put_name(trace, "thread_name", trace->pid, el_trace_thread(op), "name", text);
        put_order(trace, "thread_sort_index", trace->pid, el_trace_thread(op), el_trace_thread(op));
        snprintf(text, sizeof text, "stream %d", op->stream);
        put_name(trace, "thread_name", device, op->stream, "name", text);
        put_order(trace, "thread_sort_index", device, op->stream, op->stream);
    }
}

static void name_lanes(struct el_trace *trace, const struct el_step_event *step, int n_devices)
{
    char text[96];
    snprintf(text, sizeof text, "evenload rank %d", trace->rank->rank);
    put_name(trace, "process_name", trace->pid, 0, "name", text);
    put_name(trace, "process_labels", trace->pid, 0, "labels", "CPU");
    put_order(trace, "process_sort_index", trace->pid, 0, trace->rank->rank * 1000);
    put_name(trace, "thread_name", trace->pid, trace->pid, "name", "steps");
    for (int d = trace->first; d < trace->first + n_devices; d++) {
        put_name(trace, "process_name", d, 0, "name", trace->rank->devices[d - trace->first].name);
        snprintf(text, sizeof text, "device %d", d);
        put_name(trace, "process_labels", d, 0, "labels", text);
        put_order(trace, "process_sort_index", d, 0, trace->rank->rank * 1000 + d + 1);
        name_streams(trace, step, d);
    }
}

/* ---- what stands beside the ops of a step ---- */

static bool same_box(const struct el_op_info *a, const struct el_op_info *b)
{
    return a->phase == b->phase && a->piece.kind == b->piece.kind && a->piece.part == b->piece.part &&
           a->piece.micro == b->piece.micro;
}

static void put_annotation(struct el_trace *trace, const char *name, int thread, struct el_span span)
{
    el_trace_begin(trace, 'X', "user_annotation", name, trace->pid, thread, span.begin_ns);
    el_trace_duration(trace, span);
    fputs("}}", trace->file);
}

static void put_box(struct el_trace *trace, const struct el_op_info *op, struct el_span span)
{
    char name[64];
    snprintf(name, sizeof name, "%s", el_phase_name(op->phase));
    if (op->piece.kind)
        snprintf(name, sizeof name, "%s (%c, part %d, micro-batch %d)", el_phase_name(op->phase), op->piece.kind,
                 op->piece.part, op->piece.micro);
    put_annotation(trace, name, el_trace_thread(op), span);
}

/* Ops of one phase and box that follow one another on the compute stream stand in an annotation of that name. */
static void put_boxes(struct el_trace *trace, const struct el_step_event *step, int device)
{
    const struct el_op_info *open = NULL;
    struct el_span span = {0};
    for (int i = 0; i < step->n_ops; i++) {
        const struct el_op_info *op = &step->ops[i];
        if (op->device != device || op->stream != EL_STREAM_COMPUTE) continue;
        if (open && !same_box(open, op)) put_box(trace, open, span);
        if (!open || !same_box(open, op)) span.begin_ns = step->spans[i].begin_ns;
        span.end_ns = step->spans[i].end_ns;
        open = op;
    }
    if (open) put_box(trace, open, span);
}

/* Live bytes by tag; `live` goes on from mark to mark. */
static void put_memory(struct el_trace *trace, int device, const int64_t *live, int64_t at_ns)
{
    char name[96];
    bool comma = false;
    snprintf(name, sizeof name, "memory of %s", trace->rank->devices[device - trace->first].name);
    el_trace_begin(trace, 'C', NULL, name, device, 0, at_ns);
    fputs(", \"args\": {", trace->file);
    for (int tag = 0; tag < EL_TAG_COUNT; tag++) {
        if (tag == EL_TAG_PADDING && live[tag] == 0) continue;
        fprintf(trace->file, "%s\"%s\": %" PRId64, comma ? ", " : "", el_tag_name(tag), live[tag]);
        comma = true;
    }
    fputs("}}", trace->file);
}

/* A mark lies at the begin of the next op of its device's compute stream. */
static void put_counters(struct el_trace *trace, const struct el_step_event *step, int device)
{
    int64_t live[EL_TAG_COUNT];
    int mark = 0;
    for (int tag = 0; tag < EL_TAG_COUNT; tag++)
        live[tag] = (int64_t)trace->rank->devices[device - trace->first].resident[tag];
    put_memory(trace, device, live, step->whole.begin_ns);
    for (int i = 0; i <= step->n_ops; i++) {
        bool changed = false, last = i == step->n_ops;
        if (!last && (step->ops[i].device != device || step->ops[i].stream != 0)) continue;
        for (; mark < step->n_marks && step->marks[mark].op <= i; mark++) {
            if (step->marks[mark].device != device) continue;
            live[step->marks[mark].tag] += step->marks[mark].bytes;
            changed = true;
        }
        if (changed) put_memory(trace, device, live, last ? step->whole.end_ns : step->spans[i].begin_ns);
    }
}

/* An arrow from an op to one of another stream that waits for it. Between works of devices; else on their threads. */
static void put_end(struct el_trace *trace, char ph, const struct el_op_info *op, int64_t at_ns, int64_t id)
{
    bool host = op->op_class == EL_CLASS_HOST;
    el_trace_begin(trace, ph, "wait", "wait", host ? trace->pid : op->device, host ? el_trace_thread(op) : op->stream,
                   at_ns);
    fprintf(trace->file, ", \"id\": %" PRId64 "%s}", id, ph == 'f' ? ", \"bp\": \"e\"" : "");
}

static void put_waits(struct el_trace *trace, const struct el_step_event *step, const struct el_trace_op *ops)
{
    for (int i = 0; i < step->n_ops; i++) {
        for (int w = 0; w < step->ops[i].n_waits; w++) {
            int from = step->waits[step->ops[i].first_wait + w];
            int64_t id = trace->next_id++;
            put_end(trace, 's', &step->ops[from], ops[from].arrived_ns, id);
            put_end(trace, 'f', &step->ops[i], ops[i].arrived_ns, id);
        }
    }
}

/* ---- steps ---- */

/* Where the last member had arrived, for the device's collectives in order. */
static void fill_arrivals(const struct el_recorder *recorder, size_t number, int device, struct el_trace_op *ops)
{
    const struct op_list *list = el_recorder_list(recorder, &recorder->steps[number]);
    const int64_t *latest = el_recorder_latest(recorder, list, device, number);
    for (int i = 0; i < list->n_ops && latest; i++)
        if (el_recorder_is_comm(&list->ops[i], device)) ops[i].arrived_ns = el_recorder_arrival(ops[i].span, *latest++);
}

/* The step's ops with their times: [step->n_ops], to be freed; NULL: no memory. */
static struct el_trace_op *list_ops(const struct el_trace *trace, int n_devices, const struct el_step_event *step)
{
    struct el_trace_op *ops = calloc((size_t)step->n_ops + 1, sizeof *ops);
    const struct el_span *launches = el_recorder_launches(trace->rank->recorder, (size_t)trace->step);
    for (int i = 0; ops && i < step->n_ops; i++)
        ops[i] = (struct el_trace_op){.info = &step->ops[i],
                                      .span = step->spans[i],
                                      .launch = launches ? launches[i] : (struct el_span){0},
                                      .arrived_ns = step->spans[i].begin_ns,
                                      .id = trace->next_id + i};
    for (int d = trace->first; ops && d < trace->first + n_devices; d++)
        fill_arrivals(trace->rank->recorder, (size_t)trace->step, d, ops);
    return ops;
}

static enum el_status put_step(struct el_trace *trace, int n_devices, size_t number)
{
    struct el_step_event step = el_recorder_step(trace->rank->recorder, number);
    char name[48];
    trace->step = (int64_t)number;
    struct el_trace_op *ops = list_ops(trace, n_devices, &step);
    if (!ops) return el_fail(EL_ERR_HOST_MEMORY, "trace: no memory for a step");
    snprintf(name, sizeof name, "ProfilerStep#%zu", number);
    put_annotation(trace, name, trace->pid, step.whole);
    trace->next_id += step.n_ops;
    for (int d = trace->first; d < trace->first + n_devices; d++) {
        put_boxes(trace, &step, d);
        put_counters(trace, &step, d);
    }
    for (int i = 0; i < step.n_ops; i++) el_trace_put_op(trace, &ops[i]);
    put_waits(trace, &step, ops);
    free(ops);
    return EL_OK;
}

/* The rank stands on a line of its own near the begin: tools look for it before they read the whole. */
static void put_head(struct el_trace *trace)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    fputs("{\n\"schemaVersion\": 1,\n\"deviceProperties\": [],\n\"distributedInfo\": {\"backend\": ", trace->file);
    el_trace_text(trace, trace->rank->comm ? trace->rank->comm : "none");
    fprintf(trace->file, ", \"rank\": %d, \"world_size\": %d},\n\"host_name\": ", trace->rank->rank,
            trace->rank->layout->n_workers);
    el_trace_text(trace, host);
    fprintf(trace->file,
            ",\n\"clock\": \"" EL_KINETO_COMMON_CLOCK
            "\",\n\"simulated\": %s,\n\"record_shapes\": 1,\n\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [",
            trace->rank->recorder->simulated ? "true" : "false");
}

int64_t el_trace_cycles(const struct el_trace_rank *rank)
{
    int64_t last = -1;
    for (size_t s = 0; s < el_recorder_step_count(rank->recorder); s++) {
        int64_t cycle = el_profile_cycle(&rank->schedule, (int64_t)s);
        if (cycle > last) last = cycle;
    }
    return last + 1;
}

int64_t *el_trace_shifts(struct el_recorder *const *recorders, int n_recorders)
{
    size_t n = n_recorders > 0 && recorders[0]->simulated ? el_recorder_step_count(recorders[0]) : 0;
    int64_t *shifts_ns = n ? calloc(n, sizeof *shifts_ns) : NULL;
    for (size_t s = 1; shifts_ns && s < n; s++) {
        int64_t longest_ns = 0;
        for (int i = 0; i < n_recorders; i++) {
            bool has = s - 1 < el_recorder_step_count(recorders[i]);
            int64_t end_ns = has ? el_recorder_step(recorders[i], s - 1).whole.end_ns : 0;
            if (end_ns > longest_ns) longest_ns = end_ns;
        }
        shifts_ns[s] = shifts_ns[s - 1] + longest_ns;
    }
    return shifts_ns;
}

enum el_status el_trace_write(const struct el_trace_rank *rank, int64_t cycle, const char *path)
{
    /* Devices' lanes have their positions for a process number. */
    int pid = getpid();
    struct el_trace trace = {.rank = rank, .pid = pid < EL_SIMULATED_MAX ? pid + 1000000 : pid, .next_id = 1};
    int n_devices = el_layout_of_worker(rank->layout, rank->rank, &trace.first);
    char temporary[EL_PATH_BYTES + 64];
    enum el_status status = EL_OK;
    trace.file = el_file_begin(path, temporary, sizeof temporary);
    if (!trace.file) return el_fail_errno("%s", path);
    put_head(&trace);
    for (size_t s = 0; s < el_recorder_step_count(rank->recorder) && status == EL_OK; s++) {
        if (el_profile_cycle(&rank->schedule, (int64_t)s) != cycle) continue;
        struct el_step_event step = el_recorder_step(rank->recorder, s);
        if (!trace.comma) name_lanes(&trace, &step, n_devices);
        status = put_step(&trace, n_devices, s);
    }
    fputs("\n]}\n", trace.file);
    if (status == EL_OK) return el_file_end(trace.file, temporary, path);
    el_file_drop(trace.file, temporary);
    return status;
}
