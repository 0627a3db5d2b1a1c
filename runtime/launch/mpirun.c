/* Calls mpirun, and reads its messages and its ranks' files. */
#include "runtime/launch/mpirun.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/base/process.h"

/* Open MPI 4.1 needs 27 files and 4 per rank (measured, 2 to 16 ranks); with fewer it fails halfway and waits for
 * ranks that never come. */
enum { FILES = 32, FILES_A_RANK = 5 };

enum el_status el_mpirun_find(char **path_p)
{
    if (el_launch_find_program("mpirun", path_p) == EL_OK) return EL_OK;
    return el_fail(EL_ERR_ABSENT, "mpirun: not found on PATH: install openmpi-bin (Debian, Ubuntu), "
                                  "or take --launcher own");
}

enum el_status el_mpirun_check_files(int procs)
{
    struct rlimit limit;
    rlim_t need = FILES + FILES_A_RANK * (rlim_t)procs;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need) return EL_OK;
    return el_fail(EL_ERR_ABSENT,
                   "mpirun needs %llu open files for %d ranks, and %llu are allowed: raise the limit (ulimit -n)",
                   (unsigned long long)need, procs, (unsigned long long)limit.rlim_cur);
}

/* Each rank redirects itself: a program that cannot be loaded leaves its reason in its own log, lines do not mix, and
 * the PID is known. */
static const char rank_script[] =
    "d=$1; shift; r=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-0}}}; echo $$ >\"$d/rank-$r.pid\"; "
    "exec \"$@\" >\"$d/rank-$r.log\" 2>&1 </dev/null";

char **el_mpirun_command(const char *mpirun, int procs, char procs_text[16], const char *log_dir, char *const *argv)
{
    /* Allows more ranks than slots; the runtime binds cores. */
    const char *const before[] = {mpirun, "--oversubscribe", "--bind-to", "none", "-n", procs_text, "/bin/sh",
                                  "-c",   rank_script,       "sh",        log_dir};
    size_t n_before = sizeof before / sizeof before[0], n = 0;
    while (argv[n]) n++;
    char **command = malloc((n_before + n + 1) * sizeof *command);
    if (!command) return NULL;
    snprintf(procs_text, 16, "%d", procs);
    memcpy(command, before, sizeof before);
    memcpy(command + n_before, argv, (n + 1) * sizeof *command);
    return command;
}

int el_mpirun_rank_pid(const char *log_dir, int rank)
{
    char path[PATH_MAX + 32];
    int pid = 0;
    snprintf(path, sizeof path, "%s/rank-%d.pid", log_dir, rank);
    FILE *file = fopen(path, "r");
    bool read = file && fscanf(file, "%d", &pid) == 1;
    if (file) fclose(file);
    return read && pid > 1 ? pid : 0;
}

/* "evenload: mpi: rank 1 (process 4711) is gone" (runtime/comm/mpi/module/calls.c). */
int el_mpirun_missed_rank(const char *log_dir, int procs)
{
    enum { LINES = 3, TEXT_BYTES = 2048 };
    for (int rank = 0; rank < procs; rank++) {
        char text[TEXT_BYTES], *end, *begin = text;
        el_launch_log_tail(log_dir, rank, LINES, text, sizeof text);
        int missed = -1, length = 0;
        for (; (begin = strstr(begin, "rank ")); begin = end) {
            missed = (int)strtol(begin + strlen("rank "), &end, 10);
            if (sscanf(end, " (process %*d) is gone%n", &length) == 0 && length > 0 && missed >= 0 && missed < procs)
                return missed;
        }
    }
    return -1;
}

bool el_mpirun_is_deserted(const char *log_dir, int procs)
{
    for (int rank = 0; rank < procs; rank++) {
        int pid = el_mpirun_rank_pid(log_dir, rank), file = pid ? el_process_file(pid) : -1;
        bool gone = pid && el_process_is_gone(pid, file);
        if (file >= 0) close(file);
        if (!gone) return false;
    }
    return true;
}

/* "mpirun noticed that process rank 1 with PID 4711 on node n exited on signal 9 (Killed)." */
static bool explain_signal(const char *text, struct el_launch_result *result)
{
    for (const char *at = text; (at = strstr(at, "noticed that process rank ")); at++) {
        int rank, signal;
        const char *end = strstr(at, "exited on signal ");
        if (!end || sscanf(at, "noticed that process rank %d", &rank) != 1) continue;
        if (sscanf(end, "exited on signal %d", &signal) != 1) continue;
        result->failed_rank = rank;
        result->signal = signal;
        result->exit_status = -1;
        return true;
    }
    return false;
}

/* "MPI_ABORT was invoked on rank 1 in communicator ...\nwith errorcode 3." */
static bool explain_abort(const char *text, struct el_launch_result *result)
{
    const char *at = strstr(text, "MPI_ABORT was invoked on rank "), *code = at ? strstr(at, "errorcode ") : NULL;
    int rank, status;
    if (!code || sscanf(at, "MPI_ABORT was invoked on rank %d", &rank) != 1) return false;
    if (sscanf(code, "errorcode %d", &status) != 1) return false;
    result->failed_rank = rank;
    result->exit_status = status;
    return true;
}

/* "  Process name: [[43422,1],1]\n  Exit code:    3" (or "[prterun-host-4711@1,1]"). */
static bool explain_exit(const char *text, struct el_launch_result *result)
{
    const char *at = strstr(text, "Process name:"), *code = at ? strstr(at, "Exit code:") : NULL;
    if (!code) return false;
    const char *line_end = at + strcspn(at, "\n"), *comma = NULL;
    for (const char *c = at; c < line_end; c++)
        if (*c == ',') comma = c;
    int rank, status;
    if (!comma || sscanf(comma, ",%d", &rank) != 1 || sscanf(code, "Exit code: %d", &status) != 1) return false;
    result->failed_rank = rank;
    result->exit_status = status;
    return true;
}

void el_mpirun_explain(const char *text, struct el_launch_result *result)
{
    if (!explain_abort(text, result) && !explain_signal(text, result)) explain_exit(text, result);
}

static void add_words(const char *text, size_t length, char *words, size_t bytes)
{
    size_t used = strlen(words);
    for (size_t i = 0; i < length && used + 2 < bytes; i++) {
        if (!isspace((unsigned char)text[i]))
            words[used++] = text[i];
        else if (used > 0 && words[used - 1] != ' ')
            words[used++] = ' ';
    }
    words[used] = 0;
}

void el_mpirun_said(const char *text, char *words, size_t bytes)
{
    static const char dashes[] = "----------------------------------------";
    words[0] = 0;
    const char *begin = strstr(text, dashes);
    begin = begin ? begin + strcspn(begin, "\n") : NULL;
    const char *end = begin ? strstr(begin, dashes) : NULL, *sentence = begin, *last = begin;
    if (!end) return;
    while (sentence < end && !(sentence[0] == '.' && isspace((unsigned char)sentence[1]))) sentence++;
    for (const char *at = begin; (at = strstr(at, "\n\n")) && at + 2 < end; at++)
        if (at[2 + strspn(at + 2, " \n")] != '-') last = at;
    if (last <= sentence) last = sentence < end ? sentence + 1 : end; /* one paragraph: all of it */
    add_words(begin, (size_t)(sentence - begin) + (sentence < end), words, bytes);
    add_words(" ", 1, words, bytes);
    add_words(last, (size_t)(end - last), words, bytes);
    size_t used = strlen(words);
    while (used > 0 && words[used - 1] == ' ') words[--used] = 0;
}
