/* What every writer of traces asks of a recorded step: its ops with their times, which clock these are on, and who is
 * in an op's group. */
#include <stdlib.h>
#include <string.h>

#include "profiles/recorder_internal.h"
#include "profiles/trace_internal.h"

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

int64_t el_trace_common_ns(const struct el_trace_rank *rank, int64_t step, int64_t own_ns)
{
    if (!rank->recorder->simulated) return el_clock_common(&rank->begin, &rank->end, own_ns);
    return rank->shifts_ns ? rank->shifts_ns[step] + own_ns : own_ns;
}

/* Where the last member had arrived, for the device's collectives in order. */
static void fill_arrivals(const struct el_trace_rank *rank, const struct el_step_event *step, int device, size_t number,
                          struct el_trace_op *ops)
{
    const struct told *told = el_recorder_told(rank->recorder, device, EL_RECORDER_MEASURED);
    size_t n = 0, at = 0;
    for (int i = 0; i < step->n_ops; i++) n += step->ops[i].device == device && step->ops[i].op_class == EL_CLASS_COMM;
    if (!told->latest_ns || (number + 1) * n > told->n_latest) return;
    for (int i = 0; i < step->n_ops; i++) {
        if (step->ops[i].device != device || step->ops[i].op_class != EL_CLASS_COMM) continue;
        int64_t latest_ns = told->latest_ns[number * n + at++];
        if (latest_ns > ops[i].span.begin_ns)
            ops[i].arrived_ns = latest_ns < ops[i].span.end_ns ? latest_ns : ops[i].span.end_ns;
    }
}

struct el_trace_op *el_trace_ops(const struct el_trace_rank *rank, size_t number, const struct el_step_event *step,
                                 int64_t first_id)
{
    struct el_trace_op *ops = calloc((size_t)step->n_ops + 1, sizeof *ops);
    const struct el_span *launches = el_recorder_launches(rank->recorder, number);
    int first, n_devices = el_layout_of_worker(rank->layout, rank->rank, &first);
    for (int i = 0; ops && i < step->n_ops; i++)
        ops[i] = (struct el_trace_op){.info = &step->ops[i],
                                      .span = step->spans[i],
                                      .launch = launches ? launches[i] : (struct el_span){0},
                                      .arrived_ns = step->spans[i].begin_ns,
                                      .step = (int64_t)number,
                                      .id = first_id + i};
    for (int d = first; ops && d < first + n_devices; d++) fill_arrivals(rank, step, d, number, ops);
    return ops;
}

int el_trace_group(const struct el_layout *layout, const struct el_op_info *op, int members[EL_MEMBERS_MAX])
{
    const struct el_spot *own = &layout->devices[op->device];
    bool local = el_trace_is_local(op);
    int n = 0;
    for (int d = 0; d < layout->n_devices; d++) {
        const struct el_spot *spot = &layout->devices[d];
        bool first = d == 0 || layout->devices[d - 1].worker != spot->worker;
        bool same_stage = op->messages.size == layout->n_workers || spot->at[EL_AXIS_STAGE] == own->at[EL_AXIS_STAGE];
        if (local ? spot->worker == own->worker : first && same_stage) members[n++] = local ? d : spot->worker;
    }
    return n;
}

bool el_trace_is_local(const struct el_op_info *op)
{
    return op->communicator && !strcmp(op->communicator, "local");
}
