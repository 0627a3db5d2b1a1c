/* Costs from records, of `evenload comm` and of plain training: what was measured comes out again, between and beyond
 * its sizes and ranks what the rounds of the algorithm say; on simulated devices in virtual time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/trial/costs.h"
#include "runtime/comm/rounds.h"
#include "tests/test.h"
#include "tests/unit/cost_files.h"
#include "tests/unit/own_folder.h"
#include "tests/unit/sim_steps.h"

static const double MIB = 1 << 20;
static char path[64], run_folder[64], run_path[80];

/* Two ranks: in cache 10 GB/s, beyond 8 MiB a tenth of it; ring with 20 us of latency in each of its two rounds.
 * Copies and sendrecv have a cold time too, which a step takes. */
static const char record[] =
    "{'schema': 1, 'kind': 'comm', 'ranks': %d, 'devices': ['cpu:0', 'cpu:1'], 'copy': [{'bytes': 65536, 'time_us': 5, "
    "'cold': null}, {'bytes': 1048576, 'time_us': 90, 'cold': {'time_us': 185}}, {'bytes': 16777216, 'time_us': 2880, "
    "'cold': {'time_us': 3200}}], 'curves': [ {'operation': 'all_reduce', 'algorithm': 'ring', 'points': [  {'bytes': "
    "1048576, 'count': 262144, 'algorithm': 'ring', 'in_place': {'time_us': 140}},  {'bytes': 16777216, 'count': "
    "4194304, 'algorithm': 'ring', 'in_place': {'time_us': 1640}},  {'bytes': 67108864, 'count': 16777216, "
    "'algorithm': 'ring', 'in_place': {'time_us': 49640}}]}, {'operation': 'all_reduce', 'algorithm': 'ps', 'points': "
    "[  {'bytes': 1048576, 'count': 262144, 'algorithm': 'ps', 'in_place': {'time_us': 300}},  {'bytes': 16777216, "
    "'count': 4194304, 'algorithm': 'ps', 'in_place': {'time_us': 4800}}]}, {'operation': 'all_reduce', 'algorithm': "
    "'direct', 'status': 'absent', 'points': []}, {'operation': 'sendrecv', 'algorithm': 'auto', 'points': [  "
    "{'bytes': 16384, 'count': 4096, 'algorithm': 'auto', 'in_place': {'time_us': 3}, 'cold': null},  {'bytes': "
    "1048576, 'count': 262144, 'algorithm': 'auto', 'in_place': {'time_us': 77}, 'cold': {'time_us': 291}}]}, "
    "{'operation': 'a later one', 'points': [{'bytes': 8, 'count': 2, 'in_place': {'time_us': 1}}]}]}";

static struct el_costs *read_costs(const char *folders, const struct el_train_config *config)
{
    struct el_costs *costs;
    assert_int_equal(el_costs_read(folders, config, &costs), EL_OK);
    return costs;
}

/* Of two ranks. */
static struct el_costs *costs_of_wire(void)
{
    write_text(path, record, "%d", "2");
    return read_costs(folder, NULL);
}

static struct el_op_messages all_reduce(enum el_comm_algorithm algorithm, double bytes, int ranks)
{
    struct el_comm_shape shape = {.verb = EL_COMM_ALL_REDUCE,
                                  .algorithm = algorithm,
                                  .size = ranks,
                                  .count = (size_t)(bytes / 4),
                                  .element_bytes = 4};
    return el_comm_messages(&shape);
}

static const struct {
    enum el_comm_algorithm algorithm;
    double mib;
    int ranks;
    double us;
} cases[] = {
    {EL_COMM_RING, 1, 2, 140},       {EL_COMM_RING, 16, 2, 1640},  {EL_COMM_RING, 64, 2, 49640}, /* as measured */
    {EL_COMM_RING, 4, 2, 440},       {EL_COMM_RING, 40, 2, 25640},                               /* between two sizes */
    {EL_COMM_RING, 112, 2, 97640},   /* the last pair goes on */
    {EL_COMM_RING, 0.25, 2, 54.574}, /* below the first: as the fitted line falls */
    {EL_COMM_PS, 16, 2, 4800},       {EL_COMM_PS, 8, 2, 2400},
};

