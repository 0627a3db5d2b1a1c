/* Finding and calling mpirun, and understanding its messages. */
#pragma once

#include "runtime/launch/launch.h"

/* Full path, for free(). Errors: EL_ERR_ABSENT naming the package. */
enum el_status el_mpirun_find(char **path_p);

/* EL_ERR_ABSENT if the open-file limit is too low for so many ranks. */
enum el_status el_mpirun_check_files(int procs);

/* Starts ranks of `argv`, with logs and pid files in `log_dir`. One block for free(); borrows the strings, writes
 * `procs_text`. */
char **el_mpirun_command(const char *mpirun, int procs, char procs_text[16], const char *log_dir, char *const *argv);

/* Sets failed_rank, exit_status and signal from mpirun's output. */
void el_mpirun_explain(const char *text, struct el_launch_result *result);

/* mpirun's reason: from the first block between dashes, the first sentence and the last paragraph. "": none. */
void el_mpirun_said(const char *text, char *words, size_t bytes);

/* 0: not started yet. */
int el_mpirun_rank_pid(const char *log_dir, int rank);
/* The rank that another one's log reports as gone, as mpirun may not have noticed; -1: none. */
int el_mpirun_missed_rank(const char *log_dir, int procs);
/* Whether all ranks have started and ended. */
bool el_mpirun_is_deserted(const char *log_dir, int procs);
