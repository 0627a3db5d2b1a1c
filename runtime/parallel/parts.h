/* The model of a job, and the parts into which its layout cuts it along its depth: one a stage.
 *
 *     el_parts_open(&config, layout.n_stages, &parts);
 *     parts.stage[spot->stage]      what a device of that stage trains; parts.model itself where nothing is cut
 *     el_parts_close(&parts);
 *
 * Where the cuts are: config.cut. Names of nodes, comma-separated: the first of each later part. Or `time`, `memory`,
 * `nodes`: such that the largest part has as little as can be, of its FLOPs (forward and backward, as its kernels count
 * them), of its parameters, or of its nodes.
 *
 * Ownership: the graphs are the parts'; constant once open. Threads: one opens and closes; any reads.
 */
#ifndef EL_PARTS_H
#define EL_PARTS_H

#include "runtime/graph/part.h"
#include "runtime/graph/pass.h"
#include "runtime/parallel/train.h"

struct el_parts {
    struct el_graph *model;
    int n;
    struct el_graph *stage[EL_MEMBERS_MAX]; /* [n] */
};

/* Errors: EL_ERR_INVALID naming --cut: a node that there is not, more parts than nodes, a cut that the model does not
 * allow; EL_ERR_HOST_MEMORY. After a failure too it may be closed. */
enum el_status el_parts_open(const struct el_train_config *config, int n, struct el_parts *parts);
/* Parts of zeros are legal. */
void el_parts_close(struct el_parts *parts);

#endif
