/* Ranks that have several devices each: spmg with every number of ranks that its devices can be shared among, and both
 * ways of reducing, and copies of a model in stages, have the losses that its semantics define: the mean over ranks of
 * each one's mean, computed on one device. Ranks in threads and in processes
 * give the same bits. */
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "bench/job/worker.h"
#include "runtime/train/forecast.h"
#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/cases.h"

enum { DEVICES = 4, STEPS = 12, LIMIT_S = 60 };

struct mesh {
    const char *mode;
    int n_devices, n_ranks;
    enum { FLAT, HIERARCHICAL, STAGES } how; /* to reduce; or sharded state in two stages */
    int at;                                  /* of el_cases */
};

/* Even and uneven shares; dropout; chunks of 6 and 5, of 4, 4 and 3. */
static const struct mesh meshes[] = {
    {"spmg", 4, 2, FLAT, 2},     {"spmg", 4, 2, HIERARCHICAL, 2}, {"spmg", 4, 4, HIERARCHICAL, 6},
    {"spmg", 3, 3, FLAT, 8},     {"spmg", 3, 1, HIERARCHICAL, 4}, {"spmg", 4, 1, FLAT, 11},
    {"spmg", 2, 2, FLAT, 12},    {"spmg", 4, 2, FLAT, 1},         {"pipeline", 4, 2, FLAT, 1},
    {"pipeline", 4, 2, FLAT, 7}, {"pipeline", 4, 4, FLAT, 9},     {"mp", 4, 2, FLAT, 2},
    {"pipeline", 2, 2, FLAT, 0}, {"zero1", 4, 1, STAGES, 1},      {"zero2", 4, 1, STAGES, 7},
    {"zero3", 4, 1, STAGES, 1},  {"zero3", 4, 2, STAGES, 9},
};
enum { N_MESHES = sizeof meshes / sizeof meshes[0] };

static enum el_status configure(const struct mesh *mesh, struct el_train_config *config)
{
    EL_TRY(el_case_config(&el_cases[mesh->at], "single", 1, config));
    snprintf(config->mode, sizeof config->mode, "%s", mesh->mode);
    config->n_devices = mesh->n_devices;
    config->n_micro = 2;
    config->mesh[EL_AXIS_DATA] = mesh->n_ranks;
    if (mesh->how == STAGES) config->mesh[EL_AXIS_STAGE] = 2;
    if (mesh->how == HIERARCHICAL && !strcmp(mesh->mode, "spmg"))
        EL_TRY(el_mode_option_set(config, "reduce", "hierarchical"));
    config->keep_grads = mesh->at % 2;
    config->steps = STEPS;
    return el_train_check(config);
}

/* On `n` devices of this process. */
static enum el_status train(const struct el_train_config *config, struct el_bootstrap *bootstrap, const char *kind,
                            int n, struct el_train_result *result)
{
    struct el_device *devices[DEVICES];
    enum el_status status = EL_OK;
    int opened = 0;
    for (; opened < n && status == EL_OK; opened++) {
        struct el_device_spec spec = {
            .backend = "cpu", .index = opened, .position = opened, .kernels = el_kernels_reference()};
        status = el_device_open(&spec, &devices[opened]);
    }
    struct el_train_place place = {
        .devices = devices, .n_devices = n, .bootstrap = bootstrap, .comm_kind = kind, .dataset = dataset};
    if (status == EL_OK) status = el_train(config, &place, NULL, result);
    for (int d = 0; d < opened; d++) el_device_close(devices[d]);
    return status;
}

static void train_here(const struct mesh *mesh, struct el_train_result *result)
{
    struct el_train_config config;
    struct el_bootstrap *self;
    assert_int_equal(configure(mesh, &config), EL_OK);
    assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
    if (train(&config, self, NULL, mesh->n_devices, result) != EL_OK)
        fail_msg("%s, %d ranks on %d: %s", mesh->mode, mesh->n_ranks, mesh->n_devices, el_error_message());
    el_bootstrap_close(self);
}

static void losses_are_the_means_over_ranks(void **state)
{
    for (int i = 0; i < N_MESHES; i++) {
        struct mesh means = meshes[i];
        struct el_train_result result, wanted;
        struct el_train_config config;
        struct el_bootstrap *self;
        means.mode = "reference";
        means.n_devices = means.how == STAGES ? means.n_devices / 2 : means.n_ranks;
        assert_int_equal(configure(&means, &config), EL_OK);
        config.keep_grads = true;
        assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
        assert_int_equal(train(&config, self, NULL, 1, &wanted), EL_OK);
        el_bootstrap_close(self);
        train_here(&meshes[i], &result);
        double difference = el_case_difference(&result, &wanted);
        if (!(difference <= CASE_TOLERANCE)) fail_msg("mesh %d: losses differ by %g", i, difference);
        assert_true(result.loss[0] != result.loss[STEPS - 1]);
        el_train_result_free(&result);
        el_train_result_free(&wanted);
    }
}

