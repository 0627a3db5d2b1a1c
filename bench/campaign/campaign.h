/* A campaign: the trials of one command, their repeats as they come in, and the run's document made of them. `run` has
 * one trial, `compare` many; both write the same files.
 *
 *     el_campaign_begin(&c, EL_CMD_COMPARE, &options);          folder, trials, room for repeats
 *     el_campaign_measure(&c, true, "TREC");                    launches what is not there yet (turns.c)
 *     el_campaign_end(&c);
 */
#pragma once

#include "bench/campaign/runner.h"
#include "bench/trial/trial.h"

/* What the program ends with: 0 success; 1 a trial did not finish (its row says why) or is not valid under --strict, or
 * a self-check misses what was injected; 2 wrong usage, or something is missing on this machine; 130 interrupted.
 * `regress` has two more: 3 inconclusive, 4 no baseline that fits. `watch` has the exit status of its command. */
enum { EL_EXIT_TRIAL = 1, EL_EXIT_USE = 2, EL_EXIT_INTERRUPTED = 130 };

struct el_campaign {
    unsigned command;
    const struct el_options *options;
    const struct el_options *asked; /* as they were given; NULL: `options` */
    struct el_store store;
    struct el_data_files files; /* that it made */
    size_t checkpoint_existing; /* letters of --checkpoint that were a folder before */
    struct el_trial_set set;
    json_t **repeats;                      /* [trial][repeat]; NULL: not there yet */
    json_t *trials;                        /* each one's document; null: no repeat is there yet */
    json_t *environment;                   /* of the run */
    json_t *gate;                          /* array; NULL: no gate */
    json_t *run;                           /* the document, as last written */
    int exit_status;                       /* of a command that has shown it */
    char no_launcher[EL_ERROR_TEXT_BYTES]; /* why trials of several processes cannot be launched here; "": they can */
};

/* Who launches catches signals before (el_runner_catch_signals), lest one leave a folder behind without a word; a rank
 * of somebody else's launcher does not. Where the --out of compare, scale or imbalance holds a run already, its repeats
 * are taken, those of the same configuration and build. Errors: EL_ERR_INVALID
 * (also where that run has trials that this one has not, for results.json would lose them; the folder is left as it
 * was), EL_ERR_IO; an empty folder it made is gone again. */
enum el_status el_campaign_begin(struct el_campaign *campaign, unsigned command, const struct el_options *options);
/* With these options, whose trials are the campaign's and more. What was measured stays. After a failure too it is to
 * be ended. Errors: el_campaign_begin's. */
enum el_status el_campaign_extend(struct el_campaign *campaign, const struct el_options *options);
void el_campaign_end(struct el_campaign *campaign);
/* The same of one that came to no result: what it made is gone again, but for logs. Not of one that goes on with an
 * earlier run. */
void el_campaign_undo(struct el_campaign *campaign);

json_t **el_campaign_repeat(const struct el_campaign *campaign, int trial, int repeat);
/* Steals `document`. Errors: EL_ERR_IO: earlier results stand. */
enum el_status el_campaign_take(struct el_campaign *campaign, int trial, int repeat, json_t *document);
/* Launches every repeat that is not there yet, in turns, with progress on standard error; with `gate` the modes' first
 * steps are compared with the reference before. A trial that cannot be launched, or that the gate refuses, is a row
 * that says so. Ends early, and well, where it is interrupted (el_runner_interrupted); before the
 * first repeat that leaves no document. `headline`: the first line of
 * progress, or NULL for none. Errors: EL_ERR_IO; what was measured is kept. */
enum el_status el_campaign_measure(struct el_campaign *campaign, bool gate, const char *headline);
/* On standard error, after such an end: whether anything was measured, and `how` to go on, which the folder's name
 * ends.
 */
void el_campaign_say_interrupted(const struct el_campaign *campaign, const char *how);
/* The order of execution, entries[n_trials * repeats]: every trial once a round, in an order drawn anew for each round
 * by (seed, round), so that a drift of the machine does not become one mode's effect. */
struct el_plan_entry {
    int trial, repeat;
};
void el_plan_make(int n_trials, int repeats, uint64_t seed, struct el_plan_entry *entries);
/* Makes the document of all repeats so far and writes results.json and the .csv files. */
enum el_status el_campaign_write(struct el_campaign *campaign);
/* 0, or EL_EXIT_TRIAL where a trial's status is not ok, EL_EXIT_USE where one is absent. With --strict a suspect trial
 * is EL_EXIT_TRIAL too, and a line on standard error says so. */
int el_campaign_exit_status(const struct el_campaign *campaign);
