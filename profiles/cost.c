/* Events of a step, counted, and the price of each kind, measured where the step ran: in its process, on its machine.
 *
 * Each price is the median of short loops, so that a moment in which another process had the core does not count. */
#include "profiles/cost.h"

#include <stdlib.h>

#include "profiles/intervals.h"
#include "runtime/base/clock.h"

enum { LOOPS = 15, CLOCK_READS = 1000, CPU_CLOCK_READS = 150, KEPT_STEPS = 64, KEPT_OPS_MAX = 1 << 14 };

/* Whether an earlier op is of the same stream. */
static bool seen(const struct el_op_info *ops, int n)
{
    for (int i = 0; i < n; i++)
        if (ops[i].device == ops[n].device && ops[i].stream == ops[n].stream) return true;
    return false;
}

/* Whether the op right before it on its stream ends with an event that serves it too (async_spans.c). */
static bool follows(const struct el_op_info *ops, int n)
{
    if (ops[n].op_class == EL_CLASS_COMM || ops[n].waits) return false;
    for (int i = n - 1; i >= 0; i--) {
        if (ops[i].op_class == EL_CLASS_HOST || ops[i].op_class == EL_CLASS_COMM) return false;
        if (ops[i].device == ops[n].device && ops[i].stream == ops[n].stream) return true;
    }
    return false;
}

static void count_asynchronous(const struct el_op_info *ops, int n_ops, struct el_cost_events *events)
{
    for (int i = 0; i < n_ops; i++) {
        if (ops[i].op_class == EL_CLASS_HOST)
            events->clock_reads += 2;
        else
            events->event_records += 2 - follows(ops, i);
    }
}

void el_cost_count(const struct el_op_info *ops, int n_ops, bool asynchronous, struct el_cost_events *events_p)
{
    struct el_cost_events events = {.kept_bytes = n_ops * (int64_t)sizeof(struct el_span)};
    if (asynchronous) count_asynchronous(ops, n_ops, &events);
    for (int i = 0; i < n_ops && !asynchronous; i++) {
        bool timed_twice = ops[i].op_class == EL_CLASS_COMM || ops[i].op_class == EL_CLASS_COPY;
        events.clock_reads += 1 + ops[i].waits + !seen(ops, i);
        events.cpu_clock_reads += timed_twice ? 2 : 0;
    }
    *events_p = events;
}

double el_cost_ns(const struct el_cost_events *events, const struct el_cost_prices *prices)
{
    return (double)events->clock_reads * prices->clock_read_ns +
           (double)events->event_records * prices->event_record_ns +
           (double)events->cpu_clock_reads * prices->cpu_clock_read_ns +
           (double)events->kept_bytes * prices->kept_byte_ns;
}

/* The sum of the readings is returned to nobody, but kept: else no reading need be made. */
static double price_of_reading(int64_t (*read_ns)(void), int n)
{
    double each_ns[LOOPS];
    volatile int64_t sink = 0;
    for (int l = 0; l < LOOPS; l++) {
        int64_t begin_ns = el_clock_ns();
        for (int i = 0; i < n; i++) sink = read_ns();
        each_ns[l] = (double)(el_clock_ns() - begin_ns) / n;
    }
    (void)sink;
    return el_median(each_ns, LOOPS);
}

/* An empty list costs nothing to keep, a long one is kept less often. */
static double price_of_keeping(struct el_recorder *scratch, const struct el_step_event *event)
{
    const struct el_probe probe = el_recorder_probe(scratch);
    double each_ns[LOOPS];
    int n = event->n_ops > KEPT_OPS_MAX / KEPT_STEPS ? 1 + KEPT_OPS_MAX / event->n_ops : KEPT_STEPS;
    if (event->n_ops == 0) return 0;
    probe.step(probe.context, event); /* the list is copied once, not in every step */
    for (int l = 0; l < LOOPS; l++) {
        int64_t begin_ns = el_clock_ns();
        for (int i = 0; i < n; i++) probe.step(probe.context, event);
        each_ns[l] = (double)(el_clock_ns() - begin_ns) / n / ((double)event->n_ops * sizeof(struct el_span));
    }
    return el_median(each_ns, LOOPS);
}

enum el_status el_cost_measure(const struct el_recorder *recorder, struct el_cost_prices *prices_p)
{
    struct el_recorder *scratch;
    if (el_recorder_step_count(recorder) == 0)
        return el_fail(EL_ERR_INVALID, "cost of recording: no step was recorded");
    struct el_step_event event = el_recorder_step(recorder, 0);
    int64_t *cpu_ns = calloc((size_t)event.n_ops + 1, sizeof *cpu_ns);
    if (cpu_ns == NULL) return el_fail(EL_ERR_HOST_MEMORY, "cost of recording: no memory for %d ops", event.n_ops);
    enum el_status status = el_recorder_create(0, 1, &scratch);
    if (status == EL_OK) {
        event.cpu_ns = cpu_ns;
        prices_p->event_record_ns = 0;
        prices_p->clock_read_ns = price_of_reading(el_clock_ns, CLOCK_READS);
        prices_p->cpu_clock_read_ns = price_of_reading(el_clock_thread_ns, CPU_CLOCK_READS);
        prices_p->kept_byte_ns = price_of_keeping(scratch, &event);
        el_recorder_destroy(scratch);
    }
    free(cpu_ns);
    return status;
}
