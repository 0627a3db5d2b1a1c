/* The arithmetic of `evenload comm`, on timelines made by hand whose answers are known: bandwidths, the fitted line,
 * data and their check, what becomes of samples, and the judgement. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/comm/wire.h"
#include "tests/conformance/comm_values.h"
#include "tests/unit/figure_data.h"

static const struct el_wire_options usual = {.min_bytes = 1024,
                                             .max_bytes = 4194304,
                                             .factor = 4096,
                                             .iters = 3,
                                             .check = 1,
                                             .average = 3,
                                             .aggregate = 1,
                                             .cycles = 1,
                                             .blocking = 3,
                                             .root = "0",
                                             .algorithms = "auto"};

/* The factors of nccl-tests' doc/PERFORMANCE.md. */
static void bandwidths_are_those_of_nccl_tests(void **state)
{
    static const struct {
        const char *name;
        double of_2, of_8;
    } known[] = {
        {"all_reduce", 1, 1.75},        {"broadcast", 1, 1},      {"reduce", 1, 1},          {"all_gather", 0.5, 0.875},
        {"reduce_scatter", 0.5, 0.875}, {"alltoall", 0.5, 0.875}, {"alltoallv", 0.5, 0.875}, {"scatter", 0.5, 0.875},
        {"gather", 0.5, 0.875},         {"sendrecv", 1, 1},       {"barrier", 1, 1}};
    for (int i = 0; i < EL_WIRE_OPERATIONS; i++) {
        const struct el_wire_operation *operation = &el_wire_operations[i];
        assert_string_equal(operation->name, known[i].name);
        assert_true(fabs(el_wire_bus_factor(operation->verb, 2) - known[i].of_2) < 1e-12);
        assert_true(fabs(el_wire_bus_factor(operation->verb, 8) - known[i].of_8) < 1e-12);
    }
}

/* Of operations with a part a rank whole 16 bytes a part; the size is of all parts. */
static void sizes_are_those_of_nccl_tests(void **state)
{
    assert_int_equal(el_wire_count(EL_COMM_ALL_REDUCE, 1030, 4, 3), 257);
    assert_int_equal(el_wire_bytes(EL_COMM_ALL_REDUCE, 257, 4, 3), 1028);
    assert_int_equal(el_wire_count(EL_COMM_ALL_GATHER, 1024, 4, 3), 84);
    assert_int_equal(el_wire_bytes(EL_COMM_ALL_GATHER, 84, 4, 3), 1008);
    assert_int_equal(el_wire_count(EL_COMM_ALL_TO_ALL, 8, 4, 2), 0);
    assert_int_equal(el_wire_count(EL_COMM_SEND, 8, 8, 2), 1);
}

enum { RANKS = 3, COUNT = 100 };

/* Memory of a device that the host can read: of each rank, and for a result. */
static struct el_device *device;
static struct el_buffer *buffers[RANKS + 1];

static char *memory(int i)
{
    return (char *)buffers[i]->address;
}

static int open_device(void **state)
{
    const struct el_device_spec spec = {.backend = "null"};
    assert_int_equal(el_device_open(&spec, &device), EL_OK);
    for (int i = 0; i <= RANKS; i++)
        assert_int_equal(el_device_alloc(device, EL_TAG_WORKSPACE, RANKS * COUNT * sizeof(double), "data", &buffers[i]),
                         EL_OK);
    return 0;
}

static int close_device(void **state)
{
    for (int i = 0; i <= RANKS; i++) el_device_free(buffers[i]);
    el_device_close(device);
    return 0;
}

/* A reduce-scatter of known data is right, one element that is off is found, and so is another rank's part. */
static void check_reduction(enum el_comm_reduction reduction, enum el_dtype dtype)
{
    struct el_wire_data data = {EL_COMM_REDUCE_SCATTER, reduction, dtype, RANKS, 0, COUNT, false};
    const struct el_view seen = el_view_of(buffers[RANKS], 0);
    char *result = memory(RANKS);
    int64_t wrong = -1;
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(el_wire_fill(&data, r, (size_t)RANKS * COUNT, el_view_of(buffers[r], 0), false), EL_OK);
    for (size_t i = 0; i < COUNT; i++) {
        size_t at = COUNT + i; /* of rank 1's part */
        int64_t value = (int64_t)case_load(memory(0), dtype, at);
        for (int r = 1; r < RANKS; r++)
            value = case_combine(reduction, value, (int64_t)case_load(memory(r), dtype, at));
        case_store(result, dtype, i, reduction == EL_COMM_AVERAGE ? value / RANKS : value);
    }
    assert_int_equal(el_wire_check(&data, 1, seen, &wrong), EL_OK);
    assert_int_equal(wrong, 0);
    case_store(result, dtype, 7, 125);
    assert_int_equal(el_wire_check(&data, 1, seen, &wrong), EL_OK);
    assert_int_equal(wrong, 1);
    assert_int_equal(el_wire_check(&data, 2, seen, &wrong), EL_OK);
    assert_true(wrong > 1 || reduction == EL_COMM_AND || reduction == EL_COMM_PRODUCT);
}

