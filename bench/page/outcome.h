/* What a run comes to, as a report's lines: how its trials ended, sentences, what failed, warnings. */
#ifndef EL_BENCH_OUTCOME_H
#define EL_BENCH_OUTCOME_H

#include <jansson.h>
#include <stdio.h>

#include "runtime/base/status.h"

struct el_outcome {
    char *verdict;   /* "9 trials: 6 valid, 3 suspect" */
    char *sentences; /* each begins with "* " */
    char *failed;    /* each begins with "! " */
    char *warnings;
};

/* Errors: EL_ERR_HOST_MEMORY. To be ended by el_outcome_end, also then. */
enum el_status el_outcome_of(const json_t *run, struct el_outcome *outcome_p);
void el_outcome_end(struct el_outcome *outcome);

void el_outcome_html(const struct el_outcome *outcome, FILE *out);

#endif