static void rounds_of_messages_have_measured_times(void **state)
{
    struct el_costs *costs = costs_of_wire();
    assert_int_equal(costs->n, 3);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_op_messages messages = all_reduce(cases[i].algorithm, cases[i].mib * MIB, cases[i].ranks);
        double ns = el_costs_ns(costs, &messages, NULL);
        if (!(ns > cases[i].us * 999 && ns < cases[i].us * 1001)) /* chunks are whole cache lines */
            fail_msg("case %zu: %g us, not %g", i, ns / 1e3, cases[i].us);
    }
    struct el_op_messages link = {.verb = "send", .algorithm = "direct", .rounds = 1, .largest_bytes = 1 << 20};
    assert_true(el_costs_ns(costs, &link, NULL) ==
                291e3);          /* cold; what was not measured by this algorithm is the verb's */
    link.largest_bytes = 270336; /* between a warm size and a cold one */
    assert_true(fabs(el_costs_ns(costs, &link, NULL) - (3e3 + (291e3 - 3e3) * (270336 - 16384) / (1048576 - 16384))) <
                1);
    link.largest_bytes = 16384;
    assert_true(el_costs_ns(costs, &link, NULL) == 3e3);
    struct el_op_messages other = {.verb = "broadcast", .algorithm = "ps", .rounds = 1, .largest_bytes = 1 << 20};
    assert_true(el_costs_ns(costs, &other, NULL) == 150e3); /* and what was not measured at all the algorithm's */
    other.copied_bytes = 1 << 20;
    assert_true(el_costs_ns(costs, &other, NULL) == 150e3 + 185e3); /* not in place: its own part is copied, cold */
    free(costs);
}

/* `comm -d all -o all`: halves and maxima are measured too, and training sums floats. */
static void sums_of_floats_are_taken_of_all_types(void **state)
{
    static const char all[] =
        "{'schema': 1, 'kind': 'comm', 'ranks': 2, 'datatype': 'all', 'redop': 'all', 'devices': ['cpu:0', 'cpu:1'], "
        "'curves': [{'operation': 'all_reduce', 'reduces': true, 'datatype': 'float', 'redop': 'sum', 'points': "
        "[{'bytes': 1048576, 'count': 262144, 'algorithm': 'ring', 'in_place': {'time_us': 140}}]}, {'operation': "
        "'all_reduce', 'reduces': true, 'datatype': 'float', 'redop': 'max', 'points': [{'bytes': 1048576, 'count': "
        "262144, 'algorithm': 'ring', 'in_place': {'time_us': 9000}}]}, {'operation': 'all_reduce', 'reduces': true, "
        "'datatype': 'half', 'redop': 'sum', 'points': [{'bytes': 1048576, 'count': 524288, 'algorithm': 'ring', "
        "'in_place': {'time_us': 8000}}]}]}";
    struct el_op_messages messages = all_reduce(EL_COMM_RING, MIB, 2);
    write_text(path, all, "", "");
    struct el_costs *costs = read_costs(folder, NULL);
    assert_true(fabs(el_costs_ns(costs, &messages, NULL) - 140e3) < 140);
    free(costs);
}

