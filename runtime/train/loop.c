/* The training loop of one host thread: steps, warm-up, epochs. A step's time is from before it is issued or run until
 * all its streams are done; the host does nothing else meanwhile. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/state/checkpoint.h"
#include "runtime/train/session.h"
#include "runtime/worker/copies.h"
#include "runtime/worker/share.h"
#include "runtime/worker/worker.h"

/* Warm-up ends after the requested steps, once steps have settled: the medians of the last three and the three before
 * are within 5 %, all with the measured program (ddp's first step has other buckets). The limit is 30 more steps, or
 * the time to measure. Rank 0 decides. */

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

static enum el_status run_reserve(struct el_run *run, int64_t n);

enum el_status el_run_settle(struct el_run *run)
{
    const struct el_train_config *config = run->session->config;
    if (config->epochs || config->min_time_s <= 0 || run->n_done == run->start) return EL_OK;
    double more = 0;
    run->result.settled = has_settled(run);
    if (!run->result.settled && !at_limit(run)) more = run->n_done == run->start + config->warmup ? 2 : 1;
    EL_TRY(el_worker_take_first(&run->worker, &more, 1));
    run->n_warmup += (int64_t)more;
    return run_reserve(run, run->n_warmup + run->n_steps);
}

struct el_meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n, n_here;
    unsigned number; /* count of times all workers have arrived */
    bool aborted;
};

enum el_status el_meeting_create(int n, struct el_meeting **meeting_p)
{
    struct el_meeting *meeting = calloc(1, sizeof *meeting);
    if (!meeting) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %d threads to meet", n);
    pthread_mutex_init(&meeting->lock, NULL);
    pthread_cond_init(&meeting->changed, NULL);
    meeting->n = n;
    *meeting_p = meeting;
    return EL_OK;
}

void el_meeting_destroy(struct el_meeting *meeting)
{
    if (!meeting) return;
    pthread_cond_destroy(&meeting->changed);
    pthread_mutex_destroy(&meeting->lock);
    free(meeting);
}

enum el_status el_meeting_wait(struct el_meeting *meeting)
{
    if (!meeting) return EL_OK;
    pthread_mutex_lock(&meeting->lock);
    unsigned number = meeting->number;
    if (++meeting->n_here == meeting->n) {
        meeting->n_here = 0;
        meeting->number++;
        pthread_cond_broadcast(&meeting->changed);
    }
    while (meeting->number == number && !meeting->aborted) pthread_cond_wait(&meeting->changed, &meeting->lock);
    bool met = meeting->number != number;
    pthread_mutex_unlock(&meeting->lock);
    return met ? EL_OK : el_fail(EL_ERR_PEER, "another thread has failed before the step");
}

void el_meeting_abort(struct el_meeting *meeting)
{
    if (!meeting) return;
    pthread_mutex_lock(&meeting->lock);
    meeting->aborted = true;
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
}

/* With fewer steps each is recorded and counted; but a recorded step is no graph launch. */
enum { STEPS_MAX = 1000000, ALTERNATE_STEPS_MIN = 4, ALTERNATE_GRAPHS_MIN = 2 };

/* A resumed job starts in a later round, which depends on how the earlier one was issued. */
static enum el_status issue_first(struct el_run *run, uint64_t step)
{
    EL_TRY(el_run_choose(run, step));
    EL_TRY(el_run_issue(run, true));
    return el_meeting_wait(run->session->meeting);
}

static enum el_status change_round(struct el_run *run, uint64_t step)
{
    const int last = run->session->mode->rounds - 1;
    const int round = step < (uint64_t)last ? (int)step : last;
    while (run->round < round) {
        run->round++;
        el_run_drop_programs(run);
        if (run->session->mode->begin_round) EL_TRY(run->session->mode->begin_round(&run->worker, run->round));
        if (run->round < round) EL_TRY(issue_first(run, step));
    }
    return EL_OK;
}

static enum el_status read_loss(struct el_run *run, double *loss_p)
{
    if (!el_device_computes(run->worker.members[0].shard.device)) return EL_OK;
    if (run->session->mode->read_loss) return run->session->mode->read_loss(&run->worker, loss_p);
    return el_share_read_loss(&run->worker.members[0], loss_p);
}

/* In warm-up on asynchronous devices the first step, so that events exist. */
static bool is_recorded(const struct el_run *run, int64_t number)
{
    if (!el_device_is_asynchronous(run->worker.members[0].shard.device)) return true;
    if (number < run->n_warmup) return number == run->start;
    return !run->result.alternates || (number - run->n_warmup) % 2 == 1;
}