static void data_are_checked(void **state)
{
    for (int r = 0; r < EL_COMM_REDUCTION_COUNT; r++)
        for (int t = 0; t < EL_DTYPE_COUNT; t++)
            if (el_comm_reduces(r, t)) check_reduction(r, t);
}

/* Parts in the wrong order are wrong. */
static void parts_have_their_places(void **state)
{
    static const enum el_comm_verb verbs[] = {EL_COMM_ALL_GATHER, EL_COMM_ALL_TO_ALL};
    for (size_t v = 0; v < 2; v++) {
        struct el_wire_data data = {verbs[v], EL_COMM_SUM, EL_F32, RANKS, 0, COUNT, false};
        const struct el_view seen = el_view_of(buffers[RANKS], 0);
        const float *given = (const float *)buffers[0]->address;
        float *result = (float *)buffers[RANKS]->address;
        size_t begin = verbs[v] == EL_COMM_ALL_TO_ALL ? 2 * COUNT : 0; /* as rank 2 sees it */
        int64_t wrong = -1;
        for (int r = 0; r < RANKS; r++) {
            assert_int_equal(el_wire_fill(&data, r, (size_t)RANKS * COUNT, el_view_of(buffers[0], 0), false), EL_OK);
            memcpy(result + (size_t)r * COUNT, given + begin, COUNT * sizeof *result);
        }
        assert_int_equal(el_wire_check(&data, 2, seen, &wrong), EL_OK);
        assert_int_equal(wrong, 0);
        memcpy(result, result + COUNT, COUNT * sizeof *result);
        assert_int_equal(el_wire_check(&data, 2, seen, &wrong), EL_OK);
        assert_true(wrong > COUNT / 2);
    }
}

/* Of 4 ranks that give 1200 bytes each: 1, 2 and 3 sixths to the next ones, in whole 16 bytes, as nccl-tests. Of 3
 * ranks what is got in the right order is right, and parts that changed places are wrong. */
static void parts_are_uneven(void **state)
{
    struct el_wire_data of_4 = {EL_COMM_ALL_TO_ALL, EL_COMM_SUM, EL_F32, 4, 0, 75, true}, data = of_4;
    static const size_t bytes[] = {0, 192, 400, 592};
    const struct el_view seen = el_view_of(buffers[RANKS], 0);
    int64_t wrong = -1;
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++) assert_int_equal(el_wire_part(&of_4, from, to), bytes[(to - from + 4) % 4] / 4);
    assert_int_equal(el_wire_part_sent_at(&of_4, 1, 3), (592 + 0 + 192) / 4);
    assert_int_equal(el_wire_part_got_at(&of_4, 3, 0), (0 + 592 + 400) / 4);
    data.n = RANKS, data.count = COUNT;
    float *result = (float *)buffers[RANKS]->address;
    for (int from = 0; from < RANKS; from++) {
        assert_int_equal(el_wire_fill(&data, from, (size_t)RANKS * COUNT, el_view_of(buffers[0], 0), false), EL_OK);
        memcpy(result + el_wire_part_got_at(&data, from, 1),
               (float *)buffers[0]->address + el_wire_part_sent_at(&data, from, 1),
               el_wire_part(&data, from, 1) * sizeof *result);
    }
    assert_int_equal(el_wire_check(&data, 1, seen, &wrong), EL_OK);
    assert_int_equal(wrong, 0);
    result[el_wire_part_got_at(&data, RANKS, 1) - 1] += 1; /* the last that is got */
    assert_int_equal(el_wire_check(&data, 1, seen, &wrong), EL_OK);
    assert_int_equal(wrong, 1);
    assert_int_equal(el_wire_check(&data, 2, seen, &wrong), EL_OK);
    assert_true(wrong > 1);
}

