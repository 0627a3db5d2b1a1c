/* Dumps of PyTorch's flight recorder: which rank did not enter the collective that the others wait in.
 *
 *     el_flight_read(path, &flight);               a dump, or a folder with each rank's
 *     el_flight_document(&flight, &document);
 *     el_flight_print(document, stdout);
 *     el_flight_free(&flight);
 *
 * Reads what TORCH_FR_BUFFER_SIZE (before 2.9 TORCH_NCCL_TRACE_BUFFER_SIZE) makes PyTorch 2.4 and later write: pickles
 * and JSON of torch._C._distributed_c10d._dump_nccl_trace, _dump_fr_trace and their _json. The number at the end of a
 * file's name is its rank.
 *
 * {"schema", "kind": "flight", "folder", "version", "dumps", "missing_dumps": [rank], "left_out": [file], "calls",
 *  "ranks": [{"rank", "file", "calls", "ended": how many, "waits_in": call or null, "last": call or null}],
 *  "cause": {"kind": EL_HANGS, "ranks": [rank], "waiting": [rank], "call": call or null, "sentence"},
 *  "late": {"calls": how many all entered, "ranks": [{"rank", "last_pct", "late_ms", "caused_ms"}], "rank" (null: none
 *  stands out), "sentence"} or null}
 *
 * A call: {"group", "number", "operation", "type", "sizes", "entered_utc", "state", "where"}. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/status.h"

enum { EL_FLIGHT_SCHEMA = 1 };

struct el_flight_call {
    const char *operation; /* "all_reduce", "send"; these texts are the flight's */
    const char *type;      /* of its tensors: "Float"; "": none */
    const char *sizes;     /* "[1000]" */
    const char *where;     /* the user's line; "": unknown */
    double elements;
    int64_t number;     /* the group's, from 1; calls that are coalesced share it */
    int64_t entered_ns; /* since 1970, its host's clock */
    int group;
    int64_t from, to;  /* a message's ranks; -1: a collective */
    bool begun, ended; /* begun: its device has begun it */
};

struct el_flight_rank {
    int64_t rank;
    const char *file;
    struct el_flight_call *calls; /* by group, kind and number */
    size_t n, room;
};

struct el_flight_group {
    const char *name; /* "default_pg (0)" */
    int64_t *ranks;   /* sorted */
    size_t n, room;
    bool given; /* the dumps say its ranks; else those that called it */
};

struct el_flight {
    const char *folder, *version;
    struct el_flight_rank *ranks; /* by rank, each once */
    struct el_flight_group *groups;
    size_t n_ranks, ranks_room, n_groups, groups_room;
    json_t *texts; /* owns them: its keys */
    json_t *left_out;
};

/* EL_ERR_ABSENT without a message: no dump is there. Other errors: EL_ERR_IO, EL_ERR_INVALID, EL_ERR_HOST_MEMORY. */
enum el_status el_flight_read(const char *path, struct el_flight *flight_p);
/* One dump in memory, of `rank`. */
enum el_status el_flight_parse(const char *data, size_t size, const char *name, int64_t rank, struct el_flight *flight);
void el_flight_begin(struct el_flight *flight);
void el_flight_free(struct el_flight *flight);
/* The rank's call; NULL: none. `message`: the one from `from` to `to` that has not ended. */
const struct el_flight_call *el_flight_find(const struct el_flight_rank *rank, const struct el_flight_call *like);

/* NULL: it left no dump. */
const struct el_flight_rank *el_flight_rank_at(const struct el_flight *flight, int64_t rank);
/* The first of each group, of collectives and of messages, that has not ended; last NULL the first one. */
const struct el_flight_call *el_flight_next_waiting(const struct el_flight_rank *rank,
                                                    const struct el_flight_call *last);
/* Of these the one that its device has begun, or else that was entered first. NULL: all ended. */
const struct el_flight_call *el_flight_waits_in(const struct el_flight_rank *rank);
const struct el_flight_call *el_flight_last(const struct el_flight_rank *rank);
/* A call, or null. New reference. */
json_t *el_flight_call_json(const struct el_flight *flight, const struct el_flight_call *call);
/* Ranks of groups that left no dump, at most 64. New reference. */
json_t *el_flight_missing(const struct el_flight *flight);
/* Each once. */
void el_flight_add_rank(json_t *ranks, int64_t rank);

#define EL_HANGS(X)                                                                                                    \
    X(NONE, "none")               /* every call has ended */                                                           \
    X(NOT_ENTERED, "not entered") /* ranks that wait in no call did not enter it */                                    \
    X(NO_DUMP, "no dump")         /* the ranks that it waits for left no dump */                                       \
    X(OTHER_CALL, "other call")   /* ranks called another operation, size or type */                                   \
    X(OTHER_ORDER, "other order") /* ranks wait for each other in different calls */                                   \
    X(NOT_BEGUN, "not begun")     /* all entered, and devices have not begun */                                        \
    X(ALL_ENTERED, "all entered") /* and began */
#define EL_HANG_MEMBER(name, text) EL_HANG_##name,
enum el_hang_kind { EL_HANGS(EL_HANG_MEMBER) EL_HANG_COUNT };
const char *el_hang_name(enum el_hang_kind kind);

/* The document's cause. New reference. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_hang_find(const struct el_flight *flight, json_t **cause_p);
/* New reference. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_flight_document(const struct el_flight *flight, json_t **document_p);
void el_flight_print(const json_t *document, FILE *out);