/* Two ranks' curve, whose smaller messages fit into a cache, would have a ring of 64 faster than one of 4. */
static void more_ranks_have_the_closed_form(void **state)
{
    static const int ranks[] = {3, 4, 8, 16, 64};
    struct el_costs *costs = costs_of_wire();
    const struct el_cost_row *ring = &costs->rows[0];
    struct el_op_messages measured = all_reduce(EL_COMM_RING, 192 * MIB, 2);
    double latency = ring->latency_ns, slope = ring->ns_per_byte;
    double before_ns = el_costs_ns(costs, &measured, NULL), scale = before_ns / (2 * (latency + 96 * MIB * slope));
    assert_true(ring->ranks == 2 && ring->latency_ns > 0 && ring->ns_per_byte > 0);
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        struct el_op_messages messages = all_reduce(EL_COMM_RING, 192 * MIB, ranks[i]);
        struct el_cost_basis basis;
        double ns = el_costs_ns(costs, &messages, &basis), n = ranks[i];
        double form_ns = scale * 2 * (n - 1) * (latency + 192 * MIB / n * slope);
        assert_true(basis.how & EL_COST_OTHER_RANKS && basis.ranks == 2);
        if (!(fabs(ns / form_ns - 1) < 1e-6 && ns > before_ns)) fail_msg("%g ranks: %g ms", n, ns / 1e6);
        before_ns = ns;
    }
    free(costs);
}

/* What a time rests on is told with it. */
static void what_lies_outside_is_told(void **state)
{
    static const struct {
        enum el_comm_algorithm algorithm;
        double mib;
        int ranks;
        unsigned how;
    } told[] = {{EL_COMM_RING, 4, 2, 0},
                {EL_COMM_RING, 0.25, 2, EL_COST_OUTSIDE},
                {EL_COMM_RING, 112, 2, EL_COST_OUTSIDE},
                {EL_COMM_DIRECT, 4, 2, EL_COST_BORROWED},
                {EL_COMM_RING, 8, 4, EL_COST_OTHER_RANKS}};
    struct el_costs *costs = costs_of_wire();
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        struct el_op_messages messages = all_reduce(told[i].algorithm, told[i].mib * MIB, told[i].ranks);
        struct el_cost_basis basis;
        el_costs_ns(costs, &messages, &basis);
        if (basis.how != told[i].how) fail_msg("case %zu: %u, not %u", i, basis.how, told[i].how);
    }
    struct el_cost_use use = {.all_ns = 0};
    struct el_op_info op = {.label = "all_reduce", .messages = all_reduce(EL_COMM_RING, 4 * MIB, 4)};
    const struct el_cost_basis basis = {.how = EL_COST_OUTSIDE | EL_COST_OTHER_RANKS, .ranks = 2};
    el_cost_use_add(&use, &op, 1000, &basis);
    el_cost_use_add(&use, &op, 500, &(struct el_cost_basis){.how = 0});
    assert_true(use.all_ns == 1500 && use.shares[0].ns == 1000 && use.shares[1].ranks == 4 && use.shares[2].ns == 0);
    assert_string_equal(use.shares[1].label, "all_reduce");
    free(costs);
}

static struct el_program *begin_with(const struct el_costs *costs, struct el_device **device_p)
{
    struct el_device_spec spec = {.backend = "sim", .costs = costs};
    struct el_program *program;
    assert_int_equal(el_device_open(&spec, device_p), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    return program;
}

/* Runs it, which takes so long, and ends it. */
static void takes(struct el_program *program, struct el_device *device, double wanted_us)
{
    assert_int_equal(el_program_end(program), EL_OK);
    assert_int_equal(el_program_run(program, 0, NULL), EL_OK);
    double us = (double)el_program_elapsed_ns(program) / 1e3;
    if (!(us > wanted_us * 0.999 && us < wanted_us * 1.001)) fail_msg("%g us, not %g", us, wanted_us);
    end_program(program, &device, 1);
}

/* Without costs an op has the constants, whatever its messages are. */
static void simulated_devices_take_them(void **state)
{
    struct el_costs *costs = costs_of_wire();
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        struct el_call_op op = {.head.phase = EL_PHASE_COMM,
                                .op_class = EL_CLASS_COMM,
                                .run = never,
                                .messages =
                                    all_reduce(cases[i / 2].algorithm, cases[i / 2].mib * MIB, cases[i / 2].ranks)};
        struct el_device *device;
        struct el_program *program = begin_with(i % 2 ? costs : NULL, &device);
        assert_int_equal(el_program_call(program, device, EL_STREAM_COMM, &op, NULL), EL_OK);
        takes(program, device, i % 2 ? cases[i / 2].us : 20);
    }
    free(costs);
}

