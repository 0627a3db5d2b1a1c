/* Control blocks: after the measured steps, blocks of steps alternately as usual and with something off (communication
 * or the recorder). Adjacent blocks share the machine's drift and the process's placement; their difference is the
 * cost.
 * Communication: a block's first step is left out, because ranks must synchronise again. The recorder: blocks of one
 * step in wall time, because it also keeps spans between steps. */
#include <math.h>

#include "runtime/base/clock.h"
#include "runtime/train/session.h"

enum { BLOCK_STEPS_MIN = 3, BLOCK_STEPS_MAX = 200 };

static bool is_wanted(const struct el_run *run)
{
    const struct el_train_config *config = run->session->config;
    if (config->control == EL_CONTROL_NONE || config->control_pairs < 1 || config->epochs || config->min_time_s <= 0)
        return false;
    if (el_device_is_simulated(run->worker.members[0].shard.device)) return false;
    return config->control == EL_CONTROL_RECORD || (run->worker.comm && run->worker.layout->n_devices > 1);
}

static void tell(const struct el_run *run, enum el_segment segment)
{
    const struct el_train_hooks *hooks = run->session->hooks;
    for (int m = 0; m < run->worker.n_members && hooks->segment; m++)
        hooks->segment(hooks->context, run->first + m, segment);
}

static void mute(struct el_run *run, bool muted)
{
    struct el_worker *worker = &run->worker;
    if (run->session->mode->mute) {
        run->session->mode->mute(worker, muted);
        return;
    }
    struct el_comm *comm;
    for (int i = 0; (comm = el_worker_comm(worker, i)); i++) el_comm_mute(comm, muted);
}

static enum el_status run_step(struct el_run *run, const struct el_probe *probe, uint64_t *number_p)
{
    EL_TRY(el_run_choose(run, *number_p));
    if (!run->program) EL_TRY(el_run_issue(run, false));
    return el_program_run(run->program, (*number_p)++, probe);
}

static enum el_status run_steps(struct el_run *run, const struct el_probe *probe, uint64_t *number_p, double *sum_ns_p)
{
    double sum_ns = 0;
    for (int i = 0; i < run->result.control_steps; i++) {
        EL_TRY(run_step(run, probe, number_p));
        sum_ns += (double)el_program_elapsed_ns(run->program);
    }
    *sum_ns_p = sum_ns;
    return EL_OK;
}

static enum el_status run_block(struct el_run *run, enum el_segment segment, uint64_t *number_p, double *mean_ns_p)
{
    const struct el_probe *probes = run->session->hooks->probes, *probe = probes ? &probes[run->first] : NULL;
    bool off = segment == EL_SEGMENT_OFF, record = run->session->config->control == EL_CONTROL_RECORD;
    double sum_ns;
    if (record && off) probe = NULL;
    if (!record) mute(run, off);
    if (!record) EL_TRY(run_step(run, probe, number_p));
    tell(run, segment);
    int64_t begin_ns = el_clock_ns();
    EL_TRY(run_steps(run, probe, number_p, &sum_ns));
    if (record) sum_ns = (double)(el_clock_ns() - begin_ns);
    tell(run, EL_SEGMENT_NONE);
    *mean_ns_p = sum_ns / run->result.control_steps;
    return EL_OK;
}

/* As many steps as make all blocks last about the measured time. Rank 0 decides. */
static enum el_status plan_blocks(struct el_run *run)
{
    const struct el_train_config *config = run->session->config;
    bool record = config->control == EL_CONTROL_RECORD;
    double sum_ns = 0, least = record ? 1 : BLOCK_STEPS_MIN, steps = least;
    for (int64_t i = run->n_warmup; i < run->n_done; i++) sum_ns += (double)run->step_ns[i];
    double mean_ns = sum_ns / (double)(run->n_done - run->n_warmup);
    if (mean_ns > 0) steps = round(config->min_time_s * 1e9 / mean_ns / (2 * config->control_pairs)) - !record;
    if (!(steps >= least)) steps = least;
    if (steps > BLOCK_STEPS_MAX) steps = BLOCK_STEPS_MAX;
    EL_TRY(el_worker_take_first(&run->worker, &steps, 1));
    run->result.control_steps = (int)steps;
    return EL_OK;
}

enum el_status el_run_control(struct el_run *run)
{
    int pairs = run->session->config->control_pairs;
    uint64_t number = (uint64_t)run->n_done;
    if (!is_wanted(run)) return EL_OK;
    EL_TRY(plan_blocks(run));
    for (int p = 0; p < pairs; p++) {
        const uint64_t first = number;
        for (int half = 0; half < 2; half++) {
            /* on off off on on off ...: cancels linear drift */
            int off = half ^ (p & 1);
            if (run->lengths) number = first; /* on the same batches */
            double *blocks_ns = off ? run->result.control_off_ns : run->result.control_on_ns;
            EL_TRY(run_block(run, off ? EL_SEGMENT_OFF : EL_SEGMENT_ON, &number, &blocks_ns[p]));
        }
        run->result.n_control_pairs++;
    }
    mute(run, false);
    return EL_OK;
}
