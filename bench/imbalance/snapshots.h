/* PyTorch's memory snapshots (profiles/snapshot.h) as a table of devices: a job's ranks, DataParallel's devices in one
 * file, or two runs.
 *
 *     el_snapshots_read(paths, &document);        [path] in table order; the first is explained
 *     el_snapshots_print(document, stdout);
 *
 * {"snapshots": true, "devices": [{"file", "device", "events", "peak_bytes", "now_bytes", "reserved_bytes", "at_peak":
 * {cause: bytes}, "places": [{"cause", "where", "bytes"}]}], "difference": null for one device, or {"against",
 * "peak_bytes", "now_bytes", "reserved_bytes", "first_over_rest", "sentence"}, "causes": [{"cause", "first_bytes",
 * "others_bytes", "more_bytes", "where"}]}. Units: bytes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/status.h"

/* Errors: el_snapshot_read_file's, of the first file with one. */
enum el_status el_snapshots_read(const json_t *paths, json_t **document_p);
void el_snapshots_print(const json_t *document, FILE *out);
