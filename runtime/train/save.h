/* Saves a job's weights as safetensors (runtime/state/weights.h). */
#pragma once

#include "runtime/worker/worker.h"

/* Weights and buffers in the configuration's type after `steps` steps. Blocking, between steps. Collective: all
 * workers; the first one writes. */
enum el_status el_train_save(struct el_worker *worker, int64_t steps, const char *path);
