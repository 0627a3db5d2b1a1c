/* What the hook in a watched Python recorded (profiles/hook): its steps, and who came late to its collectives.
 *
 *     el_watch_hook_begin(store_dir, &hook);                 where the processes write, if any does
 *     el_watch_hook_environment(&hook);                      in the child, before it becomes the command
 *     steps = el_watch_hook_read(&hook);                     after the command's end; removes the folder
 *     el_watch_hook_print(steps, file);
 *
 * The document's watch.training, null without a step of PyTorch: {"ranks": [{"rank", "pid", "steps", "step_ms": the
 * median, "data_ms": the mean wait for PyTorch's DataLoader, "samples_per_s"}], "step_ms": {"median", "mean", "p95"} of
 * the ranks' mean step, "samples_per_s": of all ranks, null where the DataLoader gave none, "late": trace-stats' job
 * (bench/traces/traces.h) of the steps that the flight recorders still hold, null with a "late_reason", "trouble":
 * [what the hook could not do]}.
 *
 * Threads: one. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "runtime/base/files.h"

struct el_watch_hook {
    char folder[EL_PATH_BYTES];   /* absolute; "": none */
    char path[2 * EL_PATH_BYTES]; /* for PYTHONPATH */
};

/* Without the hook's file there is none. */
void el_watch_hook_begin(const char *store_dir, struct el_watch_hook *hook_p);
void el_watch_hook_environment(const struct el_watch_hook *hook);
json_t *el_watch_hook_read(const struct el_watch_hook *hook);
void el_watch_hook_print(const json_t *training, FILE *out);