static void is_refused(const char *folders, const struct el_train_config *config, const char *words)
{
    struct el_costs *costs;
    assert_int_equal(el_costs_read(folders, config, &costs), EL_ERR_INVALID);
    if (!strstr(el_error_message(), words)) fail_msg("%s, not %s", el_error_message(), words);
}

/* ---- ops ---- */

/* The model linear has 110 parameters. Two batches; one of ddp's is passed over. */
static const char run_record[] =
    "{'schema': 2, 'trials': [ {'mode': 'single', 'status': 'ok', 'model': 'linear', 'dtype': 'f32', 'optimizer': "
    "'sgd', 'param_bytes': 440,  'per_device': [{'ops': [   {'op': 'linear_forward out', 'phase': 'forward', 'count': "
    "1, 'bytes': 1000, 'ms': 1},   {'op': 'add out', 'phase': 'backward', 'count': 2, 'bytes': 400, 'ms': 0.2},   "
    "{'op': 'load', 'phase': 'data', 'count': 1, 'bytes': 100, 'ms': 0.5}]}]}, {'mode': 'single', 'status': 'ok', "
    "'model': 'linear', 'dtype': 'f32', 'optimizer': 'sgd', 'param_bytes': 440,  'per_device': [{'ops': [{'op': "
    "'linear_forward out', 'phase': 'forward', 'count': 1, 'bytes': 3000, 'ms': 2}]}]}, {'mode': 'ddp', 'status': "
    "'ok', 'per_device': [{'ops': [{'op': 'linear_forward out', 'phase': 'forward', 'count': 1, 'bytes': 5000, 'ms': "
    "9}]}]}]}";

static struct el_costs *costs_of_both(const struct el_train_config *config)
{
    char both[160];
    snprintf(both, sizeof both, "%s,%s", run_folder, folder);
    write_text(run_path, run_record, "", "");
    write_text(path, record, "%d", "2");
    return read_costs(both, config);
}

/* Of costs without a record of the wire. */
static void wire_is_asked_for(const struct el_costs *costs)
{
    struct el_device *device;
    struct el_program *program = begin_with(costs, &device);
    struct el_call_op call = {.op_class = EL_CLASS_COMM, .run = never, .messages = all_reduce(EL_COMM_RING, 64, 2)};
    assert_int_equal(el_program_call(program, device, EL_STREAM_COMM, &call, NULL), EL_OK);
    assert_int_equal(el_program_end(program), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "give one of 'evenload comm' too"));
    end_program(program, &device, 1);
}

