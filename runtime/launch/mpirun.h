/* Finding and calling mpirun, and understanding its messages. */
#pragma once

#include "runtime/launch/launch.h"

/* Full path, for free(). Errors: EL_ERR_ABSENT naming the package. */
enum el_status el_mpirun_find(char **path_p);

/* EL_ERR_ABSENT if the open-file limit is too low for so many ranks. */
enum el_status el_mpirun_check_files(int procs);

/* Starts `procs` ranks of `argv`, each with log and pid file in `log_dir`. One block for free(); it borrows the
 * strings, and writes `procs_text`. */
char **el_mpirun_command(const char *mpirun, int procs, char procs_text[16], const char *log_dir, char *const *argv);

/* Sets failed_rank, exit_status and signal as far as mpirun's output tells them. */
void el_mpirun_explain(const char *text, struct el_launch_result *result);

/* mpirun's reason in one line: from the first block between dashes, the first sentence and the last paragraph, which
 * names the component, file or call. "": none. */
void el_mpirun_said(const char *text, char *words, size_t bytes);

/* The PID of a rank; 0: not started yet. */
int el_mpirun_rank_pid(const char *log_dir, int rank);
/* The rank that another one reports as gone, in case mpirun did not notice or died first; -1: none. */
int el_mpirun_missed_rank(const char *log_dir, int procs);
/* Whether all ranks have started and ended. */
bool el_mpirun_is_deserted(const char *log_dir, int procs);
