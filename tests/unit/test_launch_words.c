/* What launchers say: environments that tell a process its place, those that jobs are given, mpirun's messages. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/launch/launch.h"
#include "runtime/launch/mpirun.h"

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
    assert_int_equal(place.host != NULL,
                     !strcmp(name, "torchrun") || !strcmp(name, "evenload") || !strcmp(name, "srun"));
    if (!strcmp(name, "srun")) assert_true(!strcmp(place.host, "node007") && place.port == 20000 + 9 * 64 + 2);
}

static void test_environments_tell_the_place(void **state)
{
    expect_place((const char *[]){NULL}, false, -1, -1, -1, "");
    expect_place((const char *[]){"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
                                  "PMIX_RANK=3", NULL},
                 true, 3, 4, 1, "Open MPI");
    expect_place((const char *[]){"PMIX_RANK=2", NULL}, true, 2, -1, -1, "PMIx");
    expect_place((const char *[]){"PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALRANKID=0", NULL}, true, 0, 2, 0, "PMI");
    /* A Slurm batch script, a user's settings, names that anybody may use: not a rank. */
    expect_place((const char *[]){"SLURM_JOB_ID=9", "SLURM_PROCID=0", "SLURM_NTASKS=4", NULL}, false, -1, -1, -1, "");
    /* a step of several tasks is a job, one of a single task is none */
    expect_place((const char *[]){"SLURM_JOB_ID=9", "SLURM_STEP_ID=2", "SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS=4",
                                  "SLURM_LOCALID=1", "SLURM_STEP_NODELIST=node[007-009,12],x", NULL},
                 true, 3, 4, 1, "srun");
    expect_place((const char *[]){"SLURM_JOB_ID=9", "SLURM_STEP_ID=4294967290", "SLURM_PROCID=0",
                                  "SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_NODELIST=node7", NULL},
                 false, -1, -1, -1, "");
    expect_place((const char *[]){"OMPI_MCA_btl=self", "OMPI_ALLOW_RUN_AS_ROOT=1", NULL}, false, -1, -1, -1, "");
    expect_place((const char *[]){"MASTER_ADDR=n", "MASTER_PORT=1", "RANK=", NULL}, false, -1, -1, -1, "");
    expect_place((const char *[]){"PMI_RANK=", NULL}, false, -1, -1, -1, "");
}

#define TORCHRUN                                                                                                       \
    "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=node7", "MASTER_PORT=29500"

static void test_torchrun_tells_where_to_meet(void **state)
{
    struct el_launch_place place;
    const char *plain[] = {TORCHRUN, NULL}, *real[] = {TORCHRUN, "PMI_RANK=0", "TORCHELASTIC_RUN_ID=job", NULL},
               *agent[] = {TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True", NULL},
               *own[] = {TORCHRUN, "EL_LAUNCH_TOKEN=4-5.", "EL_LAUNCH_LISTENER=9", "EVENLOAD_SECRET=s", NULL};
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
    assert_string_equal(place.secret, "");
    assert_int_equal(el_launch_environment(fake, agent, &place), EL_OK);
    assert_int_equal(place.port, 29501); /* the agent itself is at MASTER_PORT */
    assert_true(place.n_ports > 1);
    assert_int_equal(el_launch_environment(fake, own, &place), EL_OK);
    assert_int_equal(place.listener, 9);
    assert_string_equal(place.token, "4-5.");
    assert_string_equal(place.secret, "s");
}

static void test_environments_that_make_no_sense(void **state)
{
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
    static const char *const ports[] = {"0", "65536", "-1", "abc", "29500x", "99999999999999999999"};
    struct el_launch_place place;
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        char port[64], wanted[96];
        snprintf(port, sizeof port, "MASTER_PORT=%s", ports[i]);
        const char *variables[] = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=n", port, NULL};
        snprintf(wanted, sizeof wanted, "MASTER_PORT is '%s': it must be a port, from 1 to 65535", ports[i]);
        assert_int_equal(el_launch_environment(fake, variables, &place), EL_ERR_INVALID);
        assert_string_equal(el_error_message(), wanted);
    }
}

