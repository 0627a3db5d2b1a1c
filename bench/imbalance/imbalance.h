/* `evenload imbalance`: what each card holds, does and sends, card by card as people publish it, and what the
 * difference between the first and the others is made of. From a run's document alone:
 *
 *     el_imbalance_preset("adam", &options);              optional: a table that was published or reported
 *     el_imbalance_predict(&set, &run);                  --dry-run: such a document by forecast, nothing is run
 *     el_imbalance_print(run, stdout);                    or el_imbalance_document(run, ...), for --json
 *     el_figure_imbalance                                 the figure, for el_plot_figures
 *
 * The record has the measures; nothing is computed here but differences and sums of its figures. Units: bytes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/plot/data_file.h"
#include "bench/trial/trial.h"

/* A row of a published table of two cards: MiB that nvidia-smi showed. */
struct el_published {
    const char *mode; /* NULL: the row that ends them */
    int batch;        /* global */
    double first_mib, second_mib;
};

/* A configuration whose table people publish or report. */
struct el_imbalance_preset {
    const char *name;
    const char *reported;                 /* where */
    const char *says;                     /* what is said there, in words */
    const char *words;                    /* options of `imbalance` */
    const struct el_published *published; /* NULL: no table that this configuration rebuilds */
};
/* Ended by a row whose name is NULL. */
const struct el_imbalance_preset *el_imbalance_presets(void);
/* Sets the preset's options over the defaults. Errors: EL_ERR_INVALID (unknown, with a suggestion). */
enum el_status el_imbalance_preset(const char *name, struct el_options *options);

/* A run's document as the record would have it, with memory by forecast; the verdict of each trial is "predicted", and
 * what only a run tells is null. Errors: those of el_trial_forecast. */
enum el_status el_imbalance_predict(const struct el_trial_set *set, json_t **run_p);
/* Whether the host has memory for each trial's devices. Errors: EL_ERR_ABSENT in one line with what is needed. */
enum el_status el_imbalance_check_memory(const struct el_trial_set *set);

/* Whether a trial has what is shown here: several devices, and their memory by tag. */
bool el_imbalance_has_cards(const json_t *trial);
/* What an allocator that gives nothing back ends up with: each tag's own highest, without the kernels' scratch. NAN:
 * not recorded. */
double el_imbalance_highs(const json_t *device);
enum { EL_SENTENCE_BYTES = 1024 };
/* One sentence of a trial: what the first card holds more than the others, and of what. It names the number of devices
 * where that differs among `trials`, those it stands with. */
void el_imbalance_sentence(const json_t *trials, const json_t *trial, char text[EL_SENTENCE_BYTES]);
/* Those of all trials, even ones of a mode on as many devices in one, and how the difference goes with the batch. */
void el_imbalance_explain(const json_t *trials, FILE *out);

/* ---- ranks.c: time and bytes of the devices beside one another, with causes; fields: docs/imbalance.md ---- */

/* {"ranks", "blame", "longest"}; null: nothing was recorded, or it is one device's. NULL: no memory. New reference. */
json_t *el_imbalance_time(const json_t *trial);
/* Of who sends most: {"rank", "sent_ratio", "sentence", "cause"}, null but for the ratio where all send as much; null
 * where nothing is sent. New reference. */
json_t *el_imbalance_bytes(const json_t *trial);

/* ---- solve.c: shares that even out time or memory ---- */

enum { EL_SOLVE_ROUNDS = 2, EL_SOLVE_DEVICES = 16 };
struct el_solution {
    bool memory; /* the highest device's peak; else the slowest device's time */
    int n;
    char shares[EL_SOLVE_ROUNDS][EL_MODE_TEXT_BYTES]; /* found so far, each from what the earlier ones measured */
    int64_t samples[EL_SOLVE_DEVICES];                /* of the last */
    double optimum; /* ms of a step, or bytes of the highest peak, by the measured speeds or by forecast */
};
/* Whether there can be one for a trial with equal shares. Errors: EL_ERR_INVALID. */
enum el_status el_solution_check(const struct el_trial *equal);
/* The next shares to measure, into `shares` and `n`; *found_p is false where none are better or these have been
 * measured. `trials`: of the run's document, with equal shares and with those found so far. */
enum el_status el_solution_next(struct el_solution *s, const struct el_trial *equal, const json_t *trials,
                                bool *found_p);
/* docs/imbalance.md has its fields. New reference. */
json_t *el_solution_document(const struct el_solution *s, const json_t *trials);

/* The tables, the measures, the sentences; 110 columns. */
void el_imbalance_print(const json_t *run, FILE *out);
/* The preset's source beside the trials of `run`: {source, says, rows[]}; null without a preset. New reference. */
json_t *el_imbalance_published(const json_t *run, const char *preset);
/* The same as a table and a sentence; nothing without a preset. 100 columns. */
void el_imbalance_put_published(const json_t *run, const char *preset, FILE *out);
/* What --json prints: docs/imbalance.md has its fields. `preset` and `dir` may be NULL. New reference. */
json_t *el_imbalance_document(const json_t *run, const char *preset, const char *dir);
/* Bars of the cards, and of what the first holds more; figure_imbalance.c. The document is a run's. */
extern const struct el_figure el_figure_imbalance;
