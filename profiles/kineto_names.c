/* Which events are communication, by library, and which are containers: tables of names. */
#include "profiles/kineto_names.h"

#include <string.h>
#include <strings.h>

static bool is_one_of(struct el_scan_text text, const char *const *words)
{
    while (*words && !el_scan_is(text, *words)) words++;
    return *words != NULL;
}

static bool has_one_of(struct el_scan_text text, const char *const *words)
{
    if (text.n == 0) return false;
    while (*words && !memmem(text.at, text.n, *words, strlen(*words))) words++;
    return *words != NULL;
}

static bool begins_with_one_of(struct el_scan_text text, const char *const *words)
{
    while (*words && !el_scan_begins(text, *words)) words++;
    return *words != NULL;
}

/* NCCL and RCCL; MSCCL(++), DeepEP, NVSHMEM, PyTorch's symmetric memory, vLLM's and TensorRT-LLM's all-reduce, oneCCL,
 * HCCL. */
static bool is_of_comm_library(struct el_scan_text name)
{
    static const char *const parts[] = {"rcclGenericKernel",
                                        "rcclDevKernel",
                                        "msccl",
                                        "deep_ep::",
                                        "nvshmem",
                                        "symm_mem",
                                        "multimem_",
                                        "cross_device_reduce",
                                        "one_shot_all_",
                                        "two_shot_all_",
                                        "oneccl",
                                        "allreduce_fusion_kernel",
                                        "hccl",
                                        "hcom_",
                                        "ccl_sched",
                                        NULL};
    return (el_scan_begins(name, "nccl") && memmem(name.at, name.n, "Kernel", 6)) || has_one_of(name, parts);
}

/* Of no library that is known, and yet called like a collective: it is counted as computation, and told. */
bool el_kineto_doubtful(struct el_scan_text name)
{
    static const char *const parts[] = {"allreduce",     "all_reduce", "AllReduce",  "reduce_scatter", "ReduceScatter",
                                        "reducescatter", "allgather",  "all_gather", "AllGather",      "alltoall",
                                        "all_to_all",    "AllToAll",   "all2all",    "a2a_",           "sendrecv",
                                        "SendRecv",      "p2p_copy",   "ncclx",      "peer_",          NULL};
    return has_one_of(name, parts);
}

/* `named`: its arguments say which collective it is. */
int el_kineto_on_device(struct el_scan_text cat, struct el_scan_text name, bool named)
{
    static const char *const kernels[] = {"kernel", "Kernel", NULL}, *const copies[] = {"gpu_memcpy", "gpu_memset",
                                                                                        "Memcpy", "Memset", NULL};
    if (is_one_of(cat, copies)) return el_scan_begins(name, "Memcpy PtoP") ? EL_KINETO_COMM : EL_KINETO_COPY;
    if (!is_one_of(cat, kernels)) return -1;
    if (named || is_of_comm_library(name)) return EL_KINETO_COMM;
    return el_scan_begins(name, "Memcpy") || el_scan_begins(name, "Memset") ? EL_KINETO_COPY : EL_KINETO_COMPUTE;
}

/* A container's own time is its thread's wait, or Python; what it holds is work. FSDP's are annotations too. */
int el_kineto_on_host(struct el_scan_text cat, struct el_scan_text name)
{
    static const char *const movers[] = {"gloo:", "mpi:", "nccl:", "ucc:", NULL};
    static const char *const containers[] = {"c10d::",
                                             "_c10d_functional::",
                                             "c10d_functional::",
                                             EL_KINETO_ANNOUNCES,
                                             "autograd::engine::evaluate_function",
                                             "RegisterPostBackwardFunction",
                                             "FSDP::",
                                             "FullyShardedDataParallel",
                                             "DistributedDataParallel",
                                             "Optimizer.",
                                             NULL};
    bool op = el_scan_is(cat, "cpu_op");
    if (!op && !el_scan_is(cat, "user_annotation")) return EL_KINETO_NO_WORK;
    if (begins_with_one_of(name, movers)) return EL_KINETO_COMM;
    if (begins_with_one_of(name, containers)) return EL_KINETO_CONTAINER;
    return op ? EL_KINETO_COMPUTE : EL_KINETO_NO_WORK;
}

/* PyTorch ("Float") and its gloo events ("float"); 0: unknown. */
double el_kineto_type_bytes(struct el_scan_text type)
{
    static const struct {
        const char *begin;
        double bytes;
    } types[] = {{"double", 8},        {"long", 8},  {"float8", 1}, {"float", 4}, {"int", 4},
                 {"half", 2},          {"c10::", 2}, {"bfloat", 2}, {"short", 2}, {"byte", 1},
                 {"unsigned char", 1}, {"char", 1},  {"bool", 1}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t n = strlen(types[i].begin);
        if (type.n >= n && !strncasecmp(type.at, types[i].begin, n)) return types[i].bytes;
    }
    return 0;
}

/* "_allgather_base", "gloo:all_gather", "ncclDevKernel_AllGather_RING_LL". */
enum el_comm_verb el_kineto_verb(struct el_scan_text name)
{
    static const struct {
        const char *word;
        enum el_comm_verb verb;
    } words[] = {{"allreduce", EL_COMM_ALL_REDUCE},
                 {"reducescatter", EL_COMM_REDUCE_SCATTER},
                 {"allgather", EL_COMM_ALL_GATHER},
                 {"alltoall", EL_COMM_ALL_TO_ALL},
                 {"dispatch", EL_COMM_ALL_TO_ALL}, /* of a mixture of experts */
                 {"combine", EL_COMM_ALL_TO_ALL},
                 {"crossdevicereduce", EL_COMM_ALL_REDUCE},
                 {"barrier", EL_COMM_BARRIER},
                 {"broadcast", EL_COMM_BROADCAST},
                 {"sendrecv", EL_COMM_VERB_COUNT},
                 {"reduce", EL_COMM_REDUCE},
                 {"gather", EL_COMM_GATHER},
                 {"scatter", EL_COMM_SCATTER},
                 {"send", EL_COMM_SEND},
                 {"recv", EL_COMM_RECV}};
    char letters[64];
    size_t n = 0;
    for (size_t i = 0; i < name.n && n + 1 < sizeof letters; i++) {
        char c = name.at[i];
        if (c != '_') letters[n++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    letters[n] = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(letters, words[i].word)) return words[i].verb;
    return EL_COMM_VERB_COUNT;
}
