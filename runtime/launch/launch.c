/* Time-outs, cancellation, cleanup and verdict of a job. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/files.h"
#include "runtime/base/scratch.h"
#include "runtime/base/status.h"
#include "runtime/launch/children.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/mpirun.h"

enum { EL_OWN_VARIABLES = 9, EL_OWN_VARIABLE_BYTES = 64 };

struct el_own_meeting {
    int listener; /* on the loopback */
    char host[16];
    int port;
    char secret[EL_LAUNCH_SECRET_BYTES];
};

static void own_close(struct el_own_meeting *meeting);

/* A loopback port, and torchrun's variables. */

enum { BACKLOG = 128 };

static int listen_at(const struct sockaddr *address, socklen_t length)
{
    int made = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0) return -1;
    /* Above the standard ones, which the child replaces. */
    int listener = fcntl(made, F_DUPFD_CLOEXEC, 3), number = errno;
    close(made);
    errno = number;
    if (listener >= 0 && bind(listener, address, length) == 0 && listen(listener, BACKLOG) == 0) return listener;
    number = errno;
    if (listener >= 0) close(listener);
    errno = number;
    return -1;
}

enum el_status el_launch_make_secret(char secret[EL_LAUNCH_SECRET_BYTES])
{
    unsigned char bytes[(EL_LAUNCH_SECRET_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return el_fail_errno("launch: no random numbers for the ranks' secret");
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
    return EL_OK;
}

static enum el_status own_open(struct el_own_meeting *meeting_p)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t length = sizeof six;
    struct el_own_meeting meeting = {.host = "127.0.0.1"};
    EL_TRY(el_launch_make_secret(meeting.secret));
    meeting.listener = listen_at((const struct sockaddr *)&four, sizeof four);
    if (meeting.listener < 0) {
        snprintf(meeting.host, sizeof meeting.host, "::1");
        meeting.listener = listen_at((const struct sockaddr *)&six, sizeof six);
    }
    if (meeting.listener < 0) return el_fail_errno("launch: no port of the loopback for the ranks to meet at");
    if (getsockname(meeting.listener, (struct sockaddr *)&six, &length) != 0) {
        own_close(&meeting);
        return el_fail_errno("launch: the port of the loopback");
    }
    meeting.port = ntohs(six.sin6_port); /* same offset for both families */
    *meeting_p = meeting;
    return EL_OK;
}

static void own_close(struct el_own_meeting *meeting)
{
    if (meeting->listener >= 0) close(meeting->listener);
    meeting->listener = -1;
}

/* One rank's variables; the listener only for rank 0; `numbered` may be NULL. Returns their number. */
static int own_variables(const struct el_own_meeting *meeting, int rank, int size, const char *numbered,
                         char variables[EL_OWN_VARIABLES][EL_OWN_VARIABLE_BYTES])
{
    const size_t bytes = EL_OWN_VARIABLE_BYTES;
    int n = 0;
    snprintf(variables[n++], bytes, "RANK=%d", rank);
    snprintf(variables[n++], bytes, "WORLD_SIZE=%d", size);
    snprintf(variables[n++], bytes, "LOCAL_RANK=%d", rank);
    snprintf(variables[n++], bytes, "LOCAL_WORLD_SIZE=%d", size);
    snprintf(variables[n++], bytes, "MASTER_ADDR=%s", meeting->host);
    snprintf(variables[n++], bytes, "MASTER_PORT=%d", meeting->port);
    snprintf(variables[n++], bytes, EL_LAUNCH_SECRET "=%s", meeting->secret);
    if (rank == 0) snprintf(variables[n++], bytes, EL_LAUNCH_LISTENER "=%d", meeting->listener);
    if (numbered) snprintf(variables[n++], bytes, "%s%d", numbered, rank);
    return n;
}

static size_t find_lines(const char *text, size_t length, int lines)
{
    size_t end = length;
    while (end > 0 && text[end - 1] == '\n') end--;
    size_t at = end;
    for (int n = 0; at > 0; at--)
        if (text[at - 1] == '\n' && ++n == lines) break;
    return at;
}

void el_launch_log_tail(const char *log_dir, int rank, int lines, char *text, size_t bytes)
{
    char path[4096];
    if (bytes == 0) return;
    text[0] = 0;
    if (lines < 1) return;
    if (rank < 0)
        snprintf(path, sizeof path, "%s/launcher.log", log_dir);
    else
        snprintf(path, sizeof path, "%s/rank-%d.log", log_dir, rank);
    FILE *file = fopen(path, "r");
    if (!file) return;
    if (fseek(file, -(long)(bytes - 1), SEEK_END) != 0) rewind(file);
    size_t length = fread(text, 1, bytes - 1, file);
    fclose(file);
    text[length] = 0;
    for (size_t i = 0; i < length; i++)
        if (!text[i]) text[i] = '?';
    size_t begin = find_lines(text, length, lines);
    memmove(text, text + begin, length - begin + 1);
}

/* The kernel counts its out-of-memory kills without naming processes. */

int64_t el_oom_kills(const char *root)
{
    char path[EL_PATH_BYTES], number[32];
    snprintf(path, sizeof path, "%s/proc/vmstat", root);
    return el_file_line(path, "oom_kill ", number, sizeof number) ? strtoll(number, NULL, 10) : -1;
}

bool el_oom_explain(int64_t before, int64_t after, char *text, size_t bytes)
{
    text[0] = '\0';
    if (before < 0 || after < 0)
        snprintf(text, bytes, ", by another process, or by the kernel because memory ran out (see dmesg)");
    else if (after > before)
        snprintf(text, bytes,
                 ", because memory ran out: the kernel's out-of-memory killer ended %" PRId64 " process%s of this host "
                 "meanwhile; take a smaller batch or fewer devices, or allow more memory",
                 after - before, after - before == 1 ? "" : "es");
    return before >= 0 && after > before;
}

extern char **environ;

/* SHARED_BYTES, RANK_BYTES: Open MPI 4.1 keeps 8.4 MiB and 0.1 MiB per rank in its folder (measured, 2 to 16 ranks);
 * with less it fails halfway and its ranks hang. PATIENCE: grace periods for mpirun to end after its ranks (one, once
 * it has named the failed rank): 4.1.4 sometimes hangs in PMIx_server_finalize. */
enum {
    TICK_NS = 100000000,
    PATIENCE = 5,
    TEXT_BYTES = 65536,
    EXTRA_MAX = 16,
    SHARED_BYTES = 16 << 20,
    RANK_BYTES = 512 << 10
};

struct launch {
    struct el_launch_spec spec;
    char log_dir[PATH_MAX];
    char token[96];
    char scratch[EL_SCRATCH_BYTES], settings[3][128];
    int scratch_lock;
    struct el_guard guard;
    char procs_text[16];
    char *program;
    char **command;
    struct el_child *children; /* [n_children]: our ranks, or one process */
    int n_children;
    int64_t begin_ns;
    int64_t oom_kills;
    int failed; /* -1: none */
    int64_t failed_ns;
    int64_t deserted_ns; /* when mpirun's last rank ended; 0: not yet */
    bool stuck;
    int stopped;
    int was_subreaper;
    char before[EL_NUMBERS_BYTES]; /* children that existed before */
};

static void destroy(struct launch *launch)
{
    el_guard_stop(&launch->guard);
    el_scratch_remove(launch->scratch);
    if (launch->scratch_lock >= 0) close(launch->scratch_lock);
    free(launch->program);
    free(launch->command);
    free(launch->children);
    free(launch);
}

static enum el_status make_log_dir(struct launch *launch)
{
    const char *name = launch->spec.log_dir;
    if (launch->spec.out) return EL_OK;
    if (mkdir(name, 0777) != 0 && errno != EEXIST) return el_fail_errno("%s: cannot make the log folder", name);
    if (!realpath(name, launch->log_dir)) return el_fail_errno("%s: log folder", name);
    if (access(launch->log_dir, W_OK | X_OK) != 0) return el_fail_errno("%s: cannot write into it", name);
    char path[PATH_MAX + 32];
    for (int rank = 0; rank < launch->spec.procs; rank++) {
        snprintf(path, sizeof path, "%s/rank-%d.pid", launch->log_dir, rank);
        unlink(path);
        snprintf(path, sizeof path, "%s/rank-%d.log", launch->log_dir, rank);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/launcher.log", launch->log_dir);
    unlink(path);
    return EL_OK;
}

static bool by_mpirun(const struct launch *launch)
{
    return launch->spec.procs > 1 && launch->spec.by == EL_LAUNCH_BY_MPIRUN;
}

static enum el_status make_settings(struct launch *launch)
{
    static const char *const names[] = {"OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_btl_vader_backing_directory",
                                        "PRTE_MCA_prte_tmpdir_base"};
    static _Atomic unsigned serial;
    /* Distinct, since the program may launch jobs itself. */
    snprintf(launch->token, sizeof launch->token, "%s=%d-%lld-%u.",
             launch->spec.out ? EL_LAUNCH_COMMAND_TOKEN : EL_LAUNCH_TOKEN, (int)getpid(), (long long)el_clock_ns(),
             atomic_fetch_add(&serial, 1));
    if (launch->spec.out) return el_guard_start(launch->token, "", &launch->guard);
    if (!by_mpirun(launch)) return EL_OK;
    /* For mpirun's sockets and shared memory, so that nothing stays behind when it is killed. */
    uint64_t bytes = SHARED_BYTES + (uint64_t)RANK_BYTES * (uint64_t)launch->spec.procs;
    launch->scratch_lock = el_scratch_make(launch->scratch, bytes);
    if (!launch->scratch[0])
        return el_fail(EL_ERR_ABSENT,
                       "mpirun needs %" PRIu64 " MiB of shared memory for %d ranks, and neither /dev/shm nor /tmp has "
                       "room: make some, or take --launcher own",
                       bytes >> 20, launch->spec.procs);
    for (int i = 0; i < 3; i++)
        snprintf(launch->settings[i], sizeof launch->settings[i], "%s=%s", names[i], launch->scratch);
    EL_TRY(el_mpirun_check_files(launch->spec.procs));
    return el_guard_start(launch->token, launch->scratch, &launch->guard);
}

/* `more`: one rank's. The caller frees the result. */
static enum el_status make_environment(const struct launch *launch, const char *const *more, char ***environment_p)
{
    const char *const *given = launch->spec.environment;
    size_t n_given = 0, n = 0;
    while (given && given[n_given]) n_given++;
    const char **extra = calloc(n_given + EXTRA_MAX, sizeof *extra);
    if (!extra) return el_fail(EL_ERR_HOST_MEMORY, "launch: no memory");
    extra[n++] = launch->token;
    for (int i = 0; launch->scratch[0] && i < 3; i++) extra[n++] = launch->settings[i];
    for (int i = 0; more[i]; i++) extra[n++] = more[i];
    if (n_given) memcpy(extra + n, given, n_given * sizeof *extra);
    *environment_p = el_launch_make_environment(environ, extra, by_mpirun(launch), !launch->spec.out);
    free(extra);
    return *environment_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "launch: no memory");
}

static enum el_status make_command(struct launch *launch)
{
    const struct el_launch_spec *spec = &launch->spec;
    if (!by_mpirun(launch)) {
        size_t n = 0;
        while (spec->argv[n]) n++;
        launch->command = malloc((n + 1) * sizeof *launch->command);
        if (launch->command) memcpy(launch->command, spec->argv, (n + 1) * sizeof *launch->command);
        if (launch->command) return el_launch_find_program(spec->argv[0], &launch->program);
    } else {
        char *program;
        EL_TRY(el_launch_find_program(spec->argv[0], &program)); /* mpirun's own message is a page long */
        free(program);
        EL_TRY(el_mpirun_find(&launch->program));
        launch->command =
            el_mpirun_command(launch->program, spec->procs, launch->procs_text, launch->log_dir, spec->argv);
    }
    return launch->command ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "launch: no memory");
}