/* Every part of torchrun's variables that speaks of a rank is refused, and what is missing is named. */
static void test_a_part_of_torchruns_variables(void **state)
{
    static const char *const all[] = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=n", "MASTER_PORT=1", "LOCAL_RANK=0"},
                             *const names[] = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
    enum { N = 5, NEEDED = 15, OF_RANKS = 1 | 2 | 16 };
    for (unsigned set = 0; set < 1 << N; set++) {
        struct el_launch_place place;
        const char *variables[N + 2] = {NULL}, *at_mpi[N + 2] = {"PMI_RANK=1", NULL};
        for (int i = 0, n = 0; i < N; i++)
            if (set & 1u << i) variables[n] = at_mpi[n + 1] = all[i], n++;
        bool whole = (set & NEEDED) == NEEDED, refused = !whole && set & OF_RANKS;
        assert_int_equal(el_launch_environment(fake, variables, &place), refused ? EL_ERR_INVALID : EL_OK);
        if (!refused) assert_int_equal(place.is_rank, whole);
        const char *missing = strstr(el_error_message(), ", but "), *end = strstr(el_error_message(), " not: set RANK");
        for (unsigned i = 0; refused && i < N - 1; i++) {
            const char *name = strstr(missing, names[i]);
            assert_int_equal(name && name < end, !(set & 1u << i));
        }
        assert_int_equal(el_launch_environment(fake, at_mpi, &place), EL_OK); /* mpirun's own word counts */
        assert_int_equal(place.rank, 1);
    }
    assert_int_equal(el_launch_environment(fake, (void *)(const char *[]){"RANK=0", "WORLD_SIZE=2", NULL},
                                           &(struct el_launch_place){0}),
                     EL_ERR_INVALID);
    assert_string_equal(
        el_error_message(),
        "RANK and WORLD_SIZE are set, as torchrun does for a rank, but MASTER_ADDR and MASTER_PORT are "
        "not: set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or unset them, or give --launcher self");
}

/* The kernel's count is all that is known of a SIGKILL. */
static void test_a_kill_for_lack_of_memory(void **state)
{
    static const struct {
        int64_t before, after;
        const char *words;
    } known[] = {{3, 3, ""},
                 {3, 4, ", because memory ran out: the kernel's out-of-memory killer ended 1 process of this host"},
                 {0, 2, ", because memory ran out: the kernel's out-of-memory killer ended 2 processes of this host"},
                 {-1, -1, ", by another process, or by the kernel because memory ran out (see dmesg)"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char text[192];
        assert_int_equal(el_oom_explain(known[i].before, known[i].after, text, sizeof text), i == 1 || i == 2);
        assert_int_equal(strncmp(text, known[i].words, strlen(known[i].words)), 0);
        assert_int_equal(*text != 0, *known[i].words != 0);
        assert_true(strlen(text) < sizeof text - 1);
    }
    assert_int_equal(el_oom_kills("/nowhere"), -1);
    assert_int_equal(el_oom_kills("") >= 0, access("/proc/vmstat", R_OK) == 0);
}

static void test_a_job_does_not_inherit_a_job(void **state)
{
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
    char **made = el_launch_make_environment(from, extra, false, true);
    for (int i = 0; expected[i]; i++) assert_string_equal(made[i], expected[i]);
    assert_null(made[4]);
    free(made);
    made = el_launch_make_environment(from, extra, true, true);
    assert_string_equal(fake(made, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
    assert_string_equal(fake(made, "OMPI_MCA_mpi_yield_when_idle"), "1"); /* the user's settings win */
    assert_string_equal(fake(made, "OMPI_MCA_btl"), "self,tcp");
    assert_null(fake(made, "OMPI_COMM_WORLD_RANK"));
    free(made);
    made = el_launch_make_environment(from, extra, false, false); /* somebody else's program stays in its job */
    assert_string_equal(fake(made, "OMPI_COMM_WORLD_RANK"), "1");
    assert_string_equal(fake(made, "HOME"), "/elsewhere");
    free(made);
}

static void test_messages_of_mpirun(void **state)
{
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

#define DASHES "--------------------------------------------------------------------------\n"

static void test_what_mpirun_said(void **state)
{
    char words[256];
    el_mpirun_said("[n:1] ORTE_ERROR_LOG: Out of resource\n" DASHES
                   "A requested component was not found, or was\nunable to be opened.  This\nmeans more.\n\n"
                   "Host:      n\nFramework: pml\n" DASHES DASHES "Another.\n\nblock\n" DASHES,
                   words, sizeof words);
    assert_string_equal(words,
                        "A requested component was not found, or was unable to be opened. Host: n Framework: pml");
    el_mpirun_said(DASHES "All nodes are filled.\n" DASHES, words, sizeof words);
    assert_string_equal(words, "All nodes are filled.");
    el_mpirun_said(DASHES "no sentence\n\n" DASHES, words, sizeof words);
    assert_string_equal(words, "no sentence");
    el_mpirun_said(DASHES "cut off", words, sizeof words);
    assert_string_equal(words, "");
    el_mpirun_said(DASHES "A long one. And more.\n" DASHES, words, 8);
    assert_string_equal(words, "A long");
}

RUN_TESTS(NULL, NULL, test_environments_tell_the_place, test_torchrun_tells_where_to_meet,
          test_environments_that_make_no_sense, test_ports_that_make_no_sense, test_a_part_of_torchruns_variables,
          test_a_kill_for_lack_of_memory, test_a_job_does_not_inherit_a_job, test_messages_of_mpirun,
          test_what_mpirun_said)
