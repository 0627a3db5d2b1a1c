/* The layout of a job: where each device stands, and what part of the work is its own. A mode's row has the hook that
 * fills it; everybody else reads it: shares of the batch, checks of places, host threads, recorders, forecasts, the
 * gate, evaluation and the record.
 *
 *     el_layout_of(&config, 2, &layout);              as 2 processes; 0: as the mode itself would have it
 *     if (layout.n_processes != 2) ...                the mode cannot be split so: it says how it would be
 *     el_layout_spot(&layout, d).samples
 *
 * A host thread that issues steps is a worker. Which worker issues for a device is part of the layout, not of a
 * schedule: one worker has one program, one recorder and one place in the world's communicator, and those who open
 * these have to know it before a step is issued. The devices of a worker are in one process and have neighbouring
 * positions, and so have the workers of a process.
 *
 * Of several processes each has one worker. All workers have as many devices.
 *
 * Units: samples. Ownership: a plain value of a few numbers, whatever the number of devices. Threads: any; nothing is
 * kept. Errors: none: config has gone through el_train_check, and a number of processes that the mode cannot have is
 * answered with one that it can.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "runtime/data/data.h"
#include "runtime/graph/graph.h"

/* Of a job: on real devices, which may be named one by one; and simulated ones. */
enum { EL_MEMBERS_MAX = 64, EL_SIMULATED_MAX = 16384 };

struct el_train_config;

/* Where one device stands. All numbers count from 0. */
struct el_spot {
    int process; /* rank of the process that has it open */
    int worker;  /* the host thread that issues for it, counted over the whole job */
    /* Along each axis: which part of each global batch goes through it (equal for the devices that share a copy), which
     * piece of the model, cut along its depth, ... */
    int at[EL_AXIS_COUNT];
    int64_t samples;   /* of each global batch; 0: there is nothing for it to do */
    int feed, n_feeds; /* what it loads of each global batch: part `feed` of `n_feeds` (0 of 1: all); of 0: nothing */
    bool owns;         /* its part's parameters, gradients and optimizer state stay on it from step to step */
};

struct el_layout {
    int n_devices; /* that the mode uses: those of the configuration, or fewer */
    int n_processes, n_workers;
    int n[EL_AXIS_COUNT]; /* along each axis; along data: those that have samples */
    unsigned split;       /* along shard: rows of the state of which each has a range: bits 1 << enum el_state */
    bool cuts;            /* the mode has parts of the model, by a schedule; also where there is one stage */
    int64_t global_batch;
    struct el_shares shares; /* of the parts in which a batch is loaded, or is cut among a worker's devices */
    int n_micro_steps;
    int n_feeds; /* parts in which each batch is loaded: by the first device of a worker, or, of a cut model, by a copy
                  */
    bool each_loads; /* every device loads a part of its own */
    bool each_owns;  /* every device that has samples owns the model; else the first one of each worker does */
};

/* Where a device stands, by its position in the job. */
struct el_spot el_layout_spot(const struct el_layout *layout, int device);

/* The devices [*first_p, *first_p + n) of a worker; returns n. */
int el_layout_of_worker(const struct el_layout *layout, int worker, int *first_p);
/* The same of a process. */
int el_layout_of_process(const struct el_layout *layout, int process, int *first_p);
/* The device whose copy of this one's part represents all copies: the gate compares it, and it is saved. The
 * first owner of the same place along all axes but data. Where state is sharded each gives its range. */
int el_layout_source(const struct el_layout *layout, int device);

/* Whether workers stand apart along it. */
bool el_layout_differs(const struct el_layout *layout, enum el_axis axis);
/* Whether they do along this axis alone: then all of them are one group. */
bool el_layout_is_whole(const struct el_layout *layout, enum el_axis axis);
/* Whether a device holds less than the model: workers stand apart along another axis than data. */
bool el_layout_is_cut(const struct el_layout *layout);
/* The number of a device's group along an axis: devices that differ along it alone have the same. */
int el_layout_group(const struct el_layout *layout, enum el_axis axis, int device);

/* How many devices a part of the batch goes through: with the stages and pieces of one copy of the model. */
int el_layout_per_copy(const struct el_layout *layout);

/* From a device to the one that differs from it along data alone, in positions. */
int el_layout_stride(const struct el_layout *layout);

/* Samples of the m-th of n pieces that tensor.chunk makes of so many: pieces of ceil(samples / n), the last ones
 * smaller or empty. */
int64_t el_layout_chunk(int64_t samples, int n, int m);

/* The same, or by shares where there are as many. */
int64_t el_layout_piece(const struct el_shares *shares, int64_t samples, int n, int m);

/* Pieces in which a worker's share goes forward, cut as above: its devices', or micro-batches. */
int el_layout_pieces(const struct el_train_config *config, const struct el_layout *layout);

/* Copies of the model that are fed apart, and are held from step to step: each has running statistics of its own. */
int el_layout_copies(const struct el_layout *layout);

/* Of the parts in which a batch is loaded: those of the layout, or none where it is cut among devices afterwards. */
struct el_shares el_layout_feed_shares(const struct el_layout *layout);

/* How many workers have a loss: those of the last stage. */
int el_layout_losses(const struct el_layout *layout);

/* For the rows of modes: the usual layouts. */
/* One device, whatever the configuration has: the whole batch. */
void el_layout_one_device(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* One process and one worker for all devices. The first owns the model and loads the batch, which is cut as
 * tensor.chunk cuts it: pieces of ceil(batch / n), the last ones smaller or empty. */
void el_layout_one_worker(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* A worker a device; in one process, or each in its own (the default). Each owns the whole model and loads its share:
 * shares differ by at most one sample. */
void el_layout_worker_each(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* A worker a data rank, each with as many devices: config.mesh of them along data, or one per process; in one process,
 * or each in its own (the default; one where neither says how many). Each loads its share, cut among its devices like
 * one worker's, and its first device owns the model. */
void el_layout_worker_several(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* A worker a device as above, in rows of as many as config.mesh has along shard (0: all that are left of a copy): each
 * loads its share, and those of a row hold the state together, by ranges of the rows `split`. With config.mesh along
 * stage or tensor each of these is as many devices, with a stage or a piece of the model each. */
void el_layout_sharded(const struct el_train_config *config, int n_processes, unsigned split,
                       struct el_layout *layout_p);
/* A worker and a stage a device; in one process (the default), or each in its own. Each owns its part of the model.
 * There are as many copies of the model as config.mesh has along data (0: one), and as many pieces of each stage as it
 * has along tensor, one after the other: a data rank's
 * share of the batch goes through all stages of its copy, and is loaded at both ends. */
void el_layout_stages(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* The same of pieces that are cut across the layers, along tensor; each in a process of its own (the default), or in
 * one. All pieces of a copy load its share. */
void el_layout_across(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
