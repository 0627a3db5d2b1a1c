/* A model's weights in a safetensors file (runtime/data/safetensors.h), with PyTorch's names and shapes, so that
 * model.load_state_dict takes it and model.state_dict() makes it.
 *
 *     el_safetensors_open(path, &file);
 *     el_weights_check(file, graph);                    before anything is trained: names and shapes, none left over
 *     config.weights = file;                            a shard reads what it owns of it (shard.c)
 *     el_train_save(worker, steps, path);               after training (runtime/train/save.h)
 *
 * Shapes: linear [outputs, inputs] on both sides. Of a convolution the channels, which are last here, are second there:
 * [filters, window, channels] is [filters, channels, window], [filters, k, k, channels] is [filters, channels, k, k].
 * Beside running statistics (`bn1.running_mean`) a file has how many batches they have seen, a count that is no array
 * here (`bn1.num_batches_tracked`, I64). It may be missing, as in PyTorch's older files.
 * Units: elements. Threads: any. Errors: EL_ERR_INVALID in one line naming file and array.
 */
#pragma once

#include "runtime/data/safetensors.h"
#include "runtime/graph/graph.h"

enum { EL_WEIGHTS_NAME_BYTES = 2 * EL_GRAPH_NAME_BYTES };

/* Parameters and buffers of the model that are there have its shapes, and nothing else is there but a weight that two
 * layers share, by its second name. */
enum el_status el_weights_check(const struct el_safetensors *file, const struct el_graph *model);
/* How many parameters and buffers of the model are not there, and their names, cut to `bytes`: they are drawn. */
int el_weights_lacks(const struct el_safetensors *file, const struct el_graph *model, char *names, size_t bytes);
/* A parameter or a buffer. values: [count] in the order of its own shape. */
enum el_status el_weights_read(const struct el_safetensors *file, const struct el_param *param, double *values);

/* What a parameter, or a buffer, is in a file. */
struct el_stored_array el_weights_stored(const struct el_param *param, enum el_dtype dtype);
/* [filters][places][channels] here, [filters][channels][places] in a file; all else is the same on both sides. */
void el_weights_reorder(const struct el_param *array, const double *from, double *to, bool to_file);
/* The same into a file, of f32 or f64. */
void el_weights_to_file(const struct el_param *array, enum el_dtype dtype, const void *from, void *to);
/* "bn1.num_batches_tracked", into `name`, of "bn1.running_mean"; false: it is another buffer. */
bool el_weights_count_name(const struct el_param *buffer, char name[EL_WEIGHTS_NAME_BYTES]);
