/* A campaign: one command's trials, their repeats, and the run's document. `run` has one trial, `compare` many.
 *
 *     el_campaign_begin(&c, EL_CMD_COMPARE, &options);
 *     el_campaign_measure(&c, true, "TREC");                    launches missing repeats (turns.c)
 *     el_campaign_end(&c); */
#pragma once

#include "bench/campaign/runner.h"
#include "bench/trial/trial.h"

/* Exit statuses: 0 success; 1 a trial failed, is not valid under --strict, or a self-check misses an injection; 2 wrong
 * usage, or something is missing here; 130 interrupted. `regress` adds 3 inconclusive, 4 no matching baseline. `watch`
 * has its command's. */
enum { EL_EXIT_TRIAL = 1, EL_EXIT_USE = 2, EL_EXIT_INTERRUPTED = 130 };

struct el_campaign {
    unsigned command;
    const struct el_options *options;
    const struct el_options *asked; /* as given; NULL: `options` */
    struct el_store store;
    struct el_data_files files; /* made by the campaign */
    size_t checkpoint_existing; /* letters of --checkpoint that were a folder before */
    struct el_trial_set set;
    json_t **repeats;                      /* [trial][repeat]; NULL: missing */
    json_t *trials;                        /* by trial; null: no repeat yet */
    json_t *environment;                   /* of the run */
    json_t *gate;                          /* array; NULL: no gate */
    json_t *run;                           /* as last written */
    int exit_status;                       /* of a command that has printed its result */
    char no_launcher[EL_ERROR_TEXT_BYTES]; /* why trials of several processes cannot be launched here, or "" */
};

/* Call el_runner_catch_signals before, unless another launcher started this process. An --out of compare, scale or
 * imbalance that holds a run: takes its repeats of equal configuration and build. Errors: EL_ERR_INVALID (also if
 * results.json would lose trials of that run), EL_ERR_IO; the folder stays as it was. */
enum el_status el_campaign_begin(struct el_campaign *campaign, unsigned command, const struct el_options *options);
/* Adds the trials of `options`, which include the campaign's. Call el_campaign_end after a failure too. Errors:
 * el_campaign_begin's. */
enum el_status el_campaign_extend(struct el_campaign *campaign, const struct el_options *options);
void el_campaign_end(struct el_campaign *campaign);
/* el_campaign_end without a result: removes what it made except logs. Not for resumed runs. */
void el_campaign_undo(struct el_campaign *campaign);

json_t **el_campaign_repeat(const struct el_campaign *campaign, int trial, int repeat);
/* Steals `document`. Errors: EL_ERR_IO: earlier results stay. */
enum el_status el_campaign_take(struct el_campaign *campaign, int trial, int repeat, json_t *document);
/* Launches missing repeats in turns, with progress on standard error. `gate`: first compares the modes' first steps
 * with the reference. Trials that cannot be launched or are refused become rows with the reason. Interrupted: EL_OK
 * (el_runner_interrupted); no document before the first repeat. `headline`: first line of progress, or NULL. Errors:
 * EL_ERR_IO; repeats are kept. */
enum el_status el_campaign_measure(struct el_campaign *campaign, bool gate, const char *headline);
/* After an interruption, on standard error: whether anything was measured, and `how` to resume, ending with the
 * folder's name. */
void el_campaign_say_interrupted(const struct el_campaign *campaign, const char *how);
/* Order of launches, entries[n_trials * repeats]: each round holds every trial once, in an order drawn by (seed,
 * round), so that drift does not become one mode's effect. */
struct el_plan_entry {
    int trial, repeat;
};
void el_plan_make(int n_trials, int repeats, uint64_t seed, struct el_plan_entry *entries);
/* Writes results.json and the .csv files. */
enum el_status el_campaign_write(struct el_campaign *campaign);
/* 0, EL_EXIT_TRIAL if a trial is not ok, EL_EXIT_USE if one is absent. --strict: suspect trials give EL_EXIT_TRIAL too,
 * with a line on standard error. */
int el_campaign_exit_status(const struct el_campaign *campaign);