static void make_path(const struct launch *launch, int rank, const char *ending, char path[PATH_MAX + 32])
{
    snprintf(path, PATH_MAX + 32, "%s/rank-%d.%s", launch->log_dir, rank, ending);
}

static enum el_status start_child(struct launch *launch, const char *log, const char *const *more, int kept_file)
{
    char **environment;
    EL_TRY(make_environment(launch, more, &environment));
    const struct el_child_spec spec = {.program = launch->program,
                                       .command = launch->command,
                                       .environment = environment,
                                       .log = launch->spec.out ? NULL : log,
                                       .out = launch->spec.out,
                                       .err = launch->spec.err,
                                       /* mpirun ends its ranks at SIGTERM. */
                                       .death_signal = by_mpirun(launch) ? SIGTERM : SIGKILL,
                                       .kept_file = kept_file};
    enum el_status status = el_child_start(&spec, &launch->children[launch->n_children]);
    free(environment);
    if (status == EL_OK) launch->n_children++;
    return status;
}

static enum el_status start_rank(struct launch *launch, const struct el_own_meeting *meeting, int rank)
{
    char path[PATH_MAX + 32], variables[EL_OWN_VARIABLES][EL_OWN_VARIABLE_BYTES];
    const char *more[EL_OWN_VARIABLES + 1] = {NULL};
    int n = own_variables(meeting, rank, launch->spec.procs, launch->spec.numbered, variables);
    for (int i = 0; i < n; i++) more[i] = variables[i];
    make_path(launch, rank, "log", path);
    EL_TRY(start_child(launch, path, more, rank == 0 ? meeting->listener : -1));
    make_path(launch, rank, "pid", path);
    FILE *file = fopen(path, "w");
    if (file) fprintf(file, "%d\n", (int)launch->children[rank].pid);
    if (file) fclose(file);
    return EL_OK;
}

