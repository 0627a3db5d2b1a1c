/* The launcher: several ranks, by mpirun and by ourselves: their logs, how they end, what they are told. Ranks are
 * shell commands; cases that need mpirun are skipped without. */
#include "tests/test.h"

#include "tests/unit/launching.h"

/* As if started inside another job, with more ranks than this machine may have cores. */
static void expect_own_logs(enum el_launch_by by)
{
    static const char *const outer[][2] = {{"OMPI_COMM_WORLD_RANK", "7"},
                                           {"PMIX_RANK", "7"},
                                           {"SLURM_JOB_ID", "1"},
                                           {"SLURM_NODELIST", "nowhere"},
                                           {"RANK", "7"}};
    enum { N_OUTER = sizeof outer / sizeof outer[0] };
    char text[256], expected[64];
    for (int i = 0; i < N_OUTER; i++) setenv(outer[i][0], outer[i][1], 1);
    struct el_launch_result result = launch_by(by, RANKS("echo I am $r of $n"), 4, 30);
    for (int i = 0; i < N_OUTER; i++) unsetenv(outer[i][0]);
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

/* What becomes of three ranks, the others of which sleep; nobody waits for those, and none outlives the job. */
static void expect_ends(enum el_launch_by by)
{
    static const struct {
        const char *script, *reason, *last_line;
        double timeout_s, grace_s;
        int failed_rank, signal;
        bool own_only;
    } cases[] = {
        {RANKS("test $r = 1 && { sleep 0.1; kill -9 $$; }; exec sleep 98765433"),
         "rank 1 was killed by signal 9 (Killed)", "", 30, 0.3, 1, 9, false},
        /* A killed rank has closed its connections before it can be waited for: another may fail of that, and be seen,
         * first. */
        {RANKS("test $r = 0 && exit 1; test $r = 1 && { sleep 0.1; kill -9 $$; }; exec sleep 98765433"),
         "rank 1 was killed by signal 9 (Killed)", "", 30, 5, 1, 9, true},
        {RANKS("test $r = 2 && { sleep 0.1; echo because >&2; exit 5; }; exec sleep 98765433"),
         "rank 2 ended with exit status 5", "because\n", 30, 0.3, 2, 0, false},
        {"exec sleep 98765433", "timed out after 0.5 s", "", 0.5, 0.3, -1, 0, false},
        {RANKS("test $r = 1 && kill -STOP $$; exec sleep 98765433"),
         "timed out after 0.5 s: rank 1 was stopped (SIGSTOP)", "", 0.5, 0.3, -1, 0, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        if (cases[i].own_only && by != EL_LAUNCH_BY_OWN) continue;
        grace_s = cases[i].grace_s;
        struct el_launch_result result = launch_by(by, cases[i].script, 3, cases[i].timeout_s);
        grace_s = 0.3;
        assert_string_equal(result.reason, cases[i].reason);
        if (!result.timed_out) assert_int_equal(result.failed_rank, cases[i].failed_rank);
        if (!result.timed_out) assert_int_equal(result.signal, cases[i].signal);
        assert_int_equal(result.timed_out, cases[i].failed_rank < 0);
        assert_true(result.wall_s < 5 || cases[i].grace_s == 5);
        el_launch_log_tail(folder, result.failed_rank, 1, text, sizeof text);
        assert_string_equal(text, cases[i].last_line);
        assert_false(runs("98765433"));
    }
}

static void test_ranks_by_mpirun(void **state)
{
    skip_without_mpirun();
    expect_own_logs(EL_LAUNCH_BY_MPIRUN);
    expect_ends(EL_LAUNCH_BY_MPIRUN);
}

static void test_ranks_by_ourselves(void **state)
{
    expect_own_logs(EL_LAUNCH_BY_OWN);
    expect_ends(EL_LAUNCH_BY_OWN);
}

/* A rank that fails leaves the others the time to say what they know. */
static void test_own_ranks_may_end_by_themselves(void **state)
{
    char text[256];
    grace_s = 5;
    struct el_launch_result result =
        launch_by(EL_LAUNCH_BY_OWN, RANKS("test $r = 1 && exit 3; sleep 0.3; echo done; exit 4"), 3, 30);
    grace_s = 0.3;
    assert_string_equal(result.reason, "rank 1 ended with exit status 3");
    el_launch_log_tail(folder, 2, 1, text, sizeof text);
    assert_string_equal(text, "done\n");
}

/* Rank 0 alone inherits the socket that listens at the port that all are told of. */
static void test_own_ranks_are_told_where_to_meet(void **state)
{
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

static void read_secrets(char secrets[2][64])
{
    struct el_launch_result result = launch_by(EL_LAUNCH_BY_OWN, "echo $EVENLOAD_SECRET", 2, 30);
    assert_string_equal(result.reason, "");
    for (int rank = 0; rank < 2; rank++) el_launch_log_tail(folder, rank, 1, secrets[rank], sizeof secrets[rank]);
}

static void test_own_ranks_share_a_secret_of_their_own(void **state)
{
    char first[2][64], second[2][64];
    setenv("EVENLOAD_SECRET", "a user's", 1);
    read_secrets(first);
    read_secrets(second);
    unsetenv("EVENLOAD_SECRET");
    assert_int_equal(strspn(first[0], "0123456789abcdef"), 32);
    assert_string_equal(first[0], first[1]);
    assert_string_equal(second[0], second[1]);
    assert_string_not_equal(first[0], second[0]);
}

static void test_nothing_outlives_mpirun(void **state)
{
    skip_without_mpirun();
    struct el_launch_result result =
        launch("test $OMPI_COMM_WORLD_RANK = 0 && { sleep 0.1; kill -9 $PPID; }; exec sleep 98765435", 2, 30);
    assert_string_equal(result.reason, "mpirun was killed by signal 9 (Killed)");
    assert_true(result.wall_s < 5);
    assert_false(runs("98765435"));
}

/* Shared memory of a job is gone with its launcher, however that ended: mpirun removes only what it knows of. */
static void test_a_killed_launcher_leaves_no_folder(void **state)
{
    skip_without_mpirun();
    char scratch[64] = "";
    pid_t launcher = fork();
    if (launcher == 0) {
        launch("touch $OMPI_MCA_orte_tmpdir_base/left; echo $OMPI_MCA_orte_tmpdir_base; exec sleep 98765437", 2, 30);
        _exit(0);
    }
    for (int tries = 0; tries < 1000 && !strchr(scratch, '\n'); tries++) {
        el_launch_log_tail(folder, 0, 1, scratch, sizeof scratch);
        usleep(20000);
    }
    scratch[strcspn(scratch, "\n")] = '\0';
    assert_non_null(strstr(scratch, "/evenload-job-"));
    assert_int_equal(access(scratch, F_OK), 0);
    kill(launcher, SIGKILL);
    waitpid(launcher, NULL, 0);
    for (int tries = 0; tries < 500 && (access(scratch, F_OK) == 0 || runs("98765437")); tries++) usleep(20000);
    assert_int_not_equal(access(scratch, F_OK), 0);
    assert_false(runs("98765437"));
}

RUN_TESTS(make_folder, remove_folder, test_ranks_by_mpirun, test_ranks_by_ourselves,
          test_own_ranks_may_end_by_themselves, test_own_ranks_are_told_where_to_meet,
          test_own_ranks_share_a_secret_of_their_own, test_nothing_outlives_mpirun,
          test_a_killed_launcher_leaves_no_folder)
