/* Members of a job whose steps are resolved together, on simulated devices: each has a thread and a program of its own,
 * and their collectives couple them.
 *
 *     el_joint_create(n, &joint);
 *     in each member's thread, for every step's program: el_program_join(program, joint, member);
 *                                                        el_program_end(program); el_program_run(program, ...); ...
 *     el_joint_destroy(joint);
 *
 * A run waits until all members run a program of the joint, then all of them are resolved: a collective takes a
 * member's time from when it comes, moves bytes when the last member has come, and ends on all at once. Virtual time
 * goes on from step to step, each member's from the end of its last one, so that what one begins late its partners see
 * in their next collective; it is counted from the member that begins the step first.
 *
 * Members join as many programs, in the same order. All devices are simulated, and all programs' lives are within the
 * joint's. Threads: one a member; el_joint_abort any.
 */
#pragma once

#include "runtime/device/program.h"

struct el_joint;

/* Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_joint_create(int n_members, struct el_joint **joint_p);
/* NULL is legal. */
void el_joint_destroy(struct el_joint *joint);
/* Before el_program_end. `member`: from 0 to n_members - 1. */
void el_program_join(struct el_program *program, struct el_joint *joint, int member);
/* Makes all members' runs, now and later, return EL_ERR_PEER: one of them will not come. NULL is legal. */
void el_joint_abort(struct el_joint *joint);

/* The steps of some members' programs, which have ended and are joined to nothing, by one thread: what they do together
 * is resolved as above, and whoever else takes part in a collective comes as the last of them does. Ops are priced
 * anew. `step_ns` [n_steps]: the first program's. `probe` (NULL: none) is told of each program's last one. Errors:
 * EL_ERR_HOST_MEMORY; EL_ERR_INTERNAL where a message's sender is not among them. */
enum el_status el_programs_resolve(struct el_program *const *programs, int n, int n_steps, int64_t *step_ns,
                                   const struct el_probe *probe);
