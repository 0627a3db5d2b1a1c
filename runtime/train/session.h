/* What the training files share: one call of el_train, and one host thread of it. Nobody else includes it. */
#pragma once

#include <pthread.h>

#include "runtime/data/safetensors.h"
#include "runtime/device/joint.h"
#include "runtime/layout/layout.h"
#include "runtime/modes/mode.h"
#include "runtime/train/meeting.h"
#include "runtime/train/train.h"
#include "runtime/train/worlds.h"
#include "runtime/worker/snapshot.h"

struct el_session {
    const struct el_train_config *config;
    const struct el_train_place *place;
    const struct el_train_hooks *hooks; /* never NULL; its hooks may be */
    const struct el_mode_ops *mode;
    struct el_layout layout;
    struct el_parts parts;
    struct el_joint *joint;         /* simulated workers of several threads; else NULL */
    struct el_meeting *meeting;     /* of a process's several threads; else NULL */
    bool wants_grads;               /* of the last step, which are kept */
    double *grads;                  /* on rank 0, where they are wanted: room for those of the whole model */
    struct el_train_result *result; /* the first run's: also has the figures of this process's devices */
};

/* A step's program, and the lengths that it is for, of each feed, and its kind (programs.c): NULL, where there is but
 * one. */
struct el_step_program {
    struct el_program *program;
    int64_t *lengths;
};
enum { EL_STEP_PROGRAMS_MAX = 64 };

/* One host thread: its members and what it measured. */
struct el_run {
    struct el_session *session;
    pthread_t thread; /* of several workers */
    const struct el_worlds *worlds;
    struct el_worker worker;
    int index; /* of the job's workers */
    int first; /* position of its first member among this process's devices */
    int round;
    struct el_program *program; /* of the step to come, one of these; NULL: it has not been issued */
    struct el_step_program programs[EL_STEP_PROGRAMS_MAX];
    int n_programs, n_lengths;
    int64_t *lengths;              /* [n_lengths] of the step to come; NULL: batches have the model's */
    double flops;                  /* of the measured steps together */
    struct el_train_result result; /* filled as it goes; wall_ns has the warm-up's steps too until the end */
    int64_t n_warmup, n_steps, n_done;
    int64_t *step_ns; /* n_warmup + n_steps */
    int64_t start;    /* steps that were made before, by the job whose checkpoint it goes on from: numbers go on */
    /* Steps of an epoch of the data, and the step at which the data would have begun if all batches had been of this
     * size: step i is batch i - origin. Other than 0 where a checkpoint was of another batch. */
    int64_t data_steps, origin;
    int64_t summed;    /* so many steps are in epoch_loss, or in that of an earlier epoch */
    double epoch_loss; /* what the steps of the epoch in work add to its training loss */
    double best_accuracy;
    struct el_snapshot *best;             /* the best epoch's weights; NULL: none yet */
    struct el_checkpointer *checkpointer; /* NULL: no checkpoints are written */
    struct el_error error;                /* status EL_OK: it went well */
    int64_t failed_ns;
};

/* loop.c: all steps, epochs and evaluations of one host thread; members are open. */
enum el_status el_run_loop(struct el_run *run);

/* programs.c: run->program becomes that of step `number`; NULL: there is none yet. */
enum el_status el_run_choose(struct el_run *run, uint64_t number);
/* Issues it. `first`: of the round, at which all workers are. */
enum el_status el_run_issue(struct el_run *run, bool first);
void el_run_drop_programs(struct el_run *run);

/* Adds steps to the warm-up until steps have settled; call when all steps asked for so far are done. Whether
 * there is more to do is seen by n_warmup > n_done. */
enum el_status el_run_settle(struct el_run *run);
/* control.c: the blocks after the measured steps, where they are asked for. */
enum el_status el_run_control(struct el_run *run);

/* evaluate.c: what the current weights answer over a split, by rank and in all. All workers call it. The caller frees
 * evaluation_p->ranks; after a failure there is nothing to free. */
enum el_status el_run_evaluate(struct el_run *run, enum el_data_split split, struct el_evaluation *evaluation_p);

/* The owners' weights and buffers, of which the best epoch's are kept. */
enum { EL_WEIGHT_ROWS = 1U << EL_STATE_PARAM | 1U << EL_STATE_BUFFER | 1U << EL_STATE_CAST };
/* What a checkpoint has: all but gradients. */
enum { EL_KEPT_ROWS = (1U << EL_STATE_COUNT) - 1 - (1U << EL_STATE_GRAD) };

/* checkpoint.c: before the first step; after each step, where one is due; at the end (`status`: how training ended, and
 * what it returns, but for failures of its own). All workers call them. */
enum el_status el_run_open_checkpoints(struct el_run *run);
enum el_status el_run_checkpoint(struct el_run *run);
enum el_status el_run_close_checkpoints(struct el_run *run, enum el_status status);
/* Which arrays that worker's file has: of what several devices have equally, one gives. */
bool el_checkpoint_file_has(const struct el_worker *worker, int member, const struct el_state_item *item);
/* resume.c: the members' state, and what the run knows of its epochs, become those of the checkpoint; without one
 * nothing. */
enum el_status el_run_resume(struct el_run *run);
/* loop.c: the epoch's training loss as far as its steps are done, from `start` and before. Collective. */
enum el_status el_run_epoch_loss(struct el_run *run, double *loss_p);