static enum el_status start_ranks(struct launch *launch)
{
    struct el_own_meeting meeting;
    enum el_status status = own_open(&meeting);
    if (status != EL_OK) return status;
    for (int rank = 0; rank < launch->spec.procs && status == EL_OK; rank++)
        status = start_rank(launch, &meeting, rank);
    own_close(&meeting);
    if (status == EL_OK) return EL_OK;
    el_children_signal(launch->children, launch->n_children, SIGKILL);
    while (!el_children_wait(launch->children, launch->n_children, TICK_NS)) continue;
    return status;
}

static enum el_status start_children(struct launch *launch)
{
    const char *const nothing[] = {NULL};
    char log[PATH_MAX + 32];
    launch->children = calloc((size_t)launch->spec.procs, sizeof *launch->children);
    if (!launch->children) return el_fail(EL_ERR_HOST_MEMORY, "launch: no memory");
    launch->begin_ns = el_clock_ns();
    launch->oom_kills = el_oom_kills("");
    if (launch->spec.procs > 1 && !by_mpirun(launch)) return start_ranks(launch);
    make_path(launch, 0, "log", log);
    if (by_mpirun(launch)) snprintf(log, sizeof log, "%s/launcher.log", launch->log_dir);
    return start_child(launch, log, nothing, -1);
}

