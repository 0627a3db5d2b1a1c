/* The layout of a job: each device's place and its part of the work, filled in by a hook of the mode.
 *
 *     el_layout_of(&config, 2, &layout);              as 2 processes; 0: the mode's choice
 *     if (layout.n_processes != 2) ...                the mode cannot be split so: this is what it can do
 *     el_layout_spot(&layout, d).samples
 *
 * A worker is a host thread that issues steps. Its devices are adjacent and in one process, as are a process's workers;
 * with several processes each has one worker. All workers have equally many devices.
 * Units: samples. Ownership: a plain value. Threads: any. An impossible number of processes is replaced by a possible
 * one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "runtime/data/data.h"
#include "runtime/graph/graph.h"

/* Per job: real devices, which can be named individually; simulated ones. */
enum { EL_MEMBERS_MAX = 64, EL_SIMULATED_MAX = 16384 };

struct el_train_config;

struct el_spot {
    int process; /* rank of the process that opens it */
    int worker;  /* the host thread that issues for it, in the job */
    /* Along each axis: its part of each global batch (equal within a copy of the model), its stage, ... */
    int at[EL_AXIS_COUNT];
    int64_t samples;   /* of each global batch; 0: nothing to do */
    int feed, n_feeds; /* it loads part `feed` of `n_feeds` of each global batch (0 of 1: all); of 0: nothing */
    bool owns;         /* keeps its part's parameters, gradients and optimizer state across steps */
};

struct el_layout {
    int n_devices; /* used by the mode: the configuration's, or fewer */
    int n_processes, n_workers;
    int n[EL_AXIS_COUNT]; /* along each axis; along data: those with samples */
    unsigned split;       /* rows of the state cut along shard: bits 1 << enum el_state */
    bool cuts;            /* the mode has stages by a schedule, maybe only one */
    int64_t global_batch;
    struct el_shares shares; /* of the parts in which a batch is loaded, or cut among a worker's devices */
    int n_micro_steps;
    int n_feeds; /* parts in which each batch is loaded, by a worker's first device or by a copy of a cut model */
    bool each_loads;
    bool each_owns; /* every device with samples owns the model; else each worker's first */
};

struct el_spot el_layout_spot(const struct el_layout *layout, int device);

/* The devices [*first_p, *first_p + n) of a worker; returns n. */
int el_layout_of_worker(const struct el_layout *layout, int worker, int *first_p);
int el_layout_of_process(const struct el_layout *layout, int process, int *first_p);
/* The device that represents all copies of this one's part, for the gate and for saving: the first owner at the same
 * place along all axes but data. Sharded state: each gives its range. */
int el_layout_source(const struct el_layout *layout, int device);

/* Whether workers differ along it. */
bool el_layout_differs(const struct el_layout *layout, enum el_axis axis);
/* Whether they differ along it alone: all are one group. */
bool el_layout_is_whole(const struct el_layout *layout, enum el_axis axis);
/* Whether a device holds less than the model: workers differ along an axis other than data. */
bool el_layout_is_cut(const struct el_layout *layout);
/* A device's group along an axis: equal for devices that differ along it alone. */
int el_layout_group(const struct el_layout *layout, enum el_axis axis, int device);

/* Devices per part of the batch: a copy's stages and pieces. */
int el_layout_per_copy(const struct el_layout *layout);

/* Positions between devices that differ along data alone. */
int el_layout_stride(const struct el_layout *layout);

/* Samples of the m-th of n tensor.chunk pieces: ceil(samples / n) each, the last ones smaller or empty. */
int64_t el_layout_chunk(int64_t samples, int n, int m);

/* The same, or by shares if there are n of them. */
int64_t el_layout_piece(const struct el_shares *shares, int64_t samples, int n, int m);

/* Pieces of a worker's share in forward, cut as above: its devices', or micro-batches. */
int el_layout_pieces(const struct el_train_config *config, const struct el_layout *layout);

/* Copies of the model with their own feed and running statistics across steps. */
int el_layout_copies(const struct el_layout *layout);

/* Shares of the loaded parts; none if batches are cut among devices after loading. */
struct el_shares el_layout_feed_shares(const struct el_layout *layout);

/* Workers with a loss: the last stage's. */
int el_layout_losses(const struct el_layout *layout);

void el_layout_one_device(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* One process and worker for all devices. The first owns the model and loads the batch, cut by tensor.chunk. */
void el_layout_one_worker(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* A worker per device, in one process or each in its own (default). Each owns the whole model and loads its share;
 * shares differ by at most one sample. */
void el_layout_worker_each(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* A worker per data rank with equally many devices: config.mesh of them along data, or one per process; in one process,
 * or each in its own (default; one if neither gives a number). Each loads its share and cuts it among its devices; its
 * first device owns the model. */
void el_layout_worker_several(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* A worker per device as above, in rows of config.mesh's devices along shard (0: all left in a copy): each loads its
 * share, and a row holds the state, by ranges of the rows `split`. With config.mesh along stage or tensor each is
 * several devices, with a stage or piece each. */
void el_layout_sharded(const struct el_train_config *config, int n_processes, unsigned split,
                       struct el_layout *layout_p);
/* A worker and a stage per device, in one process (default) or each in its own. Each owns its part of the model.
 * config.mesh gives copies of the model along data (0: one) and pieces of each stage along tensor. A data rank's share
 * goes through all stages of its copy, and is loaded at both ends. */
void el_layout_stages(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* The same for pieces along tensor, each in its own process (default), or in one. All pieces of a copy load its
 * share. */
void el_layout_across(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
/* A worker per device as above, in copies of config.mesh's number along data (default: one). The ranks of a copy have
 * some of the experts each, and all else whole; each loads its share. */
void el_layout_experts(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
