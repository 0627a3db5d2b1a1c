/* Tables of verbs, reductions and algorithms; tasks as headers and in error messages. */
#include <inttypes.h>
#include <stdio.h>

#include "runtime/comm/comm_ops.h"

static const struct el_comm_verb_row verbs[EL_COMM_VERB_COUNT] = {
    [EL_COMM_ALL_REDUCE] = {.name = "all_reduce", .reduces = true},
    [EL_COMM_BROADCAST] = {.name = "broadcast", .has_root = true, .data_on_root = true},
    [EL_COMM_REDUCE] = {.name = "reduce", .has_root = true, .reduces = true, .result_on_root = true},
    [EL_COMM_REDUCE_SCATTER] = {.name = "reduce_scatter", .reduces = true, .all_data = true},
    [EL_COMM_ALL_GATHER] = {.name = "all_gather", .all_result = true},
    [EL_COMM_SCATTER] = {.name = "scatter", .has_root = true, .data_on_root = true, .all_data = true},
    [EL_COMM_GATHER] = {.name = "gather", .has_root = true, .result_on_root = true, .all_result = true},
    [EL_COMM_ALL_TO_ALL] = {.name = "all_to_all", .all_data = true, .all_result = true},
    [EL_COMM_SEND] = {.name = "send", .has_root = true, .is_link = true},
    [EL_COMM_RECV] = {.name = "recv", .has_root = true, .is_link = true},
    [EL_COMM_BARRIER] = {.name = "barrier"},
};

static const char *const reductions[EL_COMM_REDUCTION_COUNT] = {
    [EL_COMM_SUM] = "sum",     [EL_COMM_PRODUCT] = "product", [EL_COMM_MIN] = "min", [EL_COMM_MAX] = "max",
    [EL_COMM_AVERAGE] = "avg", [EL_COMM_AND] = "and",         [EL_COMM_OR] = "or",   [EL_COMM_XOR] = "xor",
};

static const char *const algorithms[EL_COMM_ALGORITHM_COUNT] = {
    [EL_COMM_AUTO] = "auto", [EL_COMM_DIRECT] = "direct", [EL_COMM_RING] = "ring", [EL_COMM_PS] = "ps"};

const struct el_comm_verb_row *el_comm_verb_row(enum el_comm_verb verb)
{
    return &verbs[verb];
}

const char *el_comm_reduction_name(enum el_comm_reduction reduction)
{
    return reductions[reduction];
}

const char *el_comm_algorithm_name(enum el_comm_algorithm algorithm)
{
    return algorithms[algorithm];
}

bool el_comm_reduces(enum el_comm_reduction reduction, enum el_dtype dtype)
{
    return reduction < EL_COMM_AND || dtype == EL_I32 || dtype == EL_U8;
}

struct el_comm_header el_comm_task_header(const struct el_comm_task *task)
{
    return (struct el_comm_header){.verb = (uint16_t)task->verb,
                                   .reduction = (uint16_t)task->reduction,
                                   .dtype = (uint16_t)task->dtype,
                                   .algorithm = (uint16_t)task->algorithm,
                                   .root = task->root,
                                   .count = task->count,
                                   .number = task->number};
}

struct el_comm_task el_comm_header_task(const struct el_comm_header *header)
{
    return (struct el_comm_task){.verb = header->verb < EL_COMM_VERB_COUNT ? header->verb : EL_COMM_BARRIER,
                                 .reduction = header->reduction % EL_COMM_REDUCTION_COUNT,
                                 .dtype = header->dtype % EL_DTYPE_COUNT,
                                 .algorithm = header->algorithm % EL_COMM_ALGORITHM_COUNT,
                                 .root = header->root,
                                 .count = header->count,
                                 .number = header->number};
}

void el_comm_task_words(const struct el_comm_task *task, char words[EL_COMM_WORDS_BYTES])
{
    const struct el_comm_verb_row *row = &verbs[task->verb];
    char root[32] = "", reduction[16] = "";
    if (row->has_root) snprintf(root, sizeof root, ", %s %d", row->is_link ? "partner" : "root", task->root);
    if (row->reduces) snprintf(reduction, sizeof reduction, ", %s", reductions[task->reduction]);
    snprintf(words, EL_COMM_WORDS_BYTES, "%s number %" PRIu64 " (%zu %s%s%s)", row->name, task->number, task->count,
             el_dtype_name(task->dtype), reduction, root);
}

enum el_status el_comm_fail_different(const char *backend, int rank, const struct el_comm_task *task, int other_rank,
                                      const struct el_comm_task *other)
{
    char words[EL_COMM_WORDS_BYTES], other_words[EL_COMM_WORDS_BYTES];
    el_comm_task_words(task, words);
    el_comm_task_words(other, other_words);
    return el_fail(EL_ERR_INTERNAL,
                   "%s communicator: members issued different operations: rank %d the %s, rank %d the %s", backend,
                   rank, words, other_rank, other_words);
}
