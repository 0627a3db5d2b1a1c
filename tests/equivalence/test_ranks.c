/* The semantics gate between processes, in f64: ddp by ranks equals single for even batches, and for uneven ones the
 * mean of the ranks' means. All cases of a world size share one job: this program starts itself, through mpirun and by
 * our own launcher, with 'rank' as its argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "bench/job/worker.h"
#include "tests/equivalence/cases.h"

enum { LIMIT_S = 100 };

static enum el_status train_on(const struct el_train_config *config, struct el_bootstrap *bootstrap,
                               const char *comm_kind, const struct el_dataset *dataset, struct el_train_result *result)
{
    struct el_device *device;
    struct el_device_spec spec = {.backend = "cpu", .kernels = el_kernels_reference()};
    EL_TRY(el_device_open(&spec, &device));
    struct el_train_place place = {
        .devices = &device, .n_devices = 1, .bootstrap = bootstrap, .comm_kind = comm_kind, .dataset = dataset};
    enum el_status status = el_train(config, &place, NULL, result);
    el_device_close(device);
    return status;
}

/* One case on all ranks; the yardstick is computed by rank 0 alone. */
static enum el_status run_case(const struct el_case *c, const char *comm_kind, struct el_bootstrap *world,
                               struct el_bootstrap *self, const struct el_dataset *dataset)
{
    struct el_train_config config;
    struct el_train_result result, wanted;
    int n = el_bootstrap_size(world);
    bool even = c->batch % n == 0;
    EL_TRY(el_case_config(c, "ddp", n, &config));
    EL_TRY(train_on(&config, world, comm_kind, dataset, &result));
    enum el_status status = EL_OK;
    if (el_bootstrap_rank(world) == 0) {
        status = el_case_config(c, even ? "single" : "reference", even ? 1 : n, &config);
        if (status == EL_OK) status = train_on(&config, self, NULL, dataset, &wanted);
        if (status == EL_OK) {
            double difference = el_case_difference(&result, &wanted);
            char text[128];
            el_case_text(c, comm_kind, n, text, sizeof text);
            if (!(difference <= CASE_TOLERANCE))
                status = el_fail(EL_ERR_INTERNAL, "%s: losses differ by %g", text, difference);
            el_train_result_free(&wanted);
        }
    }
    el_train_result_free(&result);
    return el_bootstrap_agree(world, status);
}

static enum el_status run_rank(void)
{
    struct el_bootstrap *world, *self;
    struct el_dataset *dataset;
    el_launch_rank_init();
    EL_TRY(el_join_environment(&world));
    EL_TRY(el_bootstrap_open("self", &self));
    EL_TRY(el_case_dataset(&dataset));
    enum el_status status = EL_OK;
    for (int i = el_case_next(-1); i < N_CASES && status == EL_OK; i = el_case_next(i)) {
        bool both = !is_sanitized(); /* else in turns */
        if (both || i % 2 == 0)
            status = run_case(&el_cases[i], el_bootstrap_kind(world), world, self, dataset); /* mpi, or tcp */
        if (status == EL_OK && (both || i % 2 != 0)) status = run_case(&el_cases[i], "shm", world, self, dataset);
    }
    el_dataset_close(dataset);
    el_bootstrap_close(self);
    if (status != EL_OK)
        fprintf(stderr, "%s\n", el_error_message());
    else
        printf("all %d cases agree\n", N_CASES);
    el_bootstrap_close(world);
    return status;
}

static void run_job(enum el_launch_by by, int procs)
{
    char program[1024] = {0}, log_dir[] = "/tmp/el-ranks-XXXXXX", text[1024];
    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    assert_non_null(mkdtemp(log_dir));
    char *argv[] = {program, "rank", NULL};
    struct el_launch_spec spec = {.argv = argv, .procs = procs, .by = by, .log_dir = log_dir, .timeout_s = LIMIT_S};
    struct el_launch_result result;
    if (el_launch_run(&spec, &result) == EL_ERR_ABSENT) skip();
    el_launch_log_tail(log_dir, 0, 3, text, sizeof text);
    if (!result.ok) fail_msg("%d ranks: %s: %s", procs, result.reason, text);
    assert_non_null(strstr(text, "cases agree"));
    char command[1100];
    snprintf(command, sizeof command, "rm -r %s", log_dir);
    assert_int_equal(system(command), 0);
}

static void two_ranks(void **state)
{
    (void)state;
    run_job(EL_LAUNCH_BY_MPIRUN, 2);
}

static void three_ranks(void **state)
{
    (void)state;
    run_job(EL_LAUNCH_BY_MPIRUN, 3);
}

static void four_ranks(void **state)
{
    (void)state;
    run_job(EL_LAUNCH_BY_MPIRUN, 4);
}

static void ranks_over_tcp(void **state)
{
    (void)state;
    for (int procs = 2; procs <= 4; procs++) run_job(EL_LAUNCH_BY_OWN, procs);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "rank") == 0) return run_rank() == EL_OK ? 0 : 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_ranks), cmocka_unit_test(three_ranks),
                                       cmocka_unit_test(four_ranks), cmocka_unit_test(ranks_over_tcp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
