/* Options: the command line as rows.
 *
 *     el_options_defaults(EL_CMD_COMPARE, &options);
 *     el_options_parse(EL_CMD_COMPARE, argc, argv, &options);      argv[0] is the subcommand
 *     if (options.help) el_options_help(stdout, row, options.help_all);
 *     echo = el_options_echo(EL_CMD_COMPARE, &options);            what was asked for, for the record
 *
 * A row is name, kind, default, range, choices, help, group and the commands that take it; nothing about an option
 * stands anywhere else. Errors: EL_ERR_INVALID with one line: what, where, what to do.
 */
#pragma once

#include <stdio.h>

#include "bench/options/config.h"

/* The subcommands, in the order of the overview: what its bit, its function el_cmd_... and the user call it. */
/* clang-format off */
#define EL_COMMANDS(X) \
    X(COMPARE, compare, "compare") X(RUN, run, "run") X(MODES, modes, "modes") \
    X(PLOT, plot, "plot") X(REPORT, report, "report") X(IMBALANCE, imbalance, "imbalance") X(SCALE, scale, "scale") \
    X(EXPLAIN, explain, "explain") X(REGRESS, regress, "regress") X(BASELINE, baseline, "baseline") \
    X(WATCH, watch, "watch") X(TRACE_STATS, trace_stats, "trace-stats") X(COMM, comm, "comm") \
    X(VERIFY, verify, "verify") X(DEVICES, devices, "devices") X(MACHINE, machine, "machine") \
    X(PLAN, plan, "plan") X(RECOVER, recover, "recover") X(FLEET, fleet, "fleet")
/* clang-format on */

/* Bits: a row of an option names the commands that take it. */
#define EL_COMMAND_PLACE(bit, function, name) EL_CMD_PLACE_##bit,
#define EL_COMMAND_BIT(bit, function, name)   EL_CMD_##bit = 1 << EL_CMD_PLACE_##bit,
enum el_command_place { EL_COMMANDS(EL_COMMAND_PLACE) EL_CMD_COUNT };
enum el_command_bit {
    EL_COMMANDS(EL_COMMAND_BIT) EL_CMD_ALL = (1 << EL_CMD_COUNT) - 1,
    EL_CMD_OF_MODES = EL_CMD_COMPARE | EL_CMD_RUN | EL_CMD_SCALE | EL_CMD_IMBALANCE | EL_CMD_RECOVER,
    EL_CMD_OF_TRIALS = EL_CMD_OF_MODES | EL_CMD_EXPLAIN /* which has modes, schedules and blocks of its own */
};

enum el_option_kind {
    EL_OPTION_FLAG,    /* bool, set when given */
    EL_OPTION_UNFLAG,  /* bool, cleared when given */
    EL_OPTION_INT,     /* int */
    EL_OPTION_COUNT,   /* int64_t */
    EL_OPTION_SEED,    /* uint64_t */
    EL_OPTION_REAL,    /* double; negative: not given */
    EL_OPTION_SECONDS, /* double, with s, m or h; negative: not given */
    EL_OPTION_POINTS,  /* double, with pt, mm, cm or in */
    EL_OPTION_PERCENT, /* double, with or without a % */
    EL_OPTION_BYTES,   /* int64_t with a suffix */
    EL_OPTION_TEXT,    /* char[EL_PATH_BYTES] */
    EL_OPTION_WORD,    /* char[8], one of the choices */
    EL_OPTION_SWITCH,  /* bool, by place among the two choices */
    EL_OPTION_CHOICE,  /* enum, by place among the choices */
    EL_OPTION_MODES,   /* the lists have their own fields */
    EL_OPTION_MODEL,   /* char[EL_MODEL_NAME_BYTES] */
    EL_OPTION_DEVICES, /* names of devices */
    EL_OPTION_COUNTS,  /* numbers of devices of one backend */
    EL_OPTION_NUMBERS, /* struct el_number_list */
    EL_OPTION_SPREAD,  /* struct el_spread: A-B, or A */
    EL_OPTION_BATCH,   /* global batches */
    EL_OPTION_BATCH_PER_DEVICE,
    EL_OPTION_SIZE,   /* of the model: the row says which */
    EL_OPTION_OF_MODE /* text as given: the mode's row says of what */
};

