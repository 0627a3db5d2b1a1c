/* Trials: options resolved into configurations, each with an id, and back into a command line.
 *
 *     el_trials_resolve(EL_CMD_COMPARE, &options, &set);      opens the data once, to know words and classes
 *     set.trials[0 .. set.n - 1], set.dataset;
 *     el_trial_options(&trial, &options);                            the options of `evenload run` for this one
 *     el_trials_free(&set);
 *
 * A worker is given such a command line and resolves it again: there is one way from words to a trial.
 */
#pragma once

#include "bench/options/config.h"
#include "profiles/op_table.h"
#include "runtime/comm/share.h"
#include "runtime/train/forecast.h"

enum { EL_TRIAL_ID_BYTES = 17 };

/* One configuration to be measured. */
struct el_trial {
    char id[EL_TRIAL_ID_BYTES]; /* hash of the resolved configuration and of the build: 16 hex digits */
    struct el_train_config train;
    struct el_model_config given; /* the sizes as the user gave them; 0: the model's or the data's own */
    struct el_device_name devices[EL_MEMBERS_MAX]; /* read by el_nth_device */
    int n_devices;
    int procs; /* resolved: 1, or as many as devices */
    bool batch_is_per_device;
    char chosen[96]; /* of options with lists, what distinguishes it from other trials: "bf16 micro 8" */
    bool characters; /* resolved: el_dataset_splits_characters */
    union {
        struct {
            EL_SETTINGS
        };
        struct el_settings settings;
    };
    char of_modes[EL_MODE_OPTIONS_MAX][EL_MODE_TEXT_BYTES]; /* as given; what the mode has of them is in `train` */
    const struct el_checkpoint *from;                       /* of --resume; NULL: it begins at step 0 */
};

struct el_trial_set {
    struct el_trial *trials; /* batches outer, then modes, then lists of values, then counts of devices */
    int n;
    struct el_dataset *dataset;
    struct el_safetensors *weights; /* of --load, which the trials' configurations point to; or NULL */
    char drawn[512];                /* "8 of 9 arrays of the model are not in w.st and are drawn: a, b"; "": none */
    struct el_checkpoint *resume;   /* of --resume, likewise */
};

/* Writes nothing. Errors: EL_ERR_INVALID or EL_ERR_IO in one line, naming the option to change. */
enum el_status el_trials_resolve(unsigned command, const struct el_options *options, struct el_trial_set *set_p);
void el_trials_free(struct el_trial_set *set);

/* Names it anew, by all that it is and this build, but for what a restart changes. */
void el_trial_identify(struct el_trial *trial);
/* Memory of each device [n_devices] by the schedule that would run, with the kernels of the trial's backend: no step is
 * run, no memory taken. Errors: EL_ERR_INVALID, EL_ERR_ABSENT (GPUs' kernels were not built). */
enum el_status el_trial_forecast(const struct el_trial *trial, struct el_memory_forecast *forecasts_p);

/* The trial's configuration in a mode, with what was given of its options. Errors: EL_ERR_INVALID. */
enum el_status el_trial_use_mode(const struct el_trial *trial, const char *mode, struct el_train_config *config);

/* How often it writes a checkpoint: in steps, or (0 steps) in seconds. false: --checkpoint every is neither. */
bool el_trial_checkpoint_every(const struct el_trial *trial, int64_t *steps_p, double *seconds_p);
/* Options of `run` that resolve to this trial. */
void el_trial_options(const struct el_trial *trial, struct el_options *options_p);
/* What its devices are. */
struct el_backend_facts el_trial_backend(const struct el_trial *trial);
/* Tokens that a sample counts in throughput; 0: the model is of no tokens, and a sample is one. */
int64_t el_trial_tokens(const struct el_trial *trial);
/* ["cpu:0", "cpu:1"]. New reference. */
json_t *el_trial_device_names(const struct el_trial *trial);
/* "evenload run --mode ddp ...". */
enum el_status el_trial_command(const struct el_trial *trial, char *text, size_t bytes);

/* Whether --profile or --trace was given; then the steps that are wanted. The trial has been checked. */
bool el_trial_profile(const struct el_trial *trial, struct el_profile_schedule *schedule_p);
/* `--inject wire=2,delay=1:20`, from the command line to devices; docs/trust.md says what each disturbance does.
 * `injects` is [n_devices], written only on success; "" injects nothing. Errors: EL_ERR_INVALID naming the item. */
enum el_status el_inject_parse(const char *text, int n_devices, struct el_inject *injects);
/* Takes the kill, stop or come that is first out of such a text. false: it has none. */
bool el_inject_drop_first_fall(char *text);

/* ---- which devices a run takes when none were named, and whether those that were named are there ---- */

/* All GPUs that this process sees, in CUDA's order; where there are none, two CPU devices. `devices` has
 * EL_MEMBERS_MAX entries. Errors: EL_ERR_ABSENT (there is a driver, and it fails). */
enum el_status el_devices_default(struct el_device_name *devices, int *n_p);
/* The same for a job's ranks, one device each: GPUs where any rank sees one, of each rank the one with its number on
 * its host, or the only one where every rank of the host sees one of its own. Fills devices[0 .. size). Collective.
 * Errors: EL_ERR_ABSENT (a rank's driver fails, or ranks see the same one card), the bootstrap's. */
enum el_status el_devices_of_ranks(struct el_bootstrap *bootstrap, struct el_device_name *devices);
/* What a rank sees, for the others, and the index of its card by it. `ranks`: of ranks 0 to `rank` at least. Errors:
 * EL_ERR_ABSENT (an earlier rank sees the same one card). */
struct el_devices_seen {
    int gpus;
    char only[EL_DEVICE_UUID_BYTES]; /* of the card, where it is the only one; "" or "-": not known */
    char host[EL_HOST_IDENTITY_BYTES];
};
enum el_status el_devices_card(const struct el_devices_seen *ranks, int rank, int *index_p);
/* Before anything is begun: the backend can be used here and has all these devices. n_devices 0 is legal.
 * Errors: EL_ERR_ABSENT with what is missing. */
enum el_status el_devices_check(const struct el_device_name *devices, int n_devices);

/* ---- between the files of this room ---- */

/* What was given of a mode's option. */
char *el_given_of_modes(char of_modes[EL_MODE_OPTIONS_MAX][EL_MODE_TEXT_BYTES], const char *name);
struct el_trial_choice {
    int batch, mode, count;              /* places in the options' lists */
    const struct el_model_config *model; /* resolved */
    const struct el_safetensors *weights;
};
/* Errors: EL_ERR_INVALID naming the option to change. */
enum el_status el_trial_resolve(unsigned command, const struct el_options *options,
                                const struct el_trial_choice *choice, struct el_trial *trial);
/* That its communicator can serve its devices, by its launcher. Errors: EL_ERR_INVALID, EL_ERR_ABSENT (no NCCL). */
enum el_status el_trial_check_comm(const struct el_trial *trial);
/* All that can be said of a resolved trial, but for its model, mode and batch. A disturbance that has no place in it
 * may be left out. Errors: EL_ERR_INVALID or EL_ERR_IO naming the option. */
enum el_status el_trial_check(unsigned command, struct el_trial *trial);

/* The sizes that a user gave go with the model; then all sizes, and the data, open, which the caller closes. After an
 * error nothing is open. Errors: EL_ERR_INVALID names the option or the file. */
enum el_status el_sizes_check(const struct el_model_config *given);
enum el_status el_sizes_check_taken(const struct el_options *options);
enum el_status el_sizes_resolve(const struct el_options *options, struct el_model_config *model_p,
                                struct el_dataset **dataset_p);