/* Two ranks, two sizes, three calls; rank 1 is slower in two of three. The smaller size has no cold calls. */
static json_t *hand_made_members(void)
{
    return json_loads("[{\"samples_us\": [[[1, 2, 9], [1, 1, 1], [0, 0, 0]], [[100, 200, 300], [400, 400, 400], [700, "
                      "900, 800]]], \"wrong\": [[0, 0], [0, 2]], \"used\": [\"direct\", \"ring\"]},"
                      " {\"samples_us\": [[[3, 4, 5], [1, 1, 1], [0, 0, 0]], [[300, 400, 500], [200, 200, 200], [700, "
                      "900, 800]]], \"wrong\": [[0, 0], [0, 1]], \"used\": [\"direct\", \"ring\"]}]",
                      0, NULL);
}

static void samples_become_figures(void **state)
{
    static const double median_us[] = {2, 3, 2, 4}; /* of (1, 2, 9) and (3, 4, 5), by -a */
    for (int average = 0; average < 4; average++) {
        struct el_wire_options options = usual;
        struct el_wire_plan plan;
        double expected = median_us[average];
        options.average = average;
        assert_int_equal(el_wire_plan_make("all_reduce", &options, 2, &plan), EL_OK);
        assert_int_equal(plan.n_sizes, 2);
        json_t *members = hand_made_members(), *curve = el_wire_curve_json(&plan, &plan.curves[0], members);
        const json_t *place = el_json_at(curve, "points.0.out_of_place");
        assert_true(fabs(el_json_number(place, "time_us") - expected) < 1e-9);
        assert_true(fabs(el_json_number(place, "algbw_gb_per_s") - 1024 / expected * 1e-3) < 1e-9);
        assert_true(fabs(el_json_number(place, "busbw_gb_per_s") - 1024 / expected * 1e-3) < 1e-9);
        assert_int_equal(el_json_whole(curve, "points.1.in_place.wrong"), 3);
        assert_string_equal(el_json_text(curve, "points.1.algorithm", ""), "ring");
        assert_true(fabs(el_json_number(curve, "points.1.out_of_place.samples_us.1.2") - 500) < 1e-9);
        assert_true(fabs(el_json_number(curve, "points.1.cold.time_us") - 800) < 1e-9);
        assert_true(json_is_null(el_json_at(curve, "points.1.cold.wrong")));
        assert_true(json_is_null(el_json_at(curve, "points.0.cold")));
        assert_true(el_json_number(curve, "fit.out_of_place.latency_us") > 0);
        assert_true(json_is_null(el_json_at(curve, "fit.cold.latency_us"))); /* of one size */
        json_decref(curve);
        json_decref(members);
    }
}

/* OSU's definition, and where there is none. */
static void a_computation_hides_a_share(void **state)
{
    static const struct {
        double pure, compute, overall, pct; /* pct -1: none */
    } known[] = {{10, 10, 10, 100}, {10, 10, 20, 0},  {10, 10, 15, 50}, {10, 20, 22, 80},
                 {10, 10, 25, 0},   {10, 10, 9, 100}, {0, 1, 1, -1},    {10, NAN, 10, -1}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        double pct = el_wire_overlap_pct(known[i].pure, known[i].compute, known[i].overall);
        assert_true(known[i].pct < 0 ? isnan(pct) : fabs(pct - known[i].pct) < 1e-9);
    }
}

/* Of so many rows: kernels that are as large as can be, and alike. */
static void work_is_cut_into_kernels(void **state)
{
    static const struct {
        double rows;
        int kernels;
        int64_t each;
    } known[] = {{0.3, 1, 1}, {100.7, 1, 100}, {16384, 1, 16384}, {16386, 2, 8193}, {163840, 10, 16384}, {NAN, 1, 1}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct el_wire_work work = el_wire_work_of(known[i].rows);
        assert_int_equal(work.kernels, known[i].kernels);
        assert_int_equal(work.rows, known[i].each);
    }
    assert_in_range(el_wire_work_of(INFINITY).rows, 1, 16384);
}

/* Two ranks, a size, three calls; of a call the slower rank's time. Series: out of place, in place, cold, computation
 * alone at the first two, both together at these. */
