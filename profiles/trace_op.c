/* One op in a trace: what PyTorch's tools expect to read of it. They tell communication by its kernel's name
 * (nccl...Kernel), copies by theirs (Memcpy ...), and take all else on a device's stream for computation; so the names
 * follow them, and what really moved the bytes stands in the arguments. */
#include "profiles/trace_internal.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/kernels.h"

/* "all_reduce" -> "AllReduce". */
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

/* What of the label is no kernel's name: the node of the model, or the parameter. */
static const char *node_of(const struct el_op_info *op)
{
    size_t n = op->kernel.name ? strlen(op->kernel.name) : 0;
    if (n == 0 || strncmp(op->label, op->kernel.name, n) != 0) return op->label;
    return op->label[n] == ' ' ? op->label + n + 1 : op->label + n;
}

/* Of the operands that are read, or written: their dimensions or types. */
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

/* PyTorch's word for a type. */
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

/* Who is in a collective's group, by rank in it, as far as its name and size say it: ranks of the job (all, or the
 * copies of one stage), or positions of devices where one rank's devices are among themselves. Returns how many. */
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
    /* PyTorch says one tensor's size twice where a rank only gives or only gets. */
    uint64_t in = m->given ? m->given : m->got, out = m->got ? m->got : m->given;
    fprintf(trace->file,
            ", \"Collective name\": \"%s\", \"In msg nelems\": %" PRIu64 ", \"Out msg nelems\": %" PRIu64
            ", \"dtype\": \"%s\", \"Group size\": %d, \"Rank\": %d, \"Process Group Name\": ",
            collective_name(verb_of(op->info)), in, out, torch_type(m->dtype), m->size, m->rank);
    el_trace_text(trace, op->info->communicator ? op->info->communicator : "0");
    fputs(", \"Process Group Ranks\": ", trace->file);
    put_group(trace, op->info);
    if (m->partner >= 0)
        fprintf(trace->file, ", \"%s\": %d", op->info->link == EL_LINK_NONE ? "Root" : "Peer", m->partner);
    fprintf(trace->file, ", \"backend\": \"%s\", \"algorithm\": \"%s\", \"messages\": %d, \"wait (us)\": %.3f",
            trace->rank->comm ? trace->rank->comm : "none", m->algorithm ? m->algorithm : "", m->rounds,
            (double)wait_ns * 1e-3);
}

/* The host's event that is `correlated` is the one that the device's belongs to: there must be no other. */
static void put_arguments(struct el_trace *trace, const struct el_trace_op *op, bool correlated)
{
    const struct el_op_info *info = op->info;
    fprintf(trace->file, "\"External id\": %" PRId64, op->id);
    if (correlated) fprintf(trace->file, ", \"correlation\": %" PRId64, op->id);
    fputs(", \"node\": ", trace->file);
    el_trace_text(trace, node_of(info));
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

/* The host's call, and an arrow from it to what the device does. */
static void put_launch(struct el_trace *trace, const struct el_trace_op *op)
{
    const struct el_op_info *info = op->info;
    bool copy = info->op_class == EL_CLASS_COPY;
    el_trace_begin(trace, 'X', "cuda_runtime", copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", trace->pid, trace->pid,
                   op->launch.begin_ns);
    el_trace_duration(trace, op->launch);
    fprintf(trace->file, "\"External id\": %" PRId64 ", \"correlation\": %" PRId64 "}}", op->id, op->id);
    el_trace_begin(trace, 's', "ac2g", "ac2g", trace->pid, trace->pid, op->launch.begin_ns);
    fprintf(trace->file, ", \"id\": %" PRId64 "}", op->id);
    el_trace_begin(trace, 'f', "ac2g", "ac2g", info->device, info->stream, op->arrived_ns);
    fprintf(trace->file, ", \"id\": %" PRId64 ", \"bp\": \"e\"}", op->id);
}

static void put_on_thread(struct el_trace *trace, const struct el_trace_op *op)
{
    const struct el_op_info *info = op->info;
    char name[128], stack[96];
    name_of(info, false, name, sizeof name);
    snprintf(stack, sizeof stack, "ProfilerStep#%" PRId64, trace->step);
    el_trace_begin(trace, 'X', "cpu_op", name, trace->pid, is_queued(op) ? trace->pid : el_trace_thread(info),
                   is_queued(op) ? op->launch.begin_ns : op->span.begin_ns);
    el_trace_duration(trace, is_queued(op) ? op->launch : op->span);
    put_arguments(trace, op, !is_queued(op));
    for (int i = 0; i < 4 && info->kernel.name; i++)
        put_operands(trace, info, i < 2 ? "Input" : "Output", i >= 2, i % 2 == 1);
    if (info->how) fputs(", \"implementation\": ", trace->file);
    if (info->how) el_trace_text(trace, info->how);
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
    el_trace_begin(trace, 'X', info->op_class == EL_CLASS_COPY ? "gpu_memcpy" : "kernel", name, info->device,
                   info->stream, span.begin_ns);
    el_trace_duration(trace, span);
    fprintf(trace->file, "\"device\": %d, \"stream\": %d, ", info->device, info->stream);
    put_arguments(trace, op, true);
    fputs("}}", trace->file);
}

void el_trace_put_op(struct el_trace *trace, const struct el_trace_op *op)
{
    put_on_thread(trace, op);
    if (op->info->op_class == EL_CLASS_HOST) return;
    put_on_device(trace, op);
    if (is_queued(op)) put_launch(trace, op);
}
