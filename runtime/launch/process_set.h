/* All processes that carry a job's token in their environment, whoever their parents are: mpirun gives each rank a
 * process group of its own, so no signal to a group reaches a whole job. Linux: reads /proc. */
#ifndef EL_LAUNCH_PROCESS_SET_H
#define EL_LAUNCH_PROCESS_SET_H

#define EL_LAUNCH_TOKEN    "EL_LAUNCH_TOKEN"
/* For rank 0 of our own launcher: the number of the socket that it takes over. */
#define EL_LAUNCH_LISTENER "EL_LAUNCH_LISTENER"

/* Kills (SIGKILL) each process whose environment has `token` ("EL_LAUNCH_TOKEN=...") until there is none, and reaps
 * those that became children of this process. Returns how many were killed. */
int el_process_set_kill(const char *token);

#endif
