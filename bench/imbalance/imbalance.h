/* `evenload imbalance`: each card's memory, time and bytes sent, and the parts of the difference between the first and
 * the others, from a run's document:
 *
 *     el_imbalance_preset("adam", &options);              optional: a published configuration
 *     el_imbalance_predict(&set, &run);                  --dry-run: such a document by forecast
 *     el_imbalance_print(run, stdout);                    or el_imbalance_document(run, ...), for --json
 *     el_figure_imbalance                                 for el_plot_figures
 *
 * Units: bytes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/plot/data_file.h"
#include "bench/trial/trial.h"

/* A row of a published table of two cards, MiB in nvidia-smi. */
struct el_published {
    const char *mode; /* NULL ends them */
    int batch;        /* global */
    double first_mib, second_mib;
};

/* A published or reported configuration. */
struct el_imbalance_preset {
    const char *name;
    const char *reported;                 /* the source */
    const char *says;                     /* the source's claim */
    const char *words;                    /* options of `imbalance` */
    const struct el_published *published; /* NULL: no table to reproduce */
};
/* Ends with a NULL name. */
const struct el_imbalance_preset *el_imbalance_presets(void);
/* Sets the preset's options over the defaults. Errors: EL_ERR_INVALID (unknown, with a suggestion). */
enum el_status el_imbalance_preset(const char *name, struct el_options *options);

/* A run's document with forecast memory; each verdict is "predicted", unknown values are null. Errors:
 * el_trial_forecast's. */
enum el_status el_imbalance_predict(const struct el_trial_set *set, json_t **run_p);
/* Whether the host's memory suffices for each trial. Errors: EL_ERR_ABSENT with the required amount. */
enum el_status el_imbalance_check_memory(const struct el_trial_set *set);

/* Whether a trial has several devices with memory by tag. */
bool el_imbalance_has_cards(const json_t *trial);
/* Sum of the tags' own peaks without workspace, as under a caching allocator. NAN: not recorded. */
double el_imbalance_highs(const json_t *device);
enum { EL_SENTENCE_BYTES = 1024 };
/* The first card's extra memory by tag, in a sentence; names the number of devices if `trials` differ in it. */
void el_imbalance_sentence(const json_t *trials, const json_t *trial, char text[EL_SENTENCE_BYTES]);
/* All trials' sentences, even ones of a mode and number of devices together, and the change with the batch. */
void el_imbalance_explain(const json_t *trials, FILE *out);

/* ---- ranks.c: time and bytes by device, with causes (docs/imbalance.md) ---- */

/* {"ranks", "blame", "longest"}; null: not recorded, or one device. NULL: no memory. New reference. */
json_t *el_imbalance_time(const json_t *trial);
/* routing.c: where tokens of a mixture of experts went; null: no routers, or not known. New reference. */
json_t *el_imbalance_routing(const json_t *trial);
/* Rows that a device's experts compute in a step, over layers; NAN: unknown. */
double el_imbalance_rows(const json_t *devices, const json_t *device);
/* `trials`: el_imbalance_document's. */
void el_imbalance_put_routing(const json_t *trials, FILE *out);
/* Experts and steps, and each rank's rows; the document is a run's. */
extern const struct el_figure el_figure_routing;

/* The largest sender: {"rank", "sent_ratio", "sentence", "cause"}, all but the ratio null if all send as much; null if
 * nothing is sent. New reference. */
json_t *el_imbalance_bytes(const json_t *trial);

/* ---- solve.c: shares that balance time or memory ---- */

enum { EL_SOLVE_ROUNDS = 2, EL_SOLVE_DEVICES = 16 };
struct el_solution {
    bool memory; /* minimizes the highest peak; else the slowest device's time */
    int n;
    char shares[EL_SOLVE_ROUNDS][EL_MODE_TEXT_BYTES]; /* so far; each from the earlier measurements */
    int64_t samples[EL_SOLVE_DEVICES];                /* of the last shares */
    double optimum; /* ms per step, or bytes of the highest peak, by measured speeds or forecast */
};
/* Whether a trial with equal shares can be solved. Errors: EL_ERR_INVALID. */
enum el_status el_solution_check(const struct el_trial *equal);
/* Appends the next shares to measure; *found_p false: none are better, or measured already. `trials`: with equal shares
 * and with those so far. */
enum el_status el_solution_next(struct el_solution *s, const struct el_trial *equal, const json_t *trials,
                                bool *found_p);
/* Fields: docs/imbalance.md. New reference. */
json_t *el_solution_document(const struct el_solution *s, const json_t *trials);

/* 110 columns. */
void el_imbalance_print(const json_t *run, FILE *out);
/* The preset's source beside the trials: {source, says, rows[]}; null without a preset. New reference. */
json_t *el_imbalance_published(const json_t *run, const char *preset);
/* The same as a table and a sentence; 100 columns. Nothing without a preset. */
void el_imbalance_put_published(const json_t *run, const char *preset, FILE *out);
/* --json's document (docs/imbalance.md). `preset` and `dir` may be NULL. New reference. */
json_t *el_imbalance_document(const json_t *run, const char *preset, const char *dir);
/* The document is a run's. */
extern const struct el_figure el_figure_imbalance;
