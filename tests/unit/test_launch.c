/* The launcher: what environments say, what jobs are given, and how jobs end: by themselves, by force, by time. Ranks
 * are shell commands: no MPI library is needed, only mpirun (cases that need it are skipped without). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/mpirun.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/el-test-launch-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static struct el_launch_result launch_by(enum el_launch_by by, const char *script, int procs, double timeout_s)
{
    char *argv[] = {"sh", "-c", (char *)script, NULL};
    struct el_launch_spec spec = {
        .argv = argv, .procs = procs, .by = by, .log_dir = folder, .timeout_s = timeout_s, .grace_s = 1};
    struct el_launch_result result;
    assert_int_equal(el_launch_run(&spec, &result), EL_OK);
    return result;
}

static struct el_launch_result launch(const char *script, int procs, double timeout_s)
{
    return launch_by(EL_LAUNCH_BY_MPIRUN, script, procs, timeout_s);
}

/* A script of ranks, whoever starts them: `r` is the rank, `n` their number. */
#define RANKS(script) "r=${OMPI_COMM_WORLD_RANK:-$RANK}; n=${OMPI_COMM_WORLD_SIZE:-$WORLD_SIZE}; " script

static void skip_without_mpirun(void)
{
    char *path;
    if (el_mpirun_find(&path) != EL_OK) skip();
    free(path);
}

/* Whether a process runs whose command line holds `text`. */
static bool runs(const char *text)
{
    bool found = false;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        char path[300], line[4096];
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        FILE *file = atoi(entry->d_name) > 1 && atoi(entry->d_name) != getpid() ? fopen(path, "r") : NULL;
        size_t length = file ? fread(line, 1, sizeof line, file) : 0;
        if (file) fclose(file);
        if (memmem(line, length, text, strlen(text))) found = true;
    }
    if (proc) closedir(proc);
    return found;
}

/* ---- environments ---- */

static const char *fake(void *context, const char *name)
{
    for (const char *const *at = context; *at; at++)
        if (strncmp(*at, name, strlen(name)) == 0 && (*at)[strlen(name)] == '=') return *at + strlen(name) + 1;
    return NULL;
}

static void expect_place(const char *const *variables, bool is_rank, int rank, int size, int local, const char *name)
{
    struct el_launch_place place;
    assert_int_equal(el_launch_environment(fake, (void *)variables, &place), EL_OK);
    assert_int_equal(place.is_rank, is_rank);
    assert_int_equal(place.rank, rank);
    assert_int_equal(place.size, size);
    assert_int_equal(place.local_rank, local);
    assert_string_equal(place.launcher, name);
    assert_int_equal(place.host != NULL, !strcmp(name, "torchrun") || !strcmp(name, "evenload"));
}

static void test_environments_tell_the_place(void **state)
{
    (void)state;
    expect_place((const char *[]){NULL}, false, -1, -1, -1, "");
    expect_place((const char *[]){"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
                                  "PMIX_RANK=3", NULL},
                 true, 3, 4, 1, "Open MPI");
    expect_place((const char *[]){"PMIX_RANK=2", NULL}, true, 2, -1, -1, "PMIx");
    expect_place((const char *[]){"PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALRANKID=0", NULL}, true, 0, 2, 0, "PMI");
    /* A Slurm batch script, a user's settings, names that anybody may use: not a rank. */
    expect_place((const char *[]){"SLURM_JOB_ID=9", "SLURM_PROCID=0", "SLURM_NTASKS=4", NULL}, false, -1, -1, -1, "");
    expect_place((const char *[]){"OMPI_MCA_btl=self", "OMPI_ALLOW_RUN_AS_ROOT=1", NULL}, false, -1, -1, -1, "");
    expect_place((const char *[]){"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", NULL}, false, -1, -1, -1, "");
    expect_place((const char *[]){"PMI_RANK=", NULL}, false, -1, -1, -1, "");
}

#define TORCHRUN                                                                                                       \
    "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=node7", "MASTER_PORT=29500"