static enum el_status step(struct el_run *run, uint64_t number)
{
    const struct el_train_hooks *hooks = run->session->hooks;
    struct el_probe probe = hooks->probes ? hooks->probes[run->first] : (struct el_probe){.context = NULL};
    probe.spans = probe.spans && is_recorded(run, (int64_t)number);
    if (hooks->before_step) EL_TRY(hooks->before_step(hooks->context, run->first, (int64_t)number));
    int64_t begin = el_clock_ns();
    const int round = run->round;
    for (int m = 0; m < run->worker.n_members; m++)
        for (int64_t k = 0; k < run->worker.config->n_accumulate; k++)
            run->worker.members[m].feeds[k].skipped = (uint64_t)-run->origin;
    EL_TRY(change_round(run, number));
    EL_TRY(el_run_choose(run, number));
    for (int m = 0; m < run->worker.n_members; m++) EL_TRY(el_feed_begin(run->worker.members[m].feeds, number));
    bool first = run->round != round;
    if (!run->program || !run->session->config->capture) EL_TRY(el_run_issue(run, first));
    if (first) EL_TRY(el_meeting_wait(run->session->meeting));
    int64_t issued_ns = run->session->config->capture ? 0 : el_clock_ns() - begin;
    int64_t graph_runs = el_program_graph_runs(run->program);
    EL_TRY(el_program_run(run->program, number, hooks->probes ? &probe : NULL));
    if ((int64_t)number >= run->n_warmup) {
        run->result.n_graph_steps += el_program_graph_runs(run->program) - graph_runs;
        if (run->lengths) run->flops += el_program_model_flops(run->program);
    }
    run->step_ns[number] = issued_ns + el_program_elapsed_ns(run->program);
    EL_TRY(read_loss(run, &run->result.loss[number]));
    EL_TRY(el_run_routed(run, (int64_t)number >= run->n_warmup));
    run->result.wall_ns[number] = el_clock_ns() - begin;
    return EL_OK;
}

static enum el_status run_reserve(struct el_run *run, int64_t n)
{
    int64_t *step_ns = realloc(run->step_ns, (size_t)n * sizeof *step_ns);
    if (step_ns) run->step_ns = step_ns;
    int64_t *wall_ns = realloc(run->result.wall_ns, (size_t)n * sizeof *wall_ns);
    if (wall_ns) run->result.wall_ns = wall_ns;
    double *loss = realloc(run->result.loss, (size_t)n * sizeof *loss);
    if (loss) run->result.loss = loss;
    if (!step_ns || !wall_ns || !loss) return el_fail_errno("%lld steps", (long long)n);
    memset(run->result.loss + run->n_done, 0, (size_t)(n - run->n_done) * sizeof *loss);
    return EL_OK;
}

static double mean_step_ns(const struct el_run *run, int64_t first, int64_t last)
{
    double sum = 0;
    for (int64_t i = first; i < last; i++) sum += (double)run->step_ns[i];
    return sum > 0 ? sum / (double)(last - first) : 1;
}

/* Adds steps to fill the requested time, from the last warm-up step's time, later from measured times. Rank 0
 * decides. */
static enum el_status plan_steps(struct el_run *run)
{
    const struct el_train_config *config = run->session->config;
    int64_t measured = run->n_done - run->n_warmup;
    double wanted = (double)run->n_steps;
    if (config->epochs == 0 && config->min_time_s > 0 && run->n_done > run->start) {
        int64_t first = measured ? run->n_warmup : run->n_done - 1;
        double needed = ceil(config->min_time_s * 1e9 / mean_step_ns(run, first, run->n_done));
        if (needed > wanted) wanted = needed > STEPS_MAX ? STEPS_MAX : needed;
        EL_TRY(el_worker_take_first(&run->worker, &wanted, 1));
    }
    run->n_steps = (int64_t)wanted;
    return run_reserve(run, run->n_warmup + run->n_steps);
}

static void reset_loaders(const struct el_member *member, const struct el_train_config *config)
{
    for (int64_t k = 0; k < config->n_accumulate; k++)
        if (member->feeds[k].loader) el_loader_reset(member->feeds[k].loader);
}

