/* Tables and sentences of a run, from its document (results.json) alone. Sections without data print nothing. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/base/table.h"
#include "bench/record/metrics.h"
#include "bench/stats/stats.h"
#include "runtime/base/probe.h"

/* All tables below except the one by op. */
void el_report_tables(const json_t *run, FILE *out);
/* A row per trial, then a line per device; 100 columns. */
void el_report_table(const json_t *run, FILE *out);

/* Columns of trials (context: all of them), of a trial's devices, and of communication. */
extern const struct el_column el_report_trial_columns[], el_report_device_columns[];
/* The same for trials over tokens, and whether there are any (`tokens_per_sample`). */
extern const struct el_column el_report_token_columns[];
bool el_report_of_tokens(const json_t *trials);
extern const struct el_column el_report_step_columns[], el_report_comm_columns[];

/* Whether the table of steps shows its devices; and rows of el_report_comm_columns with `slowest` (bool) and, on the
 * slowest, `busbw_gb_per_s`. New reference. */
bool el_report_communicates(const json_t *trial);
json_t *el_report_comm_rows(const json_t *trial);

/* "valid", "suspect", "unchecked", "simulated". Borrowed. */
const char *el_report_verdict(const json_t *trial);

/* Whether it finished; else prints `head` and "status: reason", wrapped. */
bool el_report_is_ok(const json_t *trial);
void el_report_failed(const json_t *trial, const char *head, const char *rest, FILE *out);
void el_report_mode(const json_t *trial, const json_t *context, char *text);
#define EL_MODE_AND_BATCH EL_SHOWN("mode", -9, el_report_mode), EL_SHOWN("global batch", -14, el_table_batch)

/* Samples/s of `a` over those of `b`, paired by repeat number; *n_p: repeats that finished in both. */
struct el_interval el_report_ratio(const json_t *a, const json_t *b, size_t *n_p);

/* Each warning once with the number of its trials, except rules that begin with `but` ("": none). `trials`: any objects
 * with `warnings` and `warning_rules`. */
void el_report_warnings(const json_t *trials, const char *but, FILE *out);
/* The trial's warning from `rule`; NULL: none. Borrowed. */
const char *el_report_warned(const json_t *trial, const char *rule);
/* The first reason of the trial's verdict; NULL: valid, or simulated without one. Borrowed. */
const char *el_report_doubt(const json_t *trial);

/* Devices (with `device` and `host`) that share a card: copies of the first with summed figures, `card` "sum". New
 * reference, empty if none share. */
json_t *el_report_shared_cards(const json_t *devices);

/* By device from the measured steps; then the cost of communication, from control blocks. */
void el_report_steps(const json_t *run, FILE *out);
/* Costs of padding, and who computes longest when (--lengths pad=batch). */
void el_report_lengths(const json_t *run, FILE *out);
/* A dry run's document (bench/cmd_dry_run.c). */
void el_report_forecast(const json_t *document, FILE *out);
/* Costs of recording (--control record). */
void el_report_recorder(const json_t *run, FILE *out);

/* --profile's tables by op. `sort`: index of the option's choice. */
void el_report_profile(const json_t *run, int sort, FILE *out);

/* FLOP/s beside the rate of matrix products, for trials over tokens or with --machine. Rows: new reference. */
extern const struct el_column el_report_arithmetic_columns[];
json_t *el_report_arithmetic_rows(const json_t *trials);
void el_report_arithmetic(const json_t *run, FILE *out);
/* Epochs: accuracy reached against seconds; token columns for trials over tokens. Rows: new reference. */
extern const struct el_column el_report_epoch_columns[], el_report_token_epoch_columns[];
json_t *el_report_epoch_rows(const json_t *trials);
void el_report_epochs(const json_t *run, FILE *out);

/* For trials with two or more evaluating ranks, and why ranks differ. Rows: new reference. el_report_evaluations prints
 * both. */
extern const struct el_column el_report_rank_columns[];
json_t *el_report_rank_rows(const json_t *trials);
void el_report_say_evaluations(const json_t *trials, FILE *out);
/* Costs of checkpoints, resumption and restarts. */
void el_report_checkpoints(const json_t *run, FILE *out);
void el_report_evaluations(const json_t *run, FILE *out);

/* Memory as the system sees it, process x device, for each mode's largest batch. */
void el_report_processes(const json_t *run, FILE *out);

/* The first device's extra memory, ratios of modes with intervals, differences on a GPU; names missing or failed
 * modes. */
void el_report_sentences(const json_t *run, FILE *out);

/* Name of the axis of a group in `comm.by_group`. Borrowed. */
const char *el_report_axis(const char *group, const json_t *figures);
/* Communication by axis, of the slowest device: {axis: {`sent_bytes`, `total_ms`, `wait_ms`, `exposed_ms`}};
 * el_report_is_cut: there is another axis than data. New references; el_report_axis_list steals its rows. */
extern const struct el_column el_report_axis_columns[];
json_t *el_report_axes_of(const json_t *trial);
bool el_report_is_cut(const json_t *axes);
json_t *el_report_axis_rows(const json_t *trials);
void el_report_axis_list(json_t *rows, FILE *out);
void el_report_axes(const json_t *run, FILE *out);

/* Trials that differ only in bucket size: equal buckets, and a recommendation. */
void el_report_buckets(const json_t *run, FILE *out);
/* Trials that differ only in --comm-hook. */
void el_report_hooks(const json_t *run, FILE *out);
/* Whether two trials differ at most in these configuration fields; `but` ends with NULL. */
bool el_report_are_like(const json_t *a, const json_t *b, const char *const *but);

/* ---- row names ---- */

/* "ddp"; "ddp view": gradients are views of buckets; "ddp 25M": all buckets of 25 MiB; "ddp 1/5M": the first one of 1
 * MiB; nothing for PyTorch's 1 and 25; "dp -replicas": without that cause (--dp-fix); "dp loss": --loss-in replica;
 * "ddp f16": --comm-hook; "dp w2": two loader workers per device; "dp cold": cold page cache. */
void el_table_mode(const json_t *trial, char *text, size_t bytes);

/* "256 (2 x 128)"; uneven shares "65 (33..32)". For a column's `show`. */
void el_table_batch(const json_t *trial, const json_t *context, char *text);

/* Short command line: no folders, no "python3" before a script that is a program (torchrun), no terminal control
 * characters. */
void el_table_command(const char *command, char *text, size_t bytes);

/* ---- the first device's extra memory ----  `per_device`: two devices or more. Parameters and replicas count as one
 * tag. */

/* First item's figure at `path` minus the others' mean; NAN if one is missing. */
double el_excess_of(const json_t *per_device, const char *path);
/* By tag at the devices' peaks; what is not recorded is 0. */
void el_excess_by_tag(const json_t *per_device, double bytes_p[EL_TAG_COUNT]);
struct el_tag_bytes {
    enum el_tag tag;
    double bytes;
};
/* All tags of {tag: bytes}, largest first, whatever their sign; what is not recorded is 0. */
void el_tags_largest(const json_t *tags, struct el_tag_bytes parts_p[EL_TAG_COUNT]);
/* "buckets" for bucket. Static text. */
const char *el_excess_word(enum el_tag tag);
/* "10.4 MiB of optimizer state and 9.9 of gradients, and less 17.1 MiB of activations": tags above a fiftieth of the
 * whole. Returns `text`. */
const char *el_excess_text(const json_t *per_device, char *text, size_t bytes);