static void overlap_comes_from_all_series(void **state)
{
    struct el_wire_options options = usual;
    struct el_wire_plan plan;
    json_t *members = json_loads("[{\"samples_us\": [[[8, 9, 10], [4, 4, 4], [0, 0, 0], [11, 12, 13], [5, 5, 5], "
                                 "[14, 14, 14], [6, 6, 6]]], \"wrong\": [[0, 0]], \"used\": [\"ring\"]},"
                                 " {\"samples_us\": [[[10, 10, 10], [2, 2, 2], [0, 0, 0], [1, 1, 1], [4, 4, 4], "
                                 "[15, 16, 17], [5, 5, 5]]], \"wrong\": [[0, 0]], \"used\": [\"ring\"]}]",
                                 0, NULL);
    options.max_bytes = 1024;
    options.overlap = 1;
    assert_int_equal(el_wire_plan_make("all_reduce", &options, 2, &plan), EL_OK);
    assert_int_equal(el_wire_series(&plan), 7);
    json_t *curve = el_wire_curve_json(&plan, &plan.curves[0], members);
    const json_t *apart = el_json_at(curve, "points.0.out_of_place"),
                 *in_place = el_json_at(curve, "points.0.in_place");
    assert_true(fabs(el_json_number(apart, "overlap.compute_us") - 12) < 1e-9);
    assert_true(fabs(el_json_number(apart, "overlap.overall_us") - 16) < 1e-9);
    assert_true(fabs(el_json_number(apart, "overlap.overlap_pct") - 60) < 1e-9); /* 100 (1 - (16 - 12) / 10) */
    assert_true(fabs(el_json_number(in_place, "overlap.overlap_pct") - 75) < 1e-9);
    assert_true(fabs(el_json_number(apart, "overlap.overall_samples_us.1.2") - 17) < 1e-9);
    json_decref(curve);
    options.overlap = 0;
    curve = el_wire_curve_json(&plan, &plan.curves[0], members);
    assert_true(json_is_null(el_json_at(curve, "points.0.in_place.overlap")));
    json_decref(curve);
    json_decref(members);
}

static json_t *document_of(const char *backend, double busbw, bool shared, double waited_pct)
{
    json_t *document =
        json_pack("{s:s, s:i, s:b, s:f, s:[{s:i, s:f}], s:[{s:s, s:[{s:i, s:{s:f}}]}]}", "backend", backend, "ranks", 2,
                  "shared_cores", shared, "others_waited_pct", waited_pct, "copy", "bytes", 4194304, "gb_per_s", 10.0,
                  "curves", "operation", "all_reduce", "points", "bytes", 4194304, "in_place", "busbw_gb_per_s", busbw);
    assert_non_null(document);
    el_wire_judge(document);
    return document;
}

/* Against what a backend's copies allow; not where devices share a core, nor of links that no copy tells of; and what
 * other programs did is no fault of the wire. */
