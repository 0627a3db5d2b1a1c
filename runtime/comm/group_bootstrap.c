/* Gathers and broadcasts of a bootstrap as a communicator's operations on bytes. */
#include "runtime/comm/group_bootstrap.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/comm/bootstrap_ops.h"

struct world {
    struct el_bootstrap base;
    const struct el_comm_ops *ops;
    void *state;
};

static enum el_status run(struct el_bootstrap *bootstrap, enum el_comm_verb verb, const void *data, void *result,
                          size_t bytes)
{
    const struct world *world = (const struct world *)bootstrap;
    const struct el_comm_task task = {.verb = verb,
                                      .dtype = EL_U8,
                                      .algorithm = EL_COMM_DIRECT,
                                      .count = bytes,
                                      .data = (void *)data,
                                      .result = result};
    return world->ops->run(world->state, &task);
}

/* All texts as long as the longest one, with its end. `all`: [size * bytes] on rank 0, NULL elsewhere. */
static enum el_status gather_padded(struct el_bootstrap *bootstrap, const char *text, char *mine, char *all,
                                    size_t bytes, char **texts)
{
    strcpy(mine, text); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): `mine` has room for the longest text */
    EL_TRY(run(bootstrap, EL_COMM_GATHER, mine, all, bytes));
    for (int i = 0; texts && i < bootstrap->size; i++)
        if (!(texts[i] = strdup(all + (size_t)i * bytes))) return el_fail(EL_ERR_HOST_MEMORY, "gather: no memory");
    return EL_OK;
}

static enum el_status gather(struct el_bootstrap *bootstrap, const char *text, char **texts)
{
    uint64_t length = strlen(text) + 1, most = 0;
    const struct world *world = (const struct world *)bootstrap;
    const struct el_comm_task longest = {.verb = EL_COMM_ALL_REDUCE,
                                         .reduction = EL_COMM_MAX,
                                         .dtype = EL_I32,
                                         .algorithm = EL_COMM_DIRECT,
                                         .count = 1,
                                         .data = &(int32_t){(int32_t)length},
                                         .result = &(int32_t){0}};
    EL_TRY(world->ops->run(world->state, &longest));
    most = (uint64_t) * (const int32_t *)longest.result;
    char *mine = calloc(1, most), *all = texts ? calloc((size_t)bootstrap->size, most) : NULL;
    enum el_status status = mine && (all || !texts) ? gather_padded(bootstrap, text, mine, all, most, texts)
                                                    : el_fail(EL_ERR_HOST_MEMORY, "gather: no memory");
    free(mine);
    free(all);
    return status;
}

static enum el_status broadcast(struct el_bootstrap *bootstrap, void *data, size_t bytes)
{
    return run(bootstrap, EL_COMM_BROADCAST, data, data, bytes);
}

static void close_world(struct el_bootstrap *bootstrap)
{
    free(bootstrap);
}

static const struct el_bootstrap_ops group_ops = {
    .kind = "group", .gather = gather, .broadcast = broadcast, .close = close_world};

enum el_status el_bootstrap_open_group(const struct el_comm_ops *ops, void *state, int rank, int size,
                                       struct el_bootstrap **bootstrap_p)
{
    struct world *world = calloc(1, sizeof *world);
    if (!world) return el_fail(EL_ERR_HOST_MEMORY, "bootstrap group: no memory");
    *world = (struct world){.base = {.ops = &group_ops, .rank = rank, .size = size}, .ops = ops, .state = state};
    *bootstrap_p = &world->base;
    return EL_OK;
}
