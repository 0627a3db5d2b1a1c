/* Starts the command, and waits for signals and due activities. */
#include "bench/watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/launch/children.h"

enum { LAST_LOOKS = 10, GRACE_S = 2 };
static const int64_t FIRST_SO_FAR_NS = 5000000000;

/* Shares of one core, 1 % in all. New processes are searched often: a missed one has no figures. */
static const struct {
    double every_s; /* 0: the user's interval */
    double budget_ratio, allowance_s;
} paces[EL_WATCH_ACTIVITIES] = {
    [EL_WATCH_DISCOVER] = {0.01, 0.002, 0.004},
    [EL_WATCH_LOOK] = {0, 0.004, 0.004},
    [EL_WATCH_SHARED] = {0.2, 0.002, 0.008},
    [EL_WATCH_GPUS] = {0.2, 0.002, 0.01}, /* the driver's own samples are no denser */
    [EL_WATCH_LIVE] = {5, 0.001, 0.05},
    [EL_WATCH_SO_FAR] = {60, 0.001, 0.05},
};

static void set_paces(struct el_watching *watch)
{
    int64_t now_ns = el_clock_ns();
    for (int a = 0; a < EL_WATCH_ACTIVITIES; a++) {
        double every_s = paces[a].every_s;
        if (a == EL_WATCH_LOOK || (a == EL_WATCH_GPUS && every_s < watch->interval_s)) every_s = watch->interval_s;
        watch->paces[a] = (struct el_watch_pace){.every_ns = (int64_t)(1e9 * every_s), .due_ns = now_ns};
        if (a == EL_WATCH_SO_FAR) watch->paces[a].due_ns += FIRST_SO_FAR_NS;
    }
}

/* Each process needs two open files. Raised after the start, so that the command keeps its limit. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static const int taken[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

struct started {
    char *const *command;
    const struct el_python_hook *hook;
    const char *log;
    sigset_t mask;
    struct sigaction on_child;
};

/* In the child: its output goes there, and there is no input. */
static void take_log(const char *log)
{
    const int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666), none = open("/dev/null", O_RDONLY);
    if (none >= 0) dup2(none, STDIN_FILENO);
    if (file < 0) return;
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
}

static void become(const void *context)
{
    const struct started *started = context;
    sigaction(SIGCHLD, &started->on_child, NULL);
    sigprocmask(SIG_SETMASK, &started->mask, NULL);
    const char *variables[EL_HOOK_VARIABLES + 1];
    el_python_hook_environment(started->hook, variables);
    for (int i = 0; variables[i]; i++) putenv((char *)(uintptr_t)variables[i]);
    if (started->log) take_log(started->log);
    execvp(started->command[0], started->command);
}

/* But for the hook streams, environment, process group, signals and terminal are as without evenload. Orphaned
 * descendants become our children. */
static enum el_status start_command(struct el_watching *watch, const char *log, int *exit_status_p)
{
    char *const *command = watch->command;
    struct sigaction plain = {.sa_handler = SIG_DFL};
    struct started started = {.command = command, .hook = &watch->hook, .log = log};
    sigemptyset(&watch->signals);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) sigaddset(&watch->signals, taken[i]);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return el_fail_errno("%s: cannot adopt its processes", command[0]);
    sigaction(SIGCHLD, &plain, &started.on_child); /* if ignored, the kernel would discard ended children's figures */
    sigprocmask(SIG_BLOCK, &watch->signals, &watch->signals_before);
    started.mask = watch->signals_before;
    watch->pid = el_child_fork(become, &started, -1);
    if (watch->pid > 0) return EL_OK;
    int number = errno;
    sigprocmask(SIG_SETMASK, &watch->signals_before, NULL);
    *exit_status_p = number == ENOENT ? EL_WATCH_NOT_FOUND : EL_WATCH_NOT_STARTED;
    return el_fail(EL_ERR_ABSENT, "%s: cannot be started: %s; write the command after '--'", command[0],
                   strerror(number));
}

