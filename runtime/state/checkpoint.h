/* A checkpoint: the state of a job after a step, in a folder from which a job goes on, whatever its mode and devices.
 *
 *     DIR/step-20/index.json              what it is, and its files with their sizes and hashes
 *     DIR/step-20/rank-0.safetensors      what the first worker gave, rank-1 the second ...
 *
 *     el_checkpoint_open("DIR", &checkpoint);                the last whole one there, or DIR/step-20 itself
 *     el_checkpoint_check(checkpoint, &config, graph);       that it is of this model and this training
 *     el_checkpoint_read(checkpoint, "model", array, -1, values, &found);
 *     el_checkpoint_close(checkpoint);
 *
 * Arrays: "model.NAME", a parameter or a buffer by PyTorch's name and in its shape (weights.h);
 * "optimizer.exp_avg.NAME", a slot; "best.NAME", of the best epoch. A device that has a piece of an array gives that
 * alone, and beside it "piece.model.NAME" of whole numbers: the dimension that is cut (as the kernels have it), where
 * the piece begins there, of how many, how many it has (0 of 0: it is not cut), and the first element of a range of
 * that (-1: it is all there). A range stands in one row, by its places in the shape; "places.model.NAME" has these
 * where they are not one after the other. All files together have each element once, or some of them the whole array.
 *
 * A folder `step-20` is complete: it was written under another name (el_checkpoint_folder), and renamed last.
 *
 * Units: elements, bytes, steps. Timing: blocking. Threads: any, once it is open. Ownership: the caller's.
 * Errors: EL_ERR_INVALID in one line with the file and what is wrong; EL_ERR_IO. If the last one of a folder is
 * damaged, an earlier one is opened, with a line on standard error.
 */
#pragma once

#include <jansson.h>

#include "runtime/base/files.h"
#include "runtime/data/data.h"
#include "runtime/layout/config.h"
#include "runtime/state/state.h"

enum {
    EL_CHECKPOINT_NAME_BYTES = 2 * EL_GRAPH_NAME_BYTES,
    EL_CHECKPOINT_PIECE = 5,
    EL_CHECKPOINT_DIR_BYTES = EL_PATH_BYTES - 64, /* of DIR ... */
    EL_CHECKPOINT_BYTES = EL_PATH_BYTES - 32      /* ... and of DIR/step-N */
};

struct el_checkpoint;
enum el_status el_checkpoint_open(const char *path, struct el_checkpoint **checkpoint_p);
void el_checkpoint_close(struct el_checkpoint *checkpoint); /* NULL is legal */
/* Its folder, "DIR/step-20". */
const char *el_checkpoint_path(const struct el_checkpoint *checkpoint);
/* The hash of its index, which has those of all files. */
uint64_t el_checkpoint_index_hash(const struct el_checkpoint *checkpoint);
/* Whether a training of this configuration goes on behind it. With --min-time any does: steps are added. */
bool el_checkpoint_leaves_steps(const struct el_checkpoint *checkpoint, const struct el_train_config *config);
/* Steps that were made before it. */
int64_t el_checkpoint_step(const struct el_checkpoint *checkpoint);
/* Samples of the data that were taken before it: whole epochs, and those of the next one. false: it does not say. */
bool el_checkpoint_position(const struct el_checkpoint *checkpoint, int64_t *epoch_p, int64_t *samples_p);
/* The first field of an index that is not as it must be, of its type, range and number; NULL: all are. */
const char *el_checkpoint_index_fault(const json_t *index);
/* All of its index. */
const json_t *el_checkpoint_index(const struct el_checkpoint *checkpoint);
enum el_status el_checkpoint_check(const struct el_checkpoint *checkpoint, const struct el_train_config *config,
                                   const struct el_graph *model);
/* That its data were these, as far as it says so: by their hash (el_dataset_hash) and its place in them. */
enum el_status el_checkpoint_check_data(const struct el_checkpoint *checkpoint, const struct el_dataset *dataset);
/* An array of the model (in no slice). values: [count] in the order of its shape. `rank`: whose own is taken, if it
 * gave one whole; -1: anybody's. *found_p false: nobody gave it, and values are untouched. */
enum el_status el_checkpoint_read(const struct el_checkpoint *checkpoint, const char *kind,
                                  const struct el_param *array, int rank, double *values, bool *found_p);

/* ---- for who writes one ---- */

/* "DIR/step-20", or where it is written. */
void el_checkpoint_folder(const char *dir, int64_t step, bool complete, char path[EL_PATH_BYTES]);
/* Whether `path` is the folder `dir`, or one in it. */
bool el_checkpoint_is_in(const char *dir, const char *path);
/* Removes a folder and a checkpoint's files in it, nothing else; what is not there is no failure. */
void el_checkpoint_remove(const char *folder);
/* The last complete one (a folder that has an index), and the last before `step`; -1: there is none. */
int64_t el_checkpoint_last(const char *dir);
int64_t el_checkpoint_before(const char *dir, int64_t step);
/* Removes all of them but the `keep` last up to step `last`. */
void el_checkpoint_tidy(const char *dir, int64_t last, int keep);
/* Removes those that nobody completed. */
void el_checkpoint_remove_parts(const char *dir);
enum el_status el_checkpoint_hash(const char *path, uint64_t *hash_p, int64_t *bytes_p);
/* "optimizer.exp_avg" of a row's arrays; NULL: they are not stored. */
const char *el_checkpoint_kind(const struct el_state_row *row, enum el_state what, char text[EL_GRAPH_NAME_BYTES]);
/* 16 hex digits, as an index has hashes. A new reference. */
json_t *el_checkpoint_hex(uint64_t hash);
/* What config and mode it is of; index.json has this, "step", "files" and more. A new reference. */
json_t *el_checkpoint_describe(const struct el_train_config *config);
/* Writes `index` (stolen), with its hash. */
enum el_status el_checkpoint_write_index(const char *folder, json_t *index);
