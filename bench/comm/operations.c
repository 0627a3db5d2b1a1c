/* Operations, sizes and bandwidths as nccl-tests defines them. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "bench/comm/wire.h"
#include "bench/options/options.h"
#include "runtime/comm/rounds.h"

const struct el_wire_operation el_wire_operations[EL_WIRE_OPERATIONS] = {
    {.name = "all_reduce", .verb = EL_COMM_ALL_REDUCE},
    {.name = "broadcast", .verb = EL_COMM_BROADCAST},
    {.name = "reduce", .verb = EL_COMM_REDUCE},
    {.name = "all_gather", .verb = EL_COMM_ALL_GATHER},
    {.name = "reduce_scatter", .verb = EL_COMM_REDUCE_SCATTER},
    {.name = "alltoall", .verb = EL_COMM_ALL_TO_ALL},
    {.name = "alltoallv", .verb = EL_COMM_ALL_TO_ALL, .uneven = true},
    {.name = "scatter", .verb = EL_COMM_SCATTER},
    {.name = "gather", .verb = EL_COMM_GATHER},
    {.name = "sendrecv", .verb = EL_COMM_SEND},
    {.name = "barrier", .verb = EL_COMM_BARRIER}};

enum { FEW_RANKS = 8 };

const char *const el_wire_places[EL_WIRE_PLACES] = {"out_of_place", "in_place", "cold"};

const char *el_wire_dtype(enum el_dtype dtype)
{
    static const char *const names[EL_DTYPE_COUNT] = {[EL_F32] = "float", [EL_F64] = "double", [EL_I32] = "int32",
                                                      [EL_U8] = "uint8",  [EL_F16] = "half",   [EL_BF16] = "bfloat16"};
    return dtype == EL_DTYPE_COUNT ? "all" : names[dtype];
}

const char *el_wire_redop(enum el_comm_reduction reduction)
{
    if (reduction == EL_COMM_REDUCTION_COUNT) return "all";
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
    if (verb == EL_COMM_BARRIER) return place == EL_WIRE_APART;
    return place == EL_WIRE_APART || !(row->all_data && row->all_result);
}

/* The host's largest cache if the system reports it; GPUs' caches are smaller than `most`. Many ranks fill it
 * together. */