static void test_torchrun_tells_where_to_meet(void **state)
{
    (void)state;
    struct el_launch_place place;
    const char *plain[] = {TORCHRUN, NULL}, *real[] = {TORCHRUN, "PMI_RANK=0", "TORCHELASTIC_RUN_ID=job", NULL},
               *agent[] = {TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True", NULL},
               *own[] = {TORCHRUN, "EL_LAUNCH_TOKEN=4-5.", "EL_LAUNCH_LISTENER=9", NULL};
    expect_place(plain, true, 1, 2, 0, "torchrun");
    expect_place(real, true, 1, 2, 0, "torchrun"); /* although srun started torchrun */
    expect_place((const char *[]){TORCHRUN, "OMPI_COMM_WORLD_RANK=3", NULL}, true, 3, -1, -1, "Open MPI");
    expect_place(own, true, 1, 2, 0, "evenload");
    assert_int_equal(el_launch_environment(fake, plain, &place), EL_OK);
    assert_string_equal(place.host, "node7");
    assert_int_equal(place.port, 29500);
    assert_int_equal(place.n_ports, 1);
    assert_int_equal(place.listener, -1);
    assert_int_equal(place.local_size, 1);
    assert_int_equal(el_launch_environment(fake, agent, &place), EL_OK);
    assert_int_equal(place.port, 29501); /* the agent itself is at MASTER_PORT */
    assert_true(place.n_ports > 1);
    assert_int_equal(el_launch_environment(fake, own, &place), EL_OK);
    assert_int_equal(place.listener, 9);
    assert_string_equal(place.token, "4-5.");
}

static void test_environments_that_make_no_sense(void **state)
{
    (void)state;
    const char *const *bad[] = {
        (const char *[]){"OMPI_COMM_WORLD_RANK=one", NULL},
        (const char *[]){"PMI_RANK=-1", NULL},
        (const char *[]){"PMIX_RANK=99999999999999999999", NULL},
        (const char *[]){"OMPI_COMM_WORLD_RANK=4", "OMPI_COMM_WORLD_SIZE=4", NULL},
        (const char *[]){"RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=n", "MASTER_PORT=1", NULL},
        (const char *[]){"RANK=one", "WORLD_SIZE=2", "MASTER_ADDR=n", "MASTER_PORT=1", NULL},
    };
    struct el_launch_place place;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(el_launch_environment(fake, (void *)bad[i], &place), EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(), "RANK"));
    }
}

static void test_ports_that_make_no_sense(void **state)
{
    (void)state;
    struct el_launch_place place;
    const char *zero[] = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=n", "MASTER_PORT=0", NULL};
    const char *large[] = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=n", "MASTER_PORT=65536", NULL};
    assert_int_equal(el_launch_environment(fake, zero, &place), EL_ERR_INVALID);
    assert_int_equal(el_launch_environment(fake, large, &place), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "MASTER_PORT is 65536"));
}