enum el_status el_watch_begin(char *const *command, double interval_s, const struct el_python_hook *hook,
                              const char *log, struct el_watching **watch_p, int *exit_status_p)
{
    struct el_nvml_api api;
    struct el_watching *watch = calloc(1, sizeof *watch);
    if (!watch) return el_fail(EL_ERR_HOST_MEMORY, "no memory to watch with");
    watch->command = command;
    watch->hook = *hook;
    watch->interval_s = interval_s;
    if (el_nvml_load(&api) != EL_OK || el_gpu_processes_open(&api, &watch->gpus) != EL_OK)
        snprintf(watch->gpu_reason, sizeof watch->gpu_reason, "%s", el_error_message());
    enum el_status status = el_process_tree_open("", getpid(), &watch->tree);
    watch->begin_ns = el_clock_ns();
    if (status == EL_OK) status = start_command(watch, log, exit_status_p);
    if (status != EL_OK) {
        el_watch_end(watch);
        return status;
    }
    el_process_tree_expect(watch->tree, watch->pid);
    raise_file_limit();
    set_paces(watch);
    *watch_p = watch;
    return EL_OK;
}

void el_watch_end(struct el_watching *watch)
{
    if (!watch) return;
    for (int i = 0; i < EL_TREE_PROCESSES_MAX; i++) el_series_free(&watch->series[i]);
    for (int k = 0; k < watch->n_uses; k++) el_series_free(&watch->uses[k].series);
    el_process_tree_close(watch->tree);
    el_gpu_processes_close(watch->gpus);
    free(watch);
}

/* Due again when its total cost fits the allowance plus its share of the time since the start. */
static enum el_status act(struct el_watching *watch, enum el_watch_activity activity)
{
    struct el_watch_pace *pace = &watch->paces[activity];
    int64_t begin_ns = el_clock_thread_ns();
    enum el_status status = el_watch_do(watch, activity);
    pace->total_ns += (double)(el_clock_thread_ns() - begin_ns);
    pace->n++;
    double over_ns = pace->total_ns - 1e9 * paces[activity].allowance_s;
    int64_t may_ns = watch->begin_ns + (int64_t)(over_ns / paces[activity].budget_ratio);
    pace->due_ns = el_clock_ns() + pace->every_ns;
    if (over_ns > 0 && may_ns > pace->due_ns) pace->due_ns = may_ns;
    return status;
}

static enum el_status act_on_due(struct el_watching *watch)
{
    for (int a = 0; a < EL_WATCH_ACTIVITIES; a++)
        if (watch->paces[a].due_ns <= el_clock_ns()) EL_TRY(act(watch, (enum el_watch_activity)a));
    return EL_OK;
}

/* A signal's number, or 0: an activity is due. */
static int wait_for(const struct el_watching *watch, siginfo_t *info)
{
    int64_t due_ns = watch->paces[0].due_ns;
    for (int a = 1; a < EL_WATCH_ACTIVITIES; a++)
        if (watch->paces[a].due_ns < due_ns) due_ns = watch->paces[a].due_ns;
    int64_t rest_ns = due_ns - el_clock_ns();
    if (rest_ns < 0) rest_ns = 0;
    struct timespec patience = {.tv_sec = rest_ns / 1000000000, .tv_nsec = rest_ns % 1000000000};
    int number = sigtimedwait(&watch->signals, info, &patience);
    return number > 0 ? number : 0;
}

/* Takes a last sample while the kernel has their figures. Returns whether children are left. */
static bool reap(struct el_watching *watch)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return errno != ECHILD;
        if (info.si_pid == 0) return true;
        el_process_tree_look_at(watch->tree, info.si_pid);
        int wait_status = 0;
        if (waitpid(info.si_pid, &wait_status, WNOHANG) != info.si_pid) return true;
        if (info.si_pid != watch->pid) continue;
        watch->wait_status = wait_status;
        watch->ended = true;
    }
}

