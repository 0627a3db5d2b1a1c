/* The bubble of a model in stages: of hand-made timelines with known answers, and of pipelines on simulated devices
 * with links that take no time and stages of equal time, where it is the papers' (p - 1) / (m + p - 1) exactly. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#include "profiles/recorder.h"
#include "runtime/device/costs.h"
#include "runtime/layout/schedule.h"
#include "tests/equivalence/cases.h"
#include "tests/unit/near.h"

enum { MS = 1000000, STAGES_MAX = 8, EACH_NS = 1000 };

/* What bench/job does with all ranks' recorders. */
static void relate(struct el_recorder **recorders, int n, int segment)
{
    struct el_collectives list[STAGES_MAX] = {{0}};
    struct el_span windows[8];
    for (int i = 0; i < n; i++) assert_int_equal(el_recorder_collectives(recorders[i], i, segment, &list[i]), EL_OK);
    size_t n_steps = list[0].n_steps;
    assert_true(n_steps > 0 && n_steps <= 8);
    for (size_t s = 0; s < n_steps; s++) {
        windows[s] = list[0].passes[s];
        for (int i = 0; i < n; i++) {
            if (list[i].passes[s].begin_ns < windows[s].begin_ns) windows[s].begin_ns = list[i].passes[s].begin_ns;
            if (list[i].passes[s].end_ns > windows[s].end_ns) windows[s].end_ns = list[i].passes[s].end_ns;
        }
    }
    for (int i = 0; i < n; i++) {
        int *matches = el_collectives_match(list, n, i);
        int64_t *latest = calloc(n_steps * list[i].n + 1, sizeof *latest);
        el_collectives_latest(list, n, i, matches, latest);
        assert_int_equal(el_recorder_tell(recorders[i], i, segment, latest, n_steps * list[i].n, windows, n_steps),
                         EL_OK);
        free(latest);
        free(matches);
    }
    for (int i = 0; i < n; i++) el_collectives_free(&list[i]);
}

/* ---- by hand ---- */

/* Stage 0 goes forward with two micro-batches and back with one, whose gradient comes late. Stage 1 loads, waits for
 * the first one, and has been through with its optimizer when stage 0 still goes back. In ms:
 *     stage 0   load -5 to 0   F0 0 to 10   send 10 to 13   F1 10 to 20   receive 20 to 62, from 60   B0 62 to 80
 *     stage 1   load  0 to 4   receive 4 to 14, from 10     F0 14 to 40   B0 40 to 60   send 60 to 61   optimizer 60 to
 * 70 From 0 to 80 stage 0 is idle from 20 to 60; stage 1 from 0 to 10, and from 61 on, but for its optimizer, which is
 * outside. */
#define OP(of, in, kind, ...)                                                                                          \
    {                                                                                                                  \
        .device = (of), .phase = (in), .op_class = (kind), .peer = -1, __VA_ARGS__                                     \
    }
#define LOAD(of)                       OP(of, EL_PHASE_DATA, EL_CLASS_HOST, .stream = 0)
#define KERNEL(of, in, letter, number) OP(of, in, EL_CLASS_COMPUTE, .piece = {letter, of, number})
#define MESSAGE(of, number, direction)                                                                                 \
    OP(of, EL_PHASE_COMM, EL_CLASS_COMM, .stream = 1, .operation = (number), .link = (direction), .piece = {'F', of, 0})

enum { OPS = 6 };
static const struct el_op_info ops[2][OPS] = {
    {LOAD(0), KERNEL(0, EL_PHASE_FORWARD, 'F', 0), MESSAGE(0, 5, EL_LINK_SEND), KERNEL(0, EL_PHASE_FORWARD, 'F', 1),
     MESSAGE(0, 6, EL_LINK_RECEIVE), KERNEL(0, EL_PHASE_BACKWARD, 'B', 0)},
    {LOAD(1), MESSAGE(1, 5, EL_LINK_RECEIVE), KERNEL(1, EL_PHASE_FORWARD, 'F', 0), KERNEL(1, EL_PHASE_BACKWARD, 'B', 0),
     MESSAGE(1, 6, EL_LINK_SEND), KERNEL(1, EL_PHASE_OPTIMIZER, 0, 0)}};