static void a_figure_is_judged(void **state)
{
    static const struct {
        const char *backend;
        double busbw;
        bool shared;
        double waited_pct;
        int normal; /* -1: not judged */
        const char *why;
    } known[] = {{"shm", 6, false, 0, 1, ""},
                 {"shm", 3, false, 0, 0, ""},
                 {"mpi", 3, false, 0, 1, ""},
                 {"tcp", 0.5, false, 0, 0, ""},
                 {"shm", 6, true, 0, -1, ""},
                 {"nccl", 6, false, 0, -1, ""},
                 {"shm", 3, false, 20, -1, "quiet machine"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        json_t *document = document_of(known[i].backend, known[i].busbw, known[i].shared, known[i].waited_pct);
        const json_t *normal = el_json_at(document, "curves.0.reached.normal");
        assert_int_equal(json_is_true(normal) ? 1 : json_is_false(normal) ? 0 : -1, known[i].normal);
        assert_true(fabs(el_json_number(document, "curves.0.reached.share") - known[i].busbw / 10) < 1e-9);
        assert_non_null(strstr(el_json_text(document, "curves.0.reached.why", ""), known[i].why));
        json_decref(document);
    }
}

/* mpirun binds each rank to a core of its own; hosts have cores of their own; containers of one host share them. */
static void shared_cores_are_seen_over_the_whole_job(void **state)
{
    static const struct {
        const char *parts;
        bool shared;
    } known[] = {
        {"[{'boot': 'a', 'quota': 0, 'cores': [0]}, {'boot': 'a', 'quota': 0, 'cores': [1]}]", false},
        {"[{'boot': 'a', 'quota': 0, 'cores': [0]}, {'boot': 'a', 'quota': 0, 'cores': [0]}]", true},
        {"[{'boot': 'a', 'quota': 0, 'cores': [0]}, {'boot': 'b', 'quota': 0, 'cores': [0]}]", false},
        {"[{'boot': 'a', 'quota': 0, 'cores': [0, 1]}]", false},
        {"[{'boot': 'a', 'quota': 0, 'cores': [0, 1, 0]}]", true},
        {"[{'boot': 'a', 'quota': 1.5, 'cores': [0]}, {'boot': 'a', 'quota': 1.5, 'cores': [1]}]", true},
        {"[{'boot': 'a', 'quota': 1, 'cores': [0]}, {'boot': 'b', 'quota': 1, 'cores': [1]}]", false},
        {"[{'boot': 'a', 'quota': 0, 'cores': []}, {'boot': 'a', 'quota': 0, 'cores': []}]", false}, /* GPUs */
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s", known[i].parts);
        for (char *at = text; *at; at++)
            if (*at == '\'') *at = '"';
        json_t *parts = json_loads(text, 0, NULL);
        assert_non_null(parts);
        assert_int_equal(el_wire_share_cores(parts), known[i].shared);
        json_decref(parts);
    }
}

static void refuse(const char *operation, const struct el_wire_options *options, const char *words)
{
    struct el_wire_plan plan;
    assert_int_equal(el_wire_plan_make(operation, options, 2, &plan), EL_ERR_INVALID);
    if (!strstr(el_error_message(), words)) fail_msg("'%s' is not in '%s'", words, el_error_message());
}

static void plans_are_made(void **state)
{
    struct el_wire_options options = usual;
    struct el_wire_plan plan;
    assert_int_equal(el_wire_plan_make("all", &options, 2, &plan), EL_OK);
    assert_int_equal(plan.n_curves, EL_WIRE_OPERATIONS);
    snprintf(options.algorithms, sizeof options.algorithms, "ring,ps");
    assert_int_equal(el_wire_plan_make("all_reduce", &options, 2, &plan), EL_OK);
    assert_int_equal(plan.n_curves, 2);
    snprintf(options.algorithms, sizeof options.algorithms, "all");
    assert_int_equal(el_wire_plan_make("all", &options, 2, &plan), EL_OK);
    el_wire_plan_auto(&plan);
    assert_int_equal(plan.n_curves, EL_WIRE_OPERATIONS);
    options = usual, options.dtype = EL_DTYPE_COUNT, options.reduction = EL_COMM_REDUCTION_COUNT;
    strcpy(options.root, "all");
    assert_int_equal(el_wire_plan_make("all_reduce", &options, 3, &plan), EL_OK);
    assert_int_equal(plan.n_curves, 4 * 5 + 2 * 8); /* types of numbers with a fraction have five reductions */
    assert_int_equal(el_wire_plan_make("all_gather", &options, 3, &plan), EL_OK);
    assert_int_equal(plan.n_curves, 6);
    options.dtype = EL_BF16, options.cycles = 2;
    assert_int_equal(el_wire_plan_make("reduce", &options, 3, &plan), EL_OK);
    assert_int_equal(plan.n_curves, 5 * 3 * 2);
    assert_int_equal(plan.curves[29].root, 2);
    assert_int_equal(plan.curves[29].cycle, 1);
    assert_int_equal(plan.curves[29].dtype, EL_BF16);
    options = usual, options.min_bytes = 8, options.max_bytes = 40, options.step_bytes = 16;
    assert_int_equal(el_wire_plan_make("all_reduce", &options, 2, &plan), EL_OK);
    assert_int_equal(plan.n_sizes, 3);
    assert_int_equal(plan.sizes[2], 40);
    refuse("allreduce", &usual, "did you mean 'all_reduce'");
    snprintf(options.algorithms, sizeof options.algorithms, "rign");
    refuse("all_reduce", &options, "did you mean 'ring'");
    options = usual, options.max_bytes = 512;
    refuse("all_reduce", &options, "less than --minbytes");
    options = usual, strcpy(options.root, "2");
    refuse("all_reduce", &options, "no rank 2 of 2");
    options = usual, strcpy(options.root, "1x");
    refuse("all_reduce", &options, "'1x' is no rank");
    options = usual, options.blocking = 2;
    refuse("all_reduce", &options, "--blocking 2: ");
    options = usual;
    refuse("p2p", &options, "'evenload fleet' measures all pairs");
    options = usual, options.step_bytes = 1;
    refuse("all_reduce", &options, "more than 256 sizes");
    options = usual, options.cycles = 1000, strcpy(options.root, "all");
    refuse("reduce", &options, "ask for fewer");
    options = usual, options.reduction = EL_COMM_XOR;
    refuse("all_reduce", &options, "is for integers");
}

/* The colours of nccl-tests' NCCL_TESTS_SPLIT, and lists. */
static void ranks_have_groups(void **state)
{
    static const struct {
        const char *text;
        int of_5;
    } known[] = {{"mod 2", 1}, {"MOD 0x4", 1}, {"%3", 2},       {"div 2", 2}, {"/ 0b10", 2}, {"AND 0x4", 4},
                 {"&1", 1},    {"or 2", 7},    {"|0b1000", 13}, {"5", 0},     {"1,5,2", 0},  {"0,1", -1}};
    static const char *const wrong[] = {"",   "x",  "mod",     "mod 0", "div 0", "1,,2",
                                        "1,", "-1", "mod 2,3", "mod2x", "0b1"};
    struct el_wire_options options = usual;
    struct el_wire_plan plan;
    int color;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(el_wire_color(known[i].text, 5, &color), EL_OK);
        assert_int_equal(color, known[i].of_5);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(el_wire_color(wrong[i], 5, &color), EL_ERR_INVALID);
    strcpy(options.group, "mod 2");
    assert_int_equal(el_wire_plan_make("all_reduce", &options, 6, &plan), EL_OK);
    assert_int_equal(plan.n, 3);
    assert_int_equal(plan.n_groups, 2);
    assert_int_equal(plan.colors[3], 1);
    assert_int_equal(el_wire_plan_make("all_reduce", &options, 5, &plan), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "groups of 3 and of 2 ranks"));
    strcpy(options.group, "4,7");
    assert_int_equal(el_wire_plan_make("all_reduce", &options, 8, &plan), EL_OK);
    assert_int_equal(plan.n, 2);
    refuse("all_reduce", &options, "none of 2 ranks is in it");
}

