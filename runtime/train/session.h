/* Internal to the training files: one call of el_train, and one host thread of it. */
#pragma once

#include <pthread.h>

#include "runtime/data/safetensors.h"
#include "runtime/device/joint.h"
#include "runtime/layout/layout.h"
#include "runtime/modes/mode.h"
#include "runtime/train/train.h"
#include "runtime/train/worlds.h"
#include "runtime/worker/snapshot.h"

/* A host barrier for a process's threads, before they start work that may block another: a thread that still allocates
 * may wait until no GPU is busy. */
struct el_meeting;

/* For `n` threads. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_meeting_create(int n, struct el_meeting **meeting_p);
/* No thread may wait there. NULL is legal. */
void el_meeting_destroy(struct el_meeting *meeting);
/* Waits until all have arrived; reusable. NULL: returns at once. Errors: EL_ERR_PEER, another has aborted it. */
enum el_status el_meeting_wait(struct el_meeting *meeting);
/* Present and later waiters fail. NULL is legal. */
void el_meeting_abort(struct el_meeting *meeting);

struct el_session {
    const struct el_train_config *config;
    const struct el_train_place *place;
    const struct el_train_hooks *hooks; /* never NULL; its hooks may be */
    const struct el_mode_ops *mode;
    struct el_layout layout;
    struct el_parts parts;
    struct el_joint *joint;     /* for simulated workers in several threads; else NULL */
    struct el_meeting *meeting; /* for a process with several threads; else NULL */
    bool wants_grads;
    double *grads;                  /* on rank 0, if wanted: the whole model's */
    struct el_train_result *result; /* the first run's, with the figures of all this process's devices */
};

/* A step's program, each feed's length, and its kind (programs.c): NULL if there is only one. */
struct el_step_program {
    struct el_program *program;
    int64_t *lengths;
};
enum { EL_STEP_PROGRAMS_MAX = 64 };

/* One host thread: its members and measurements. */
struct el_run {
    struct el_session *session;
    pthread_t thread;
    const struct el_worlds *worlds;
    struct el_worker worker;
    int index; /* among the job's workers */
    int first; /* its first member's position in this process */
    int round;
    struct el_program *program; /* the next step's, one of these; NULL: not issued yet */
    struct el_step_program programs[EL_STEP_PROGRAMS_MAX];
    int n_programs, n_lengths;
    int64_t *lengths;              /* [n_lengths] of the next step; NULL: the model's length */
    double flops;                  /* of all measured steps */
    struct el_train_result result; /* filled during training; until the end wall_ns includes the warm-up */
    int64_t n_warmup, n_steps, n_done;
    int64_t *step_ns;
    int64_t start; /* steps before the checkpoint that it resumed from; numbers continue */
    /* Steps per epoch, and the offset of the data: step i is batch i - origin. Not 0 after resuming with another batch
     * size. */
    int64_t data_steps, origin;
    int64_t summed;    /* steps already in this or an earlier epoch_loss */
    double epoch_loss; /* the current epoch's training loss so far */
    double best_accuracy;
    struct el_snapshot *best;
    struct el_checkpointer *checkpointer;
    struct el_error error;
    int64_t failed_ns;
};

/* loop.c: all steps, epochs and evaluations of one host thread with open members. */
enum el_status el_run_loop(struct el_run *run);

/* programs.c: sets run->program for step `number`; NULL: none yet. */
enum el_status el_run_choose(struct el_run *run, uint64_t number);
/* Issues it. `first`: in its round, collective. */
enum el_status el_run_issue(struct el_run *run, bool first);
void el_run_drop_programs(struct el_run *run);

/* routed.c: takes a step's counts. */
enum el_status el_run_routed(struct el_run *run, bool measured);

/* Adds warm-up steps until steps have settled; call it when all requested ones are done. n_warmup > n_done: more to
 * do. */
enum el_status el_run_settle(struct el_run *run);
enum el_status el_run_control(struct el_run *run);

/* evaluate.c: counts of the current weights over a split, by rank and in total. Collective. The caller frees
 * evaluation_p->ranks, except after a failure. */
enum el_status el_run_evaluate(struct el_run *run, enum el_data_split split, struct el_evaluation *evaluation_p);

/* State rows kept for the best epoch. */
enum { EL_WEIGHT_ROWS = 1U << EL_STATE_PARAM | 1U << EL_STATE_BUFFER | 1U << EL_STATE_CAST };
/* State rows of a checkpoint: all but gradients. */
enum { EL_KEPT_ROWS = (1U << EL_STATE_COUNT) - 1 - (1U << EL_STATE_GRAD) };

/* Weights and buffers in the configuration's type after `steps` steps. Blocking, between steps. Collective: all
 * workers; the first one writes. */
enum el_status el_train_save(struct el_worker *worker, int64_t steps, const char *path);
/* checkpoint.c: before the first step; after each step, if one is due; at the end (`status` and the return value:
 * training's result, unless closing itself fails). Collective. */
enum el_status el_run_open_checkpoints(struct el_run *run);
enum el_status el_run_checkpoint(struct el_run *run);
enum el_status el_run_close_checkpoints(struct el_run *run, enum el_status status);
/* Whether a worker's file has the array: one of several equal copies is written. */
bool el_checkpoint_file_has(const struct el_worker *worker, int member, const struct el_state_item *item);
/* resume.c: restores the members' state and the run's epochs; does nothing without a checkpoint. */
enum el_status el_run_resume(struct el_run *run);
/* loop.c: the epoch's training loss over its steps so far, including those before `start`. Collective. */
enum el_status el_run_epoch_loss(struct el_run *run, double *loss_p);
