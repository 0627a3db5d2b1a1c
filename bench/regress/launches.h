/* Launches of somebody's programs: two interleaved, where a block is one launch of each, in random order, and after so
 * many blocks the cells are judged; or one by itself, for a store of sessions. `regress` and `baseline add` share this.
 *
 *     el_launching_ab(&options, dir, &set);      as the command line says, with progress on standard error; what was
 *     el_launching_from(&options, dir, &set);    launched is kept: DIR/program.json
 *
 * Progress: after the first block what it will take, and whether the budget ends it too early; then on a terminal a
 * line that is written over, elsewhere a line a minute, within a long launch too. Threads: one launching at a time.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/options/config.h"
#include "bench/regress/regress.h"
#include "bench/training/training.h"

struct el_regress_launching {
    const struct el_options *options; /* the commands, which of their figures are judged, and when it ends */
    bool (*go_on)(void);              /* asked about ten times a second; false: interrupted. NULL: always true */
    FILE *out;                        /* for progress; NULL: quiet */
    bool terminal;
    int64_t period_ns; /* between two lines where it is no terminal */
    struct el_python_hook hook;
    /* What has been said so far. */
    int64_t begin_ns, line_ns; /* 0: nothing was launched yet */
    int blocks, next;          /* next: the analysis, or the last launch */
};

/* --ab: until the gate's answer stands, no more samples may come, or it is interrupted. The set's least_effect is the
 * caller's to give. Interrupted (`go_on` false): EL_OK, with whole blocks only and judged as a last analysis. Errors:
 * EL_ERR_INVALID, EL_ERR_TIMEOUT: a launch that failed, by side and block. */
enum el_status el_regress_ab(struct el_regress_launching *launching, struct el_regress_set *set);
/* --from: launches it --launches times and judges nothing: cells without base. Interrupted: those that there
 * are. Errors: as above; EL_ERR_INVALID also where a metric is missing in a launch or changes its unit. */
enum el_status el_regress_launches(struct el_regress_launching *launching, struct el_regress_set *set);
/* Which side a block launches first: 0 base, 1 head. */
int el_regress_first_side(uint64_t seed, int block);

/* ---- from the command line, with progress (progress.c) ---- */

/* They are interrupted by SIGINT, SIGTERM or SIGHUP, which are caught from here on. Interrupted before the first block
 * of --ab, or at all with --from, nothing is kept. --from's cells are kept in `dir`, and only what is not judged comes
 * to `set`. Errors: as above, EL_ERR_IO. */
enum el_status el_launching_ab(const struct el_options *options, const char *dir, struct el_regress_set *set);
enum el_status el_launching_from(const struct el_options *options, const char *dir, struct el_regress_set *set);

/* After a block; and what go_on does about ten times a second. */
void el_regress_progress_block(struct el_regress_launching *launching, const struct el_regress_set *set, int next,
                               double elapsed_s);
void el_regress_progress_wait(struct el_regress_launching *launching);

/* ---- one launch: a command for the shell, as a job of one process (shell.c) ----
 *
 *     spec = (struct el_shell_spec){.command = "python train.py", .timeout_s = 300, .go_on = go_on};
 *     el_shell_run(&spec, &output);         output.text is what it printed; free(output.text)
 *
 * When the command has ended, or has to end, everything that it started is ended too, also where this process is
 * killed. SIGCHLD is set to its default. Standard input is empty. */

struct el_shell_spec {
    const char *command;
    const char *const *environment; /* added "NAME=value", then NULL; may be NULL */
    double timeout_s;
    bool (*go_on)(void); /* asked about ten times a second; false ends the program */
};

struct el_shell_output {
    char *text;     /* owned; of standard output, ended by 0; a 0 within it is a blank */
    bool cancelled; /* by go_on: text is what there was */
    double wall_s, cpu_s;
    int64_t peak_bytes; /* launch.h says of what */
};

/* Blocking. Errors: EL_ERR_INVALID (it ended with another status than 0, or by a signal, or printed more than 16 MiB:
 * with its last lines), EL_ERR_TIMEOUT, EL_ERR_IO (it could not be started). Then text is NULL. */
enum el_status el_shell_run(const struct el_shell_spec *spec, struct el_shell_output *output_p);

/* ---- what it said of itself: metrics read from what it printed (readings.c) ----
 *
 *     el_readings_parse(text, &readings);       lines 'metric value unit', JSON of `evenload run`, and of other tools
 *     el_readings_free(&readings);
 *
 * A metric that was printed several times is one reading, the median; in several units it is none, and `other_unit`
 * says so. Which way is better, and whether a figure has no noise, is said by its unit (a table in readings.c); where
 * that does not say it, the user has to. Of JSON of ours the figures that a gate is for are taken, and others only
 * where they are asked for by name (`extra`). */

struct el_reading {
    char name[EL_CELL_NAME_BYTES], unit[EL_CELL_UNIT_BYTES];
    char other_unit[EL_CELL_UNIT_BYTES]; /* of a later one of this name; the same as `unit`: there is none */
    double value;                        /* NAN: it was said to be none */
    double *values;                      /* owned; all of this name */
    size_t n_values;
    enum el_better better;
    bool directed; /* its unit says which way is better */
    bool exact;    /* its unit says that it has no noise */
    bool extra;
};

struct el_readings {
    struct el_reading *rows; /* owned */
    size_t n;
    bool silent; /* nothing in the text was a metric */
};

/* Errors: EL_ERR_INVALID: nothing in it is a metric, or a name is too long; EL_ERR_HOST_MEMORY. `readings` is to be
 * freed in either case. */
enum el_status el_readings_parse(const char *text, struct el_readings *readings);
/* What is measured of any program, whatever it prints: wall_time, cpu_time and peak_resident, taken where they are
 * asked for by name (`extra`). A program's own metric of that name stays. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_readings_measured(const struct el_shell_output *output, struct el_readings *readings);
/* Of a training with PyTorch: step_ms, the median step; samples_per_s, data_ms and allocated (its GPUs' peak) are taken
 * where they are asked for by name, and so is step_ms where the program prints a figure that can be judged. The
 * program's own metric of that name stays. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_readings_training(const struct el_training *training, struct el_readings *readings);
/* Whether the list names one of these. */
bool el_readings_asks_measured(const char *list);
void el_readings_free(struct el_readings *readings);
/* What a value in one unit of time is in another; 1 for equal units, NAN: not to be converted. */
double el_readings_ratio(const char *from, const char *to);

/* ---- shared by the readers ---- */

struct el_readings_reader {
    struct el_readings *readings;
    json_t *places; /* {name: row}, so that many are found at once */
};
/* The row of that name, a new one where there is none, with one value more. row_p may be NULL. Errors: EL_ERR_INVALID:
 * a name or unit that is too long; EL_ERR_HOST_MEMORY. */
enum el_status el_readings_add(struct el_readings_reader *reader, const char *name, const char *unit, double value,
                               struct el_reading **row_p);
/* JSON of hyperfine, google-benchmark, pytest-benchmark (readings_others.c); others have nothing for it. */
enum el_status el_readings_results(struct el_readings_reader *reader, const json_t *document);
/* A line of Megatron-LM, of Hugging Face's Trainer, or a whole progress bar of tqdm (Lightning). */
enum el_status el_readings_trainer_line(struct el_readings_reader *reader, const char *line);
