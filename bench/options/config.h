/* What the user asked for: the command line as parsed, lists and all. Rows in rows.c feed parser, defaults, help,
 * suggestion for a typo and the echo in the record. */
#pragma once

#include <jansson.h>

#include "bench/base/io.h"
#include "runtime/comm/comm.h"
#include "runtime/device/device.h"
#include "runtime/modes/mode_info.h"
#include "runtime/train/train.h"

enum { EL_LIST_MAX = 32, EL_LISTS_MAX = 12, EL_LIST_BYTES = 256, EL_OPTIONS_MAX = 240 };

/* Who starts the ranks of a trial. */
enum el_launcher { EL_LAUNCHER_AUTO, EL_LAUNCHER_MPIRUN, EL_LAUNCHER_OWN };
enum el_launching { EL_LAUNCH_AUTO, EL_LAUNCH_SELF, EL_LAUNCH_RANK };

/* A device as named on the command line: "2" is cpu:0,cpu:1; "null:3" three null devices; "cpu:0,cpu:0" a list by
 * index. Lists have room for EL_MEMBERS_MAX: simulated ones behind these are counted on. */
struct el_device_name {
    char backend[16];
    int index;
};
static inline struct el_device_name el_nth_device(const struct el_device_name *list, int i)
{
    struct el_device_name name = list[i < EL_MEMBERS_MAX ? i : 0];
    if (i >= EL_MEMBERS_MAX) name.index = i;
    return name;
}

/* What only `regress` takes, and `baseline add` where it launches a program. */
struct el_regress_options {
    char ab[EL_PATH_BYTES]; /* the base's command; the head's is `dir` */
    char baseline[EL_PATH_BYTES], current[EL_PATH_BYTES];
    char from[EL_PATH_BYTES], name[EL_PATH_BYTES], prepare[EL_PATH_BYTES]; /* with baseline add too */
    char metrics[EL_PATH_BYTES], exact[EL_PATH_BYTES], higher[EL_PATH_BYTES], lower[EL_PATH_BYTES];
    char junit[EL_PATH_BYTES], markdown[EL_PATH_BYTES];
    double budget_s; /* negative: none */
    double min_effect_pct;
    int blocks, max_samples, launches;
    bool add;                                /* to the store */
    enum { EL_OF_MEDIAN, EL_OF_SLOWEST } of; /* what a launch prints several times */
    enum { EL_INCONCLUSIVE_TELL, EL_INCONCLUSIVE_PASS, EL_INCONCLUSIVE_FAIL } inconclusive;
    bool github;
};

/* What only `comm` takes; enums by place among their row's choices. */
struct el_wire_options {
    int64_t min_bytes, max_bytes, step_bytes; /* step 0: sizes grow by `factor` */
    int factor, iters, warmup, check, aggregate, cycles;
    int threads, gpus;                /* devices: both together, in one process; 1 and 1: --devices says */
    enum el_dtype dtype;              /* EL_DTYPE_COUNT: each */
    enum el_comm_reduction reduction; /* EL_COMM_REDUCTION_COUNT: each that the type has */
    char root[EL_PATH_BYTES];         /* a rank's number, or "all" */
    int blocking;                     /* nccl-tests' -z */
    int overlap;                      /* 1: beside a computation too */
    int average;                      /* of ranks: 0 the first one's, 1 mean, 2 least, 3 most */
    char algorithms[EL_PATH_BYTES];   /* "auto", "all", or a list */
    char group[EL_PATH_BYTES];        /* which ranks are together; "": all */
    bool csv;
    char from[EL_PATH_BYTES]; /* files to read in place of a measurement; "": none */
};

/* What only `fleet` takes. */
struct el_fleet_options {
    double soak_s; /* 0: none */
    double wait_s, budget_s, floor_pct;
    int rounds; /* of pairs between hosts; 0: as many as the budget has time for */
    char prometheus[EL_PATH_BYTES];
};

/* In ascending order, each once. */
struct el_number_list {
    int v[EL_LIST_MAX], n;
};

/* The values that one option was given, as text. */
struct el_option_list {
    const struct el_option_row *row;
    char text[EL_LIST_BYTES];
};

/* From one number to another; zeros: not given. */
struct el_spread {
    int64_t shortest, longest;
};

