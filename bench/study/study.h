/* Studies of somebody's training with PyTorch: several commands, each launched several times in turns, under watch.
 *
 *     el_study_scale(options, exit_status_p);       scale --devices 1,2,4 -- torchrun --nproc_per_node '{devices}' ...
 *     el_study_compare(options, exit_status_p);     compare one='COMMAND' two='COMMAND'
 *     el_study_print(run, stdout);                  a run's document (results.json) that has "study"
 *
 * A run's document with "study": {"kind": "scale" or "compare", "command": of scale, "rows": [{"name", "devices",
 * "command", "launches", "step_ms": {"median", "mean", "p95"}, "samples_per_s", or "steps_per_s" where a launch has no
 * samples, "ci95", "speedup", "speedup_ci95", "efficiency" and "ideal_ms", "lost_ms" (of scale), "data_ms", "wait_ms",
 * "late" (the blamed rank of most launches, in how many, and where it arises), "peak_bytes", "reason"}]}. Rates are
 * geometric means over launches, ratios to the first row paired by launch, all else medians over launches; data_ms and
 * wait_ms of the mean over the ranks. The rows are the document's trials too.
 *
 * A launch: DIR/repeats/NAME-K.json, {"repeat", "order", "status", "reason", "seconds", "peak_bytes", "training":
 * bench/watch/late.h's}, its output DIR/logs/NAME-K.log. The same command and --out go on with what is missing.
 * Threads: one. Errors: EL_ERR_INVALID, EL_ERR_IO. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "bench/options/config.h"
#include "bench/plot/data_file.h"

enum el_status el_study_scale(const struct el_options *options, int *exit_status_p);
enum el_status el_study_compare(const struct el_options *options, int *exit_status_p);
void el_study_print(const json_t *run, FILE *out);
extern const struct el_figure el_figure_study;

/* ---- between the files ---- */

enum { EL_STUDY_ROWS_MAX = 32, EL_STUDY_NAME_BYTES = 32, EL_STUDY_WORDS_BYTES = 4096 };

struct el_study_row {
    char name[EL_STUDY_NAME_BYTES]; /* of files too */
    int devices;                    /* 0: not asked for */
    char *words[3 + 1];             /* owned; a shell's, NULL-terminated */
};

/* The document's "study", from each row's launches, [row][repeat]; NULL: missing. New reference. */
json_t *el_study_json(const struct el_study_row *rows, int n, const json_t *launches, const char *kind,
                      const char *command);
