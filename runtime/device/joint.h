/* Simulated members, each with a thread and a program, whose collectives couple their virtual time.
 *
 *     el_joint_create(n, &joint);
 *     in each member's thread, for every step's program: el_program_join(program, joint, member);
 *                                                        el_program_end(program); el_program_run(program, ...); ...
 *     el_joint_destroy(joint);
 *
 * A run waits until all members run, then all are resolved: a collective takes a member's time from its arrival, moves
 * bytes when the last member arrives, and ends on all at once. Each member's time continues from its last step; a step
 * counts from the first member's begin. Members join the same number of programs in the same order. Threads: one per
 * member; el_joint_abort any. */
#pragma once

#include "runtime/device/program.h"

struct el_joint;

/* Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_joint_create(int n_members, struct el_joint **joint_p);
void el_joint_destroy(struct el_joint *joint); /* NULL is legal */
/* Before el_program_end. */
void el_program_join(struct el_program *program, struct el_joint *joint, int member);
/* Makes all members' runs, now and later, return EL_ERR_PEER. NULL is legal. */
void el_joint_abort(struct el_joint *joint);

/* Resolves steps of some members' ended, unjoined programs in one thread; members outside arrive with the last of
 * these. Reprices ops. `step_ns` [n_steps]: the first program's. `probe` (may be NULL) gets each program's last step.
 * Errors: EL_ERR_HOST_MEMORY; EL_ERR_INTERNAL where a message's sender is missing. */
enum el_status el_programs_resolve(struct el_program *const *programs, int n, int n_steps, int64_t *step_ns,
                                   const struct el_probe *probe);
