/* A rank's trace file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "profiles/kineto.h"
#include "profiles/recorder_internal.h"
#include "profiles/trace.h"
#include "runtime/base/files.h"
#include "runtime/device/device.h"

struct el_trace {
    const struct el_trace_rank *rank;
    FILE *file;
    int pid, first;        /* first: position of its first device */
    int64_t next_id, step; /* step: being written */
    bool comma;
};

struct el_trace_op {
    const struct el_op_info *info;
    struct el_span span;
    struct el_span launch; /* when the host queued it; empty: its stream's thread computed it */
    int64_t arrived_ns;    /* last arrival within the span; its begin if nobody is awaited */
    int64_t id;            /* links its events */
};

static void trace_begin(struct el_trace *trace, char ph, const char *cat, const char *name, int pid, int tid,
                        int64_t at_ns);
static void trace_duration(struct el_trace *trace, struct el_span span);
static void trace_text(struct el_trace *trace, const char *text);
static int trace_thread(const struct el_op_info *op);

/* An op as PyTorch's tools expect it: they recognize communication by its kernel's name (nccl...Kernel) and copies by
 * theirs (Memcpy ...), and treat the rest of a device's stream as computation. So names follow them, and the real
 * transport is in the arguments. */

/* "all_reduce" -> "AllReduce" */
static void capitals(const char *verb, char *text, size_t bytes)
{
    size_t n = 0;
    bool up = true;
    for (; *verb && n + 1 < bytes; verb++) {
        if (*verb != '_') text[n++] = up && *verb >= 'a' && *verb <= 'z' ? (char)(*verb - 32) : *verb;
        up = *verb == '_';
    }
    text[n] = 0;
}

static const char *verb_of(const struct el_op_info *op)
{
    return op->messages.verb ? op->messages.verb : "call";
}

static void name_of(const struct el_op_info *op, bool on_device, char *text, size_t bytes)
{
    char verb[32];
    switch (op->op_class) {
    case EL_CLASS_COMM:
        capitals(verb_of(op), verb, sizeof verb);
        snprintf(text, bytes, on_device ? "ncclDevKernel_%s" : "evenload::%s", on_device ? verb : verb_of(op));
        return;
    case EL_CLASS_COPY:
        if (!on_device)
            snprintf(text, bytes, "evenload::copy");
        else
            snprintf(text, bytes, "Memcpy %s",
                     op->peer >= 0            ? "PtoP (Device -> Device)"
                     : op->received_bytes > 0 ? "HtoD (Host -> Device)"
                                              : "DtoD (Device -> Device)");
        return;
    default:
        snprintf(text, bytes, "%s%s", on_device ? "" : "evenload::", op->kernel.name ? op->kernel.name : op->label);
    }
}

/* The label without the kernel's name: the model's node, or the parameter. */
static const char *node_of(const struct el_op_info *op)
{
    size_t n = op->kernel.name ? strlen(op->kernel.name) : 0;
    if (n == 0 || strncmp(op->label, op->kernel.name, n) != 0) return op->label;
    return op->label[n] == ' ' ? op->label + n + 1 : op->label + n;
}

static void put_operands(struct el_trace *trace, const struct el_op_info *op, const char *key, bool written, bool types)
{
    struct el_op_operand operands[EL_ARGS_POINTERS];
    int n = el_op_operands(op->kernel.name, op->kernel.dtype, op->kernel.d, operands);
    const char *comma = "";
    fprintf(trace->file, ", \"%s %s\": [", key, types ? "type" : "Dims");
    for (int i = 0; i < n; i++) {
        if (operands[i].written != written || !(op->kernel.operands >> i & 1)) continue;
        if (types)
            fprintf(trace->file, "%s\"%s\"", comma, operands[i].dtype);
        else
            fprintf(trace->file, "%s[", comma);
        for (int k = 0; k < operands[i].n && !types; k++)
            fprintf(trace->file, "%s%" PRId64, k ? ", " : "", operands[i].d[k]);
        if (!types) fputc(']', trace->file);
        comma = ", ";
    }
    fputc(']', trace->file);
}

static const char *torch_type(const char *dtype)
{
    static const char *const words[][2] = {{"f32", "Float"}, {"f64", "Double"},    {"i32", "Int"},
                                           {"f16", "Half"},  {"bf16", "BFloat16"}, {"u8", "Byte"}};
    for (size_t i = 0; dtype && i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(dtype, words[i][0])) return words[i][1];
    return "";
}