static double seconds_of(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           1e-6 * (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

void el_watch_conclude(struct el_watching *watch)
{
    struct rusage own, children;
    watch->end_ns = el_clock_ns();
    if (getrusage(RUSAGE_SELF, &own) == 0) watch->own_cpu_s = seconds_of(&own);
    if (getrusage(RUSAGE_CHILDREN, &children) != 0) return;
    watch->children_cpu_s = seconds_of(&children);
    watch->largest_bytes = (int64_t)children.ru_maxrss * 1024;
}

/* false: nothing is left to wait for. A signal meant for the command (SIGUSR1) does not end the wait for its
 * processes. */
static bool take_signal(struct el_watching *watch, int number, const siginfo_t *info, bool wait_all)
{
    bool children = true;
    watch->asked_to_end |= number == SIGINT || number == SIGTERM || number == SIGHUP;
    if (number == SIGCHLD) {
        children = reap(watch);
    } else if (watch->ended) {
        if (number == SIGUSR1 || number == SIGUSR2) return true;
        watch->waiting_ended = true;
        return false;
    } else if (info->si_code != SI_KERNEL) { /* the terminal's reach the whole group */
        kill(watch->pid, number);
    }
    return !watch->ended || (wait_all && children);
}

static bool any_alive(const struct el_watching *watch)
{
    for (int i = 0; i < watch->tree->n; i++)
        if (watch->tree->list[i]->alive) return true;
    return false;
}

/* Helpers may end a moment after the command and then do not count as running. */
static enum el_status look_at_last(struct el_watching *watch)
{
    const struct timespec patience = {.tv_nsec = 10000000};
    siginfo_t info;
    EL_TRY(el_watch_do(watch, EL_WATCH_DISCOVER));
    EL_TRY(el_watch_do(watch, EL_WATCH_LOOK));
    for (int i = 0; i < LAST_LOOKS && any_alive(watch); i++) {
        if (sigtimedwait(&watch->signals, &info, &patience) == SIGCHLD) reap(watch);
        el_process_tree_look(watch->tree);
    }
    return EL_OK;
}

void el_watch_kill(const struct el_watching *watch, int signal_number)
{
    for (int i = 0; i < watch->tree->n; i++)
        if (watch->tree->list[i]->alive) kill(watch->tree->list[i]->process.pid, signal_number);
}

static void keep_limit(struct el_watching *watch)
{
    const double lived_s = 1e-9 * (double)(el_clock_ns() - watch->begin_ns);
    if (!(watch->timeout_s > 0) || watch->ended || lived_s < watch->timeout_s) return;
    if (!watch->timed_out) el_watch_kill(watch, SIGTERM);
    if (lived_s > watch->timeout_s + GRACE_S) el_watch_kill(watch, SIGKILL);
    watch->timed_out = true;
}

enum el_status el_watch_run(struct el_watching *watch, bool wait_all)
{
    enum el_status status = EL_OK;
    siginfo_t info;
    watch->waited_for_all = wait_all;
    for (bool going = true; going;) {
        if (status == EL_OK) status = act_on_due(watch);
        for (int a = 0; a < EL_WATCH_ACTIVITIES && status != EL_OK; a++)
            watch->paces[a].due_ns = INT64_MAX; /* the command is still awaited */
        keep_limit(watch);
        int number = wait_for(watch, &info);
        if (number == SIGCHLD && status == EL_OK) status = el_watch_do(watch, EL_WATCH_DISCOVER);
        if (number > 0) going = take_signal(watch, number, &info, wait_all);
    }
    el_watch_conclude(watch);
    if (status == EL_OK) status = look_at_last(watch);
    return status;
}

int el_watch_exit_status(const struct el_watching *watch)
{
    if (WIFEXITED(watch->wait_status)) return WEXITSTATUS(watch->wait_status);
    return 128 + WTERMSIG(watch->wait_status);
}

void el_watch_release_signals(const struct el_watching *watch)
{
    const struct timespec at_once = {.tv_sec = 0};
    struct sigaction dropped = {.sa_handler = SIG_IGN};
    while (sigtimedwait(&watch->signals, NULL, &at_once) > 0) continue;
    sigaction(SIGPIPE, &dropped, NULL);
    sigprocmask(SIG_SETMASK, &watch->signals_before, NULL);
}