static const struct el_span spans[2][OPS] = {
    {{-5 * MS, 0}, {0, 10 * MS}, {10 * MS, 13 * MS}, {10 * MS, 20 * MS}, {20 * MS, 62 * MS}, {62 * MS, 80 * MS}},
    {{0, 4 * MS}, {4 * MS, 14 * MS}, {14 * MS, 40 * MS}, {40 * MS, 60 * MS}, {60 * MS, 61 * MS}, {60 * MS, 70 * MS}}};

static struct el_recorder *record(int stage, int segment, const struct el_span *times)
{
    struct el_step_event event = {.whole = {-5 * MS, 80 * MS}, .n_ops = OPS, .ops = ops[stage], .spans = times};
    struct el_recorder *recorder;
    assert_int_equal(el_recorder_create(stage, 1, &recorder), EL_OK);
    el_recorder_segment(recorder, segment);
    struct el_probe probe = el_recorder_probe(recorder);
    probe.step(probe.context, &event);
    return recorder;
}

static struct el_device_summary summary_of(struct el_recorder *recorder, int stage, int segment)
{
    struct el_device_summary summary;
    assert_int_equal(el_recorder_summarize(recorder, stage, segment, &summary), EL_OK);
    return summary;
}

static void waiting_for_a_message_is_a_bubble(void **state)
{
    struct el_recorder *recorders[2];
    struct el_device_summary s[2];
    for (int i = 0; i < 2; i++) {
        recorders[i] = record(i, EL_RECORDER_MEASURED, spans[i]);
        assert_false(summary_of(recorders[i], i, EL_RECORDER_MEASURED).bubble_known);
    }
    relate(recorders, 2, EL_RECORDER_MEASURED);
    for (int i = 0; i < 2; i++) {
        s[i] = summary_of(recorders[i], i, EL_RECORDER_MEASURED);
        assert_true(s[i].bubble_known);
        near_ms(s[i].window_s, 80);
        assert_int_equal(el_recorder_in_flight(recorders[i], i), 2 - i);
        el_recorder_destroy(recorders[i]);
    }
    near_ms(s[0].bubble_s, 40);
    near_ms(s[1].bubble_s, 10 + 19);
    near_ms(s[0].comm_total_s, 3 + 2); /* what moves data */
    near_ms(s[0].comm_exposed_s, 2);
    near_ms(s[0].wait_s, 0);
    near_ms(s[1].comm_total_s, 4 + 1);
    near_ms(s[0].idle_s, 40);
    near_ms(s[1].idle_s, 85 - 4 - 4 - 26 - 20 - 10);
}

/* With communication off messages are empty, but waited for: a control block has bubbles, and no communication. */
static void a_muted_bubble_is_no_communication(void **state)
{
    enum { OFF = 2 };
    struct el_recorder *recorders[2];
    for (int i = 0; i < 2; i++) {
        struct el_span times[OPS];
        memcpy(times, spans[i], sizeof times);
        times[i ? 4 : 2].end_ns = times[i ? 4 : 2].begin_ns; /* sent at once */
        times[i ? 1 : 4].end_ns = i ? 10 * MS : 60 * MS;     /* received as soon as it was sent */
        recorders[i] = record(i, OFF, times);
        near_ms(summary_of(recorders[i], i, OFF).comm_exposed_s, i ? 6 : 40); /* what it would be without arrivals */
    }
    relate(recorders, 2, OFF);
    for (int i = 0; i < 2; i++) {
        struct el_device_summary s = summary_of(recorders[i], i, OFF);
        near_ms(s.comm_total_s, 0);
        near_ms(s.comm_exposed_s, 0);
        near_ms(s.bubble_s, i ? 80 - 46 : 80 - 38);
        el_recorder_destroy(recorders[i]);
    }
}

