/* A feed: what a device is given to compute with. A loader of its part of every global batch, and the host's memory for
 * one of them. Several feeds may load for one shard: evaluation has another than training.
 *
 *     el_feed_open(&feed, &spec);
 *     el_feed_issue(&feed, program, &inputs, &labels);     in a step: loads, and copies to the device
 *     ... el_program_free(program, inputs); el_program_free(program, labels);
 *     el_feed_close(&feed);
 *
 * Shapes: inputs [samples, input of the graph], labels [samples, labels of the graph] int32.
 * Lengths: where batches are padded to their own longest sentence (config->length_by_batch), `graph` is the model for
 * rows of the length that el_feed_choose was asked for: what is issued then is right for batches of that length alone.
 * Timing: loading is an op of the step, on the compute stream: making the batch, or taking it from the loader's workers
 * (config->loading) and waiting for them. With EL_TRANSFER_AHEAD it is the last op, on a stream of its own: there the
 * next step's batch is made and copied while the device computes, and a step begins with a copy within the device.
 * Ownership: the data set must outlive the feed. Threads: one at a time. Errors: EL_ERR_HOST_MEMORY, and the loader's.
 */
#pragma once

#include "runtime/device/program.h"
#include "runtime/layout/config.h"

/* A model that has been cut is fed at both ends: inputs to its first part, labels to its last. Those between have a
 * feed to count epochs by, and load nothing. */
enum el_feed_what { EL_FEED_ALL, EL_FEED_INPUTS, EL_FEED_LABELS, EL_FEED_NOTHING };

struct el_feed_spec {
    const struct el_train_config *config;
    const struct el_graph *graph; /* the model's: whose input it is */
    struct el_device *device;
    const struct el_dataset *dataset; /* NULL: nothing can be loaded, sizes are known (forecasts) */
    enum el_data_split split;         /* training's is shuffled */
    int64_t batch;                    /* samples, of all parts together */
    int part, n_parts;                /* it loads part `part` of `n_parts`: 0 of 1 is all */
    bool pad;                         /* the split, to a multiple of n_parts (data.h) */
    struct el_shares shares;          /* of the parts */
    enum el_feed_what what;           /* goes to the device: the other half is loaded too, and left on the host */
};

struct el_feed {
    struct el_feed_spec spec;
    int64_t samples; /* of a batch: its number first, first + stride, ... */
    int64_t first, stride;
    const struct el_graph *graph; /* the model for rows of a batch: the spec's, or one of these */
    struct el_graph **graphs;     /* [seq + 1] by length, made when it occurs; NULL: all rows have the model's */
    int64_t n_graphs;
    uint64_t skipped; /* batches of the loader's that were left out before the step: set between steps */
    struct el_loader *loader;
    bool pinned;
    unsigned how; /* it is copied to the device, of enum el_copy_how */
    void *host_inputs, *host_labels;
    /* A step ahead: where the next batch lies on the device, on which stream it comes there, which one it is, and the
     * last op that reads it in the program in work. */
    bool ahead;
    struct el_buffer *next_inputs, *next_labels;
    int stream, read;
    uint64_t next;
};

/* After a failure too it is to be closed. */
enum el_status el_feed_open(struct el_feed *feed, const struct el_feed_spec *spec);
/* A feed of zeros is legal. */
void el_feed_close(struct el_feed *feed);

/* What the loaders of a member's `n` feeds (its micro-steps) did together; spans are the first one's. */
void el_feeds_account(const struct el_feed *feeds, int64_t n, struct el_load_account *account_p);

/* Rows of `step`: the graph becomes that of their length, which is given. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_feed_choose(struct el_feed *feed, uint64_t step, int64_t *length_p);
/* Of rows of the chosen length. */
size_t el_feed_sample_bytes(const struct el_feed *feed);
/* Before each step, between steps: where batches come a step ahead and this one is not there, it is brought. */
enum el_status el_feed_begin(struct el_feed *feed, uint64_t step);
/* Loads the step's samples and copies them to the device; buffers are allocated here (tag input), NULL for what does
 * not go there. */
void el_feed_issue(struct el_feed *feed, struct el_program *program, struct el_buffer **inputs_p,
                   struct el_buffer **labels_p);
/* At the end of the step's ops: where batches come a step ahead, the next one. */
void el_feed_issue_next(struct el_feed *feed, struct el_program *program);
