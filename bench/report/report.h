/* What a person reads at the end of a run: a table, and three sentences made from its figures.
 *
 * Both are made from the run's document alone (results.json), so that what is printed can be printed again. They
 * compute nothing that is not in the record, except the ratio of two modes and its interval.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/base/table.h"
#include "bench/stats/stats.h"
#include "runtime/base/probe.h"

/* All tables below but that by op. */
void el_report_tables(const json_t *run, FILE *out);
/* A row per trial, then a line per device; 100 columns. */
void el_report_table(const json_t *run, FILE *out);

/* The columns of those tables: of trials, where `context` is all of them, and of a trial's devices; of what
 * communication costs, and of el_report_comm_rows. */
extern const struct el_column el_report_trial_columns[], el_report_device_columns[];
/* Likewise of trials over tokens, and whether these are some: of trials, or rows made of them, with
 * `tokens_per_sample`. */
extern const struct el_column el_report_token_columns[];
bool el_report_of_tokens(const json_t *trials);
extern const struct el_column el_report_step_columns[], el_report_comm_columns[];

/* Whether its devices' time is shown; and the rows of el_report_comm_columns: copies of its devices, with `slowest`
 * (bool) and at the slowest the trial's `busbw_gb_per_s`. New reference. */
bool el_report_communicates(const json_t *trial);
json_t *el_report_comm_rows(const json_t *trial);

/* "valid", "suspect", "unchecked", "simulated": what a trial's times are. Valid as long as the trial. */
const char *el_report_verdict(const json_t *trial);

/* Whether it came to its end; where it did not, `head` and "status: reason", wrapped. */
bool el_report_is_ok(const json_t *trial);
void el_report_failed(const json_t *trial, const char *head, const char *rest, int columns, FILE *out);
void el_report_mode(const json_t *trial, const json_t *context, char *text);

/* Samples a second of `a` over those of `b`, paired by their repeats' numbers: those that finished in both. *n_p: how
 * many did. */
struct el_interval el_report_ratio(const json_t *a, const json_t *b, size_t *n_p);

/* What makes trials suspect, each warning once, with how many trials carry it, but those whose rule's name begins with
 * `but` ("": all). Nothing where there is none. `trials` may be any objects with `warnings` and `warning_rules`. */
void el_report_warnings(const json_t *trials, const char *but, FILE *out);
/* What the rule of that name says of the trial; NULL: nothing. Borrowed. */
const char *el_report_warned(const json_t *trial, const char *rule);
/* Why a sentence may not state the trial's times without a word: the first reason of its verdict. NULL: it is valid, or
 * simulated without one. Borrowed. */
const char *el_report_doubt(const json_t *trial);

/* Of devices (a trial's, or rows made of them, with `device` and `host`) that are on one card: a copy of the first
 * whose figures are the sums over them, `card` "sum". New reference, empty where each has its own. */
json_t *el_report_shared_cards(const json_t *devices);

/* Where a step goes, of trials that communicate: a line per device from the measured steps; then what communication
 * costs, from control blocks. Nothing where there is none. */
void el_report_steps(const json_t *run, FILE *out);
/* What padding costs and who computes longest when, of trials with --lengths pad=batch. Nothing where there is none. */
void el_report_lengths(const json_t *run, FILE *out);
/* Of a dry run's document (bench/cmd_dry_run.c): memory by device and tag, what was assumed, whether it fits, and the
 * predicted step. */
void el_report_forecast(const json_t *document, FILE *out);
/* What recording costs, of trials with --control record. Nothing where there is none. */
void el_report_recorder(const json_t *run, FILE *out);

/* The tables by op of --profile, a device each, in the order of `sort`: its place among the option's choices. Nothing
 * where none was asked for. */
void el_report_profile(const json_t *run, int sort, FILE *out);

/* FLOP/s beside the rate of products: rows of el_report_arithmetic_columns (new reference), of trials over tokens and
 * of those with --machine. */
extern const struct el_column el_report_arithmetic_columns[];
json_t *el_report_arithmetic_rows(const json_t *trials);
void el_report_arithmetic(const json_t *run, FILE *out);
/* Epochs, and what accuracy they reached after how many seconds: rows of these columns (new reference), the latter of
 * trials over tokens. Nothing where no whole epochs were trained. */
extern const struct el_column el_report_epoch_columns[], el_report_token_epoch_columns[];
json_t *el_report_epoch_rows(const json_t *trials);
void el_report_epochs(const json_t *run, FILE *out);

