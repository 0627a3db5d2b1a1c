/* Options that do not go together, and files that are not here, are refused before anything is measured; and the steps
 * that --profile and --trace ask for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/options/options.h"
#include "bench/trial/costs.h"
#include "bench/trial/machine.h"
#include "bench/trial/trial.h"
#include "runtime/comm/nccl/api.h"
#include "runtime/layout/layout.h"
#include "runtime/state/checkpoint.h"

/* A list of trials may have one on fewer devices, where a disturbance has no place: there it is left out. */
static enum el_status check_injects(unsigned command, struct el_trial *trial, struct el_inject *injects)
{
    int n = trial->n_devices;
    if (command != EL_CMD_RUN && n == 1 && el_inject_parse(trial->inject, EL_MEMBERS_MAX, injects) == EL_OK &&
        el_inject_parse(trial->inject, n, injects) != EL_OK) {
        trial->inject[0] = 0;
    }
    EL_TRY(el_inject_parse(trial->inject, n, injects));
    for (int i = 0; i < n && el_trial_backend(trial).simulated; i++) {
        if (injects[i].leak_bytes > 0 || injects[i].oversize_bytes > 0 || injects[i].wrong != 0)
            return el_fail(EL_ERR_INVALID, "--inject: simulated devices have no memory to leak or to hold, nor numbers "
                                           "to be wrong: give cpu devices");
    }
    if (injects[0].disk_ms > 0 && !trial->in_files)
        return el_fail(EL_ERR_INVALID, "--inject disk: with --data-in memory a step reads nothing: add --data-in disk");
    if (injects[0].worker_dies_at > 0 && !trial->train.loading.workers)
        return el_fail(EL_ERR_INVALID, "--inject worker: there are no loader workers: add --workers 1");
    return EL_OK;
}

static enum el_status check_inject(unsigned command, struct el_trial *trial)
{
    struct el_inject *injects = calloc(EL_SIMULATED_MAX, sizeof *injects);
    if (!injects) return el_fail_errno("--inject");
    enum el_status status = check_injects(command, trial, injects);
    free(injects);
    return status;
}

enum el_status el_trial_check_comm(const struct el_trial *trial)
{
    char version[16];
    if (trial->procs > 1 && trial->launcher == EL_LAUNCHER_OWN && !strcmp(trial->comm, "mpi"))
        return el_fail(EL_ERR_INVALID, "--comm mpi needs mpirun, not --launcher own: give --comm shm or tcp");
    if (strcmp(trial->comm, "nccl") != 0) return EL_OK;
    if (!el_trial_backend(trial).gpu)
        return el_fail(EL_ERR_INVALID, "--comm nccl is for GPUs, and the devices are %s: take --comm auto",
                       trial->devices[0].backend);
    return el_nccl_version(version, sizeof version);
}

/* What a backend or a communicator cannot do is said before anything is started. */
static enum el_status check_together(const struct el_trial *trial)
{
    const struct el_loading *loading = &trial->train.loading;
    const struct el_backend_facts facts = el_trial_backend(trial);
    EL_TRY(el_trial_check_comm(trial));
    if ((loading->pageable || loading->transfer) && !facts.gpu)
        return el_fail(EL_ERR_INVALID,
                       "--%s is for GPUs, and the devices are %s, which copy from any memory of the host: leave it out",
                       loading->pageable ? "non-blocking pin" : "non-blocking", trial->devices[0].backend);
    if (trial->train.products > EL_PRODUCTS_ONEDNN) {
        if (facts.gpu || !facts.computes || trial->train.dtype != EL_F32 || trial->train.model.precision)
            return el_fail(EL_ERR_INVALID,
                           "--products: other libraries than oneDNN are for cpu devices in f32: leave it out");
        EL_TRY(el_kernels_cpu_products(trial->train.products));
    }
    if (loading->cold && !trial->in_files)
        return el_fail(EL_ERR_INVALID,
                       "--data-in cache=cold: with --data-in memory a step reads nothing: add --data-in disk");
    if (trial->beside && facts.simulated)
        return el_fail(EL_ERR_INVALID, "--beside %d: simulated devices cost each other what --costs says: leave it out",
                       trial->beside);
    if (trial->procs > 1 && !strcmp(trial->comm, "mpi") && trial->train.comm_algorithm != EL_COMM_AUTO)
        return el_fail(EL_ERR_INVALID,
                       "--comm-algorithm %s: with --comm mpi its library chooses: leave one of them out",
                       el_comm_algorithm_name(trial->train.comm_algorithm));
    return EL_OK;
}

