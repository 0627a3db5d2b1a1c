/* The programs of a host thread's steps: usually one for all steps of a round. If batches are padded to their longest
 * sentence, one per length that has occurred (several feeds: per set of lengths), all in the memory of the largest.
 * Simulated workers of several threads join as many programs in order (joint.h); there such steps are always issued
 * anew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/train/session.h"

static void abort_worker(void *context)
{
    el_worker_abort(context);
}

static void note_algorithms(struct el_run *run)
{
    const struct el_op_info *ops = el_program_ops(run->program);
    char *text = run->result.comm_algorithms;
    *text = 0;
    for (int i = 0; i < el_program_op_count(run->program); i++) {
        const struct el_op_messages *messages = &ops[i].messages;
        size_t used = strlen(text);
        if (!messages->verb || messages->rounds == 0 || strstr(text, messages->algorithm)) continue;
        snprintf(text + used, sizeof run->result.comm_algorithms - used, "%s%s", used ? "," : "", messages->algorithm);
    }
}

void el_run_drop_programs(struct el_run *run)
{
    while (run->n_programs > 0) {
        struct el_step_program *last = &run->programs[--run->n_programs];
        el_program_destroy(last->program);
        free(last->lengths);
    }
    run->program = NULL;
}

static enum el_status issue(struct el_run *run)
{
    if (run->session->joint) el_program_join(run->program, run->session->joint, run->index);
    el_program_on_failure(run->program, abort_worker, &run->worker);
    if (run->n_programs > 1) el_program_borrow(run->program, run->programs[0].program);
    EL_TRY(run->session->mode->issue(&run->worker, run->program, run->round));
    for (int m = 0; m < run->worker.n_members; m++)
        el_feed_issue_next(run->worker.members[m].feeds, run->program); /* with micro-steps there is no next */
    if (run->session->config->device_graph && run->round + 1 == run->session->mode->rounds)
        el_program_use_graph(run->program);
    return el_program_end(run->program);
}

/* Drops the others: their memory is too small for the last one. */
static void keep_last(struct el_run *run)
{
    struct el_step_program last = run->programs[--run->n_programs];
    el_run_drop_programs(run);
    run->programs[run->n_programs++] = last;
    run->program = last.program;
}

static enum el_status add_program(struct el_run *run)
{
    struct el_step_program *added = &run->programs[run->n_programs];
    *added = (struct el_step_program){.lengths = NULL};
    EL_TRY(el_program_create(&added->program));
    run->n_programs++;
    run->program = added->program;
    if (!run->lengths) return EL_OK;
    size_t bytes = (size_t)run->n_lengths * sizeof *run->lengths;
    added->lengths = malloc(bytes);
    if (!added->lengths) return el_fail_errno("a program's %d lengths", run->n_lengths);
    memcpy(added->lengths, run->lengths, bytes);
    return EL_OK;
}

enum el_status el_run_issue(struct el_run *run, bool first)
{
    struct el_comm *comm;
    bool keeps = run->lengths && run->session->config->capture && !run->session->joint;
    if (!keeps || run->n_programs == EL_STEP_PROGRAMS_MAX) el_run_drop_programs(run);
    EL_TRY(add_program(run));
    for (int i = 0; (comm = el_worker_comm(&run->worker, i)); i++) el_comm_begin_program(comm, !first);
    EL_TRY(issue(run));
    for (int i = 0; (comm = el_worker_comm(&run->worker, i)); i++) el_comm_end_program(comm);
    note_algorithms(run);
    run->result.flops_per_step = el_program_model_flops(run->program);
    if (run->n_programs > 1 && !el_program_has_borrowed(run->program)) keep_last(run);
    return EL_OK;
}

static struct el_feed *feed_of(struct el_run *run, int i)
{
    const int n = (int)run->session->config->n_accumulate;
    if (run->session->mode->feed) return run->session->mode->feed(&run->worker, i);
    return i < n * run->worker.n_members ? &run->worker.members[i / n].feeds[i % n] : NULL;
}

static enum el_status open_lengths(struct el_run *run)
{
    while (feed_of(run, run->n_lengths)) run->n_lengths++;
    run->lengths = calloc((size_t)run->n_lengths + 1, sizeof *run->lengths);
    return run->lengths ? EL_OK : el_fail_errno("lengths of %d feeds", run->n_lengths);
}

enum el_status el_run_choose(struct el_run *run, uint64_t number)
{
    if (!run->session->config->length_by_batch) return EL_OK;
    if (!run->lengths) EL_TRY(open_lengths(run));
    for (int i = 0; i < run->n_lengths; i++) {
        struct el_feed *feed = feed_of(run, i);
        if (feed->graphs) EL_TRY(el_feed_choose(feed, number, &run->lengths[i]));
    }
    run->program = NULL;
    for (int i = 0; i < run->n_programs && !run->session->joint; i++)
        if (!memcmp(run->programs[i].lengths, run->lengths, (size_t)run->n_lengths * sizeof *run->lengths))
            run->program = run->programs[i].program;
    return EL_OK;
}