static enum el_status end_warmup(struct el_run *run)
{
    const struct el_train_hooks *hooks = run->session->hooks;
    EL_TRY(plan_steps(run));
    int64_t least = run->session->config->device_graph ? ALTERNATE_GRAPHS_MIN : ALTERNATE_STEPS_MIN;
    run->result.alternates = el_device_is_asynchronous(run->worker.members[0].shard.device) && hooks->probes &&
                             hooks->probes[run->first].spans && run->n_steps >= least;
    for (int m = 0; m < run->worker.n_members; m++) {
        reset_loaders(&run->worker.members[m], run->worker.config);
        el_device_ledger_reset_peak(run->worker.members[m].shard.device);
        if (hooks->measure_begin) hooks->measure_begin(hooks->context, run->first + m);
    }
    return EL_OK;
}

static void end_measuring(struct el_run *run)
{
    if (run->lengths) run->result.flops_per_step = run->flops / (double)run->n_steps;
    const struct el_train_hooks *hooks = run->session->hooks;
    for (int m = 0; m < run->worker.n_members; m++) {
        el_feeds_account(run->worker.members[m].feeds, run->session->config->n_accumulate,
                         &run->session->result->loading[run->first + m]);
        run->session->result->ledgers[run->first + m] = *el_device_ledger(run->worker.members[m].shard.device);
        if (hooks->measure_end) hooks->measure_end(hooks->context, run->first + m);
    }
}

static enum el_status mean_losses(struct el_run *run, int64_t first, double *losses)
{
    const int64_t n = run->n_done - first;
    for (int64_t i = 0; i < n; i++) losses[i] = run->result.loss[first + i] * el_share_weight_of_worker(&run->worker);
    EL_TRY(el_worker_sum_in_order(&run->worker, losses, n));
    for (int64_t i = 0; i < n; i++) losses[i] /= el_layout_losses(run->worker.layout);
    return EL_OK;
}

/* Added step by step, so that a resumed job has the same sum. */
enum el_status el_run_epoch_loss(struct el_run *run, double *loss_p)
{
    const int64_t steps = run->session->config->epochs ? run->data_steps : 0, n = run->n_done - run->summed;
    if (!steps) return EL_OK;
    double *losses = malloc((size_t)(n + 1) * sizeof *losses);
    enum el_status status = losses ? mean_losses(run, run->summed, losses) : el_fail_errno("losses of an epoch");
    for (int64_t i = 0; i < n && status == EL_OK; i++) run->epoch_loss += losses[i] / (double)steps;
    run->summed = run->n_done;
    free(losses);
    *loss_p = run->epoch_loss;
    if ((run->n_done - run->origin) % steps == 0) run->epoch_loss = 0;
    return status;
}

static enum el_status end_epoch(struct el_run *run, int64_t begin_ns)
{
    struct el_epoch_result *result = &run->result.epochs[run->result.n_epochs];
    result->seconds = (double)(el_clock_ns() - begin_ns) * 1e-9;
    EL_TRY(el_run_epoch_loss(run, &result->train_loss));
    EL_TRY(el_run_evaluate(run, EL_SPLIT_HELD_OUT, &result->held_out));
    if (result->held_out.accuracy < 0 || result->held_out.accuracy > run->best_accuracy) {
        run->best_accuracy = result->held_out.accuracy;
        run->result.best_epoch = run->result.n_epochs;
        if (!run->best) EL_TRY(el_snapshot_open(&run->worker, EL_WEIGHT_ROWS, NULL, &run->best));
        EL_TRY(el_snapshot_take(run->best));
    }
    run->result.n_epochs++;
    return EL_OK;
}

static void report(const struct el_run *run)
{
    const struct el_train_hooks *hooks = run->session->hooks;
    if (run->first == 0 && hooks->progress) {
        hooks->progress(hooks->context, (double)run->n_done, (double)(run->n_warmup + run->n_steps));
    }
}

static enum el_status train(struct el_run *run, int64_t epoch_steps)
{
    int64_t epoch_begin = el_clock_ns();
    for (int64_t i = run->start; i < run->n_warmup + run->n_steps; i++) {
        if (i == run->n_warmup) EL_TRY(el_run_settle(run));
        if (i == run->n_warmup) EL_TRY(end_warmup(run));
        EL_TRY(step(run, (uint64_t)i));
        run->n_done = i + 1;
        report(run);
        if (run->n_done == run->n_warmup + run->n_steps) EL_TRY(plan_steps(run));
        if (epoch_steps && (i + 1 - run->origin) % epoch_steps == 0) {
            EL_TRY(end_epoch(run, epoch_begin));
            epoch_begin = el_clock_ns();
        }
        EL_TRY(el_run_checkpoint(run));
    }
    return EL_OK;
}

