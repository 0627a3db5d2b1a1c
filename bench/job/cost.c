/* Ranks record side by side, so a step loses what the busiest recorder takes, not the sum over ranks. Within a rank the
 * count adds up its streams (profiles/cost.h). */
#include "bench/job/measurement.h"

#include "bench/base/jvalue.h"
#include "profiles/cost.h"

static json_t *cost_of(const struct el_cost_events *events, const struct el_cost_prices *prices)
{
    json_t *counted = json_pack("{s:I, s:I, s:I}", "clock_reads", (json_int_t)events->clock_reads, "cpu_clock_reads",
                                (json_int_t)events->cpu_clock_reads, "kept_bytes", (json_int_t)events->kept_bytes);
    json_t *each = json_pack("{s:o, s:o, s:o}", "clock_read", el_json_real(prices->clock_read_ns), "cpu_clock_read",
                             el_json_real(prices->cpu_clock_read_ns), "kept_byte", el_json_real(prices->kept_byte_ns));
    return json_pack("{s:o, s:o, s:o}", "events", counted, "cost_ns", each, "counted_us",
                     el_json_real(el_cost_ns(events, prices) * 1e-3));
}

enum el_status el_job_cost(struct el_recorder *const *recorders, int n_recorders, json_t **cost_p)
{
    struct el_cost_prices prices;
    json_t *most = json_null();
    for (int i = 0; i < n_recorders; i++) {
        struct el_cost_events events;
        struct el_step_event step;
        if (el_recorder_step_count(recorders[i]) == 0) continue;
        step = el_recorder_step(recorders[i], 0);
        if (step.simulated) continue;
        if (json_is_null(most)) EL_TRY(el_cost_measure(recorders[i], &prices)); /* once a process */
        el_cost_count(step.ops, step.n_ops, &events);
        if (el_cost_ns(&events, &prices) * 1e-3 <= el_json_number(most, "counted_us")) continue;
        json_decref(most);
        most = cost_of(&events, &prices);
    }
    *cost_p = most;
    return EL_OK;
}

json_t *el_job_cost_of_ranks(const json_t *accounts)
{
    json_t *most = NULL;
    for (size_t r = 0; r < json_array_size(accounts); r++) {
        json_t *cost = json_object_get(json_array_get(accounts, r), "recorder_cost");
        if (!json_is_object(cost)) continue;
        if (!most || el_json_number(cost, "counted_us") > el_json_number(most, "counted_us")) most = cost;
    }
    return most ? json_incref(most) : json_null();
}
