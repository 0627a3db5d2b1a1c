/* `evenload fleet`: which host, card or link of many is slow.
 *
 *     el_fleet_conduct(&options, &place, &gathered);       rank 0's, or the starter's process: all phases
 *     el_fleet_agent(...)                                  one process a device, or a host: starts workers
 *     el_fleet_document(&options, gathered, baseline, &document)      verdicts
 *
 * The conductor listens; each agent connects and is told which phase to run. A phase is a job of its own of fresh
 * processes (el_fleet_worker) on all devices that are left, so that a host that dies or hangs ends a phase, and not the
 * run: the phase begins again without it. An agent that closes its connection, or says nothing for EL_FLEET_SILENCE_S,
 * is lost.
 *
 * Phases: `devices` (each by itself: products, memory, copies), `links` (rounds of disjoint pairs within hosts, then
 * between hosts; an all-reduce), `step` (ddp), `soak` (steps again and again, bit for bit).
 *
 * DIR/fleet.json: {"schema", "kind": "fleet", "command", "environment", "repeats", "exit_status", "verdict":
 * "good|bad|undecided", "reasons": [text], "hosts": [host], "links": [link], "faults": [fault], "peers": {figure:
 * {"peers", "centre", "sd_pct", "detects_pct", "few"}}, "all_reduce": {"bytes", "busbw_gb_per_s": [a repeat]} or null,
 * "step": {"step_ms": [...]} or null, "rounds": {"between" (hosts), "of" (all)}, "soak": {"steps", "passes_at_least"}
 * or null, "phases": [{"name", "seconds", "reason"}]}.
 *
 * A host: {"name", "boot", "ranks": [rank], "state": "measured|lost|absent", "reason", "verdict":
 * "good|bad|undecided|lost|absent", "slower_pct" (of its worst figure), "worst" (its name), "retransmitted_pct",
 * "devices": [{"rank", "name", "uuid", "model", "core", "granted_pct", "figures": {figure: {"rates": [...], "again":
 * [...] (if some were slow) or null, "median", "slower_pct", "bad"}}, "reason", "wrong": null or {"op", "element",
 * "is", "was", "step"}}]}. "within": [{"host", "from", "to" (ranks), "gb_per_s", "latency_us"}] of a host's devices. A
 * link: {"from", "to" (hosts by place), "gb_per_s" (median, of all devices together), "sd_pct", "latency_us"}. A fault:
 * {"kind": "host|sends|receives|pair|one_way|switch|devices|since|loss", "hosts": [name], "slower_pct"}. */
#pragma once

#include "bench/base/jvalue.h"
#include "bench/job/worker.h"
#include "bench/plot/data_file.h"
#include "bench/stats/peers.h"

enum { EL_FLEET_SCHEMA = 1, EL_FLEET_HOST_BYTES = 64, EL_FLEET_SILENCE_S = 5, EL_FLEET_RANKS_MAX = 4096 };
/* A collective of a phase that takes longer has a rank that hangs. */
enum { EL_FLEET_STUCK_S = 15 };

/* ---- rounds.c: in el_fleet_rounds(n) rounds of disjoint pairs each of n members meets each other one once ---- */

int el_fleet_rounds(int n);
/* In a round from 0; -1: it rests. */
int el_fleet_partner(int n, int round, int member);
/* The k-th of at most `most` rounds, spread over all. */
int el_fleet_round_of(int n, int most, int k);

/* The rate of false alarms is that of all figures together. */
enum { EL_FLEET_FIGURES = 7 };

static inline const char *el_fleet_text(const json_t *object, const char *key)
{
    return el_json_text(object, key, "");
}

/* A figure of each device: more is better. */
struct el_fleet_figure {
    const char *key, *name, *unit;
    double scale; /* of the key's rates, for people */
};
enum { EL_FLEET_DEVICE_FIGURES = 4 };
extern const struct el_fleet_figure el_fleet_figures[EL_FLEET_DEVICE_FIGURES];

/* ---- worker.c: "worker fleet RESULT PHASE HOSTS WRONG": HOSTS has each rank's host, "0,0,1,1", WRONG what is
 * injected. Each rank writes a document of its own ---- */
enum el_status el_fleet_worker(struct el_worker *worker);

