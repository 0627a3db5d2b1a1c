/* Private to document.c, judge_devices.c and judge_links.c. */
#pragma once

#include "bench/base/jvalue.h"
#include "bench/fleet/fleet.h"

/* Beyond it a figure is undecided: a run that finds only slowdowns above this says little. */
#define EL_FLEET_DETECTS_MOST 0.15
#define EL_FLEET_DIFFER                                                                                                \
    "good ones differ so much that 15 % slower would not be found: give more --repeats, or a quieter time"

struct el_fleet_judging {
    const struct el_options *options;
    json_t *gathered, *document, *hosts, *devices, *faults, *peers, *reasons;
    const json_t *baseline;
    int *host_of; /* by rank */
    bool undecided;
};

/* The host is bad, at least for this; the worst figure is kept. `slower`: 0.05 is 5 %. */
void el_fleet_accuse(json_t *host, double slower, const char *what);
void el_fleet_cannot_tell(struct el_fleet_judging *j, const char *figure, const char *why);
/* Steals `names`, of hosts. */
void el_fleet_put_fault(struct el_fleet_judging *j, const char *kind, double slower, json_t *names);

/* judge_devices.c: among peers of one model, and against an earlier run. */
void el_fleet_judge_devices(struct el_fleet_judging *j);
void el_fleet_compare_then(struct el_fleet_judging *j);

/* judge_links.c: between hosts, between devices of a host, and losses of packets. */
void el_fleet_judge_links(struct el_fleet_judging *j);
void el_fleet_judge_within(struct el_fleet_judging *j);
void el_fleet_judge_losses(struct el_fleet_judging *j);