size_t el_wire_memory_bytes(const struct el_wire_plan *plan)
{
    static const size_t least = 32 << 20, most = 128 << 20;
    size_t largest = (size_t)plan->sizes[plan->n_sizes - 1];
    long known = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t cache = known <= 0 || (size_t)known > most ? most : (size_t)known < least ? least : (size_t)known;
    if (plan->n > FEW_RANKS) cache = cache * FEW_RANKS / (size_t)plan->n;
    return largest < EL_WIRE_COLD_BYTES || largest > cache ? largest : cache;
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

bool el_wire_size(const struct el_wire_plan *plan, const struct el_wire_curve *curve, int s, size_t *count_p,
                  uint64_t *bytes_p)
{
    enum el_comm_verb verb = curve->operation->verb;
    struct el_wire_data data = {.verb = verb, .dtype = curve->dtype, .n = plan->n, .uneven = curve->operation->uneven};
    size_t width = el_dtype_bytes(curve->dtype);
    data.count = verb == EL_COMM_BARRIER ? 0 : el_wire_count(verb, plan->sizes[s], width, plan->n);
    *count_p = data.count;
    *bytes_p =
        data.uneven ? el_wire_part_sent_at(&data, 0, plan->n) * width : el_wire_bytes(verb, data.count, width, plan->n);
    return *bytes_p > 0 || (verb == EL_COMM_BARRIER && s == 0);
}

double el_wire_bus_factor(enum el_comm_verb verb, int n)
{
    double others = (double)(n - 1) / n;
    return verb == EL_COMM_ALL_REDUCE ? 2 * others : has_parts(verb) ? others : 1;
}

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

struct asked {
    unsigned algorithms; /* bits */
    int first_root, last_root;
};

static enum el_status parse_root(const char *text, int n, struct asked *asked)
{
    char *end;
    long root = strtol(text, &end, 10);
    asked->last_root = n - 1;
    if (!strcmp(text, "all")) return EL_OK;
    if (end == text || *end || root < 0)
        return el_fail(EL_ERR_INVALID, "--root: '%.32s' is no rank: give a number from 0 on, or all", text);
    if (root >= n) return el_fail(EL_ERR_INVALID, "--root: there is no rank %ld of %d", root, n);
    asked->first_root = asked->last_root = (int)root;
    return EL_OK;
}

/* Each operation has a curve: its first algorithm is never skipped. */
static enum el_status add_algorithms(struct el_wire_plan *plan, struct el_wire_curve curve, unsigned algorithms)
{
    int before = plan->n_curves;
    if (before + EL_COMM_ALGORITHM_COUNT > EL_WIRE_CURVES_MAX)
        return el_fail(EL_ERR_INVALID, "comm: more than %d tables: ask for fewer types, reductions, roots or cycles",
                       EL_WIRE_CURVES_MAX - EL_COMM_ALGORITHM_COUNT);
    for (curve.algorithm = 0; curve.algorithm < EL_COMM_ALGORITHM_COUNT; curve.algorithm++) {
        bool has = curve.algorithm == EL_COMM_AUTO ||
                   (!curve.operation->uneven && el_comm_has_algorithm(curve.operation->verb, curve.algorithm));
        if (algorithms >> curve.algorithm & 1 && has) plan->curves[plan->n_curves++] = curve;
    }
    curve.algorithm = EL_COMM_AUTO;
    if (plan->n_curves == before) plan->curves[plan->n_curves++] = curve;
    return EL_OK;
}

static enum el_status add_curves(struct el_wire_plan *plan, const struct el_wire_operation *operation,
                                 const struct asked *asked)
{
    const struct el_wire_options *options = plan->options;
    const struct el_comm_verb_row *row = el_comm_verb_row(operation->verb);
    bool rooted = row->has_root && !row->is_link;
    struct el_wire_curve curve = {.operation = operation};
    for (enum el_dtype type = 0; type < EL_DTYPE_COUNT; type++)
        for (enum el_comm_reduction how = 0; how < EL_COMM_REDUCTION_COUNT; how++) {
            bool wanted = options->reduction == how || (options->reduction == EL_COMM_REDUCTION_COUNT &&
                                                        (row->reduces ? el_comm_reduces(how, type) : how == 0));
            curve.dtype = type;
            curve.reduction = how;
            curve.root = asked->first_root;
            if (!wanted || (options->dtype != EL_DTYPE_COUNT && options->dtype != type)) continue;
            if (row->reduces && !el_comm_reduces(how, type)) continue;
            for (; curve.root <= (rooted ? asked->last_root : asked->first_root); curve.root++)
                for (curve.cycle = 0; curve.cycle < options->cycles; curve.cycle++)
                    EL_TRY(add_algorithms(plan, curve, asked->algorithms));
        }
    return EL_OK;
}

int el_wire_series(const struct el_wire_plan *plan)
{
    return plan->options->overlap ? EL_WIRE_SERIES : EL_WIRE_PLACES;
}

void el_wire_plan_auto(struct el_wire_plan *plan)
{
    int n = 0;
    for (int c = 0; c < plan->n_curves; c++) {
        const struct el_wire_curve *curve = &plan->curves[c], *last = n > 0 ? &plan->curves[n - 1] : NULL;
        if (last && last->operation == curve->operation && last->dtype == curve->dtype && last->root == curve->root &&
            last->reduction == curve->reduction && last->cycle == curve->cycle)
            continue;
        plan->curves[n] = *curve;
        plan->curves[n++].algorithm = EL_COMM_AUTO;
    }
    plan->n_curves = n;
}

static enum el_status add_sizes(struct el_wire_plan *plan)
{
    const struct el_wire_options *options = plan->options;
    size_t width = el_dtype_bytes(plan->copied);
    int64_t step = options->step_bytes, factor = step ? 1 : options->factor;
    if (options->max_bytes < options->min_bytes)
        return el_fail(EL_ERR_INVALID, "--maxbytes is less than --minbytes: no size lies between them");
    if ((uint64_t)options->max_bytes < width)
        return el_fail(EL_ERR_INVALID, "--maxbytes: an element has %zu bytes: give at least that", width);
    for (int64_t bytes = options->min_bytes; bytes <= options->max_bytes; bytes = bytes * factor + step) {
        if (plan->n_sizes == EL_WIRE_SIZES_MAX)
            return el_fail(EL_ERR_INVALID, "--stepbytes: more than %d sizes: give a larger step", EL_WIRE_SIZES_MAX);
        if ((uint64_t)bytes >= width) plan->sizes[plan->n_sizes++] = (uint64_t)bytes;
        if (bytes > (INT64_MAX - step) / factor) break;
    }
    return EL_OK;
}

static enum el_status check_flags(const struct el_wire_options *options)
{
    bool all = options->dtype == EL_DTYPE_COUNT || options->reduction == EL_COMM_REDUCTION_COUNT;
    if (!all && !el_comm_reduces(options->reduction, options->dtype))
        return el_fail(EL_ERR_INVALID, "--op %s is for integers: give --datatype int32 or uint8",
                       el_comm_reduction_name(options->reduction));
    if (options->blocking == 2)
        return el_fail(EL_ERR_INVALID, "--blocking 2: operations of a stream follow one another, and the host waits "
                                       "for none of them: give 0, or 1 with a barrier");
    return EL_OK;
}

enum el_status el_wire_take_flags(struct el_options *options, bool rank)
{
    struct el_wire_options *wire = &options->wire;
    int n = wire->threads * wire->gpus;
    char text[32];
    bool given = el_option_given(options, "ngpus") || el_option_given(options, "nthreads");
    if (wire->step_bytes && el_option_given(options, "stepfactor"))
        return el_fail(EL_ERR_INVALID, "--stepbytes and --stepfactor: sizes grow in one way: give one");
    if (!given || (rank && n == 1)) return EL_OK;
    if (rank)
        return el_fail(EL_ERR_INVALID,
                       "--ngpus %d, --nthreads %d: a rank has one device here: leave them out, and "
                       "start %d times as many ranks",
                       wire->gpus, wire->threads, n);
    if (options->n_devices)
        return el_fail(EL_ERR_INVALID, "--devices says which devices, --ngpus and --nthreads how many: give one");
    if (n > EL_MEMBERS_MAX) return el_fail(EL_ERR_INVALID, "--ngpus: %d devices: at most %d", n, EL_MEMBERS_MAX);
    EL_TRY(el_devices_default(options->devices, &options->n_devices));
    bool gpus = el_backend_facts(options->devices[0].backend).gpu;
    snprintf(text, sizeof text, "%s%d", gpus ? "cuda:" : "", n);
    EL_TRY(el_devices_parse(text, options->devices, &options->n_devices));
    if (!el_option_given(options, "comm")) snprintf(options->comm, sizeof options->comm, "local");
    wire->threads = wire->gpus = 1;
    return EL_OK;
}

enum el_status el_wire_color(const char *text, int rank, int *color_p)
{
    static const char *const words[] = {"and", "&", "or", "|", "mod", "%", "div", "/"};
    size_t word = 0;
    while (word < 8 && strncasecmp(text, words[word], strlen(words[word])) != 0) word++;
    bool listed = word == 8;
    const char *at = listed ? text : text + strlen(words[word]);
    at += strspn(at, " ");
    bool binary = !listed && !strncasecmp(at, "0b", 2);
    *color_p = -1;
    for (bool more = true; more;) {
        char *end;
        long value = strtol(at + 2 * binary, &end, binary ? 2 : listed ? 10 : 0);
        bool wrong = end == at || value < 0 || value > INT_MAX || (word >= 4 && !listed && value == 0);
        if (wrong || (*end && !(listed && *end == ',')))
            return el_fail(EL_ERR_INVALID, "--group: '%.40s' must be like 0,1 or 'mod 2' (and, or, mod, div)", text);
        const int by = (int)value, div = by ? by : 1, colors[] = {rank & by, rank | by, rank % div, rank / div};
        if (!listed) *color_p = colors[word / 2];
        if (listed && value == rank) *color_p = 0;
        more = *end == ',';
        at = end + 1;
    }
    return EL_OK;
}

/* Sets plan->n to a group's size. */
static enum el_status add_groups(struct el_wire_plan *plan, int n)
{
    int sizes[EL_MEMBERS_MAX] = {0}, firsts[EL_MEMBERS_MAX];
    for (int r = 0; r < n && *plan->options->group; r++) {
        int g = 0;
        EL_TRY(el_wire_color(plan->options->group, r, &plan->colors[r]));
        while (g < plan->n_groups && firsts[g] != plan->colors[r]) g++;
        if (plan->colors[r] < 0) continue;
        firsts[g] = plan->colors[r];
        sizes[g]++;
        if (g == plan->n_groups) plan->n_groups++;
    }
    for (int g = 1; g < plan->n_groups; g++)
        if (sizes[g] != sizes[0])
            return el_fail(EL_ERR_INVALID, "--group %s: groups of %d and of %d ranks: all must have as many",
                           plan->options->group, sizes[0], sizes[g]);
    if (*plan->options->group && plan->n_groups == 0)
        return el_fail(EL_ERR_INVALID, "--group %s: none of %d ranks is in it", plan->options->group, n);
    if (plan->n_groups > 0) plan->n = sizes[0];
    return EL_OK;
}

enum el_status el_wire_plan_make(const char *operation, const struct el_wire_options *options, int n,
                                 struct el_wire_plan *plan_p)
{
    struct el_wire_plan plan = {.options = options, .n = n};
    const char *names[EL_WIRE_OPERATIONS + 2] = {NULL}, *asked = *operation ? operation : "all_reduce";
    struct asked given = {.first_root = 0};
    plan.copied = options->dtype == EL_DTYPE_COUNT ? EL_U8 : options->dtype;
    EL_TRY(parse_algorithms(options->algorithms, &given.algorithms));
    EL_TRY(check_flags(options));
    EL_TRY(add_groups(&plan, n));
    EL_TRY(parse_root(options->root, plan.n, &given));
    for (int i = 0; i < EL_WIRE_OPERATIONS; i++) {
        names[i] = el_wire_operations[i].name;
        if (!strcmp(asked, "all") || !strcmp(asked, names[i]))
            EL_TRY(add_curves(&plan, &el_wire_operations[i], &given));
    }
    names[EL_WIRE_OPERATIONS] = "all";
    if (!strcmp(asked, "p2p")) return el_fail(EL_ERR_INVALID, "p2p: 'evenload fleet' measures all pairs");
    if (plan.n_curves == 0) return el_fail_unknown("operation", asked, names);
    EL_TRY(add_sizes(&plan));
    *plan_p = plan;
    return EL_OK;
}
