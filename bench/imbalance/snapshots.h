/* Memory snapshots of PyTorch (profiles/snapshot.h) as a table of devices: of one job's ranks, of DataParallel's
 * devices in one file, or of two runs.
 *
 *     el_snapshots_read(paths, &document);        [path], in the order of the table: the first is the one that is told
 * of el_snapshots_print(document, stdout);
 *
 * The document: {"snapshots": true, "devices": [{"file", "device", "events", "peak_bytes", "now_bytes",
 * "reserved_bytes", "at_peak": {cause: bytes}, "places": [{"cause", "where", "bytes"}]}], "difference": null for one
 * device, or {"against", "peak_bytes", "now_bytes", "reserved_bytes", "first_over_rest", "sentence"}, "causes":
 * [{"cause", "first_bytes", "others_bytes", "more_bytes", "where"}]}. Units: bytes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/status.h"

/* Errors: those of el_snapshot_read_file, of the first file that has one. */
enum el_status el_snapshots_read(const json_t *paths, json_t **document_p);
void el_snapshots_print(const json_t *document, FILE *out);
