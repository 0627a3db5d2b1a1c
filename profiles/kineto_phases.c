/* Waits for data, backward passes and the optimizer, by the names of PyTorch's annotations. */
#include "profiles/kineto_phases.h"

int el_kineto_phase(struct el_scan_text cat, struct el_scan_text name)
{
    if (!el_scan_is(cat, "cpu_op") && !el_scan_is(cat, "user_annotation")) return -1;
    if (el_scan_begins(name, "enumerate(DataLoader)")) return EL_KINETO_LOADS;
    if (el_scan_begins(name, "autograd::engine::evaluate_function")) return EL_KINETO_BACKWARD;
    return el_scan_begins(name, "Optimizer.step") ? EL_KINETO_OPTIMIZER : -1;
}

static bool any_within(const struct el_intervals *set, struct el_span gap)
{
    const size_t first = el_intervals_after(set, gap.begin_ns);
    return first < set->n && set->spans[first].begin_ns < gap.end_ns;
}

/* Nodes, up to the next wait for data, the optimizer or another step, are one backward pass. */
bool el_kineto_phases_finish(struct el_kineto_trace *trace)
{
    struct el_intervals *nodes = &trace->phases[EL_KINETO_BACKWARD], between = {0};
    for (int p = 0; p < EL_KINETO_PHASES; p++) el_intervals_unite(&trace->phases[p]);
    for (size_t s = 1, i = 1; i < nodes->n; i++) {
        const struct el_span gap = {nodes->spans[i - 1].end_ns, nodes->spans[i].begin_ns};
        while (s < trace->n_steps && trace->steps[s].span.begin_ns < gap.begin_ns) s++;
        const bool step = s < trace->n_steps && trace->steps[s].span.begin_ns < gap.end_ns;
        if (!step && !any_within(&trace->phases[EL_KINETO_LOADS], gap) &&
            !any_within(&trace->phases[EL_KINETO_OPTIMIZER], gap))
            el_intervals_add(&between, gap);
    }
    for (size_t i = 0; i < between.n; i++) el_intervals_add(nodes, between.spans[i]);
    const bool failed = between.failed || nodes->failed;
    el_intervals_free(&between);
    el_intervals_unite(nodes);
    return !failed;
}
