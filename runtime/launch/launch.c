/* Starts a job and sees it to its end: fork, time-out, cancellation, clearing up, the verdict. What mpirun wants and
 * says is in mpirun.c, environments in environment.c, finding a job's processes in process_set.c. */
#include "runtime/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/launch/mpirun.h"
#include "runtime/launch/process_set.h"

extern char **environ;

enum { TICK_NS = 100000000, TEXT_BYTES = 65536, EXTRA_MAX = 8 };

struct el_launch {
    struct el_launch_spec spec;
    char log_dir[PATH_MAX];
    char token[96];
    char scratch[64], settings[3][128]; /* mpirun's temporary files, and how it is told of them */
    char procs_text[16];
    char *program;
    char **command, **environment;
    pid_t pid;
    int64_t begin_ns;
    int was_subreaper;
};

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    remove(path);
    return 0;
}

static void destroy(struct el_launch *launch)
{
    if (launch->scratch[0]) nftw(launch->scratch, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(launch->program);
    free(launch->command);
    free(launch->environment);
    free(launch);
}

static enum el_status make_log_dir(struct el_launch *launch)
{
    const char *name = launch->spec.log_dir;
    if (mkdir(name, 0777) != 0 && errno != EEXIST) return el_fail_errno("%s: cannot make the log folder", name);
    if (!realpath(name, launch->log_dir)) return el_fail_errno("%s: log folder", name);
    if (access(launch->log_dir, W_OK | X_OK) != 0) return el_fail_errno("%s: cannot write into it", name);
    char path[PATH_MAX + 32];
    for (int rank = 0; rank < launch->spec.procs; rank++) { /* of an earlier job: must not be taken for this one's */
        snprintf(path, sizeof path, "%s/rank-%d.pid", launch->log_dir, rank);
        unlink(path);
        snprintf(path, sizeof path, "%s/rank-%d.log", launch->log_dir, rank);
        unlink(path);
    }
    return EL_OK;
}

/* Where mpirun keeps sockets and shared memory: ours, so that nothing stays behind when it is killed. In memory where
 * possible: its shared-memory transport writes there. */
static void make_scratch(struct el_launch *launch)
{
    static const char *const places[] = {"/dev/shm/el-XXXXXX", "/tmp/el-XXXXXX"};
    for (int i = 0; i < 2; i++) {
        snprintf(launch->scratch, sizeof launch->scratch, "%s", places[i]);
        if (mkdtemp(launch->scratch)) return;
    }
    launch->scratch[0] = 0;
}

static enum el_status make_environment(struct el_launch *launch, bool with_mpi)
{
    static const char *const names[] = {"OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_btl_vader_backing_directory",
                                        "PRTE_MCA_prte_tmpdir_base"};
    static _Atomic unsigned serial;
    const struct el_launch_spec *spec = &launch->spec;
    snprintf(launch->token, sizeof launch->token, EL_LAUNCH_TOKEN "=%d-%lld-%u.", (int)getpid(),
             (long long)el_clock_ns(), atomic_fetch_add(&serial, 1));
    size_t n_extra = 0, n = 0;
    while (spec->environment && spec->environment[n_extra]) n_extra++;
    const char **extra = calloc(n_extra + EXTRA_MAX, sizeof *extra);
    if (!extra) return el_fail(EL_ERR_HOST_MEMORY, "launch: no memory");
    extra[n++] = launch->token;
    if (with_mpi) make_scratch(launch);
    for (int i = 0; launch->scratch[0] && i < 3; i++) {
        snprintf(launch->settings[i], sizeof launch->settings[i], "%s=%s", names[i], launch->scratch);
        extra[n++] = launch->settings[i];
    }
    if (n_extra) memcpy(extra + n, spec->environment, n_extra * sizeof *extra);
    launch->environment = el_launch_make_environment(environ, extra, with_mpi);
    free(extra);
    return launch->environment ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "launch: no memory");
}

