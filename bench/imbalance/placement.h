/* Which rank gets which experts (`imbalance --solve placement`).
 *
 *     el_placement_of(&trial, &placement);            by the routing's expected loads; or n, ranks and load given:
 *     el_placement_find(&placement);
 *     el_placement_document(&placement, trials)        predicted and measured */
#pragma once

#include <jansson.h>

#include "bench/trial/trial.h"

enum { EL_PLACED_MAX = 64 };

struct el_placement {
    int n, ranks; /* experts, which `ranks` divides */
    double load[EL_PLACED_MAX];
    /* Found: the busiest rank's load in the experts' own order, by EPLB's way, and at best. */
    double own, greedy, most;
    bool proven;                   /* none is better */
    char text[EL_PLACEMENT_BYTES]; /* for --routing placement; "": the own order is as good */
};

void el_placement_find(struct el_placement *placement);
/* Errors: EL_ERR_INVALID: another mode than ep, a routing whose loads are not known, too many experts. */
enum el_status el_placement_of(const struct el_trial *trial, struct el_placement *placement_p);
/* Fields: docs/moe.md. `trials`: of both placements, as far as they were measured. New reference. */
json_t *el_placement_document(const struct el_placement *placement, const json_t *trials);