static void ops_have_measured_times(void **state)
{
    static const struct {
        const char *label;
        enum el_phase phase;
        enum el_op_class op_class;
        double bytes, flops, us; /* us negative: refused; 0: left to the backend */
    } ops[] = {
        {"linear_forward out", EL_PHASE_FORWARD, EL_CLASS_COMPUTE, 1000, 1e6, 1000},
        {"linear_forward out", EL_PHASE_FORWARD, EL_CLASS_COMPUTE, 3000, 1e6, 2000},
        {"linear_forward out", EL_PHASE_FORWARD, EL_CLASS_COMPUTE, 2000, 1e6, 1500}, /* between two sizes */
        {"linear_forward out", EL_PHASE_FORWARD, EL_CLASS_COMPUTE, 4000, 1e6, -1},   /* beyond them */
        {"linear_forward out", EL_PHASE_FORWARD, EL_CLASS_COMPUTE, 500, 1e6, -1},
        {"linear_forward out", EL_PHASE_FORWARD, EL_CLASS_COMPUTE, 6000, 10, 4000}, /* by its bytes */
        {"linear_forward in", EL_PHASE_FORWARD, EL_CLASS_COMPUTE, 1000, 1e6, -1},   /* another product */
        {"add out", EL_PHASE_BACKWARD, EL_CLASS_COMPUTE, 200, 50, 100},
        {"add in", EL_PHASE_BACKWARD, EL_CLASS_COMPUTE, 600, 50, 300}, /* of the same kernel */
        {"load", EL_PHASE_DATA, EL_CLASS_HOST, 50, 0, 250},
        {"thread", EL_PHASE_FORWARD, EL_CLASS_HOST, 0, 0, 0},
        {"copy", EL_PHASE_REDUCE, EL_CLASS_COPY, 2 << 20, 0, 185}, /* as the machine copies what lies in no cache */
        {"copy", EL_PHASE_REDUCE, EL_CLASS_COPY, 17 << 20, 0, 185 + 0.5 * 3015},
        {"divide", EL_PHASE_LOSS, EL_CLASS_COMPUTE, 2 << 20, 8, 185},
    };
    struct el_train_config config = linear();
    write_text(run_path, run_record, "", "");
    struct el_costs *costs = read_costs(run_folder, &config);
    wire_is_asked_for(costs);
    free(costs);
    costs = costs_of_both(&config);
    assert_true(costs->n == 3 && costs->n_ops == 3);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct el_op_info op = {.label = ops[i].label,
                                .phase = ops[i].phase,
                                .op_class = ops[i].op_class,
                                .bytes = ops[i].bytes,
                                .flops = ops[i].flops};
        double ns = -7;
        enum el_status status = el_costs_op_ns(costs, &op, i % 2, &ns, NULL);
        bool right = ops[i].us < 0    ? status == EL_ERR_INVALID && strstr(el_error_message(), ops[i].label)
                     : ops[i].us == 0 ? status == EL_OK && ns < 0
                                      : status == EL_OK && ns > ops[i].us * 999 && ns < ops[i].us * 1001;
        if (!right) fail_msg("case %zu: status %d, %g us", i, status, ns / 1e3);
    }
    free(costs);
}

#define TRIAL(config, bytes, ms)                                                                                       \
    "{'mode': 'single', 'status': 'ok', 'model': 'linear', 'dtype': 'f32', 'optimizer': 'sgd', 'param_bytes': 440, "   \
    "'config': {" config "}, 'per_device': [{'ops': [{'op': 'linear_forward out', 'phase': 'forward', 'count': 1, "    \
    "'bytes': " bytes ", 'ms': " ms "}]}]}"

/* Alone, and beside another device. What was measured in one way only stands for both. */
static void ops_beside_others_are_apart(void **state)
{
    static const char text[] =
        "{'schema': 2, 'trials': [" TRIAL("", "1000", "1") ", " TRIAL("'n': 3", "1004", "2") ", " TRIAL(
            "'beside': 1}, 'beside_step_ratio': [1.25], 'x': {'n': 1", "1000",
            "3") ", " TRIAL("'beside': 1, 'n': 2}, 'beside_step_ratio': [1.75], 'x': {'n': 1", "3000", "9") "]}";
    static const struct {
        double bytes;
        bool beside;
        double us;
    } known[] = {{1000, false, 1000},
                 {1004, false, 2000} /* twice the samples, and a layer of mostly weights */,
                 {1000, true, 3000},
                 {2000, true, 6000},
                 {3000, false, 9000}};
    struct el_train_config config = linear();
    write_text(run_path, text, "", "");
    struct el_costs *costs = read_costs(run_folder, &config);
    assert_int_equal(costs->n_beside, 1);
    assert_true(costs->pace_ratio[0] == 0 && costs->pace_ratio[1] == 1.5); /* the mean of the records' */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct el_op_info op = {
            .label = "linear_forward out", .phase = EL_PHASE_FORWARD, .bytes = known[i].bytes, .flops = 1e6};
        double ns = -7;
        assert_int_equal(el_costs_op_ns(costs, &op, known[i].beside, &ns, NULL), EL_OK);
        if (!(ns > known[i].us * 999 && ns < known[i].us * 1001)) fail_msg("case %zu: %g us", i, ns / 1e3);
    }
    free(costs);
    write_text(run_path, text, "'beside': 1, 'n': 2", "\"beside\": 2");
    is_refused(run_folder, &config, "with --beside 2, another record with --beside 1");
}