static const char *collective_name(const char *verb)
{
    static const struct {
        const char *verb, *name;
    } names[] = {{"all_reduce", "allreduce"},
                 {"all_gather", "_allgather_base"},
                 {"reduce_scatter", "_reduce_scatter_base"},
                 {"alltoall", "all_to_all"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(verb, names[i].verb)) return names[i].name;
    return verb;
}

/* As far as name and size tell: the job's ranks (all, or one stage's copies), or positions of one rank's devices. */
static int find_group(const struct el_layout *layout, const struct el_op_info *op, int members[EL_SIMULATED_MAX])
{
    const struct el_spot own = el_layout_spot(layout, op->device);
    bool local = op->communicator && !strcmp(op->communicator, "local");
    enum el_axis axis = 0;
    int n = 0;
    while (axis < EL_AXIS_COUNT && (!op->communicator || strcmp(op->communicator, el_axis_row(axis)->name) != 0))
        axis++;
    for (int d = 0; d < layout->n_devices; d++) {
        const struct el_spot spot = el_layout_spot(layout, d);
        bool first = d == 0 || el_layout_spot(layout, d - 1).worker != spot.worker;
        bool same =
            axis == EL_AXIS_COUNT || el_layout_group(layout, axis, d) == el_layout_group(layout, axis, op->device);
        if (local ? spot.worker == own.worker : first && same) members[n++] = local ? d : spot.worker;
    }
    return n;
}

static void put_group(struct el_trace *trace, const struct el_op_info *op)
{
    int members[EL_SIMULATED_MAX], n = find_group(trace->rank->layout, op, members);
    fputs("\"[", trace->file);
    for (int i = 0; i < n; i++) fprintf(trace->file, "%s%d", i ? ", " : "", members[i]);
    fputs("]\"", trace->file);
}

static void put_collective(struct el_trace *trace, const struct el_trace_op *op)
{
    const struct el_op_messages *m = &op->info->messages;
    int64_t wait_ns = op->arrived_ns - op->span.begin_ns;
    /* PyTorch repeats a tensor's size if a rank only gives or only gets. */
    uint64_t in = m->given ? m->given : m->got, out = m->got ? m->got : m->given;
    fprintf(trace->file,
            ", \"Collective name\": \"%s\", \"In msg nelems\": %" PRIu64 ", \"Out msg nelems\": %" PRIu64
            ", \"dtype\": \"%s\", \"Group size\": %d, \"Rank\": %d, \"Process Group Name\": ",
            collective_name(verb_of(op->info)), in, out, torch_type(m->dtype), m->size, m->rank);
    trace_text(trace, op->info->communicator ? op->info->communicator : "0");
    fputs(", \"Process Group Ranks\": ", trace->file);
    put_group(trace, op->info);
    if (m->partner >= 0)
        fprintf(trace->file, ", \"%s\": %d", op->info->link == EL_LINK_NONE ? "Root" : "Peer", m->partner);
    fprintf(trace->file, ", \"backend\": \"%s\", \"algorithm\": \"%s\", \"messages\": %d, \"wait (us)\": %.3f",
            trace->rank->comm ? trace->rank->comm : "none", m->algorithm ? m->algorithm : "", m->rounds,
            (double)wait_ns * 1e-3);
}

/* Only one host event may be `correlated` with the device's. */
static void put_arguments(struct el_trace *trace, const struct el_trace_op *op, bool correlated)
{
    const struct el_op_info *info = op->info;
    fprintf(trace->file, "\"External id\": %" PRId64, op->id);
    if (correlated) fprintf(trace->file, ", \"correlation\": %" PRId64, op->id);
    fputs(", \"node\": ", trace->file);
    trace_text(trace, node_of(info));
    fprintf(trace->file, ", \"phase\": \"%s\"", el_phase_name(info->phase));
    if (info->flops > 0) fprintf(trace->file, ", \"flops\": %.0f", info->flops);
    if (info->bytes > 0) fprintf(trace->file, ", \"bytes\": %.0f", info->bytes);
    if (info->sent_bytes > 0) fprintf(trace->file, ", \"sent bytes\": %" PRIu64, info->sent_bytes);
    if (info->received_bytes > 0) fprintf(trace->file, ", \"received bytes\": %" PRIu64, info->received_bytes);
    if (info->op_class == EL_CLASS_COMM) put_collective(trace, op);
}

static bool is_queued(const struct el_trace_op *op)
{
    return op->launch.end_ns > op->launch.begin_ns;
}

static void put_launch(struct el_trace *trace, const struct el_trace_op *op)
{
    const struct el_op_info *info = op->info;
    bool copy = info->op_class == EL_CLASS_COPY;
    trace_begin(trace, 'X', "cuda_runtime", copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", trace->pid, trace->pid,
                op->launch.begin_ns);
    trace_duration(trace, op->launch);
    fprintf(trace->file, "\"External id\": %" PRId64 ", \"correlation\": %" PRId64 "}}", op->id, op->id);
    trace_begin(trace, 's', "ac2g", "ac2g", trace->pid, trace->pid, op->launch.begin_ns);
    fprintf(trace->file, ", \"id\": %" PRId64 "}", op->id);
    trace_begin(trace, 'f', "ac2g", "ac2g", info->device, info->stream, op->arrived_ns);
    fprintf(trace->file, ", \"id\": %" PRId64 ", \"bp\": \"e\"}", op->id);
}

static void put_on_thread(struct el_trace *trace, const struct el_trace_op *op)
{
    const struct el_op_info *info = op->info;
    char name[128], stack[96];
    name_of(info, false, name, sizeof name);
    snprintf(stack, sizeof stack, "ProfilerStep#%" PRId64, trace->step);
    trace_begin(trace, 'X', "cpu_op", name, trace->pid, is_queued(op) ? trace->pid : trace_thread(info),
                is_queued(op) ? op->launch.begin_ns : op->span.begin_ns);
    trace_duration(trace, is_queued(op) ? op->launch : op->span);
    put_arguments(trace, op, !is_queued(op));
    for (int i = 0; i < 4 && info->kernel.name; i++)
        put_operands(trace, info, i < 2 ? "Input" : "Output", i >= 2, i % 2 == 1);
    if (info->how) fputs(", \"implementation\": ", trace->file);
    if (info->how) trace_text(trace, info->how);
    fprintf(trace->file, ", \"Call stack\": \"%s;%s;", stack, el_phase_name(info->phase));
    for (const char *c = node_of(info); *c; c++)
        if (*c != '"' && *c != '\\' && (unsigned char)*c >= ' ') fputc(*c, trace->file);
    fputs("\"}}", trace->file);
}

static void put_on_device(struct el_trace *trace, const struct el_trace_op *op)
{
    const struct el_op_info *info = op->info;
    struct el_span span = op->span;
    char name[128];
    if (info->link == EL_LINK_RECEIVE) span.begin_ns = op->arrived_ns;
    name_of(info, true, name, sizeof name);
    trace_begin(trace, 'X', info->op_class == EL_CLASS_COPY ? "gpu_memcpy" : "kernel", name, info->device, info->stream,
                span.begin_ns);
    trace_duration(trace, span);
    fprintf(trace->file, "\"device\": %d, \"stream\": %d, ", info->device, info->stream);
    put_arguments(trace, op, true);
    fputs("}}", trace->file);
}

static void trace_put_op(struct el_trace *trace, const struct el_trace_op *op)
{
    put_on_thread(trace, op);
    if (op->info->op_class == EL_CLASS_HOST) return;
    put_on_device(trace, op);
    if (is_queued(op)) put_launch(trace, op);
}

static void trace_text(struct el_trace *trace, const char *text)
{
    fputc('"', trace->file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', trace->file);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, trace->file);
    }
    fputc('"', trace->file);
}

/* On rank 0's clock; virtual times from the first step on. */
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

/* Leaves the event open. */
static void trace_begin(struct el_trace *trace, char ph, const char *cat, const char *name, int pid, int tid,
                        int64_t at_ns)
{
    fprintf(trace->file, "%s\n{\"ph\": \"%c\", ", trace->comma ? "," : "", ph);
    if (cat) fprintf(trace->file, "\"cat\": \"%s\", ", cat);
    fputs("\"name\": ", trace->file);
    trace_text(trace, name);
    fprintf(trace->file, ", \"pid\": %d, \"tid\": %d", pid, tid);
    put_us(trace, "ts", ph == 'M' ? 0 : common_ns(trace, at_ns));
    trace->comma = true;
}

static void trace_duration(struct el_trace *trace, struct el_span span)
{
    put_us(trace, "dur", common_ns(trace, span.end_ns) - common_ns(trace, span.begin_ns));
    fputs(", \"args\": {", trace->file);
}

/* The stream's own lane is its number, in the device's process. */
static int trace_thread(const struct el_op_info *op)
{
    return (op->device + 1) * 1000 + op->stream;
}

static void put_name(struct el_trace *trace, const char *what, int pid, int tid, const char *key, const char *text)
{
    trace_begin(trace, 'M', NULL, what, pid, tid, 0);
    fprintf(trace->file, ", \"args\": {\"%s\": ", key);
    trace_text(trace, text);
    fputs("}}", trace->file);
}

static void put_order(struct el_trace *trace, const char *what, int pid, int tid, int place)
{
    trace_begin(trace, 'M', NULL, what, pid, tid, 0);
    fprintf(trace->file, ", \"args\": {\"sort_index\": %d}}", place);
}

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
        put_name(trace, "thread_name", trace->pid, trace_thread(op), "name", text);
        put_order(trace, "thread_sort_index", trace->pid, trace_thread(op), trace_thread(op));
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
    trace_begin(trace, 'X', "user_annotation", name, trace->pid, thread, span.begin_ns);
    trace_duration(trace, span);
    fputs("}}", trace->file);
}

