/* Uneven ends of epochs, in the loop of one host thread: who asks whether all have a batch, and who waits for whom. */
#include <math.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/train/session.h"
#include "runtime/worker/share.h"

int64_t el_run_epoch_steps(const struct el_run *run)
{
    const int64_t batches = run->result.epoch_batches;
    return run->uneven.how == EL_UNEVEN_STOP ? el_uneven_batches(&run->uneven, run->uneven.rank, batches) : batches;
}

/* An all-reduce of whether there is a batch, as people write it. The epoch's steps are known: the answer has to fit. */
static enum el_status agree(struct el_run *run, bool has, int64_t place)
{
    const int64_t begin_ns = el_clock_ns();
    double n = has;
    EL_TRY(el_worker_sum(&run->worker, &n, 1));
    run->result.agreement_ns += el_clock_ns() - begin_ns;
    run->result.n_agreements++;
    const bool more = run->uneven.how == EL_UNEVEN_JOIN ? n > 0 : n == (double)run->worker.layout->n_workers;
    if (more == (place < el_run_epoch_steps(run))) return EL_OK;
    return el_fail(EL_ERR_INTERNAL, "%g ranks have a batch for step %lld of the epoch", n, (long long)place + 1);
}

static enum el_status ran_out(const struct el_run *run)
{
    const struct el_train_config *config = run->session->config;
    const int64_t batches = run->result.epoch_batches, own = el_uneven_batches(&run->uneven, run->uneven.rank, batches);
    return el_fail(EL_ERR_PEER,
                   "rank %d ran out of batches: it has %lld in an epoch and the others %lld, and they waited in the "
                   "all-reduce of step %lld of the epoch for %g s (--comm-timeout): use --uneven join or stop",
                   run->uneven.rank, (long long)own, (long long)batches, (long long)own + 1, config->comm_timeout_s);
}

/* Where somebody's batches begin or run out all ranks issue their step anew: it has another root, and for one of them
 * nothing to compute. */
static void join(struct el_run *run, bool has, int64_t place)
{
    struct el_worker *worker = &run->worker;
    const int n = worker->layout->n_workers;
    const int64_t batches = run->result.epoch_batches;
    if (place != 0 && place != el_uneven_batches(&run->uneven, run->uneven.rank, batches)) return;
    worker->joined = !has;
    worker->buffers_root = el_uneven_last(&run->uneven, n, place, batches);
    el_run_drop_programs(run);
}

enum el_status el_run_end_join(struct el_run *run)
{
    struct el_worker *worker = &run->worker;
    const int64_t batches = run->result.epoch_batches;
    if (run->uneven.how != EL_UNEVEN_JOIN) return EL_OK;
    return el_share_send_weights(worker, worker->world,
                                 el_uneven_last(&run->uneven, worker->layout->n_workers, batches - 1, batches),
                                 worker->config->broadcast_buffers);
}

double el_run_loss_weight(const struct el_run *run, int64_t i)
{
    const int64_t batches = run->result.epoch_batches, n = run->worker.layout->n_workers;
    if (run->uneven.how != EL_UNEVEN_JOIN || batches == 0) return 1;
    return (i - run->origin) % batches < el_uneven_batches(&run->uneven, run->uneven.rank, batches)
               ? 1
               : (double)n / (double)(n - 1);
}

/* A rank that goes on without a batch would end here and close its connections, and the others would not wait. */
static enum el_status wait_for_the_others(const struct el_run *run)
{
    const double seconds = run->session->config->comm_timeout_s * 1.25 + 0.5;
    struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&left, &left) != 0) continue;
    return ran_out(run);
}

enum el_status el_run_ask_all(struct el_run *run, int64_t place)
{
    const bool has = place < el_uneven_batches(&run->uneven, run->index, run->result.epoch_batches);
    if (run->session->config->epochs == 0 || run->uneven.how == EL_UNEVEN_OFF) return EL_OK;
    if (run->uneven.how == EL_UNEVEN_JOIN && place < run->result.epoch_batches) join(run, has, place);
    if (run->uneven.how != EL_UNEVEN_HANG) return agree(run, has, place);
    return has || place == run->result.epoch_batches ? EL_OK : wait_for_the_others(run);
}

enum el_status el_run_explain_wait(const struct el_run *run, enum el_status status, int64_t place)
{
    const bool waited = run->session->config->epochs > 0 && run->uneven.how == EL_UNEVEN_HANG &&
                        status == EL_ERR_PEER &&
                        place == el_uneven_batches(&run->uneven, run->uneven.rank, run->result.epoch_batches);
    return waited ? ran_out(run) : status;
}