enum { EL_OPTION_HELP_BYTES = 512 };

struct el_option_row {
    const char *group; /* the heading in --help */
    const char *name;
    const char *argument; /* "N"; NULL for flags */
    enum el_option_kind kind;
    size_t offset; /* in struct el_options */
    unsigned commands;
    const char *help;
    const char *choices; /* "sgd|momentum|adam" */
    const char *initial; /* default, as text, read by the same parser; "": none */
    struct el_option_initial {
        unsigned commands;
        const char *text;
    } otherwise[3];  /* other defaults of some commands; ended by 0 */
    double min, max; /* of numbers */
    const struct el_model_size *size;
    const struct el_mode_option *of_mode;
    char letter;   /* of -b; 0: none */
    bool per_rank; /* ranks of one job may be given different values: where and how this process writes, not what */
    bool common;   /* also in the short help */
};

/* Ended by a row whose name is NULL. Threads: the first call by one of them alone. */
const struct el_option_row *el_option_rows(void);
/* The first of the name, which has so many letters; NULL: there is none. */
const struct el_option_row *el_option_find(const char *name, size_t length);
/* The default of one command. */
const char *el_option_initial(const struct el_option_row *row, unsigned command);

/* ---- options within the value of another one (within.c): --checkpoint DIR,every=5 ---- */

struct el_option_within {
    const char *name, *in, *key; /* checkpoint-every, checkpoint, every */
    bool is_value;               /* the key is a value of the outer option: --precision f64 */
};
/* NULL: it stands by itself. */
const struct el_option_within *el_option_within(const char *name);
/* Whether the command takes it so: one that has not the outer option takes the row under its own name. */
bool el_option_is_within(const struct el_option_row *row, unsigned command);
/* The command's row of that name; NULL: it has none. */
const struct el_option_row *el_option_of_command(unsigned command, const char *name);
/* "--checkpoint every", or "--steps". */
void el_option_called(const struct el_option_row *row, unsigned command, char *text, size_t bytes);
/* For help: "every=WHEN"; "check" of what is a word by itself. */
void el_option_keys(const struct el_option_row *row, char *text, size_t bytes);
/* Appends "|f64|tf32" to the choices of --precision: the words that stand for an option within it. */
void el_option_add_words(const struct el_option_row *row, char *words, size_t bytes);
/* Appends "every=5" to the outer option's value. */
void el_option_write_within(const struct el_option_row *row, const char *value, char *text, size_t bytes);
/* Sets what is within the value `text` of a row; what is left for the row itself goes to `rest`. */
enum el_status el_option_take_within(unsigned command, const struct el_option_row *row, const char *text,
                                     struct el_options *options, char *rest, size_t bytes);

/* Reads `text` into the row's field / writes the field as text that el_option_set would read ("" where not given). */
enum el_status el_option_set(const struct el_option_row *row, const char *text, struct el_options *options);
void el_option_show(const struct el_option_row *row, const struct el_options *options, char *text, size_t bytes);
/* ---- lists of values (lists.c) ---- */

/* el_option_set, or a list of values where the command has several trials. */
enum el_status el_option_take(unsigned command, const struct el_option_row *row, const char *text,
                              struct el_options *options);
/* "25,50"; NULL: it has one value. */
const char *el_option_list(const struct el_options *options, const char *name);
int el_option_combinations(const struct el_options *options);
/* One of the combinations; `chosen`: what tables do not say of it otherwise, as "bf16 micro 8", if the mode has it. */
enum el_status el_option_choose(const struct el_options *options, const char *mode, int place, struct el_options *one_p,
                                char *chosen, size_t bytes);

/* The word of `run`'s option that has this place among its choices. */
enum { EL_CHOICE_BYTES = 32 };
const char *el_option_choice(const char *name, int place, char word[EL_CHOICE_BYTES]);

/* A subcommand: what its help says, and what runs it. */
struct el_command_row {
    unsigned bit;      /* 0: the end of a list */
    const char *group; /* the heading in the overview */
    const char *brief; /* a line of it */
    const char *usage; /* after the name */
    const char *summary;
    const char *examples; /* lines for the end of --help */
    enum el_status (*run)(struct el_options *options, int *exit_status_p);
};

