/* Self-check: disturbances of known size, injected on this machine, and what the record says of them.
 *
 *     const struct el_selfcheck_row *row = &el_selfcheck_rows()[i];      what is injected, and in which trial
 *     el_selfcheck_look(row, injected, clean, &finding);                  what was found, from trials' records alone
 *     el_selfcheck_run(&options, &check);                                all of them, launched in fresh processes
 *     document = el_selfcheck_json(&check); el_selfcheck_print(document, stdout);
 *
 * A row's trial is disturbed by --inject; where only a difference tells, its twin runs beside it without. Looking is a
 * pure function of what `evenload run` would have recorded: a check holds options, runtime, recorder and record to a
 * known answer all at once. The tests have closer bounds: tests/cli/{window,injected}.bats.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "bench/options/config.h"

enum { EL_SELFCHECK_ROWS = 5, EL_SELFCHECK_TRIES = 2, EL_SELFCHECK_TEXT_BYTES = 256, EL_SELFCHECK_ARGUMENTS = 28 };

struct el_selfcheck_finding {
    bool ok;      /* in the right place, and within the tolerance */
    double value; /* in the injected value's unit; NAN: none */
    char text[EL_SELFCHECK_TEXT_BYTES];
};

struct el_selfcheck_row {
    const char *name;
    const char *what;                              /* is injected, in words */
    const char *inject;                            /* the same, for --inject */
    double injected;                               /* the value in it */
    double within_pct;                             /* of the injected value */
    bool explained;                                /* by `explain`, in one launch: the record is its document */
    bool twin;                                     /* the trial runs without it too, and the difference tells */
    int n_cores;                                   /* that it takes for the answer to be told */
    const char *skipped;                           /* why not, on fewer */
    const char *arguments[EL_SELFCHECK_ARGUMENTS]; /* of `run`, or `explain`, ended by NULL */
    /* Called by el_selfcheck_look, for trials that ended well; `finding` comes with nothing found. */
    void (*look)(const struct el_selfcheck_row *row, const json_t *injected, const json_t *clean,
                 struct el_selfcheck_finding *finding);
};

/* [EL_SELFCHECK_ROWS]. */
const struct el_selfcheck_row *el_selfcheck_rows(void);

/* A trial's record with the disturbance and its twin's without (NULL where there is none). */
void el_selfcheck_look(const struct el_selfcheck_row *row, const json_t *injected, const json_t *clean,
                       struct el_selfcheck_finding *finding_p);

enum el_selfcheck_state { EL_SELFCHECK_MISSED, EL_SELFCHECK_FOUND, EL_SELFCHECK_SKIPPED };

struct el_selfcheck_result {
    enum el_selfcheck_state state;
    int tries;
    struct el_selfcheck_finding finding; /* of the last try; skipped: text says why */
};

struct el_selfcheck {
    struct el_selfcheck_result results[EL_SELFCHECK_ROWS];
    double seconds;
    double others_pct; /* the highest of all launches; NAN: not known */
    bool by_mpi;       /* ddp's processes are started through mpirun; else by this one */
    char dir[EL_PATH_BYTES];
};

/* Takes `out` and `quiet` of the options. Interrupted (el_runner_interrupted) it ends early. Errors: EL_ERR_INVALID,
 * EL_ERR_IO: nothing can be written. A trial that fails is no error: what it should have shown is missed. */
enum el_status el_selfcheck_run(const struct el_options *options, struct el_selfcheck *check_p);

/* What `selfcheck --json` prints. New reference. */
json_t *el_selfcheck_json(const struct el_selfcheck *check);
bool el_selfcheck_missed(const json_t *document);
/* A line a check, the sum, and where something was missed what to make of it. */
void el_selfcheck_print(const json_t *document, FILE *out);
