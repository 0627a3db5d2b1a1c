/* A training with PyTorch in a watched command: its figures, and who came late to its collectives.
 *
 * The document's watch.training, null without a step of PyTorch: {"ranks": el_training_ranks', "step_ms",
 * "samples_per_s": bench/training/training.h's, "late": trace-stats' job (bench/traces/traces.h) of the profiled steps,
 * or of those that the flight recorders still hold, null with a "late_reason", "late_from": "torch.profiler" or "flight
 * recorder", "notes": [what else is known of the late rank], "trouble": [what the hook could not do]}. */
#pragma once

#include <stdio.h>

#include "bench/training/training.h"

/* After the command's end. New reference. */
json_t *el_late_document(const struct el_python_hook *hook);
/* Nothing for null. */
void el_late_print(const json_t *training, FILE *out);
