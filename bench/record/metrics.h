/* Metric rows: name, unit, direction and path of each figure of a record. docs/metrics.md has methods and formulas, a
 * row for each (a test compares them). The CSV's header and a session's exact figures come from these rows. */
#pragma once

#include <jansson.h>

enum el_better { EL_BETTER_HIGHER, EL_BETTER_LOWER, EL_BETTER_NEITHER };
enum el_metric_of { EL_METRIC_OF_TRIAL, EL_METRIC_OF_DEVICE };

struct el_metric {
    const char *name; /* CSV column, with unit */
    const char *unit;
    enum el_better better;
    enum el_metric_of of;
    const char *path; /* in the trial's or the device's part of the record */
};

/* Ends with a NULL name. Trial metrics first. */
const struct el_metric *el_metric_list(void);
/* NAN: not measured. `device`: an entry of per_device[], or NULL. */
double el_metric_value(const struct el_metric *metric, const json_t *trial, const json_t *device);
const char *el_better_text(enum el_better better); /* "higher", "lower", "-" */
