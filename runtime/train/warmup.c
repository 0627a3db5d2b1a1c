/* When warm-up ends: at the number of steps asked for, and not before the steps have settled. Settled: the median of
 * the last three steps is within 5 % of the median of the three before, all of them with the program that is measured
 * later (ddp's first step has other buckets). Noise does not keep it going for ever: 30 steps more, or the time that is
 * to be measured, is the limit. Rank 0's clock decides for all. */
#include <math.h>
#include <stdlib.h>

#include "runtime/train/session.h"

enum { WINDOW = 3, EXTRA_STEPS_MAX = 30 };
static const double SETTLED = 0.05;

static double median_of_three(const int64_t *x)
{
    int64_t low = x[0] < x[1] ? x[0] : x[1], high = x[0] < x[1] ? x[1] : x[0];
    return (double)(x[2] < low ? low : x[2] > high ? high : x[2]);
}

static bool has_settled(const struct el_run *run)
{
    if (run->n_done - run->start < run->session->mode->rounds - 1 + 2 * WINDOW) return false;
    const int64_t *last = run->step_ns + run->n_done - WINDOW;
    double now = median_of_three(last), before = median_of_three(last - WINDOW);
    return fabs(now - before) <= SETTLED * before;
}

static bool at_limit(const struct el_run *run)
{
    int64_t asked = run->start + run->session->config->warmup, spent_ns = 0;
    for (int64_t i = asked; i < run->n_done; i++) spent_ns += run->step_ns[i];
    return run->n_done >= asked + EXTRA_STEPS_MAX || (double)spent_ns >= run->session->config->min_time_s * 1e9;
}

enum el_status el_run_settle(struct el_run *run)
{
    const struct el_train_config *config = run->session->config;
    if (config->epochs || config->min_time_s <= 0 || run->n_done == run->start) return EL_OK;
    double more = 0;
    run->result.settled = has_settled(run);
    if (!run->result.settled && !at_limit(run)) more = run->n_done == run->start + config->warmup ? 2 : 1;
    EL_TRY(el_worker_take_first(&run->worker, &more, 1));
    run->n_warmup += (int64_t)more;
    return el_run_reserve(run, run->n_warmup + run->n_steps);
}
