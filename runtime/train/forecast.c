/* Memory without running: the mode's own schedule is issued on simulated devices, whose ledger counts the same marks.
 * The sizes of scratch come from the kernels that would run. tests/equivalence hold it against the ledger of real steps
 * and against the closed forms. */
#include "runtime/train/forecast.h"

#include <stdlib.h>

#include "runtime/train/session.h"
#include "runtime/train/worlds.h"

/* The step that repeats: the last round's. */
static enum el_status issue_step(struct el_worker *worker, const struct el_mode_ops *mode,
                                 struct el_memory_forecast *forecasts)
{
    const struct el_schedule *schedule = &worker->parts->schedule;
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
    for (int m = 0; m < worker->n_members; m++) el_device_ledger_reset_peak(worker->members[m].shard.device);
    EL_TRY_GOTO(el_program_run(program, 0, NULL), done);
    for (int m = 0; m < worker->n_members; m++) {
        struct el_device *device = worker->members[m].shard.device;
        enum el_phase phase = EL_PHASE_OPTIMIZER;
        el_program_ledger(program, device, &phase);
        forecasts[m] = (struct el_memory_forecast){.ledger = *el_device_ledger(device), .moment = el_phase_name(phase)};
        if (schedule->n_parts > 0)
            forecasts[m].activation_sets =
                el_schedule_in_flight(schedule, el_layout_spot(worker->layout, worker->first + m).at[EL_AXIS_STAGE]);
    }
done:
    el_program_destroy(program);
    return status;
}

static enum el_status forecast_worker(const struct el_worker_spec *spec, struct el_memory_forecast *forecasts)
{
    const struct el_mode_ops *mode = el_mode_ops_find(spec->config->mode);
    struct el_worker worker;
    enum el_status status = el_worker_open(&worker, spec);
    if (status == EL_OK) status = issue_step(&worker, mode, &forecasts[worker.first]);
    if (mode->teardown) mode->teardown(&worker);
    el_worker_close(&worker);
    return status;
}

static enum el_status forecast_all(const struct el_train_config *config, const struct el_layout *layout,
                                   const struct el_parts *parts, struct el_device *const *devices,
                                   struct el_memory_forecast *forecasts)
{
    struct el_worlds worlds;
    struct el_worker_spec spec = {.config = config, .parts = parts, .layout = layout};
    enum el_status status = el_worlds_open_threads(&worlds, layout, devices);
    for (; spec.index < layout->n_workers && status == EL_OK; spec.index++) {
        int first;
        el_layout_of_worker(layout, spec.index, &first);
        spec.worlds = &worlds.world[first];
        spec.group = worlds.group[first];
        spec.devices = &devices[first];
        status = forecast_worker(&spec, forecasts);
    }
    el_worlds_close(&worlds);
    return status;
}

enum el_status el_train_forecast(const struct el_train_config *config, const struct el_kernel_table *kernels,
                                 struct el_memory_forecast *forecasts)
{
    struct el_layout layout;
    int opened = 0;
    struct el_parts parts;
    el_layout_of(config, 1, &layout);
    struct el_device **devices = calloc((size_t)layout.n_devices, sizeof *devices);
    if (!devices) return el_fail_errno("%d devices", layout.n_devices);
    enum el_status status = el_parts_open(config, &layout, &parts);
    for (; opened < layout.n_devices && status == EL_OK; opened++) {
        struct el_device_spec spec = {.backend = "sim", .index = opened, .position = opened, .kernels = kernels};
        status = el_device_open(&spec, &devices[opened]);
    }
    if (status == EL_OK) status = forecast_all(config, &layout, &parts, devices, forecasts);
    for (int d = 0; d < layout.n_devices; d++) el_device_close(devices[d]);
    free(devices);
    el_parts_close(&parts);
    return status;
}
