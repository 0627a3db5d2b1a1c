/* Operations, sizes and bandwidths as nccl-tests defines them. */
#include <string.h>
#include <unistd.h>

#include "bench/comm/wire.h"
#include "bench/options/options.h"
#include "runtime/comm/rounds.h"

const struct el_wire_operation el_wire_operations[EL_WIRE_OPERATIONS] = {{"all_reduce", EL_COMM_ALL_REDUCE},
                                                                         {"broadcast", EL_COMM_BROADCAST},
                                                                         {"reduce", EL_COMM_REDUCE},
                                                                         {"all_gather", EL_COMM_ALL_GATHER},
                                                                         {"reduce_scatter", EL_COMM_REDUCE_SCATTER},
                                                                         {"alltoall", EL_COMM_ALL_TO_ALL},
                                                                         {"scatter", EL_COMM_SCATTER},
                                                                         {"gather", EL_COMM_GATHER},
                                                                         {"sendrecv", EL_COMM_SEND}};

enum { FEW_RANKS = 8 };

const char *const el_wire_places[EL_WIRE_PLACES] = {"out_of_place", "in_place", "cold"};

const char *el_wire_dtype(enum el_dtype dtype)
{
    static const char *const names[EL_DTYPE_COUNT] = {[EL_F32] = "float", [EL_F64] = "double", [EL_I32] = "int32",
                                                      [EL_U8] = "uint8",  [EL_F16] = "half",   [EL_BF16] = "bfloat16"};
    return names[dtype];
}

const char *el_wire_redop(enum el_comm_reduction reduction)
{
    return reduction == EL_COMM_PRODUCT ? "prod" : el_comm_reduction_name(reduction);
}

static bool has_parts(enum el_comm_verb verb)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(verb);
    return row->all_data || row->all_result;
}

bool el_wire_has_place(enum el_comm_verb verb, int place, uint64_t bytes)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(verb);
    if (place == EL_WIRE_COLD && bytes < EL_WIRE_COLD_BYTES) return false;
    return place == EL_WIRE_APART || !(row->all_data && row->all_result);
}

/* The host's largest cache, where the system says it; GPUs' are smaller than the most. Many ranks fill it together. */
size_t el_wire_memory_bytes(const struct el_wire_plan *plan)
{
    static const size_t least = 32 << 20, most = 128 << 20;
    size_t largest = (size_t)plan->sizes[plan->n_sizes - 1];
    long known = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t cache = known <= 0 || (size_t)known > most ? most : (size_t)known < least ? least : (size_t)known;
    if (plan->n > FEW_RANKS) cache = cache * FEW_RANKS / (size_t)plan->n;
    return plan->pairs || largest < EL_WIRE_COLD_BYTES || largest > cache ? largest : cache;
}

size_t el_wire_count(enum el_comm_verb verb, uint64_t bytes, size_t element_bytes, int n)
{
    size_t count = bytes / element_bytes;
    if (!has_parts(verb)) return count;
    return count / (size_t)n & ~(16 / element_bytes - 1);
}

uint64_t el_wire_bytes(enum el_comm_verb verb, size_t count, size_t element_bytes, int n)
{
    return (uint64_t)count * element_bytes * (uint64_t)(has_parts(verb) ? n : 1);
}

double el_wire_bus_factor(enum el_comm_verb verb, int n)
{
    double others = (double)(n - 1) / n;
    return verb == EL_COMM_ALL_REDUCE ? 2 * others : has_parts(verb) ? others : 1;
}

/* Bits of the algorithms in a list by comma. */
static enum el_status parse_algorithms(const char *list, unsigned *bits_p)
{
    const char *names[EL_COMM_ALGORITHM_COUNT + 2] = {NULL};
    unsigned bits = 0;
    for (int a = 0; a < EL_COMM_ALGORITHM_COUNT; a++) names[a] = el_comm_algorithm_name(a);
    names[EL_COMM_ALGORITHM_COUNT] = "all";
    for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        char word[32];
        int a = 0;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        while (names[a] && strcmp(names[a], word)) a++;
        if (!names[a]) return el_fail_unknown("algorithm", word, names);
        bits |= a == EL_COMM_ALGORITHM_COUNT ? (1U << EL_COMM_ALGORITHM_COUNT) - 1 - (1U << EL_COMM_AUTO) : 1U << a;
    }
    *bits_p = bits;
    return bits ? EL_OK : el_fail(EL_ERR_INVALID, "--comm-algorithm: the list is empty");
}

