/* Verify: every mode must match its row's promise: plain training's losses on one device, or the mean of the ranks'
 * means (runtime/modes/mode_info.h). A *cell* is a mode or one of its variants, with one model, on some devices; it
 * compares all losses in f64 with one optimizer, or the first step's loss and gradients in f32. The reference runs on
 * one CPU device, in f64, by the reference kernels.
 *
 *     el_verify_each(&options, backend, visit, context);      the cells, equal in every process
 *     el_verify_worker(worker);                               a rank: its cells, a line of JSON each
 *     el_verify_judge(lines);  el_verify_print(document, stdout);
 *
 * A cell runs in one process and, if the mode can be split, in several, with equal bits. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "bench/trial/trial.h"
#include "runtime/train/train.h"

enum { EL_VERIFY_FEWEST = 2, EL_VERIFY_MOST = 4 }; /* devices */
/* An optimizer's losses in f64, or f32 and smaller types. */
enum { EL_VERIFY_F32 = EL_OPT_ADAM + 1, EL_VERIFY_KINDS, EL_VERIFY_F64 = EL_VERIFY_KINDS /* by the variant */ };

#define EL_VERIFY_F64_LOSS     1e-7
#define EL_VERIFY_F64_GRADIENT 1e-7

struct el_verify_cell {
    const struct el_mode_info *mode;
    const struct el_model_info *model;
    char variant[768]; /* "--overlap off"; "": none */
    int kind;          /* enum el_optimizer_kind, or EL_VERIFY_F32 */
    int n_devices;
};

/* Writes the sentences for all cells. */
enum el_status el_verify_write_data(const char *path);
/* `options`: of `verify`, with those sentences as data. --quick: one number of devices per mode and model, and one
 * optimizer. Ends early if `visit` fails. */
enum el_status el_verify_each(const struct el_options *options, const char *backend,
                              enum el_status (*visit)(void *context, const struct el_verify_cell *cell), void *context);
bool el_verify_asks_for(const struct el_options *options, const char *mode);
/* --pairs: cells in which every two values of every two options meet (pairs.c); --quick: the first few. close returns
 * the result; NULL is legal. */
struct el_verify_pairs;
typedef enum el_status el_verify_visit(void *context, const struct el_verify_cell *cell);
struct el_verify_pairs *el_verify_pairs_open(const struct el_options *options, const char *backend);
enum el_status el_verify_pairs_each(struct el_verify_pairs *pairs, el_verify_visit *visit, void *context);
json_t *el_verify_pairs_close(struct el_verify_pairs *pairs);
/* The cell's trial in `procs` processes. Errors: el_trials_resolve's; EL_ERR_INVALID says why the mode cannot serve. */
enum el_status el_verify_resolve(const struct el_options *options, const char *backend,
                                 const struct el_verify_cell *cell, int procs, struct el_trial_set *set_p);
/* "sgd", "momentum", "adam", "f32" */
const char *el_verify_kind(int kind);

/* "verify RESULT DATA BACKEND PROCS --option=value ...". RESULT gets an object per line. */
struct el_worker;
enum el_status el_verify_worker(struct el_worker *worker);

/* Fails cells with other bits in several processes than in one. */
void el_verify_judge(json_t *cells);
size_t el_verify_count(const json_t *cells, const char *status); /* "ok", "failed" or "unserved" */
/* Failures, then a line per mode and model, or the result of the pairs or of the disturbances. */
void el_verify_print(const json_t *document, FILE *out);
/* "All 360 checks passed, in 9 s", without full stop or newline. */
void el_verify_say(const json_t *document, FILE *out);
/* A verify.json. */
bool el_verify_is(const json_t *document);

/* --disturb: a disturbance of known size, injected into a `run` (and none into its twin), and how it is looked for. */
enum { EL_FINDING_TEXT_BYTES = 256, EL_DISTURBANCE_ARGUMENTS = 28 };

struct el_finding {
    bool ok;      /* in the right place, and within the tolerance */
    double value; /* in the injected value's unit; NAN: none */
    char text[EL_FINDING_TEXT_BYTES];
};

struct el_disturbance {
    const char *name;
    const char *what;                                /* is injected, in words */
    const char *inject;                              /* the same, for --inject */
    double injected;                                 /* the value in it */
    double within_pct;                               /* of the injected value */
    bool twin;                                       /* the trial runs without it too, and the difference tells */
    int n_cores;                                     /* on fewer it is skipped */
    const char *arguments[EL_DISTURBANCE_ARGUMENTS]; /* of `run`, ended by NULL */
    void (*look)(const struct el_disturbance *row, const json_t *injected, const json_t *clean,
                 struct el_finding *finding);
};

const struct el_disturbance *el_disturbances(void); /* ends with a NULL name */
/* What the trials' records show: an entry of "disturbances" in verify.json. New reference. `clean`: NULL for no twin.
 */
json_t *el_disturbance_look(const struct el_disturbance *row, const json_t *injected, const json_t *clean);
/* Runs all in folders of their own below `dir`; adds to `checks`. Interrupted: EL_OK. Errors: el_campaign_begin's. */
enum el_status el_verify_disturb(const struct el_options *options, const char *dir, json_t *checks);
void el_disturbances_print(const json_t *checks, FILE *out);