static void add_curve(json_t *curves, const char *operation, const char *algorithm)
{
    json_array_append_new(curves, json_pack("{s:s, s:s, s:[{s:i}]}", "operation", operation, "algorithm", algorithm,
                                            "points", "bytes", 8));
}

/* A colour an operation and a dash an algorithm: by their numbers. 25 sizes have seven labels at most. */
static void curves_have_numbers_and_labels_have_room(void **state)
{
    int n_labels = 0;
    json_t *curves = json_array(), *copy = json_array();
    json_t *document = json_pack("{s:o, s:o, s:i, s:s, s:s}", "curves", curves, "copy", copy, "ranks", 2, "backend",
                                 "shm", "datatype", "float");
    add_curve(curves, "all_reduce", "direct");
    add_curve(curves, "all_reduce", "ring");
    add_curve(curves, "broadcast", "direct");
    add_curve(curves, "broadcast", "ring");
    for (int i = 0; i < 25; i++)
        json_array_append_new(copy, json_pack("{s:I, s:f}", "bytes", (json_int_t)8 << i, "gb_per_s", 10.0));
    char *text = data_of(&el_figure_wire, document);
    holds(text, "\nall_reduce/direct\t0\t0\nall_reduce/ring\t0\t1\nbroadcast/direct\t1\t0\nbroadcast/ring\t1\t1\n");
    const char *at = strchr(strstr(text, "# sizes\n# columns: ") + strlen("# sizes\n"), '\n') + 1;
    for (; *at != '\n'; at = strchr(at, '\n') + 1) n_labels++;
    assert_in_range(n_labels, 4, 7);
    free(text);
    json_decref(document);
}

RUN_TESTS(open_device, close_device, bandwidths_are_those_of_nccl_tests, sizes_are_those_of_nccl_tests,
          data_are_checked, parts_have_their_places, parts_are_uneven, samples_become_figures,
          a_computation_hides_a_share, work_is_cut_into_kernels, overlap_comes_from_all_series, a_figure_is_judged,
          shared_cores_are_seen_over_the_whole_job, plans_are_made, ranks_have_groups,
          curves_have_numbers_and_labels_have_room)
