/* Hooks on the wire (`--comm-hook`): what ddp sends in place of a bucket's gradients, each by one row of a table. Two
 * kinds: a cast, in which the bucket is of a smaller type (el_config_reduced) and is all-reduced as ever; and a
 * compression, which has a state for each bucket and says what is sent (el_hook_ops). docs/semantics.md has the
 * definitions.
 *
 *     el_hook_read("none|f16|powersgd:R", "powersgd:4", &hook)           from an option's text, and el_hook_show back
 *     row->ops->open(&bucket, &state)                            when buckets are grouped; then in each step
 *     row->ops->start(state, program)                            the bucket is full
 *     row->ops->go_on(state, program)                            the next one is, or backward has ended
 *     row->ops->end(state, program)                              its means are wanted: they are in the bucket
 *     row->ops->close(state)
 *
 * A compression begins with the third step: buckets are rebuilt after the first one, and PyTorch's PowerSGD waits for
 * that too (its start_powerSGD_iter is at least 2).
 *
 * What is computed is put on the compute stream, so that no wait for a collective stands before backward's ops but
 * where a later bucket is full already. Memory: tag hook, from open to close. Ownership: shard, communicator, buffer
 * and places are the caller's. Threads: the worker's. Errors: of open EL_ERR_OOM, EL_ERR_HOST_MEMORY, EL_ERR_INVALID;
 * the others' are the program's.
 */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/state/shard.h"

enum { EL_HOOK_ROUND = 2 };

struct el_hook_bucket {
    const struct el_shard *shard;
    struct el_comm *comm;
    struct el_buffer *buffer;
    int64_t count, n_plain; /* elements; those before the first gradient that the hook takes */
    int number;
    const int *params; /* [n]: whose gradients are compressed, in their order in the buffer, one behind the other */
    int n;
};

struct el_hook_ops {
    /* Optional: default is each. Whether a parameter's gradient is compressed; others stand before it in the bucket. */
    bool (*takes)(const struct el_shard *shard, int param);
    enum el_status (*open)(const struct el_hook_bucket *bucket, void **state_p);
    void (*start)(void *state, struct el_program *program);
    /* Optional: default is nothing. */
    void (*go_on)(void *state, struct el_program *program);
    void (*end)(void *state, struct el_program *program);
    void (*close)(void *state); /* NULL is legal */
};

struct el_hook_row {
    const char *name;
    const char *amount; /* what the number behind its name is called: "R"; NULL: it has none */
    double least, most;
    const char *sends, *state, *source; /* in words: of a bucket; kept from step to step; the definition's */
    const struct el_hook_ops *ops;      /* NULL: a cast */
};

const struct el_hook_row *el_hook_row(enum el_hook_kind kind);
/* `choices`: those that the mode has. Errors: EL_ERR_INVALID. */
enum el_status el_hook_read(const char *choices, const char *text, struct el_hook *hook_p);
void el_hook_show(const struct el_hook *hook, char *text, size_t bytes);

extern const struct el_hook_ops el_hook_powersgd;