static void forecasts_are_the_ledgers(void **state)
{
    for (int i = 0; i < N_MESHES; i++) {
        struct el_train_config config;
        struct el_train_result result;
        struct el_memory_forecast forecasts[DEVICES];
        assert_int_equal(configure(&meshes[i], &config), EL_OK);
        assert_int_equal(el_train_forecast(&config, el_kernels_reference(), forecasts), EL_OK);
        train_here(&meshes[i], &result);
        for (int d = 0; d < meshes[i].n_devices; d++) {
            assert_int_equal(result.ledgers[d].peak_bytes, forecasts[d].ledger.peak_bytes);
            assert_memory_equal(result.ledgers[d].at_peak_by_tag, forecasts[d].ledger.at_peak_by_tag,
                                sizeof forecasts[d].ledger.at_peak_by_tag);
        }
        el_train_result_free(&result);
    }
}

/* What a rank's gradients are multiplied by is 1 / ranks, not 1 / devices: else the comparison above would show
 * nothing.
 */
static void ranks_are_not_devices(void **state)
{
    struct mesh one = meshes[0], all = meshes[0];
    struct el_train_result ranks, devices;
    one.n_ranks = 2;
    all.n_ranks = 4;
    train_here(&one, &ranks);
    train_here(&all, &devices);
    assert_true(el_case_difference(&ranks, &devices) > 1e-5);
    el_train_result_free(&ranks);
    el_train_result_free(&devices);
}

/* ---- ranks in processes: this program starts itself, with 'rank' as its argument ---- */

/* Rank 0 has the losses of all ranks, and computes those of threads. */
static enum el_status run_mesh(int i, const char *kind, struct el_bootstrap *world, struct el_bootstrap *self)
{
    const struct mesh *mesh = &meshes[i];
    struct el_train_config config;
    struct el_train_result result, wanted;
    struct el_layout layout;
    EL_TRY(configure(mesh, &config));
    el_layout_of(&config, el_bootstrap_size(world), &layout);
    if (layout.n_processes != el_bootstrap_size(world)) return EL_OK;
    EL_TRY(train(&config, world, kind, mesh->n_devices / el_bootstrap_size(world), &result));
    enum el_status status = EL_OK;
    if (el_bootstrap_rank(world) == 0) {
        status = train(&config, self, NULL, mesh->n_devices, &wanted);
        if (status == EL_OK && memcmp(result.loss, wanted.loss, STEPS * sizeof *result.loss) != 0 &&
            !(el_case_difference(&result, &wanted) <= (strcmp(kind, "shm") ? CASE_TOLERANCE : 0)))
            status = el_fail(EL_ERR_INTERNAL, "mesh %d over %s: losses differ by %g", i, kind,
                             el_case_difference(&result, &wanted));
        if (status == EL_OK) el_train_result_free(&wanted);
    }
    el_train_result_free(&result);
    return el_bootstrap_agree(world, status);
}

static enum el_status run_rank(void)
{
    struct el_bootstrap *world = NULL, *self = NULL;
    el_launch_rank_init();
    enum el_status status = el_join_environment(&world);
    if (status == EL_OK) status = el_bootstrap_open("self", &self);
    if (status == EL_OK) status = el_case_dataset(&dataset);
    for (int i = 0; i < N_MESHES && status == EL_OK; i++) {
        status = run_mesh(i, "shm", world, self);
        if (status == EL_OK) status = run_mesh(i, el_bootstrap_kind(world), world, self); /* mpi, or tcp */
    }
    el_dataset_close(dataset);
    el_bootstrap_close(self);
    if (status != EL_OK)
        fprintf(stderr, "%s\n", el_error_message());
    else
        printf("all meshes agree\n");
    el_bootstrap_close(world);
    return status;
}

static void run_job(enum el_launch_by by, int procs)
{
    char program[1024] = {0}, log_dir[] = "/tmp/el-meshes-XXXXXX", text[1024], command[1100];
    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    assert_non_null(mkdtemp(log_dir));
    char *argv[] = {program, "rank", NULL};
    struct el_launch_spec spec = {.argv = argv, .procs = procs, .by = by, .log_dir = log_dir, .timeout_s = LIMIT_S};
    struct el_launch_result result;
    if (el_launch_run(&spec, &result) == EL_ERR_ABSENT) skip();
    el_launch_log_tail(log_dir, 0, 3, text, sizeof text);
    if (!result.ok) fail_msg("%d ranks: %s: %s", procs, result.reason, text);
    assert_non_null(strstr(text, "meshes agree"));
    snprintf(command, sizeof command, "rm -r %s", log_dir);
    assert_int_equal(system(command), 0);
}

static void processes_give_the_same_bits(void **state)
{
    for (int procs = 2; procs <= 4; procs++) run_job(EL_LAUNCH_BY_OWN, procs);
}

static void mpi_processes_give_the_same_losses(void **state)
{
    run_job(EL_LAUNCH_BY_MPIRUN, 2);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "rank") == 0) return run_rank() == EL_OK ? 0 : 1;
    return RUN(open_all, close_all, losses_are_the_means_over_ranks, forecasts_are_the_ledgers, ranks_are_not_devices,
               processes_give_the_same_bits, mpi_processes_give_the_same_losses);
}