/* Three host calls of 500 us, and behind the first a ring of 140 us. */
static void communication_takes_its_core(void **state)
{
    struct el_train_config config = linear();
    for (int shares = 0; shares < 2; shares++) {
        struct el_costs *costs = costs_of_both(&config);
        struct el_device *device;
        struct el_call_op load = {
            .head = {.label = "load", .phase = EL_PHASE_DATA}, .op_class = EL_CLASS_HOST, .run = never, .bytes = 100};
        struct el_call_op sum = {.op_class = EL_CLASS_COMM, .run = never, .messages = all_reduce(EL_COMM_RING, MIB, 2)};
        assert_true(costs->on_cores && !costs->shares_core);
        costs->shares_core = shares;
        struct el_program *program = begin_with(costs, &device);
        for (int i = 0, id = -1; i < 3; i++) {
            el_program_call(program, device, EL_STREAM_COMPUTE, &load, &id);
            if (i > 0) continue;
            el_program_wait(program, device, EL_STREAM_COMM, id);
            el_program_call(program, device, EL_STREAM_COMM, &sum, NULL);
        }
        takes(program, device, 1500 + (shares ? 140 : 0));
        free(costs);
    }
}

static void other_folders_are_refused(void **state)
{
    static const struct {
        const char *text, *was, *is, *words;
    } bad[] = {{"{'schema': 1, 'kind': 'comm', 'ranks': 2, 'curves': 7}", "", "", "has no figures"},
               {record, "%d", "1", "one rank"},
               {"{'schema': 2, 'trials': []}", "", "", "no record of 'evenload comm'"},
               {"{'schema': 2, 'kind': 'comm', 'ranks': 2, 'curves': []}", "", "", "of another version"},
               {"{", "", "", "no comm.json that can be read"},
               {"{'schema': 1, 'kind': 'comm', 'ranks': 2, 'curves': [{'operation': 'all_reduce', 'points': [{'bytes': "
                "1e300, 'count': 1e300, 'in_place': {'time_us': 1}}, {'bytes': -8, 'count': 2, 'in_place': 3}]}]}",
                "", "", "has no figures"},
               {run_record, "'schema': 2", "\"schema\": 1", "no record that can be read"},
               {run_record, "'dtype': 'f32'", "\"dtype\": \"f64\"", "was measured with --precision f64, not f32"},
               {run_record, "'model': 'linear'", "\"model\": \"mlp\"", "was measured with mlp, f32, sgd and 440"},
               {run_record, "'param_bytes': 440", "\"param_bytes\": 64",
                "and 64 bytes of parameters, not with linear, f32, sgd and 440"},
               {run_record, "'model': 'linear'", "\"config\": {\"freeze\": \"fc\"}, \"model\": \"linear\"",
                "was measured with 'fc' frozen, not '': --freeze must be the same"},
               {run_record, "'trials'", "\"none\"", "no finished trial of 'run --mode single'"}};
    struct el_train_config config = linear();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bool run = bad[i].text == run_record;
        write_text(run ? run_path : path, bad[i].text, bad[i].was, bad[i].is);
        is_refused(run ? run_folder : folder, run ? &config : NULL, bad[i].words);
    }
    is_refused("/nonexistent", NULL, "");
}

static int make_folders(void **state)
{
    if (make_folder(state) != 0) return -1;
    snprintf(path, sizeof path, "%s/comm.json", folder);
    snprintf(run_folder, sizeof run_folder, "%s/run", folder);
    snprintf(run_path, sizeof run_path, "%s/results.json", run_folder);
    return mkdir(run_folder, 0700);
}

RUN_TESTS(make_folders, remove_folder, rounds_of_messages_have_measured_times, sums_of_floats_are_taken_of_all_types,
          more_ranks_have_the_closed_form, what_lies_outside_is_told, simulated_devices_take_them,
          ops_have_measured_times, ops_beside_others_are_apart, communication_takes_its_core, other_folders_are_refused)