/* A phase's process. */
struct el_fleet_rank {
    const struct el_options *options;
    struct el_bootstrap *bootstrap;
    struct el_device *device;
    int rank, n; /* in the phase */
    const int *hosts;
    double wrong; /* injected */
};
/* devices.c: {"products": [rate], "memory", "copies", "granted_pct": of a CPU core's time}. New references. */
enum el_status el_fleet_measure_device(struct el_fleet_rank *rank, json_t **document_p);
/* Whether it is a GPU, and not an emulated one, and so gets more work. */
enum el_status el_fleet_is_large(struct el_device *device, bool *large_p);
/* pairs.c: {"links": [{"to", "within", "gb_per_s": [rate], "latency_us"}], "all_reduce": {"bytes", "s": [...]},
 * "bytes", "retransmitted", "segments"}. Collective. */
enum el_status el_fleet_measure_pairs(struct el_fleet_rank *rank, json_t **document_p);
/* soak.c: {"passes", "steps", "ops": [name], "first": [{"step", "digests": [an op]}], "wrong": {"op", "step", "pass",
 * "element", "is", "was"} or null}; `phase` "locate:STEP:OP:BLOCK": {"list", "block"}. */
enum el_status el_fleet_soak(struct el_fleet_rank *rank, const char *phase, json_t **document_p);

/* ---- agent.c: "worker fleet-agent - ADDRESS PORT TOKEN NAME" ---- */
enum el_status el_fleet_agent_worker(struct el_worker *worker);
struct el_fleet_meeting {
    const char *address;
    int port, n_ports; /* from `port` on */
    const char *token;
    double patience_s;
};
/* `name`: of the host; "": this one's. `first`: its first rank, or -1. Ends when the conductor does. Errors:
 * EL_ERR_TIMEOUT: no conductor; EL_ERR_PEER: it was refused. */
enum el_status el_fleet_agent(const struct el_options *options, const struct el_fleet_meeting *meeting,
                              const char *name, int first);

/* ---- channel.c: a JSON document a line ---- */
struct el_fleet_channel {
    int socket; /* -1: closed */
    char *text;
    size_t n, room;
};
void el_fleet_channel_close(struct el_fleet_channel *channel);
/* false: the other side is gone. */
bool el_fleet_send(struct el_fleet_channel *channel, const json_t *message);
/* Reads what there is. false: the other side is gone, or sends no such documents. */
bool el_fleet_hear(struct el_fleet_channel *channel);
/* The next whole message; NULL: none yet. New reference. */
json_t *el_fleet_take(struct el_fleet_channel *channel);

/* ---- conduct.c ---- */

/* `token`: of the job; NULL: a new one. `tell`: called with the port that agents come to, before anything waits; NULL:
 * they know it. */
struct el_fleet_opening {
    struct el_store *store;
    const char *token;
    enum el_status (*tell)(void *context, int port, const char *token);
    void *context;
    bool lost; /* set: some process does not answer any more */
};
/* Pairs take at most this long a round, with meeting and splitting. */
#define EL_FLEET_ROUND_S 1.5
/* {"agents", "devices", "phases", ...}: see document.c. `place`: of a launcher's rank 0; NULL: starts agents itself.
 * Interrupted: what there is. Blocking. Errors: EL_ERR_INVALID, EL_ERR_IO, EL_ERR_TIMEOUT: nobody came. */
enum el_status el_fleet_conduct(struct el_options *options, const struct el_launch_place *place,
                                struct el_fleet_opening *opening, json_t **gathered_p);

/* ---- simulate.c: as above, of simulated devices ---- */
enum el_status el_fleet_simulate(struct el_options *options, json_t **gathered_p);

/* ---- document.c, print.c, figure.c ---- */

/* Steals `gathered`; DIR/fleet.json's fields. `baseline`: an earlier document; NULL: none. */
enum el_status el_fleet_document(const struct el_options *options, json_t *gathered, const json_t *baseline,
                                 json_t **document_p);
bool el_fleet_is(const json_t *document);
void el_fleet_print(const json_t *document, FILE *out);
void el_fleet_say(const json_t *document, FILE *out);
enum el_status el_fleet_csv(const void *document, FILE *out);
/* The text format of node_exporter's textfile collector. */
enum el_status el_fleet_prometheus(const void *document, FILE *out);
extern const struct el_figure el_figure_fleet;

/* ---- sessions.c ---- */

/* Of the host's devices the slowest one's median; NAN: none. */
double el_fleet_slowest(const json_t *host, const char *figure);
/* Of the links "from" or "to" a host, by its place; NAN: none. */
double el_fleet_link_median(const json_t *document, int64_t host, const char *side);
/* DIR/program.json, which `baseline add DIR` and `regress --current DIR` read: a program "fleet HOST" for each host.
 * Errors: EL_ERR_IO. */
enum el_status el_fleet_save_sessions(const json_t *document, const char *dir);
