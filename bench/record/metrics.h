/* Metric rows: every figure a record holds, once, as data. How each is measured, and its formula in words, is in
 * docs/metrics.md, which has a row for each (a test compares them).
 *
 * The CSV's header and a session's exact figures come from these rows. A row knows where its figure lies in the record;
 * it computes nothing.
 */
#pragma once

#include <jansson.h>

enum el_better { EL_BETTER_HIGHER, EL_BETTER_LOWER, EL_BETTER_NEITHER };
enum el_metric_of { EL_METRIC_OF_TRIAL, EL_METRIC_OF_DEVICE };

struct el_metric {
    const char *name; /* with its unit: the CSV's column */
    const char *unit;
    enum el_better better;
    enum el_metric_of of;
    const char *path; /* in the trial's, or the device's, part of the record */
};

/* Ended by a row whose name is NULL. Trial metrics first. */
const struct el_metric *el_metric_list(void);
/* NAN: not measured. `device` is an entry of the trial's per_device[], or NULL. */
double el_metric_value(const struct el_metric *metric, const json_t *trial, const json_t *device);
const char *el_better_text(enum el_better better); /* "higher", "lower", "-" */
