/* The launcher: how jobs end: by themselves, by force, by time. Ranks are shell commands: no MPI library is needed,
 * only mpirun (cases that need it are skipped without). What launchers say is test_launch_words.c. */
#include "tests/test.h"

#include "tests/unit/launching.h"

static void test_one_process_ends_well(void **state)
{
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

/* They once cost every launch a tenth of a second. */
static void test_nobody_waits_for_children_that_have_ended(void **state)
{
    struct el_child ended = {.ended = true};
    int64_t begin_ns = el_clock_ns();
    assert_true(el_children_wait(&ended, 1, INT64_C(20000000000)));
    assert_true(el_clock_ns() - begin_ns < INT64_C(10000000000));
}

static bool stop_after_three(void *context, double elapsed_s)
{
    int *calls = context;
    assert_true(elapsed_s >= 0);
    return ++*calls < 3;
}

/* Opening a pipe that nobody reads keeps the child from its exec as a stop does. */
static void open_pipe(const void *path)
{
    open(path, O_WRONLY);
}

static void test_a_child_that_never_becomes_the_program_is_ended(void **state)
{
    char path[96];
    int wait_status;
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0666), 0);
    alarm(50);
    pid_t pid = el_child_fork(open_pipe, path, 100);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    alarm(0);
    assert_true(WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL);
}

static void test_progress_can_end_the_job(void **state)
{
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

/* An mpirun that starts its ranks and never ends, whatever they do, nor by being asked to. */
static void make_endless_mpirun(const char *path, const char *words)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "#!/bin/sh\n"
            "while [ \"$1\" != -n ]; do shift; done\n"
            "n=$2; r=0; shift 2; trap '' TERM\n"
            "while [ $r -lt $n ]; do OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=$n \"$@\" & r=$((r + 1)); done\n"
            "echo '%s'\n"
            "while :; do sleep 98765439; done\n",
            words);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

static struct el_launch_result launch_by_endless_mpirun(const char *words, const char *script)
{
    char path[96], search[4096], kept[4000];
    const char *before = getenv("PATH");
    snprintf(kept, sizeof kept, "%s", before ? before : "");
    snprintf(path, sizeof path, "%s/mpirun", folder);
    snprintf(search, sizeof search, "%s:%s", folder, kept);
    make_endless_mpirun(path, words);
    setenv("PATH", search, 1);
    struct el_launch_result result = launch(script, 2, 40);
    setenv("PATH", kept, 1);
    unlink(path);
    return result;
}

/* Ended once its ranks have, and sooner where it has named one; what it does not say the ranks' logs may. */
static void test_an_mpirun_that_outlives_its_ranks_is_ended(void **state)
{
    static const struct {
        const char *words, *script;
        double grace_s, least_s, most_s;
        const char *reason;
        int failed_rank;
    } cases[] = {
        {"", RANKS("exit $r"), 0.1, 0.5, 40, "mpirun did not end within 0.5 s after all its ranks had", -1},
        {"mpirun noticed that process rank 1 with PID 4711 on node n exited on signal 9 (Killed).", RANKS("exit $r"), 1,
         0, 4.5, "rank 1 was killed by signal 9 (Killed)", 1},
        {"", RANKS("test $r = 1 || echo 'evenload: rank 0 of 2: mpi: rank 1 (process 4711) is gone, so'; exit 1"), 0.5,
         0, 2.4, "rank 1 is gone, and mpirun did not say how it ended", 1},
    };
    double grace_before_s = grace_s;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        grace_s = cases[i].grace_s;
        struct el_launch_result result = launch_by_endless_mpirun(cases[i].words, cases[i].script);
        grace_s = grace_before_s;
        assert_false(result.ok || result.timed_out);
        assert_false(runs("98765439"));
        assert_memory_equal(result.reason, cases[i].reason, strlen(cases[i].reason) + (cases[i].failed_rank >= 0));
        assert_int_equal(result.failed_rank, cases[i].failed_rank);
        assert_true(result.wall_s >= cases[i].least_s && result.wall_s < cases[i].most_s);
    }
}

static void test_a_folder_has_the_room_that_is_asked_for(void **state)
{
    char path[EL_SCRATCH_BYTES];
    assert_int_equal(el_scratch_make(path, UINT64_C(1) << 60), -1);
    assert_string_equal(path, "");
    int lock = el_scratch_make(path, 4096);
    assert_int_equal(access(path, W_OK), 0);
    el_scratch_remove(path);
    close(lock);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* A process that is killed cannot remove its folder: the next one does, and leaves those of the living alone. */
static void test_what_the_killed_left_is_removed(void **state)
{
    char living[EL_SCRATCH_BYTES], dead[EL_SCRATCH_BYTES], next[EL_SCRATCH_BYTES], file[64];
    int lock = el_scratch_make(living, 4096), told[2], status;
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        el_scratch_make(dead, 4096);
        if (write(told[1], dead, sizeof dead) != sizeof dead) abort();
        pause();
    }
    assert_int_equal(read(told[0], dead, sizeof dead), sizeof dead);
    snprintf(file, sizeof file, "%s/left", dead);
    fclose(fopen(file, "w"));
    int third = el_scratch_make(next, 4096);
    assert_int_equal(access(file, F_OK), 0);
    el_scratch_remove(next);
    close(third);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    third = el_scratch_make(next, 4096);
    assert_int_not_equal(access(dead, F_OK), 0);
    assert_int_equal(access(living, F_OK), 0);
    el_scratch_remove(next);
    el_scratch_remove(living);
    close(third);
    close(lock);
    close(told[0]);
    close(told[1]);
}

RUN_TESTS(make_folder, remove_folder, test_one_process_ends_well, test_one_process_fails, test_time_out_kills_the_group,
          test_nobody_waits_for_children_that_have_ended, test_a_child_that_never_becomes_the_program_is_ended,
          test_progress_can_end_the_job, test_what_cannot_start, test_no_mpirun,
          test_an_mpirun_that_outlives_its_ranks_is_ended, test_a_folder_has_the_room_that_is_asked_for,
          test_what_the_killed_left_is_removed)