/* What each rank has counted in the evaluation: rows of el_report_rank_columns (new reference), none of trials where
 * fewer than two have evaluated; and a sentence a trial why its ranks differ, where they do. The last: both. */
extern const struct el_column el_report_rank_columns[];
json_t *el_report_rank_rows(const json_t *trials);
void el_report_say_evaluations(const json_t *trials, FILE *out);
/* What checkpoints cost, from where a trial went on, and each restart; nothing where there is none of it. */
void el_report_checkpoints(const json_t *run, FILE *out);
void el_report_evaluations(const json_t *run, FILE *out);

/* Memory as the system sees it, process x device, of each mode's largest batch. Nothing where it was not read. */
void el_report_processes(const json_t *run, FILE *out);

/* What the first device holds more, and of what; dp against ddp with its interval; what differs on a GPU. Where modes
 * are missing or failed the sentence says so. */
void el_report_sentences(const json_t *run, FILE *out);

/* What the axis of a group in `comm.by_group` is called. Borrowed. */
const char *el_report_axis(const char *group, const json_t *figures);
/* Communication by axis, of the slowest device: {an axis: {`sent_bytes`, `total_ms`, `wait_ms`, `exposed_ms`}}; whether
 * there is another axis than data; rows of el_report_axis_columns, none where no trial has another axis. New
 * references; el_report_axis_list takes its rows. */
extern const struct el_column el_report_axis_columns[];
json_t *el_report_axes_of(const json_t *trial);
bool el_report_is_cut(const json_t *axes);
json_t *el_report_axis_rows(const json_t *trials);
void el_report_axis_list(json_t *rows, FILE *out);
void el_report_axes(const json_t *run, FILE *out);

/* Of trials that differ in the size of ddp's buckets alone: which sizes make the same buckets, and which is
 * recommended. Nothing where there are none. */
void el_report_buckets(const json_t *run, FILE *out);
/* Of trials that differ in --comm-hook alone: bytes, throughput and loss against the one without. Nothing where there
 * are none. */
void el_report_hooks(const json_t *run, FILE *out);
/* Whether two trials differ in these fields of their configurations at most; `but` is ended by NULL. */
bool el_report_are_like(const json_t *a, const json_t *b, const char *const *but);

/* ---- what rows are called ---- */

/* "ddp"; "ddp view" where gradients are views of the buckets; "ddp 25M" where all of those are closed at 25 MiB,
 * "ddp 1/5M" where the first one is at 1 MiB, nothing for PyTorch's 1 and 25; "dp -replicas" without that cause
 * (--dp-fix), "dp loss" with the loss in the replicas (--loss-in); "ddp f16" with that hook (--comm-hook); "dp w2" with
 * two loader workers a device, "dp cold" with a cold page cache. */
void el_table_mode(const json_t *trial, char *text, size_t bytes);

/* A column's `show`: "256 (2 x 128)"; uneven shares "65 (33..32)". */
void el_table_batch(const json_t *trial, const json_t *context, char *text);

/* A process's command line as people know it: words without folders, a Python script that is a program of its own
 * (torchrun) without "python3", nothing that a terminal would obey. */
void el_table_command(const char *command, char *text, size_t bytes);

/* ---- what the first device holds more than the others, and what that is made of, in one sentence's words ----
 *
 * `per_device` is a trial's, of two devices or more. A replica stands against the first device's parameters: both are a
 * copy of the model, and count as one. */

/* The first one's figure at `path` minus the mean of the others'; NAN where one has none. Of any array of objects. */
double el_excess_of(const json_t *per_device, const char *path);
/* Of each tag at the devices' own peaks, replicas among the parameters; what is not recorded is 0. */
void el_excess_by_tag(const json_t *per_device, double bytes_p[EL_TAG_COUNT]);
struct el_tag_bytes {
    enum el_tag tag;
    double bytes;
};
/* All tags with their bytes, the largest first. */
void el_tags_by_size(const double bytes[EL_TAG_COUNT], struct el_tag_bytes parts_p[EL_TAG_COUNT]);
/* A tag as a sentence calls it: "buckets" of bucket. Static text. */
const char *el_excess_word(enum el_tag tag);
/* "10.4 MiB of optimizer state and 9.9 of gradients, and less 17.1 MiB of activations": tags that make up more than a
 * fiftieth of the whole. Returns `text`. */
const char *el_excess_text(const json_t *per_device, char *text, size_t bytes);