/* Where simulated times come from, and the rate that the FLOP/s of real devices are held against. */
static enum el_status check_sources(const struct el_trial *trial)
{
    const char *option = *trial->costs ? "costs" : *trial->machine ? "machine" : NULL;
    struct el_machine machine;
    struct el_costs *costs;
    if (!option) return EL_OK;
    const struct el_backend_facts facts = el_trial_backend(trial);
    if (!facts.simulated && (*trial->costs || !facts.computes))
        return el_fail(EL_ERR_INVALID, "--%s is for simulated devices, and these are %s: give --devices sim:%d", option,
                       trial->devices[0].backend, trial->n_devices);
    EL_TRY(el_machine_read(trial->machine, &machine));
    if (!*trial->costs) return EL_OK;
    EL_TRY(el_costs_read(trial->costs, &trial->train, &costs));
    free(costs);
    return EL_OK;
}

/* ---- what is written beside the record ---- */

/* Whether the trial will have weights, and there is a folder for them. */
static enum el_status check_save(const struct el_trial *trial)
{
    const char *backend = trial->devices[0].backend, *slash = strrchr(trial->save, '/');
    char folder[EL_PATH_BYTES] = ".";
    struct stat info;
    if (!*trial->save) return EL_OK;
    if (!el_trial_backend(trial).computes)
        return el_fail(EL_ERR_INVALID, "--save: %s devices compute nothing, so there are no weights: leave it out",
                       backend);
    if (stat(trial->save, &info) == 0 && S_ISDIR(info.st_mode))
        return el_fail(EL_ERR_INVALID, "--save %s: is a directory; give a file in it", trial->save);
    if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash - trial->save) + 1, trial->save);
    const char *name = slash ? slash + 1 : trial->save;
    long most = pathconf(folder, _PC_NAME_MAX) - EL_TEMPORARY_BYTES;
    if (most > 0 && strlen(name) > (size_t)most)
        return el_fail(EL_ERR_INVALID, "--save %.40s...: the name is longer than %ld characters: give a shorter one",
                       name, most);
    return access(folder, W_OK | X_OK) == 0 ? EL_OK : el_fail_errno("--save %s: the folder %s", trial->save, folder);
}

bool el_trial_checkpoint_every(const struct el_trial *trial, int64_t *steps_p, double *seconds_p)
{
    char *end;
    const double value = strtod(trial->checkpoint_every, &end);
    const double unit = !strcmp(end, "s") ? 1 : !strcmp(end, "m") ? 60 : !strcmp(end, "h") ? 3600 : 0;
    if (end == trial->checkpoint_every || !(value > 0 && value < 1e9) || (*end && unit == 0)) return false;
    *steps_p = unit == 0 ? (int64_t)value : 0;
    *seconds_p = value * unit;
    return unit > 0 || (*steps_p >= 1 && (double)*steps_p == value);
}

static enum el_status check_elastic(const struct el_trial *trial)
{
    int least, most, end = 0;
    if (trial->elastic_device && !*trial->elastic)
        return el_fail(EL_ERR_INVALID, "--elastic batch=device: the number of devices does not change: add --elastic");
    if (!*trial->elastic) return EL_OK;
    if (trial->elastic_device && trial->train.global_batch % trial->n_devices != 0)
        return el_fail(EL_ERR_INVALID,
                       "--elastic batch=device: a batch of %" PRId64 " is not the same on %d devices: "
                       "change --batch",
                       trial->train.global_batch, trial->n_devices);
    if (sscanf(trial->elastic, "%d:%d%n", &least, &most, &end) != 2 || trial->elastic[end] || least < 1 || most < least)
        return el_fail(EL_ERR_INVALID, "--elastic %.40s: give MIN:MAX devices, like 3:4", trial->elastic);
    if (trial->n_devices < least || trial->n_devices > most)
        return el_fail(EL_ERR_INVALID, "--elastic %.40s: the job begins on %d devices: change one of them",
                       trial->elastic, trial->n_devices);
    if (trial->max_restarts == 0)
        return el_fail(EL_ERR_INVALID, "--elastic: no job is started again: add --checkpoint DIR,restarts=1");
    if (trial->procs != trial->n_devices || el_mode_find(trial->train.mode)->one_process)
        return el_fail(EL_ERR_INVALID, "--elastic: mode %s has not a process for each device here: leave it out",
                       trial->train.mode);
    const char *fixed = trial->train.shares.n ? "shares" : NULL;
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++)
        if (trial->train.mesh[axis] > 0) fixed = "mesh";
    if (!fixed) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--elastic with --%s, which fits one number of devices: leave one of them out",
                   fixed);
}

