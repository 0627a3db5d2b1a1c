/* A feed: what a device is given to compute with. A loader of its part of every global batch, and the host's memory for
 * one of them. Several feeds may load for one shard: evaluation has another than training.
 *
 *     el_feed_open(&feed, &spec);
 *     el_feed_issue(&feed, program, &inputs, &labels);     in a step: loads, and copies to the device
 *     ... el_program_free(program, inputs); el_program_free(program, labels);
 *     el_feed_close(&feed);
 *
 * Shapes: inputs [samples, input of the graph], labels [samples, labels of the graph] int32.
 * Timing: loading is an op of the step, on the compute stream: making the batch, or taking it from the loader's workers
 * (config->loading) and waiting for them.
 * Ownership: the data set must outlive the feed. Threads: one at a time. Errors: EL_ERR_HOST_MEMORY, and the loader's.
 */
#ifndef EL_FEED_H
#define EL_FEED_H

#include "runtime/device/program.h"
#include "runtime/parallel/train.h"

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
    enum el_feed_what what;           /* goes to the device: the other half is loaded too, and left on the host */
};

struct el_feed {
    struct el_feed_spec spec;
    int64_t samples; /* of a batch */
    struct el_loader *loader;
    void *host_inputs;
    int32_t *host_labels;
};

/* After a failure too it is to be closed. */
enum el_status el_feed_open(struct el_feed *feed, const struct el_feed_spec *spec);
/* A feed of zeros is legal. */
void el_feed_close(struct el_feed *feed);

/* What the loaders of a member's `n` feeds (its micro-steps) did together; spans are the first one's. */
void el_feeds_account(const struct el_feed *feeds, int64_t n, struct el_load_account *account_p);

size_t el_feed_sample_bytes(const struct el_feed *feed);
/* Loads the step's samples and copies them to the device; buffers are allocated here (tag input), NULL for what does
 * not go there. */
void el_feed_issue(struct el_feed *feed, struct el_program *program, struct el_buffer **inputs_p,
                   struct el_buffer **labels_p);

#endif