static void put_box(struct el_trace *trace, const struct el_op_info *op, struct el_span span)
{
    char name[64];
    snprintf(name, sizeof name, "%s", el_phase_name(op->phase));
    if (op->piece.kind)
        snprintf(name, sizeof name, "%s (%c, part %d, micro-batch %d)", el_phase_name(op->phase), op->piece.kind,
                 op->piece.part, op->piece.micro);
    put_annotation(trace, name, trace_thread(op), span);
}

/* Consecutive ops of one phase and box on the compute stream share an annotation. */
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
    trace_begin(trace, 'C', NULL, name, device, 0, at_ns);
    fputs(", \"args\": {", trace->file);
    for (int tag = 0; tag < EL_TAG_COUNT; tag++) {
        if (tag == EL_TAG_PADDING && live[tag] == 0) continue;
        fprintf(trace->file, "%s\"%s\": %" PRId64, comma ? ", " : "", el_tag_name(tag), live[tag]);
        comma = true;
    }
    fputs("}}", trace->file);
}

/* A mark is at the begin of the device's next op on the compute stream. */
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

/* Between devices' work, else between threads. */
static void put_end(struct el_trace *trace, char ph, const struct el_op_info *op, int64_t at_ns, int64_t id)
{
    bool host = op->op_class == EL_CLASS_HOST;
    trace_begin(trace, ph, "wait", "wait", host ? trace->pid : op->device, host ? trace_thread(op) : op->stream, at_ns);
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

static void fill_arrivals(const struct el_recorder *recorder, size_t number, int device, struct el_trace_op *ops)
{
    const struct op_list *list = el_recorder_list(recorder, &recorder->steps[number]);
    const int64_t *latest = el_recorder_latest(recorder, list, device, number);
    for (int i = 0; i < list->n_ops && latest; i++)
        if (el_recorder_is_comm(&list->ops[i], device)) ops[i].arrived_ns = el_recorder_arrival(ops[i].span, *latest++);
}

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
    for (int i = 0; i < step.n_ops; i++) trace_put_op(trace, &ops[i]);
    put_waits(trace, &step, ops);
    free(ops);
    return EL_OK;
}

/* Tools look for the rank, on its own line near the begin, before reading the rest. */
static void put_head(struct el_trace *trace)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    fputs("{\n\"schemaVersion\": 1,\n\"deviceProperties\": [],\n\"distributedInfo\": {\"backend\": ", trace->file);
    trace_text(trace, trace->rank->comm ? trace->rank->comm : "none");
    fprintf(trace->file, ", \"rank\": %d, \"world_size\": %d},\n\"host_name\": ", trace->rank->rank,
            trace->rank->layout->n_workers);
    trace_text(trace, host);
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
    /* Devices' positions are process numbers in the trace. */
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
