/* Private to the conductor: its agents, and how they are started. */
#pragma once

#include <poll.h>

#include "bench/campaign/store.h"
#include "bench/fleet/fleet.h"
#include "runtime/launch/children.h"

struct el_fleet_agent_seen {
    struct el_fleet_channel channel;
    enum { EL_FLEET_EXPECTED, EL_FLEET_HERE, EL_FLEET_LOST, EL_FLEET_ABSENT } state;
    char name[EL_FLEET_HOST_BYTES], address[64], boot[64], group[EL_FLEET_HOST_BYTES], reason[240];
    char remote[EL_FLEET_HOST_BYTES], devices[EL_PATH_BYTES]; /* of a file of hosts */
    int port;                                                 /* where its next rank 0 would listen */
    int64_t heard_ns;
};

enum el_fleet_part { EL_FLEET_IDLE, EL_FLEET_WAITS, EL_FLEET_RUNS, EL_FLEET_DONE, EL_FLEET_FAILED };
struct el_fleet_device_seen {
    int agent, device;
    bool failed; /* left out from now on */
    char name[64], reason[240];
    json_t *parts; /* by phase */
    int in_phase;  /* rank there; -1 */
    enum el_fleet_part part;
    bool stuck;
    char part_reason[240];
    bool killed;
};

struct el_fleet_conductor {
    struct el_options *options;
    struct el_store *store;
    struct el_fleet_agent_seen *agents;
    int n_agents, listener, port;
    struct el_fleet_device_seen *devices;
    int n_devices, number; /* of the phase */
    char token[40];
    struct el_child *children; /* what it started */
    int n_children;
    struct pollfd *polls;
    json_t *phases;
    int64_t next_line_ns;
    bool no_majority; /* of the soak */
};

/* starters.c: the agents to come, from --hosts, or this host's own. */
enum el_status el_fleet_expect(struct el_fleet_conductor *c, const struct el_launch_place *place);
/* Starts those that no launcher has started. */
enum el_status el_fleet_start(struct el_fleet_conductor *c, const struct el_launch_place *place);
/* Why an agent has not come: what its starter said. */
void el_fleet_why_absent(const struct el_fleet_conductor *c, int agent, char *reason, size_t bytes);

/* ---- compare.c: first passes of the soak ---- */

struct el_fleet_difference {
    int right; /* a device that agrees with more others */
    int step, op;
};
/* The first op, in the order of steps and ops, whose result differs from what more devices of the kind have. */
bool el_fleet_differs(const struct el_fleet_conductor *c, int device, struct el_fleet_difference *found_p);
/* Two differ and no third one tells which is right. */
bool el_fleet_no_majority(const struct el_fleet_conductor *c);
/* Of what `locate` gave; -1: they are equal. */
int el_fleet_first_difference(const struct el_fleet_conductor *c, int device, int right, double values[2]);