/* The same, as it is drawn. */
static void a_lane_has_boxes(void **state)
{
    static const struct {
        char kind;
        int micro;
        enum el_op_link link;
        int64_t from_ms, to_ms;
    } wanted[] = {{0, 0, EL_LINK_NONE, -5, 0},    {'F', 0, EL_LINK_NONE, 0, 10},     {'F', 0, EL_LINK_SEND, 10, 13},
                  {'F', 1, EL_LINK_NONE, 10, 20}, {'F', 0, EL_LINK_RECEIVE, 60, 62}, {'B', 0, EL_LINK_NONE, 62, 80}};
    struct el_recorder *recorders[2];
    struct el_lane lane;
    for (int i = 0; i < 2; i++) recorders[i] = record(i, EL_RECORDER_MEASURED, spans[i]);
    assert_int_equal(el_recorder_lane(recorders[0], 0, 0, &lane), EL_OK);
    assert_true(lane.n == 0 && !lane.boxes);
    relate(recorders, 2, EL_RECORDER_MEASURED);
    assert_int_equal(el_recorder_lane(recorders[0], 0, 0, &lane), EL_OK);
    assert_int_equal(lane.n, 6);
    assert_int_equal(lane.window_ns, 80 * MS);
    const struct el_lane_box *boxes = lane.boxes;
    for (size_t i = 0, seen = 0; i < lane.n; i++, seen = 0) {
        for (size_t k = 0; k < lane.n; k++) /* boxes of one begin may stand in either order */
            seen += boxes[i].piece.kind == wanted[k].kind && boxes[i].piece.micro == wanted[k].micro &&
                    boxes[i].link == wanted[k].link && boxes[i].span.begin_ns == wanted[k].from_ms * MS &&
                    boxes[i].span.end_ns == wanted[k].to_ms * MS;
        assert_int_equal(seen, 1);
        assert_true(i == 0 || boxes[i - 1].span.begin_ns <= boxes[i].span.begin_ns);
    }
    free(lane.boxes);
    for (int i = 0; i < 2; i++) el_recorder_destroy(recorders[i]);
}

/* ---- simulated ---- */

static void add_cost(struct el_costs *costs, const char *kernel, const char *node, enum el_phase phase, double ns)
{
    struct el_cost_op *op = &costs->ops[costs->n_ops++];
    snprintf(op->label, sizeof op->label, "%s%s%s", kernel, *node ? " " : "", node);
    op->phase = phase;
    op->n = 2;
    op->points[0] = (struct el_cost_point){1, ns};
    op->points[1] = (struct el_cost_point){1e9, ns};
}

/* A node takes as long forward as backward; the first one's optimizer takes long, which is outside. All else takes no
 * time. */
static struct el_costs *make_costs(void)
{
    struct el_costs *costs = calloc(1, sizeof *costs);
    costs->rows[costs->n++] = (struct el_cost_row){.verb = "send", .algorithm = "direct", .n = 1, .points = {{1, 0}}};
    costs->copy = (struct el_cost_row){.verb = "copy", .n = 1, .points = {{1, 0}}};
    for (int i = 1; i <= STAGES_MAX; i++) {
        char node[16];
        snprintf(node, sizeof node, i < STAGES_MAX ? "hidden%d" : "out", i);
        add_cost(costs, "linear_forward", node, EL_PHASE_FORWARD, EACH_NS);
        add_cost(costs, "linear_backward_weights", node, EL_PHASE_BACKWARD, EACH_NS);
        add_cost(costs, "linear_backward_data", node, EL_PHASE_BACKWARD, 0);
    }
    add_cost(costs, "load", "", EL_PHASE_DATA, 0);
    add_cost(costs, "hidden1.weight", "", EL_PHASE_OPTIMIZER, 7777);
    return costs;
}