/* Once, with the best epoch's weights. */
static enum el_status final_test(struct el_run *run)
{
    if (run->best) EL_TRY(el_snapshot_give(run->best));
    return el_run_evaluate(run, EL_SPLIT_TEST, &run->result.test);
}

static enum el_status keep_own_losses(struct el_run *run)
{
    const struct el_layout *layout = run->worker.layout;
    struct el_train_result *result = &run->result;
    if (layout->n_workers == 1 || el_layout_losses(layout) != layout->n_workers) return EL_OK;
    int64_t n = run->n_done - run->start;
    result->n_own = n < EL_OWN_LOSSES ? (int)n : EL_OWN_LOSSES;
    result->own_loss = calloc((size_t)layout->n_workers * (size_t)result->n_own, sizeof *result->own_loss);
    if (!result->own_loss) return el_fail_errno("losses of %d workers", layout->n_workers);
    memcpy(result->own_loss + (ptrdiff_t)run->index * result->n_own, result->loss + run->start,
           (size_t)result->n_own * sizeof *result->own_loss);
    return el_worker_sum(&run->worker, result->own_loss, (int64_t)layout->n_workers * result->n_own);
}

/* Where data resume: after the used samples; with another batch size at the next batch that begins there or later. */
static void find_origin(struct el_run *run, const struct el_checkpoint *from)
{
    int64_t epoch, samples;
    const int64_t batch = run->session->config->global_batch;
    if (!run->data_steps || !el_checkpoint_position(from, &epoch, &samples)) return;
    run->origin = run->start - (epoch * run->data_steps + (samples + batch - 1) / batch);
}

/* The steps to run and to measure; a resumed job repeats the warm-up. */
static enum el_status plan_run(struct el_run *run)
{
    const struct el_checkpoint *from = run->session->wants_grads ? NULL : run->session->place->checkpoint.resume;
    const struct el_train_config *config = run->session->config;
    run->start = run->n_done = run->summed = from ? el_checkpoint_step(from) : 0;
    if (from) find_origin(run, from);
    int64_t total = config->epochs ? run->origin + config->epochs * run->data_steps : config->warmup + config->steps;
    if (run->start >= total && !config->epochs && config->min_time_s > 0) total += run->start; /* resumed */
    if (from && run->start >= total)
        return el_fail(EL_ERR_INVALID, "--resume: the checkpoint is of step %lld, and all %lld are done: give more %s",
                       (long long)run->start, (long long)total, run->session->config->epochs ? "--epochs" : "--steps");
    const int64_t most = total - run->start - (run->session->config->epochs || from ? 1 : 0);
    run->n_warmup = run->start + (run->session->config->warmup < most ? run->session->config->warmup : most);
    run->n_steps = total - run->n_warmup;
    return EL_OK;
}

enum el_status el_run_loop(struct el_run *run)
{
    const struct el_train_config *config = run->session->config;
    struct el_train_result *result = &run->result;
    const struct el_loader *loader = run->worker.members[0].feeds->loader;
    run->data_steps = loader ? el_loader_steps_per_epoch(loader) : 0;
    const int64_t epoch_steps = config->epochs ? run->data_steps : 0;
    run->round = -1;
    result->best_epoch = -1;
    run->best_accuracy = result->test.accuracy = -1;
    EL_TRY(plan_run(run));
    result->epochs = calloc((size_t)config->epochs + 1, sizeof *result->epochs);
    if (!result->epochs) return el_fail_errno("%lld epochs", (long long)config->epochs);
    EL_TRY(run_reserve(run, run->n_warmup + run->n_steps));
    EL_TRY(el_run_resume(run));
    if (run->session->mode->setup) EL_TRY(run->session->mode->setup(&run->worker));
    EL_TRY(el_run_open_checkpoints(run));
    EL_TRY(train(run, epoch_steps));
    end_measuring(run);
    if (config->epochs) EL_TRY(final_test(run));
    if (run->session->place->save && !run->session->wants_grads) {
        int64_t steps = config->epochs ? run->origin + (result->best_epoch + 1) * epoch_steps : run->n_done;
        EL_TRY(el_train_save(&run->worker, steps, run->session->place->save));
    }
    EL_TRY(el_run_control(run)); /* last: weights are meaningless after steps without communication */
    EL_TRY(keep_own_losses(run));
    const int64_t n = run->n_done - run->start;
    EL_TRY(mean_losses(run, run->start, result->loss + run->start));
    memmove(result->loss, result->loss + run->start, (size_t)n * sizeof *result->loss);
    return el_worker_sum(&run->worker, &result->flops_per_step, 1);
}
