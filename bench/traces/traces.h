/* `evenload trace-stats`: the traces of one job, a row per device, and ranks compared if there are several.
 *
 *     el_traces_read(path, NULL, &traces);         a file, or a folder's files
 *     el_traces_document(&traces, &document);
 *     el_traces_print(document, stdout);
 *     el_traces_free(&traces);
 *
 * {"schema", "kind": "trace-stats", "folder", "cpu_only", "devices": [a device: docs/watch.md], "left_out", "foreign":
 * [file], "rank_of_two": a rank with several traces or null, "job": null if fewer than two share a collective, else
 * {"steps", "step_ms", "steps_left_out", "operations", "alone", "ranks": [bench/report/ranks.h's, "file", "device",
 * "calls", "alone", "parts_ms": el_traces_parts'], "clocks":
 * [{"file", "offset_ms", "drift_ppm", "error_ms", "ends"}], "common_clock", "missing_ranks", "groups_unnamed",
 * "by_step": {"steps", "late_ms": [rank: [step]]} or null,
 * "bandwidth": [{"operation", "ranks", "bytes", "calls", "transfer_ms", "busbw_gb_per_s"}], "blame":
 * bench/report/ranks.h's, "late_steps", "cause": el_traces_cause's; kind "unknown" where it cannot be said}}. */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdio.h>

#include "bench/base/io.h"
#include "bench/explain/explain.h"
#include "bench/plot/data_file.h"
#include "profiles/causes.h"

enum { EL_TRACES_SCHEMA = 1, EL_TRACES_NAME_BYTES = 64 };

struct el_traces {
    char folder[EL_PATH_BYTES]; /* or the file */
    struct el_kineto_trace *list;
    char (*files)[NAME_MAX + 1];
    char **paths; /* [n] */
    size_t n, room;
    json_t *left_out; /* older files of the same workers */
    json_t *foreign;  /* files that are no traces */
    struct el_relation relation;
};

/* A folder's *.json and *.json.gz; the last of a worker's files ("{worker}.{time}.pt.trace.json"). Relates them.
 * `named`: el_kineto_read's. Errors: EL_ERR_INVALID, EL_ERR_IO, EL_ERR_ABSENT, with nothing to free. */
enum el_status el_traces_read(const char *path, const char *named, struct el_traces *traces_p);
void el_traces_free(struct el_traces *traces);

/* New reference. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_traces_document(const struct el_traces *traces, json_t **document_p);
void el_traces_print(const json_t *document, FILE *out);

/* The step without each of the causes "rank:3,waits,transfers,data,op:NAME" or "all" (profiles/replay.h): the
 * document's "without", [{"cause", "step_ms", "gain_ms", "gain_pct"}], the largest gain first. `job`: the document's.
 * New reference. Errors: EL_ERR_INVALID, also where it is not known who waits for whom. */
enum el_status el_traces_without(const struct el_traces *traces, const json_t *job, const char *causes,
                                 json_t **list_p);
/* What op: names in a list of causes; NULL: nothing. For el_traces_read. */
const char *el_traces_named(const char *causes);
/* Writes all traces as one (profiles/merge.h): the document's "merged", {"file", "events", "waits", "wait_ms",
 * "error_ms"}. New reference. Errors: el_merge_write's. */
enum el_status el_traces_merge(const struct el_traces *traces, const json_t *job, const char *path, json_t **merged_p);
/* Nothing where the document has none. */
void el_traces_print_without(const json_t *document, FILE *out);
void el_traces_print_merged(const json_t *document, FILE *out);
/* A document that --out wrote. */
bool el_traces_is(const json_t *document);
/* Lateness of each rank in each step; where each rank's step goes, also of a watch's document. */
extern const struct el_figure el_figure_lateness, el_figure_ranks;

/* The trace's name, "cpu:1"; else "rank 1", or "rank 0, device 1" with several devices in its trace. */
void el_traces_name(const struct el_traces *traces, const struct el_relation_member *member,
                    char name[EL_TRACES_NAME_BYTES]);
/* {"compute", "copies", "pause", "data", "backward", "optimizer", "forward", "other", "wait", "transfer"}: a rank's
 * "parts_ms". New reference. */
json_t *el_traces_parts(const struct el_step_parts *parts);
/* Where member `who`'s lateness arises (profiles/causes.h): {"late_ms", "steps": in how many it is late, "part": the
 * largest, "parts_ms", "sentence"}; null: none is blamed (-1), or it is not known. New reference. */
json_t *el_traces_cause(const struct el_traces *traces, int who);
/* The document's "job", or null. New reference. */
json_t *el_traces_job(const struct el_traces *traces);

/* The change between two jobs: explain's "difference" document (el_difference_print) with the profiler's steps as
 * launches, on the member that waits least; sides have "sentence". New reference. Errors: EL_ERR_INVALID: no steps. */
enum el_status el_traces_difference(const struct el_traces *a, const struct el_traces *b, json_t **document_p);