void el_options_defaults(unsigned command, struct el_options *options);
/* Reads over what is there already. Of `watch` all from the first word on that is no option is its command: only its
 * place is taken; of `comm` one word, into `action`. One argument that is no option is taken into `dir`: a folder by
 * plot, by trace-stats, by imbalance, by scale and by baseline (after its action), the second command by regress
 * --ab; explain and trace-stats take two, the second one into `other`. After --help the word `all` may follow. */
enum el_status el_options_parse(unsigned command, int argc, char **argv, struct el_options *options);
/* Whether it stood on a command line that was read into them, be it with its default. */
bool el_option_given(const struct el_options *options, const char *name);
/* The common options and the examples; `all`: every option by group, the modes and the models too. */
void el_options_help(FILE *file, const struct el_command_row *command, bool all);
/* Of a user's own command line (a worker is given every option): EL_ERR_INVALID where one of two options that were
 * given would change nothing. */
enum el_status el_options_check_together(const struct el_options *options);
/* Of a command that was given a folder of records, which have been measured (`dir`): EL_ERR_INVALID naming the first
 * option that says how to measure, or where to. `word`: the command. */
enum el_status el_options_check_records_alone(const char *word, const struct el_options *options);
/* {option: text} of all rows of the command. New reference. */
json_t *el_options_echo(unsigned command, const struct el_options *options);
/* `text` as one word for a shell, in single quotes where it would be more than a word; "" where it does not fit. For
 * EL_PATH_BYTES a word of EL_WORD_BYTES always does. */
enum { EL_WORD_BYTES = 4 * EL_PATH_BYTES + 3 };
const char *el_shell_word(const char *text, char *word, size_t bytes);
/* This program as it was called, as one word for a shell: for the next command that is proposed. */
const char *el_program_word(void);
/* "evenload run --mode ddp ...": what differs from the defaults, quoted for a shell. Errors: EL_ERR_INVALID: too long.
 */
enum el_status el_options_command_line(unsigned command, const struct el_options *options, char *text, size_t bytes);

/* "2", "null:3", "cpu:0,cpu:1" and back. Errors: EL_ERR_INVALID. */
enum el_status el_devices_parse(const char *text, struct el_device_name *devices, int *n_devices_p);
void el_devices_show(const struct el_device_name *devices, int n_devices, char *text, size_t bytes);

/* --mesh dp=2,pp=2: how many devices stand along each axis of a mode (runtime/graph/graph.h); the only reader of its
 * text. `text` "": nothing is given, all are 0. Of the axes that a mode has the first may be left out: it gets the
 * devices that the others leave. Others may be there with 1. n_devices 0: not known yet. */
enum el_status el_mesh_read(const char *text, const struct el_mode_info *mode, int n_devices, int mesh[EL_AXIS_COUNT]);

/* Of these bits the first one's. */
const char *el_command_name(unsigned bits);

/* The environment variables that the program reads. */
void el_variables_help(FILE *file);

/* Names, with a blank between, that other programs have for one of ours: torchrun, accelerate, nccl-tests, PyTorch. */
struct el_foreign_name {
    const char *theirs, *ours;
};
/* Ended by a row whose names are NULL. */
const struct el_foreign_name *el_foreign_names(void);
/* The same of options that are none of ours under any name: `ours` says what to do. */
const struct el_foreign_name *el_foreign_options(void);
/* nccl-tests' flags that `comm` refuses; `ours` says why. */
const struct el_foreign_name *el_nccl_tests_flags(void);

/* The one of `names` (ended by NULL) that `word` means: another program's name for it, or the nearest, a slip of the
 * finger or two away, whatever the case and with _ for -. NULL: none. */
const char *el_suggest(const char *word, const char *const *names);
/* What to do in place of an option that another program takes; NULL: `command` has no word on it. */
const char *el_suggest_instead(unsigned command, const char *option);
/* el_fail(EL_ERR_INVALID): "unknown mode 'dpp': did you mean 'dp'? (single, dp, ddp)". */
enum el_status el_fail_unknown(const char *what, const char *word, const char *const *names);
