/* A job's weights into a safetensors file, as runtime/state/weights.h describes it. */
#pragma once

#include "runtime/worker/worker.h"

/* The model's weights and buffers, in the type of the configuration, after `steps` steps. Timing: blocking, between
 * steps. Collective: all workers; the first one writes. */
enum el_status el_train_save(struct el_worker *worker, int64_t steps, const char *path);