/* Likewise checkpoints; their folder is made by the campaign. */
static enum el_status check_checkpoints(const struct el_trial *trial)
{
    const char *option = *trial->checkpoint        ? "--checkpoint"
                         : *trial->resume          ? "--resume"
                         : trial->max_restarts > 0 ? "--checkpoint restarts"
                                                   : NULL;
    if (!option) return EL_OK;
    if (!el_trial_backend(trial).computes)
        return el_fail(EL_ERR_INVALID, "%s: %s devices compute nothing, so there is no state: leave it out", option,
                       trial->devices[0].backend);
    if (*trial->resume && *trial->load && !el_checkpoint_is_in(trial->checkpoint, trial->resume))
        return el_fail(EL_ERR_INVALID, "--load with --resume: the checkpoint has the weights: leave one of them out");
    if (!*trial->checkpoint && trial->max_restarts)
        return el_fail(EL_ERR_INVALID,
                       "--checkpoint restarts: there would be nothing to start again from: add a folder");
    if (!*trial->checkpoint) return EL_OK;
    if (strlen(trial->checkpoint) >= EL_CHECKPOINT_DIR_BYTES)
        return el_fail(EL_ERR_INVALID, "--checkpoint ...%s: the path is too long: give one of fewer than %d bytes",
                       el_path_tail(trial->checkpoint), EL_CHECKPOINT_DIR_BYTES);
    int64_t steps;
    double seconds;
    if (!el_trial_checkpoint_every(trial, &steps, &seconds))
        return el_fail(EL_ERR_INVALID, "--checkpoint every=%.40s: give steps, like 20, or a time, like 30s or 5m",
                       trial->checkpoint_every);
    return EL_OK;
}

/* The option that asks for a profile; NULL: none does. */
static const char *asked_by(const struct el_trial *trial)
{
    return *trial->profile ? "--profile" : *trial->trace ? "--trace" : NULL;
}

/* Without --profile as in PyTorch's examples, and one cycle. */
static enum el_status read_schedule(const struct el_trial *trial, struct el_profile_schedule *schedule_p)
{
    return el_profile_schedule_read(*trial->profile ? trial->profile : "wait=1,warmup=1,active=2,repeat=1", schedule_p);
}

bool el_trial_profile(const struct el_trial *trial, struct el_profile_schedule *schedule_p)
{
    return asked_by(trial) && read_schedule(trial, schedule_p) == EL_OK;
}

static enum el_status check_profile(const struct el_trial *trial)
{
    struct el_profile_schedule schedule;
    struct stat info;
    const char *option = asked_by(trial);
    if (!option) return EL_OK;
    EL_TRY(read_schedule(trial, &schedule));
    int64_t needed = el_profile_schedule_steps(&schedule);
    if (!trial->record)
        return el_fail(EL_ERR_INVALID, "%s needs spans, and --no-record keeps none: leave one of them out", option);
    if (trial->train.epochs == 0 && needed > trial->train.steps)
        return el_fail(EL_ERR_INVALID,
                       "%s needs %" PRId64 " measured steps, and at least %" PRId64
                       " are measured: give --steps %" PRId64,
                       option, needed, trial->train.steps, needed);
    if (*trial->trace && stat(trial->trace, &info) == 0 && !S_ISDIR(info.st_mode))
        return el_fail(EL_ERR_INVALID, "--trace %s: is a file; give a folder", trial->trace);
    return EL_OK;
}

enum el_status el_trial_check(unsigned command, struct el_trial *trial)
{
    EL_TRY(check_together(trial));
    EL_TRY(check_inject(command, trial));
    EL_TRY(check_sources(trial));
    EL_TRY(check_save(trial));
    EL_TRY(check_checkpoints(trial));
    EL_TRY(check_elastic(trial));
    return check_profile(trial);
}