static enum el_status make_command(struct el_launch *launch)
{
    const struct el_launch_spec *spec = &launch->spec;
    if (spec->procs == 1) {
        size_t n = 0;
        while (spec->argv[n]) n++;
        launch->command = malloc((n + 1) * sizeof *launch->command);
        if (launch->command) memcpy(launch->command, spec->argv, (n + 1) * sizeof *launch->command);
        if (launch->command) return el_launch_find_program(spec->argv[0], &launch->program);
    } else {
        char *program;
        EL_TRY(el_launch_find_program(spec->argv[0], &program)); /* mpirun's own words for this are a page long */
        free(program);
        EL_TRY(el_mpirun_find(&launch->program));
        launch->command =
            el_mpirun_command(launch->program, spec->procs, launch->procs_text, launch->log_dir, spec->argv);
    }
    return launch->command ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "launch: no memory");
}

/* In the child: only calls that are safe after fork. Returns only on failure. */
static void become_job(const struct el_launch *launch, const char *log, pid_t parent)
{
    sigset_t none;
    setpgid(0, 0);
    /* mpirun takes its ranks down at SIGTERM. */
    prctl(PR_SET_PDEATHSIG, launch->spec.procs == 1 ? SIGKILL : SIGTERM);
    if (getppid() != parent) _exit(127);
    int in = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) return;
    if (in > 2) close(in);
    if (out > 2) close(out);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(launch->program, launch->command, launch->environment);
}

/* Forks, and waits until the child has become the program: a pipe that closes at exec, or brings the reason why not. */
static enum el_status start(struct el_launch *launch)
{
    char log[PATH_MAX + 32];
    int ends[2], number = 0;
    pid_t parent = getpid();
    snprintf(log, sizeof log, "%s/%s", launch->log_dir, launch->spec.procs == 1 ? "rank-0.log" : "launcher.log");
    if (pipe2(ends, O_CLOEXEC) != 0) return el_fail_errno("%s: pipe", launch->program);
    launch->begin_ns = el_clock_ns();
    launch->pid = fork();
    if (launch->pid == 0) {
        become_job(launch, log, parent);
        number = errno;
        ssize_t ignored = write(ends[1], &number, sizeof number);
        _exit(ignored == sizeof number ? 127 : 126);
    }
    int fork_error = errno;
    close(ends[1]);
    ssize_t got = 0;
    if (launch->pid > 0) do
            got = read(ends[0], &number, sizeof number);
        while (got < 0 && errno == EINTR);
    close(ends[0]);
    if (launch->pid > 0 && got <= 0) return EL_OK;
    if (launch->pid > 0) waitpid(launch->pid, NULL, 0);
    errno = launch->pid > 0 ? number : fork_error;
    return el_fail_errno("%s: cannot be started", launch->program);
}

enum el_status el_launch_start(const struct el_launch_spec *spec, struct el_launch **launch_p)
{
    if (spec->procs < 1) return el_fail(EL_ERR_INVALID, "launch: %d processes", spec->procs);
    struct el_launch *launch = calloc(1, sizeof *launch);
    if (!launch) return el_fail(EL_ERR_HOST_MEMORY, "launch: no memory");
    launch->spec = *spec;
    if (launch->spec.grace_s <= 0) launch->spec.grace_s = 2;
    enum el_status status;
    EL_TRY_GOTO(make_log_dir(launch), fail);
    EL_TRY_GOTO(make_command(launch), fail);
    EL_TRY_GOTO(make_environment(launch, spec->procs > 1), fail);
    /* Ranks whose mpirun is gone become our children, so that they can be reaped. */
    prctl(PR_GET_CHILD_SUBREAPER, &launch->was_subreaper);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    EL_TRY_GOTO(start(launch), fail_reaper);
    *launch_p = launch;
    return EL_OK;
fail_reaper:
    prctl(PR_SET_CHILD_SUBREAPER, launch->was_subreaper);
fail:
    destroy(launch);
    return status;
}

static double elapsed_s(const struct el_launch *launch)
{
    return (double)(el_clock_ns() - launch->begin_ns) * 1e-9;
}

