/* A checkpoint: a job's state after a step, in a folder from which jobs of any mode and devices can resume.
 *
 *     DIR/step-20/index.json              description, files with sizes and hashes
 *     DIR/step-20/rank-0.safetensors      the first worker's, rank-1 the second's ...
 *
 *     el_checkpoint_open("DIR", &checkpoint);                the last complete one there, or DIR/step-20 itself
 *     el_checkpoint_check(checkpoint, &config, graph);       that it is of this model and this training
 *     el_checkpoint_read(checkpoint, "model", array, -1, values, &found);
 *     el_checkpoint_close(checkpoint);
 *
 * Arrays: "model.NAME", a parameter or buffer with PyTorch's name and shape (weights.h); "optimizer.exp_avg.NAME", a
 * slot; "best.NAME", of the best epoch. A device writes its own piece, and "piece.model.NAME" with integers: the cut
 * dimension (as in kernels), the piece's first index there, the total, the piece's size (0 of 0: not cut), and a
 * range's first element in it (-1: all). A range is one row in the order of the shape; "places.model.NAME" has its
 * places if they are not consecutive. All files together have each element once, or some have the whole array.
 * A folder `step-20` is complete: it is renamed last (el_checkpoint_folder).
 * Units: elements, bytes, steps. Blocking. Threads: any, once open. Ownership: the caller's. Errors: EL_ERR_INVALID in
 * one line with file and reason; EL_ERR_IO. If the last one is damaged, an earlier one is opened, with a line on
 * standard error. */
#pragma once

#include <jansson.h>

#include "runtime/base/files.h"
#include "runtime/data/data.h"
#include "runtime/layout/config.h"
#include "runtime/state/state.h"

enum {
    EL_CHECKPOINT_NAME_BYTES = 2 * EL_GRAPH_NAME_BYTES,
    EL_CHECKPOINT_PIECE = 5,
    EL_CHECKPOINT_DIR_BYTES = EL_PATH_BYTES - 64,
    EL_CHECKPOINT_BYTES = EL_PATH_BYTES - 32
};

struct el_checkpoint;
enum el_status el_checkpoint_open(const char *path, struct el_checkpoint **checkpoint_p);
void el_checkpoint_close(struct el_checkpoint *checkpoint); /* NULL is legal */
const char *el_checkpoint_path(const struct el_checkpoint *checkpoint);
/* The index's hash, which covers the files' hashes. */
uint64_t el_checkpoint_index_hash(const struct el_checkpoint *checkpoint);
/* Whether a training of this configuration has steps after it; always with --min-time, which adds steps. */
bool el_checkpoint_leaves_steps(const struct el_checkpoint *checkpoint, const struct el_train_config *config);
int64_t el_checkpoint_step(const struct el_checkpoint *checkpoint);
/* Used samples: whole epochs, and those of the next. false: not recorded. */
bool el_checkpoint_position(const struct el_checkpoint *checkpoint, int64_t *epoch_p, int64_t *samples_p);
/* The first invalid field of an index (type, range, number); NULL: none. */
const char *el_checkpoint_index_fault(const json_t *index);
const json_t *el_checkpoint_index(const struct el_checkpoint *checkpoint);
enum el_status el_checkpoint_check(const struct el_checkpoint *checkpoint, const struct el_train_config *config,
                                   const struct el_graph *model);
/* That its data were these, as far as recorded: hash (el_dataset_hash) and position. */
enum el_status el_checkpoint_check_data(const struct el_checkpoint *checkpoint, const struct el_dataset *dataset);
/* An unsliced array of the model. values: [count] in the order of its shape. `rank`: take that rank's whole array, if
 * there is one; -1: any. *found_p false: not in the files, values unchanged. */
enum el_status el_checkpoint_read(const struct el_checkpoint *checkpoint, const char *kind,
                                  const struct el_param *array, int rank, double *values, bool *found_p);

/* "DIR/step-20", or its temporary name. */
void el_checkpoint_folder(const char *dir, int64_t step, bool complete, char path[EL_PATH_BYTES]);
/* Whether `path` is the folder `dir`, or inside it. */
bool el_checkpoint_is_in(const char *dir, const char *path);
/* Removes a checkpoint's files and its folder, nothing else; missing ones are no failure. */
void el_checkpoint_remove(const char *folder);
/* The last complete one (with an index), and the last before `step`; -1: none. */
int64_t el_checkpoint_last(const char *dir);
int64_t el_checkpoint_before(const char *dir, int64_t step);
/* Removes all but the last `keep` up to step `last`. */
void el_checkpoint_tidy(const char *dir, int64_t last, int keep);
void el_checkpoint_remove_parts(const char *dir);
enum el_status el_checkpoint_hash(const char *path, uint64_t *hash_p, int64_t *bytes_p);
/* "optimizer.exp_avg": a row's kind of arrays; NULL: not stored. */
const char *el_checkpoint_kind(const struct el_state_row *row, enum el_state what, char text[EL_GRAPH_NAME_BYTES]);
/* 16 hex digits, as in an index. A new reference. */
json_t *el_checkpoint_hex(uint64_t hash);
/* Its configuration and mode; index.json has this, "step", "files" and more. A new reference. */
json_t *el_checkpoint_describe(const struct el_train_config *config);
enum el_status el_checkpoint_write_index(const char *folder, json_t *index);
