/* Memory without running: the mode's own schedule is issued on simulated devices, whose ledger counts the same marks.
 * The sizes of scratch come from the kernels that would run. tests/equivalence hold it against the ledger of real steps
 * and against the closed forms. */
#include <stdlib.h>

#include "runtime/parallel/session.h"

/* The step that repeats: the last round's. */
static enum el_status issue_step(struct el_worker *worker, const struct el_mode_ops *mode,
                                 struct el_memory_forecast *forecasts)
{
    struct el_program *program = NULL;
    enum el_status status = EL_OK;
    if (mode->setup) EL_TRY(mode->setup(worker));
    for (int round = 0; round < mode->rounds; round++) {
        el_program_destroy(program);
        program = NULL;
        if (mode->begin_round) EL_TRY_GOTO(mode->begin_round(worker, round), done);
        EL_TRY_GOTO(el_program_create(&program), done);
        EL_TRY_GOTO(mode->issue(worker, program, round), done);
    }
    EL_TRY_GOTO(el_program_end(program), done);
    for (int m = 0; m < worker->n_members; m++) el_device_ledger_reset_peak(worker->members[m].device);
    EL_TRY_GOTO(el_program_run(program, 0, NULL), done);
    for (int m = 0; m < worker->n_members; m++) {
        struct el_device *device = worker->members[m].device;
        enum el_phase phase = EL_PHASE_OPTIMIZER;
        el_program_ledger(program, device, &phase);
        forecasts[m] = (struct el_memory_forecast){.ledger = *el_device_ledger(device), .moment = el_phase_name(phase)};
    }
done:
    el_program_destroy(program);
    return status;
}

/* One worker on the devices [first, first + n_members). */
static enum el_status forecast_worker(const struct el_train_config *config, const struct el_graph *graph,
                                      struct el_device *const *devices, struct el_comm *comm, int rank, int n_members,
                                      struct el_memory_forecast *forecasts)
{
    const struct el_mode_ops *mode = el_mode_ops_find(config->mode);
    struct el_member *members = calloc((size_t)n_members, sizeof *members);
    if (!members) return el_fail_errno("a forecast");
    struct el_worker worker = {.config = config, .graph = graph, .members = members, .n_members = n_members};
    enum el_status status =
        el_member_open_owner(&members[0], config, graph, devices[0], comm, rank, comm ? config->n_devices : 1, NULL);
    for (int m = 1; m < n_members; m++) el_member_open_helper(&members[m], config, graph, devices[m], NULL);
    if (status == EL_OK) status = issue_step(&worker, mode, forecasts);
    if (mode->teardown) mode->teardown(&worker);
    for (int m = 0; m < n_members; m++) el_member_close(&members[m]);
    free(members);
    return status;
}

static enum el_status forecast_all(const struct el_train_config *config, const struct el_graph *graph,
                                   struct el_device *const *devices, int n, struct el_memory_forecast *forecasts)
{
    const struct el_mode_ops *mode = el_mode_ops_find(config->mode);
    if (mode->info.controller) return forecast_worker(config, graph, devices, NULL, 0, n, forecasts);
    struct el_comm *comms[EL_MEMBERS_MAX];
    EL_TRY(el_comm_open_local(devices, n, comms));
    enum el_status status = EL_OK;
    for (int r = 0; r < n && status == EL_OK; r++) {
        status = forecast_worker(config, graph, &devices[r], comms[r], r, 1, &forecasts[r]);
    }
    for (int r = 0; r < n; r++) el_comm_close(comms[r]);
    return status;
}

enum el_status el_train_forecast(const struct el_train_config *config, const struct el_kernel_table *kernels,
                                 struct el_memory_forecast *forecasts)
{
    const struct el_mode_ops *mode = el_mode_ops_find(config->mode);
    int n = mode->info.one_device ? 1 : config->n_devices, opened = 0;
    struct el_device *devices[EL_MEMBERS_MAX] = {NULL};
    struct el_graph *graph = NULL;
    enum el_status status = el_model_build(&config->model, &graph);
    for (; opened < n && status == EL_OK; opened++) {
        struct el_device_spec spec = {.backend = "sim", .index = opened, .position = opened, .kernels = kernels};
        status = el_device_open(&spec, &devices[opened]);
    }
    if (status == EL_OK) status = forecast_all(config, graph, devices, n, forecasts);
    for (int d = 0; d < n; d++) el_device_close(devices[d]);
    el_graph_destroy(graph);
    return status;
}
