/* A feed: the loader of a device's part of every global batch, and host memory for one. A shard may have several
 * (evaluation has its own).
 *
 *     el_feed_open(&feed, &spec);
 *     el_feed_issue(&feed, program, &inputs, &labels);     in a step: loads, and copies to the device
 *     ... el_program_free(program, inputs); el_program_free(program, labels);
 *     el_feed_close(&feed);
 *
 * Shapes: inputs [samples, input of the graph], labels [samples, labels of the graph] int32. With
 * config->length_by_batch `graph` is the model for the rows' length from el_feed_choose, and ops are valid for that
 * length only. Loading is an op on the compute stream. With EL_TRANSFER_AHEAD it is the last op, on its own stream, for
 * the next batch; a step then begins with a copy within the device. Ownership: the data set must outlive the feed.
 * Threads: one at a time. Errors: EL_ERR_HOST_MEMORY, and the loader's. */
#pragma once

#include "runtime/device/program.h"
#include "runtime/layout/config.h"

/* A model with stages gets inputs at its first part and labels at its last. Feeds of parts between count epochs, and
 * load nothing. */
enum el_feed_what { EL_FEED_ALL, EL_FEED_INPUTS, EL_FEED_LABELS, EL_FEED_NOTHING };

struct el_feed_spec {
    const struct el_train_config *config;
    const struct el_graph *graph; /* the model with the input */
    struct el_device *device;
    const struct el_dataset *dataset; /* NULL: only sizes (predictions) */
    enum el_data_split split;         /* training's is shuffled */
    int64_t batch;                    /* samples, in all parts */
    int part, n_parts;                /* loads part `part` of `n_parts`; 0 of 1: all */
    bool pad;                         /* pad the split to a multiple of n_parts (data.h) */
    struct el_shares shares;
    enum el_feed_what what; /* goes to the device; the other half is loaded too, but stays on the host */
};

struct el_feed {
    struct el_feed_spec spec;
    int64_t samples; /* of a batch: first, first + stride, ... */
    int64_t first, stride;
    const struct el_graph *graph; /* the model for the rows' length: the spec's, or one of these */
    struct el_graph **graphs;     /* [seq + 1] by length, made on demand; NULL: all rows have the model's length */
    int64_t n_graphs;
    uint64_t skipped; /* the loader's batches left out before the step; set between steps */
    struct el_loader *loader;
    bool pinned;
    unsigned how; /* of the copy to the device, of enum el_copy_how */
    void *host_inputs, *host_labels;
    /* A step ahead: the next batch on the device, its stream and number, and the current program's last op that reads
     * it. */
    bool ahead;
    struct el_buffer *next_inputs, *next_labels;
    int stream, read;
    uint64_t next;
};

/* Close it after a failure too. */
enum el_status el_feed_open(struct el_feed *feed, const struct el_feed_spec *spec);
void el_feed_close(struct el_feed *feed); /* A zeroed feed is legal */

/* Sums the accounts of a member's `n` feeds (micro-steps); spans are the first one's. */
void el_feeds_account(const struct el_feed *feeds, int64_t n, struct el_load_account *account_p);

/* Chooses the graph for `step`'s length of rows, which is returned. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_feed_choose(struct el_feed *feed, uint64_t step, int64_t *length_p);
size_t el_feed_sample_bytes(const struct el_feed *feed);
/* Before each step: fetches this step's batch if batches are made ahead and it is missing. */
enum el_status el_feed_begin(struct el_feed *feed, uint64_t step);
/* Loads the step's samples and copies them to the device; allocates buffers (tag input), NULL for data that stays on
 * the host. */
void el_feed_issue(struct el_feed *feed, struct el_program *program, struct el_buffer **inputs_p,
                   struct el_buffer **labels_p);
/* At the end of a step's ops: the next batch, if made ahead. */
void el_feed_issue_next(struct el_feed *feed, struct el_program *program);
