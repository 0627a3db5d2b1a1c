/* What the launcher knows of mpirun: where it is, how it is called, and what it says of a job that failed. */
#pragma once

#include "runtime/launch/launch.h"

/* The full path of mpirun, for free(). Errors: EL_ERR_ABSENT naming the package to install. */
enum el_status el_mpirun_find(char **path_p);

/* EL_ERR_ABSENT where this process may not have as many files open as mpirun needs for so many ranks. */
enum el_status el_mpirun_check_files(int procs);

/* The command line that starts `procs` ranks of `argv`, each with its log and its pid file in `log_dir`. One block for
 * free(); the strings are the caller's, or constants, except `procs_text`, which is written. */
char **el_mpirun_command(const char *mpirun, int procs, char procs_text[16], const char *log_dir, char *const *argv);

/* Reads what mpirun printed and sets failed_rank, exit_status and signal of `result` where it tells them. */
void el_mpirun_explain(const char *text, struct el_launch_result *result);

/* Its own words of why, in a line: of the first block that it printed between dashes the first sentence and the last
 * paragraph, where it names the component, the file or the call. "" where there is none. */
void el_mpirun_said(const char *text, char *words, size_t bytes);

/* The process of a rank that was started by this command; 0: it has not come so far. */
int el_mpirun_rank_pid(const char *log_dir, int rank);
/* The rank that another one has missed, by that one's log: mpirun may not have noticed, or have died first; -1: none.
 */
int el_mpirun_missed_rank(const char *log_dir, int procs);
/* Whether all ranks have come and have ended. */
bool el_mpirun_is_deserted(const char *log_dir, int procs);
