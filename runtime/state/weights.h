/* A model's weights in safetensors files (runtime/data/safetensors.h) with PyTorch's names and shapes, compatible with
 * load_state_dict and state_dict.
 *
 *     el_safetensors_open(path, &file);
 *     el_weights_check(file, graph);                    before anything is trained: names and shapes, none left over
 *     config.weights = file;                            a shard reads what it owns of it (shard.c)
 *     el_train_save(worker, steps, path);               after training (runtime/train/loop.c)
 *
 * Shapes: linear [outputs, inputs] on both sides. A convolution's channels are last here and second in files: [filters,
 * window, channels] is [filters, channels, window], [filters, k, k, channels] is [filters, channels, k, k]. With
 * running statistics (`bn1.running_mean`) a file has their count of batches (`bn1.num_batches_tracked`, I64, no array
 * here), which older files lack. Units: elements. Threads: any. Errors: EL_ERR_INVALID in one line naming file and
 * array. */
#pragma once

#include "runtime/data/safetensors.h"
#include "runtime/graph/graph.h"

enum { EL_WEIGHTS_NAME_BYTES = 2 * EL_GRAPH_NAME_BYTES };

/* The model's arrays in the file have its shapes, and there are no others, except a second name of a tied weight. */
enum el_status el_weights_check(const struct el_safetensors *file, const struct el_graph *model);
/* The number of the model's arrays missing in the file, and their names, cut to `bytes`: they are drawn. */
int el_weights_lacks(const struct el_safetensors *file, const struct el_graph *model, char *names, size_t bytes);
enum el_status el_weights_read(const struct el_safetensors *file, const struct el_param *param, double *values);

struct el_stored_array el_weights_stored(const struct el_param *param, enum el_dtype dtype);
/* [filters][places][channels] here, [filters][channels][places] in a file; other arrays are the same on both sides. */
void el_weights_reorder(const struct el_param *array, const double *from, double *to, bool to_file);
/* The same into a file, in f32 or f64. */
void el_weights_to_file(const struct el_param *array, enum el_dtype dtype, const void *from, void *to);
/* "bn1.num_batches_tracked" of "bn1.running_mean"; false: another buffer. */
bool el_weights_count_name(const struct el_param *buffer, char name[EL_WEIGHTS_NAME_BYTES]);