static void test_a_job_does_not_inherit_a_job(void **state)
{
    (void)state;
    char *from[] = {"HOME=/root",
                    "OMPI_COMM_WORLD_RANK=1",
                    "PMIX_RANK=1",
                    "PMI_RANK=1",
                    "SLURM_JOB_ID=7",
                    "OMPI_MCA_ess_base_jobid=5",
                    "OMPI_MCA_orte_hnp_uri=x",
                    "PRTE_LAUNCHED=1",
                    "OMPI_MCA_btl=self,tcp",
                    "OMPI_MCA_mpi_yield_when_idle=1",
                    "OMPI_UNIVERSE_SIZE=2",
                    TORCHRUN,
                    "TORCHELASTIC_RUN_ID=none",
                    "EL_LAUNCH_LISTENER=9",
                    "SLURMISH=kept",
                    NULL};
    const char *extra[] = {"HOME=/elsewhere", NULL};
    const char *expected[] = {"HOME=/elsewhere", "OMPI_MCA_btl=self,tcp", "OMPI_MCA_mpi_yield_when_idle=1",
                              "SLURMISH=kept", NULL};
    char **made = el_launch_make_environment(from, extra, false);
    for (int i = 0; expected[i]; i++) assert_string_equal(made[i], expected[i]);
    assert_null(made[4]);
    free(made);
    made = el_launch_make_environment(from, extra, true);
    assert_string_equal(fake(made, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
    assert_string_equal(fake(made, "OMPI_MCA_mpi_yield_when_idle"), "1"); /* the user's setting wins */
    assert_null(fake(made, "OMPI_COMM_WORLD_RANK"));
    free(made);
}

/* ---- one process ---- */

static void test_one_process_ends_well(void **state)
{
    (void)state;
    char text[256];
    struct el_launch_result result = launch("echo one; echo two >&2; echo three", 1, 20);
    assert_true(result.ok);
    assert_string_equal(result.reason, "");
    el_launch_log_tail(folder, 0, 2, text, sizeof text);
    assert_string_equal(text, "two\nthree\n");
    el_launch_log_tail(folder, 7, 2, text, sizeof text);
    assert_string_equal(text, "");
}

static void test_one_process_fails(void **state)
{
    (void)state;
    struct el_launch_result result = launch("exit 3", 1, 20);
    assert_false(result.ok);
    assert_int_equal(result.exit_status, 3);
    assert_int_equal(result.failed_rank, 0);
    assert_string_equal(result.reason, "rank 0 ended with exit status 3");
    result = launch("kill -9 $$", 1, 20);
    assert_int_equal(result.signal, 9);
    assert_string_equal(result.reason, "rank 0 was killed by signal 9 (Killed)");
}

static void test_time_out_kills_the_group(void **state)
{
    (void)state;
    int64_t begin_ns = el_clock_ns();
    /* A child that ignores SIGTERM, and one that left the group. */
    struct el_launch_result result =
        launch("(trap '' TERM; sleep 98765431) & setsid sleep 98765431 & sleep 98765431", 1, 0.5);
    assert_true(result.timed_out);
    assert_false(result.ok);
    assert_string_equal(result.reason, "timed out after 0.5 s");
    assert_true(el_clock_ns() - begin_ns < INT64_C(4000000000));
    assert_false(runs("98765431"));
}

static bool stop_after_three(void *context, double elapsed_s)
{
    int *calls = context;
    assert_true(elapsed_s >= 0);
    return ++*calls < 3;
}

static void test_progress_can_end_the_job(void **state)
{
    (void)state;
    int calls = 0;
    char *argv[] = {"sleep", "98765432", NULL};
    struct el_launch_spec spec = {
        .argv = argv, .procs = 1, .log_dir = folder, .progress = stop_after_three, .context = &calls};
    struct el_launch_result result;
    assert_int_equal(el_launch_run(&spec, &result), EL_OK);
    assert_true(result.cancelled);
    assert_int_equal(calls, 3);
    assert_false(runs("98765432"));
}

static void test_what_cannot_start(void **state)
{
    (void)state;
    char *absent[] = {"/no/such/program", NULL};
    struct el_launch_result result;
    struct el_launch_spec spec = {.argv = absent, .procs = 1, .log_dir = folder};
    assert_int_equal(el_launch_run(&spec, &result), EL_ERR_ABSENT);
    assert_non_null(strstr(el_error_message(), "/no/such/program"));
    spec.log_dir = "/no/such/folder";
    assert_int_equal(el_launch_run(&spec, &result), EL_ERR_IO);
    spec.procs = 0;
    assert_int_equal(el_launch_run(&spec, &result), EL_ERR_INVALID);
}

static void test_no_mpirun(void **state)
{
    (void)state;
    const char *before = getenv("PATH");
    char *argv[] = {"/bin/sh", "-c", "true", NULL}, *path = strdup(before ? before : "");
    struct el_launch_spec spec = {.argv = argv, .procs = 2, .log_dir = folder};
    struct el_launch_result result;
    setenv("PATH", "", 1);
    enum el_status status = el_launch_run(&spec, &result);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(status, EL_ERR_ABSENT);
    assert_non_null(strstr(el_error_message(), "openmpi-bin"));
}

/* ---- ranks ---- */

static void expect_own_logs(enum el_launch_by by)
{
    char text[256], expected[64];
    /* As if started inside another job, with more ranks than this machine may have cores. */
    setenv("OMPI_COMM_WORLD_RANK", "7", 1);
    setenv("PMIX_RANK", "7", 1);
    setenv("SLURM_JOB_ID", "1", 1);
    setenv("SLURM_NODELIST", "nowhere", 1);
    setenv("RANK", "7", 1);
    struct el_launch_result result = launch_by(by, RANKS("echo I am $r of $n"), 4, 30);
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("PMIX_RANK");
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_NODELIST");
    unsetenv("RANK");
    assert_string_equal(result.reason, "");
    assert_true(result.ok);
    for (int rank = 0; rank < 4; rank++) {
        snprintf(expected, sizeof expected, "I am %d of 4\n", rank);
        el_launch_log_tail(folder, rank, 9, text, sizeof text);
        assert_string_equal(text, expected);
    }
    el_launch_log_tail(folder, -1, 9, text, sizeof text);
    assert_string_equal(text, "");
}

static void expect_killed_rank(enum el_launch_by by)
{
    struct el_launch_result result =
        launch_by(by, RANKS("test $r = 1 && { sleep 0.3; kill -9 $$; }; exec sleep 98765433"), 3, 30);
    assert_string_equal(result.reason, "rank 1 was killed by signal 9 (Killed)");
    assert_int_equal(result.failed_rank, 1);
    assert_int_equal(result.signal, 9);
    assert_true(result.wall_s < 5);
    assert_false(runs("98765433"));
}

static void expect_failing_rank(enum el_launch_by by)
{
    char text[256];
    struct el_launch_result result =
        launch_by(by, RANKS("test $r = 2 && { sleep 0.3; echo because >&2; exit 5; }; exec sleep 98765434"), 3, 30);
    assert_string_equal(result.reason, "rank 2 ended with exit status 5");
    assert_int_equal(result.failed_rank, 2);
    assert_true(result.wall_s < 5);
    el_launch_log_tail(folder, result.failed_rank, 1, text, sizeof text);
    assert_string_equal(text, "because\n");
    assert_false(runs("98765434"));
}

static void expect_time_out(enum el_launch_by by)
{
    struct el_launch_result result = launch_by(by, "exec sleep 98765436", 2, 1);
    assert_true(result.timed_out);
    assert_string_equal(result.reason, "timed out after 1 s");
    assert_true(result.wall_s < 5);
    assert_false(runs("98765436"));
}

static void test_mpirun_ranks_write_their_own_logs(void **state)
{
    (void)state;
    skip_without_mpirun();
    expect_own_logs(EL_LAUNCH_BY_MPIRUN);
}

static void test_mpirun_a_killed_rank_is_named(void **state)
{
    (void)state;
    skip_without_mpirun();
    expect_killed_rank(EL_LAUNCH_BY_MPIRUN);
}

static void test_mpirun_a_failing_rank_is_named(void **state)
{
    (void)state;
    skip_without_mpirun();
    expect_failing_rank(EL_LAUNCH_BY_MPIRUN);
}

static void test_mpirun_ranks_time_out(void **state)
{
    (void)state;
    skip_without_mpirun();
    expect_time_out(EL_LAUNCH_BY_MPIRUN);
}

static void test_own_ranks(void **state)
{
    (void)state;
    expect_own_logs(EL_LAUNCH_BY_OWN);
    expect_killed_rank(EL_LAUNCH_BY_OWN);
    expect_failing_rank(EL_LAUNCH_BY_OWN);
    expect_time_out(EL_LAUNCH_BY_OWN);
}

/* A rank that fails leaves the others the time to say what they know. */
static void test_own_ranks_may_end_by_themselves(void **state)
{
    (void)state;
    char text[256];
    struct el_launch_result result =
        launch_by(EL_LAUNCH_BY_OWN, RANKS("test $r = 1 && exit 3; sleep 0.3; echo done; exit 4"), 3, 30);
    assert_string_equal(result.reason, "rank 1 ended with exit status 3");
    el_launch_log_tail(folder, 2, 1, text, sizeof text);
    assert_string_equal(text, "done\n");
}

/* Rank 0 alone inherits the socket that listens at the port that all are told of. */
static void test_own_ranks_are_told_where_to_meet(void **state)
{
    (void)state;
    char first[256], second[256], words[64];
    int ports[2], listener = -1, found = -1;
    struct el_launch_result result =
        launch_by(EL_LAUNCH_BY_OWN,
                  "echo $MASTER_PORT $MASTER_ADDR $LOCAL_RANK of $LOCAL_WORLD_SIZE; echo ${EL_LAUNCH_LISTENER:-none}; "
                  "test -z \"$EL_LAUNCH_LISTENER\" || readlink /proc/$$/fd/$EL_LAUNCH_LISTENER",
                  2, 30);
    assert_string_equal(result.reason, "");
    el_launch_log_tail(folder, 0, 9, first, sizeof first);
    el_launch_log_tail(folder, 1, 9, second, sizeof second);
    assert_int_equal(sscanf(first, "%d 127.0.0.1 0 of 2\n%d\nsocket:[%d]", &ports[0], &listener, &found), 3);
    assert_int_equal(sscanf(second, "%d 127.0.0.1 1 of 2\n%63s", &ports[1], words), 2);
    assert_int_equal(ports[0], ports[1]);
    assert_true(listener > 2);
    assert_string_equal(words, "none");
}

static void test_nothing_outlives_mpirun(void **state)
{
    (void)state;
    skip_without_mpirun();
    struct el_launch_result result =
        launch("test $OMPI_COMM_WORLD_RANK = 0 && { sleep 0.3; kill -9 $PPID; }; exec sleep 98765435", 2, 30);
    assert_string_equal(result.reason, "mpirun was killed by signal 9 (Killed)");
    assert_true(result.wall_s < 5);
    assert_false(runs("98765435"));
}

static void test_messages_of_mpirun(void **state)
{
    (void)state;
    struct el_launch_result result = {.failed_rank = -1};
    el_mpirun_explain("prterun noticed that process rank 12 with PID 4 on node a exited on\nsignal 11", &result);
    assert_int_equal(result.failed_rank, -1);
    el_mpirun_explain("prterun noticed that process rank 12 with PID 4 on node a exited on signal 11 (Segm", &result);
    assert_int_equal(result.failed_rank, 12);
    assert_int_equal(result.signal, 11);
    el_mpirun_explain("  Process name: [prterun-n-77@1,3]\n  Exit code:    6\n", &result);
    assert_int_equal(result.failed_rank, 3);
    assert_int_equal(result.exit_status, 6);
    el_mpirun_explain("MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 9.\n", &result);
    assert_int_equal(result.failed_rank, 2);
    assert_int_equal(result.exit_status, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environments_tell_the_place),
        cmocka_unit_test(test_torchrun_tells_where_to_meet),
        cmocka_unit_test(test_environments_that_make_no_sense),
        cmocka_unit_test(test_ports_that_make_no_sense),
        cmocka_unit_test(test_a_job_does_not_inherit_a_job),
        cmocka_unit_test(test_one_process_ends_well),
        cmocka_unit_test(test_one_process_fails),
        cmocka_unit_test(test_time_out_kills_the_group),
        cmocka_unit_test(test_progress_can_end_the_job),
        cmocka_unit_test(test_what_cannot_start),
        cmocka_unit_test(test_no_mpirun),
        cmocka_unit_test(test_mpirun_ranks_write_their_own_logs),
        cmocka_unit_test(test_mpirun_a_killed_rank_is_named),
        cmocka_unit_test(test_mpirun_a_failing_rank_is_named),
        cmocka_unit_test(test_mpirun_ranks_time_out),
        cmocka_unit_test(test_own_ranks),
        cmocka_unit_test(test_own_ranks_may_end_by_themselves),
        cmocka_unit_test(test_own_ranks_are_told_where_to_meet),
        cmocka_unit_test(test_nothing_outlives_mpirun),
        cmocka_unit_test(test_messages_of_mpirun),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