/* What a trial has as it was given: fields of el_options, and of el_trial. */
#define EL_SETTINGS                                                                                                    \
    int64_t device_mem_bytes; /* 0: no limit */                                                                        \
    int beside;               /* single: further devices that train the same at the same time, unmeasured */           \
    double timeout_s;                                                                                                  \
    char data[EL_PATH_BYTES], test[EL_PATH_BYTES];                                                                     \
    char load[EL_PATH_BYTES], save[EL_PATH_BYTES];         /* weights; "": none */                                     \
    char checkpoint[EL_PATH_BYTES], resume[EL_PATH_BYTES]; /* folders; "": none */                                     \
    char elastic[EL_PATH_BYTES];                           /* "3:4"; "": always as many devices */                     \
    bool elastic_device;                                   /* a device's batch stays, else the global one */           \
    char checkpoint_every[EL_PATH_BYTES];                  /* "20" steps, "30s" */                                     \
    int64_t checkpoint_keep;                                                                                           \
    bool checkpoint_async;                                                                                             \
    int max_restarts;                                                                                                  \
    char profile[EL_PATH_BYTES], trace[EL_PATH_BYTES]; /* which steps (el_trial_profile), and a folder; "": none */    \
    bool record, tf32;                                                                                                 \
    bool in_files;            /* samples stay in their files */                                                        \
    struct el_spread lengths; /* of made-up sentences, in words */                                                     \
    enum el_launcher launcher;                                                                                         \
    char comm[16];               /* between processes: "auto", "mpi", "shm", "tcp", "nccl"; of comm also "local" */    \
    char costs[EL_PATH_BYTES];   /* folders of records of `comm` and `run`; "": none */                                \
    char machine[EL_PATH_BYTES]; /* of simulated devices: a file or a name; "": the default */                         \
    char inject[EL_PATH_BYTES];  /* injected disturbances (el_inject_parse); "": none */
struct el_settings {
    EL_SETTINGS
};

/* How a run's pictures are drawn. */
struct el_plot_look {
    bool term;       /* also as text to standard output */
    bool untitled;   /* a paper has captions */
    double width_pt; /* 0: each as wide as it needs */
};

struct el_options {
    union {
        struct {
            EL_SETTINGS
        };
        struct el_settings settings;
    };
    char modes[EL_LIST_MAX][16];
    int n_modes;
    struct el_device_name devices[EL_MEMBERS_MAX];
    int n_devices;           /* 0: not given */
    bool one_gpu;            /* they were given as "cuda:1", which others take for GPU 1 */
    int procs;               /* 0: the mode's own choice, by its layout */
    char counts_backend[16]; /* scale: the backend of `counts`, the numbers of devices */
    int counts[EL_LIST_MAX];
    int n_counts;                /* 0: not given, trials take `devices` */
    struct el_number_list sizes; /* plan: numbers of devices; scale: those to predict */
    bool weak, strong;
    int64_t batches[EL_LIST_MAX];
    int n_batches;
    bool batch_is_per_device;
    double bucket_mib, first_bucket_mib; /* negative: not given */
    struct el_train_config train; /* everything that is the same for all trials; sizes of 0 are not yet resolved */
    struct el_option_list lists[EL_LISTS_MAX]; /* lists.c: options with several values, a trial for each combination */
    int n_lists;
    int repeats;
    char mesh[EL_PATH_BYTES];                               /* "dp=2,pp=2"; "": not given */
    char of_modes[EL_MODE_OPTIONS_MAX][EL_MODE_TEXT_BYTES]; /* as given, by place among el_mode_options */
    int sort;                                               /* of the table by op: its column */
    bool hook, live;                                        /* watch: in Python; a table while it runs */
    char hosts[EL_PATH_BYTES];                              /* watch: "N" or "I/N"; "": one */
    char merge[EL_PATH_BYTES], without[EL_LIST_BYTES];      /* trace-stats; "": none */
    char out[EL_PATH_BYTES];                                /* "": results/<time>-<command> */
    double interval_ms;                                     /* between two looks of watch */
    bool plot, wait_all, draw;
    int command_at;                                /* place in argv of the command of watch; 0: none */
    char kill[EL_PATH_BYTES], stop[EL_PATH_BYTES]; /* recover: as given; "": none */
    double mtbf_s;                                 /* negative: not given */
    char params[EL_PATH_BYTES];                    /* plan: a number of parameters, as given; "": none */
    bool quick;                                    /* verify: each mode, model and optimizer once */
    bool pairs;                                    /* verify: every two values of two options */
    bool disturb;                                  /* verify: planted disturbances */
    struct el_plot_look look;
    bool json, quiet, dry_run, strict;
    bool help, help_all, version;
    enum el_launching launch;
    struct el_regress_options regress;
    struct el_wire_options wire;
    struct el_fleet_options fleet;
    char preset[EL_PATH_BYTES];                                                       /* of imbalance; "": none */
    enum { EL_SOLVE_NONE, EL_SOLVE_TIME, EL_SOLVE_MEMORY, EL_SOLVE_PLACEMENT } solve; /* likewise: to even out what */
    char dir[EL_PATH_BYTES];   /* the argument that is no option: a run's folder */
    char other[EL_PATH_BYTES]; /* the argument behind `dir`: explain's second record */
    char action[16];           /* the one before it, of a command that has several: baseline's; comm's operation */
    char store[EL_PATH_BYTES]; /* a stored baseline's folder */
    bool force;
    bool given[EL_OPTIONS_MAX]; /* on the command line, by the row's place; ask el_option_given */
    int argc;                   /* the user's command line from the subcommand on */
    char **argv;
};