static void run_pipeline(const struct el_costs *costs, struct el_dataset *dataset, const char *name, int p, int m,
                         struct el_recorder **recorders, struct el_schedule *schedule)
{
    static const struct el_case mlp = {"mlp", EL_OPT_SGD, 0, 16};
    struct el_train_config config;
    struct el_device *devices[STAGES_MAX];
    struct el_probe probes[STAGES_MAX];
    struct el_bootstrap *self;
    struct el_train_result result;
    assert_int_equal(el_case_config(&mlp, "pipeline", 2, &config), EL_OK);
    struct el_model_values *hidden = config.model.sizes;
    while (hidden->name && strcmp(hidden->name, "hidden")) hidden++;
    assert_non_null(hidden->name);
    hidden->n = STAGES_MAX - 1;
    for (int i = 0; i < hidden->n; i++) hidden->v[i] = 4;
    snprintf(config.cut, sizeof config.cut, "nodes");
    snprintf(config.schedule, sizeof config.schedule, "%s", name);
    config.n_micro = m;
    config.n_devices = p;
    config.steps = 2;
    assert_int_equal(el_schedule_open(&config, p, schedule), EL_OK);
    assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
    for (int d = 0; d < p; d++) {
        struct el_device_spec spec = {
            .backend = "sim", .index = d, .position = d, .kernels = el_kernels_reference(), .costs = costs};
        assert_int_equal(el_device_open(&spec, &devices[d]), EL_OK);
        assert_int_equal(el_recorder_create(d, 1, &recorders[d]), EL_OK);
        probes[d] = el_recorder_probe(recorders[d]);
    }
    struct el_train_place place = {.devices = devices, .n_devices = p, .bootstrap = self, .dataset = dataset};
    struct el_train_hooks hooks = {.probes = probes};
    if (el_train(&config, &place, &hooks, &result) != EL_OK) fail_msg("%s", el_error_message());
    el_train_result_free(&result);
    for (int d = 0; d < p; d++) el_device_close(devices[d]);
    el_bootstrap_close(self);
}

/* As many sets of activations as the table says, and, where a device has one part, the papers' bubble. */
static void check_pipeline(const struct el_costs *costs, struct el_dataset *dataset, const char *name, int p, int m,
                           bool papers)
{
    struct el_recorder *recorders[STAGES_MAX];
    struct el_schedule schedule;
    double bubble_s = 0, window_s = 0, wanted = (p - 1.0) / (m + p - 1);
    run_pipeline(costs, dataset, name, p, m, recorders, &schedule);
    relate(recorders, p, EL_RECORDER_MEASURED);
    for (int d = 0; d < p; d++) {
        struct el_device_summary s = summary_of(recorders[d], d, EL_RECORDER_MEASURED);
        assert_true(s.bubble_known && s.simulated);
        if (papers) near_ms(s.window_s, 2.0 * (m + p - 1) * EACH_NS * STAGES_MAX / p * 1e-6);
        bubble_s += s.bubble_s;
        window_s += s.window_s;
        assert_int_equal(el_recorder_in_flight(recorders[d], d), el_schedule_in_flight(&schedule, d));
        el_recorder_destroy(recorders[d]);
    }
    el_schedule_close(&schedule);
    if (papers && fabs(bubble_s / window_s - wanted) > 1e-12)
        fail_msg("%s, %d stages, %d micro-batches: %.15g, not %.15g", name, p, m, bubble_s / window_s, wanted);
}

/* Also of parts of which several are on a device, and where backward is in halves. */
static void pipelines_are_the_papers_and_their_tables(void **state)
{
    struct el_costs *costs = make_costs();
    struct el_dataset *dataset;
    assert_int_equal(el_case_dataset(&dataset), EL_OK);
    for (int p = 2; p <= STAGES_MAX; p *= 2) {
        for (int m = 1; m <= 16; m *= 4) {
            check_pipeline(costs, dataset, "1f1b", p, m, true);
            check_pipeline(costs, dataset, "gpipe", p, m, true);
        }
    }
    check_pipeline(costs, dataset, "interleaved", 2, 4, false);
    check_pipeline(costs, dataset, "zero-bubble", 4, 8, false);
    check_pipeline(costs, dataset, "tests/unit/data/schedules/ZBVZeroBubble-2x2-4.csv", 2, 4, false);
    el_dataset_close(dataset);
    free(costs);
}

RUN_TESTS(NULL, NULL, waiting_for_a_message_is_a_bubble, a_muted_bubble_is_no_communication, a_lane_has_boxes,
          pipelines_are_the_papers_and_their_tables)