/* Returns when the child has ended (then true), the time is up, or `progress` says no. */
static bool watch(const struct el_launch *launch, struct el_launch_result *result)
{
    const struct el_launch_spec *spec = &launch->spec;
    for (;;) {
        int64_t patience_ns = TICK_NS;
        if (spec->timeout_s > 0) {
            double left_s = spec->timeout_s - elapsed_s(launch);
            if (left_s < TICK_NS * 1e-9) patience_ns = left_s > 0 ? (int64_t)(left_s * 1e9) : 0;
        }
        if (el_process_wait(launch->pid, patience_ns)) return true;
        result->timed_out = spec->timeout_s > 0 && elapsed_s(launch) >= spec->timeout_s;
        if (result->timed_out) return false;
        result->cancelled = spec->progress && !spec->progress(spec->context, elapsed_s(launch));
        if (result->cancelled) return false;
    }
}

/* Asks the job to end, then makes it. */
static void end_job(const struct el_launch *launch)
{
    int64_t deadline_ns = el_clock_ns() + (int64_t)(launch->spec.grace_s * 1e9), left_ns;
    kill(-launch->pid, SIGTERM);
    while ((left_ns = deadline_ns - el_clock_ns()) > 0)
        if (el_process_wait(launch->pid, left_ns)) return;
    kill(-launch->pid, SIGKILL);
}

/* Ranks that ended as orphans are our children now, and named by their pid files. */
static void reap_ranks(const struct el_launch *launch)
{
    char path[PATH_MAX + 32];
    for (int rank = 0; launch->spec.procs > 1 && rank < launch->spec.procs; rank++) {
        int pid = 0;
        snprintf(path, sizeof path, "%s/rank-%d.pid", launch->log_dir, rank);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fscanf(file, "%d", &pid) == 1 && pid > 1) waitpid(pid, NULL, WNOHANG);
        fclose(file);
        unlink(path);
    }
}

/* Which rank, and how: from the process itself, or from what mpirun printed. */
static void find_cause(const struct el_launch *launch, struct el_launch_result *result)
{
    if (launch->spec.procs == 1) result->failed_rank = 0;
    if (launch->spec.procs == 1 || result->signal || result->timed_out || result->cancelled) return;
    char *text = malloc(TEXT_BYTES);
    if (!text) return;
    el_launch_log_tail(launch->log_dir, -1, INT_MAX, text, TEXT_BYTES);
    el_mpirun_explain(text, result);
    free(text);
}

static void explain(const struct el_launch *launch, int wait_status, struct el_launch_result *result)
{
    char who[32] = "mpirun";
    result->exit_status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    result->signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    result->ok = result->exit_status == 0 && !result->timed_out && !result->cancelled;
    if (result->ok) return;
    find_cause(launch, result);
    if (result->failed_rank >= 0) snprintf(who, sizeof who, "rank %d", result->failed_rank);
    if (result->timed_out)
        snprintf(result->reason, sizeof result->reason, "timed out after %g s", launch->spec.timeout_s);
    else if (result->cancelled)
        snprintf(result->reason, sizeof result->reason, "interrupted after %.1f s", result->wall_s);
    else if (result->signal)
        snprintf(result->reason, sizeof result->reason, "%s was killed by signal %d (%s)", who, result->signal,
                 strsignal(result->signal));
    else
        snprintf(result->reason, sizeof result->reason, "%s ended with exit status %d", who, result->exit_status);
}

enum el_status el_launch_wait(struct el_launch *launch, struct el_launch_result *result_p)
{
    struct el_launch_result result = {.failed_rank = -1};
    int wait_status = 0;
    if (!watch(launch, &result)) end_job(launch);
    pid_t got;
    do got = waitpid(launch->pid, &wait_status, 0);
    while (got < 0 && errno == EINTR);
    result.wall_s = elapsed_s(launch);
    el_process_set_kill(launch->token);
    reap_ranks(launch);
    prctl(PR_SET_CHILD_SUBREAPER, launch->was_subreaper);
    explain(launch, wait_status, &result);
    destroy(launch);
    *result_p = result;
    return EL_OK;
}

enum el_status el_launch_run(const struct el_launch_spec *spec, struct el_launch_result *result_p)
{
    struct el_launch *launch;
    EL_TRY(el_launch_start(spec, &launch));
    return el_launch_wait(launch, result_p);
}

void el_launch_rank_init(void)
{
    /* Only what we started: a program started from a shell may outlive that shell. */
    if (getenv(EL_LAUNCH_TOKEN)) prctl(PR_SET_PDEATHSIG, SIGKILL);
}