/* An algorithm that an operation has not is left out, but for the first: each operation has a curve. */
static void add_curves(struct el_wire_plan *plan, const struct el_wire_operation *operation, unsigned algorithms)
{
    int before = plan->n_curves;
    for (int a = 0; a < EL_COMM_ALGORITHM_COUNT; a++) {
        bool has = a == EL_COMM_AUTO || el_comm_has_algorithm(operation->verb, a);
        if (algorithms >> a & 1 && has) plan->curves[plan->n_curves++] = (struct el_wire_curve){operation, a};
    }
    if (plan->n_curves == before) plan->curves[plan->n_curves++] = (struct el_wire_curve){operation, EL_COMM_AUTO};
}

int el_wire_rows(const struct el_wire_plan *plan)
{
    int pairs = plan->pairs ? el_wire_pairs(plan->n) : 0;
    return pairs > plan->n_sizes ? pairs : plan->n_sizes;
}

void el_wire_plan_auto(struct el_wire_plan *plan)
{
    int n = 0;
    for (int c = 0; c < plan->n_curves; c++) {
        if (n > 0 && plan->curves[n - 1].operation == plan->curves[c].operation) continue;
        plan->curves[n++] = (struct el_wire_curve){plan->curves[c].operation, EL_COMM_AUTO};
    }
    plan->n_curves = n;
}

static enum el_status add_sizes(struct el_wire_plan *plan)
{
    const struct el_wire_options *options = plan->options;
    size_t width = el_dtype_bytes(options->dtype);
    if (options->max_bytes < options->min_bytes)
        return el_fail(EL_ERR_INVALID, "--maxbytes is less than --minbytes: no size lies between them");
    if ((uint64_t)options->max_bytes < width)
        return el_fail(EL_ERR_INVALID, "--maxbytes: an element has %zu bytes: give at least that", width);
    for (int64_t bytes = options->min_bytes; bytes <= options->max_bytes && plan->n_sizes < EL_WIRE_SIZES_MAX;
         bytes *= options->factor) {
        if ((uint64_t)bytes >= width) plan->sizes[plan->n_sizes++] = (uint64_t)bytes;
        if (bytes > INT64_MAX / options->factor) break;
    }
    return EL_OK;
}

enum el_status el_wire_plan_make(const char *operation, const struct el_wire_options *options, int n,
                                 struct el_wire_plan *plan_p)
{
    static const struct el_wire_operation pairs = {"p2p", EL_COMM_SEND};
    struct el_wire_plan plan = {.options = options, .n = n};
    const char *names[EL_WIRE_OPERATIONS + 3] = {NULL}, *asked = *operation ? operation : "all_reduce";
    unsigned algorithms;
    EL_TRY(parse_algorithms(options->algorithms, &algorithms));
    for (int i = 0; i < EL_WIRE_OPERATIONS; i++) {
        names[i] = el_wire_operations[i].name;
        if (!strcmp(asked, "all") || !strcmp(asked, names[i])) add_curves(&plan, &el_wire_operations[i], algorithms);
    }
    names[EL_WIRE_OPERATIONS] = "all";
    names[EL_WIRE_OPERATIONS + 1] = pairs.name;
    if (!strcmp(asked, pairs.name)) {
        plan.pairs = true;
        plan.curves[plan.n_curves++] = (struct el_wire_curve){&pairs, EL_COMM_AUTO};
        if (n < 2) return el_fail(EL_ERR_INVALID, "p2p: one rank has no partner: give --devices 2 or more");
    }
    if (plan.n_curves == 0) return el_fail_unknown("operation", asked, names);
    if (options->root >= n) return el_fail(EL_ERR_INVALID, "--root: there is no rank %d of %d", options->root, n);
    if (!el_comm_reduces(options->reduction, options->dtype))
        return el_fail(EL_ERR_INVALID, "--op %s is for integers: give --datatype int32 or uint8",
                       el_comm_reduction_name(options->reduction));
    EL_TRY(add_sizes(&plan));
    *plan_p = plan;
    return EL_OK;
}