static enum el_status start(const struct el_launch_spec *spec, struct launch **launch_p)
{
    if (spec->procs < 1) return el_fail(EL_ERR_INVALID, "launch: %d processes", spec->procs);
    struct launch *launch = calloc(1, sizeof *launch);
    if (!launch) return el_fail(EL_ERR_HOST_MEMORY, "launch: no memory");
    launch->spec = *spec;
    launch->failed = launch->scratch_lock = -1;
    if (launch->spec.grace_s <= 0) launch->spec.grace_s = 2;
    enum el_status status;
    EL_TRY_GOTO(make_log_dir(launch), fail);
    EL_TRY_GOTO(make_command(launch), fail);
    EL_TRY_GOTO(make_settings(launch), fail);
    /* Adopt ranks of a dead mpirun, to reap them. */
    prctl(PR_GET_CHILD_SUBREAPER, &launch->was_subreaper);
    el_children_list(launch->before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    EL_TRY_GOTO(start_children(launch), fail_reaper);
    *launch_p = launch;
    return EL_OK;
fail_reaper:
    prctl(PR_SET_CHILD_SUBREAPER, launch->was_subreaper);
fail:
    destroy(launch);
    return status;
}

static double elapsed_s(const struct launch *launch)
{
    return (double)(el_clock_ns() - launch->begin_ns) * 1e-9;
}

static bool was_killed(const struct launch *launch)
{
    return launch->failed >= 0 && WIFSIGNALED(launch->children[launch->failed].wait_status);
}

/* The first failure is the cause. But a process killed by a signal closes its connections before it can be reaped, so
 * another's reaction may be seen first. */
static void note_failure(struct launch *launch)
{
    int before = launch->failed;
    if (was_killed(launch)) return;
    launch->failed = el_children_failed(launch->children, launch->n_children);
    if (before < 0)
        launch->failed_ns = el_clock_ns();
    else if (!was_killed(launch))
        launch->failed = before;
}

/* End the others if one was killed, or one failed and they had time to notice and end. */
static bool is_beyond_hope(const struct launch *launch)
{
    return was_killed(launch) ||
           (launch->failed >= 0 && el_clock_ns() - launch->failed_ns > (int64_t)(launch->spec.grace_s * 1e9));
}

/* From the process or mpirun's output; without a rank, mpirun's text. */
static void find_cause(const struct launch *launch, struct el_launch_result *result, char *words, size_t bytes)
{
    if (launch->spec.procs == 1) result->failed_rank = 0;
    if (launch->spec.procs > 1 && !by_mpirun(launch)) result->failed_rank = launch->failed;
    if (!by_mpirun(launch) || result->signal || result->timed_out || result->cancelled) return;
    char *text = malloc(TEXT_BYTES);
    if (!text) return;
    el_launch_log_tail(launch->log_dir, -1, INT_MAX, text, TEXT_BYTES);
    el_mpirun_explain(text, result);
    int missed = result->signal ? -1 : el_mpirun_missed_rank(launch->log_dir, launch->spec.procs);
    if (missed >= 0) {
        result->failed_rank = missed;
        result->exit_status = -1;
    }
    if (result->failed_rank < 0) el_mpirun_said(text, words, bytes);
    free(text);
}

static bool has_named_a_rank(const struct launch *launch)
{
    struct el_launch_result said = {.failed_rank = -1};
    char words[400];
    find_cause(launch, &said, words, sizeof words);
    return said.failed_rank >= 0;
}

/* Whether only mpirun is left, for too long. */
static bool is_stuck(struct launch *launch)
{
    int64_t now_ns = el_clock_ns();
    if (!by_mpirun(launch) || !el_mpirun_is_deserted(launch->log_dir, launch->spec.procs)) return false;
    if (!launch->deserted_ns) launch->deserted_ns = now_ns;
    double graces = (double)(now_ns - launch->deserted_ns) * 1e-9 / launch->spec.grace_s;
    bool missed = el_mpirun_missed_rank(launch->log_dir, launch->spec.procs) >= 0;
    launch->stuck = graces > PATIENCE || (graces > (missed ? 0.5 : 1) && has_named_a_rank(launch));
    return launch->stuck;
}

/* -1: none. */
static int find_stopped(const struct launch *launch)
{
    char path[48], state[16];
    for (int i = 0; i < launch->n_children; i++) {
        snprintf(path, sizeof path, "/proc/%d/status", (int)launch->children[i].pid);
        if (el_file_line(path, "State:\t", state, sizeof state) && *state == 'T') return i;
    }
    return -1;
}

/* Returns when all have ended (true), one has failed, the time is up, or `progress` returns false. */
static bool watch(struct launch *launch, struct el_launch_result *result)
{
    const struct el_launch_spec *spec = &launch->spec;
    for (;;) {
        int64_t patience_ns = TICK_NS;
        if (spec->timeout_s > 0) {
            double left_s = spec->timeout_s - elapsed_s(launch);
            if (left_s < TICK_NS * 1e-9) patience_ns = left_s > 0 ? (int64_t)(left_s * 1e9) : 0;
        }
        bool ended = el_children_wait(launch->children, launch->n_children, patience_ns);
        note_failure(launch);
        if (ended) return true;
        if (is_beyond_hope(launch) || is_stuck(launch)) return false;
        result->timed_out = spec->timeout_s > 0 && elapsed_s(launch) >= spec->timeout_s;
        if (result->timed_out) {
            launch->stopped = find_stopped(launch);
            result->stopped = launch->stopped >= 0;
            return false;
        }
        result->cancelled = spec->progress && !spec->progress(spec->context, elapsed_s(launch));
        if (result->cancelled) return false;
    }
}

static void end_job(const struct launch *launch)
{
    double patience_s = launch->stuck ? 0 : launch->spec.grace_s;
    int64_t deadline_ns = el_clock_ns() + (int64_t)(patience_s * 1e9), left_ns;
    el_children_signal(launch->children, launch->n_children, SIGTERM);
    if (!by_mpirun(launch)) /* a stopped one handles it then; mpirun would print that, and handles its ranks itself */
        el_children_signal(launch->children, launch->n_children, SIGCONT);
    while ((left_ns = deadline_ns - el_clock_ns()) > 0)
        if (el_children_wait(launch->children, launch->n_children, left_ns)) return;
    el_children_signal(launch->children, launch->n_children, SIGKILL);
}

/* Orphaned ranks are our children now; pid files name them. */
static void reap_ranks(const struct launch *launch)
{
    char path[PATH_MAX + 32];
    for (int rank = 0; launch->spec.procs > 1 && rank < launch->spec.procs; rank++) {
        int pid = by_mpirun(launch) ? el_mpirun_rank_pid(launch->log_dir, rank) : 0;
        if (pid) waitpid(pid, NULL, WNOHANG);
        make_path(launch, rank, "pid", path);
        unlink(path);
    }
}

static void explain(const struct launch *launch, int wait_status, struct el_launch_result *result)
{
    char who[32] = "mpirun", words[400] = "", memory[192] = "";
    result->exit_status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    result->signal = WIFSIGNALED(wait_status) && !launch->stuck ? WTERMSIG(wait_status) : 0;
    result->ok = result->exit_status == 0 && !result->timed_out && !result->cancelled;
    if (result->ok) return;
    find_cause(launch, result, words, sizeof words);
    if (result->signal == SIGKILL && !result->timed_out && !result->cancelled)
        result->out_of_memory = el_oom_explain(launch->oom_kills, el_oom_kills(""), memory, sizeof memory);
    if (result->failed_rank >= 0) snprintf(who, sizeof who, "rank %d", result->failed_rank);
    if (result->stopped && !by_mpirun(launch)) snprintf(who, sizeof who, "rank %d", launch->stopped);
    if (result->timed_out)
        snprintf(result->reason, sizeof result->reason, "timed out after %g s%s%s%s", launch->spec.timeout_s,
                 result->stopped ? ": " : "", result->stopped ? who : "",
                 result->stopped ? " was stopped (SIGSTOP)" : "");
    else if (result->cancelled)
        snprintf(result->reason, sizeof result->reason, "interrupted after %.1f s", result->wall_s);
    else if (launch->stuck && result->failed_rank < 0)
        snprintf(result->reason, sizeof result->reason,
                 "mpirun did not end within %g s after all its ranks had, and was ended: try again, or take --launcher "
                 "own",
                 PATIENCE * launch->spec.grace_s);
    else if (by_mpirun(launch) && result->failed_rank >= 0 && result->exit_status < 0 && !result->signal)
        snprintf(result->reason, sizeof result->reason, "%s is gone, and mpirun did not say how it ended", who);
    else if (result->signal)
        snprintf(result->reason, sizeof result->reason, "%s was killed by signal %d (%s)%s", who, result->signal,
                 strsignal(result->signal), memory);
    else
        snprintf(result->reason, sizeof result->reason, "%s ended with exit status %d%s%s", who, result->exit_status,
                 *words ? ": " : "", words);
}

static struct el_launch_result see_through(struct launch *launch)
{
    struct el_launch_result result = {.failed_rank = -1};
    if (!watch(launch, &result)) end_job(launch);
    while (!el_children_wait(launch->children, launch->n_children, TICK_NS)) continue;
    result.wall_s = elapsed_s(launch);
    el_children_used(launch->children, launch->n_children, &result.cpu_s, &result.peak_bytes);
    el_process_set_kill(launch->token);
    if (launch->spec.out) el_orphans_end(launch->before);
    reap_ranks(launch);
    prctl(PR_SET_CHILD_SUBREAPER, launch->was_subreaper);
    explain(launch, launch->children[launch->failed < 0 ? 0 : launch->failed].wait_status, &result);
    return result;
}

enum el_status el_launch_run(const struct el_launch_spec *spec, struct el_launch_result *result_p)
{
    struct launch *launch = NULL;
    EL_TRY(start(spec, &launch));
    *result_p = see_through(launch);
    destroy(launch);
    return EL_OK;
}

void el_launch_rank_init(void)
{
    /* A program started from a shell may outlive it. */
    if (getenv(EL_LAUNCH_TOKEN)) prctl(PR_SET_PDEATHSIG, SIGKILL);
}
