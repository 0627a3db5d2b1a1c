/* The memory timeline of hand-made steps: times, phases and bytes are known; and the form they have in a record. */
#include "tests/test.h"

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "profiles/memory_timeline.h"

/* A step of 100 us on device 0, with one op of device 1 and one on another stream between. */
static const struct el_op_info ops[] = {
    {.label = "load", .phase = EL_PHASE_DATA, .op_class = EL_CLASS_HOST, .device = 0, .peer = -1},
    {.label = "forward fc1", .phase = EL_PHASE_FORWARD, .device = 0, .peer = -1},
    {.label = "elsewhere", .phase = EL_PHASE_FORWARD, .device = 1, .peer = -1},
    {.label = "sum", .phase = EL_PHASE_COMM, .op_class = EL_CLASS_COMM, .device = 0, .stream = 1, .peer = -1},
    {.label = "backward fc1", .phase = EL_PHASE_BACKWARD, .device = 0, .peer = -1},
    {.label = "backward fc0", .phase = EL_PHASE_BACKWARD, .device = 0, .peer = -1},
};
enum { N_OPS = sizeof ops / sizeof ops[0] };
static const int64_t begins_us[N_OPS] = {0, 10, 12, 33, 40, 60}, ends_us[N_OPS] = {10, 30, 25, 38, 60, 90};

static const struct el_mark marks[] = {
    {.op = 1, .device = 0, .tag = EL_TAG_ACTIVATION, .bytes = 100},
    {.op = 1, .device = 0, .tag = EL_TAG_PADDING, .bytes = 7},
    {.op = 2, .device = 1, .tag = EL_TAG_ACTIVATION, .bytes = 9999},
    {.op = 3, .device = 0, .tag = EL_TAG_BUCKET, .bytes = 50}, /* before the other stream's op: seen at backward fc1 */
    {.op = 3, .device = 0, .tag = EL_TAG_ACTIVATION, .bytes = -100}, /* the peak is between these two */
    {.op = 4, .device = 0, .tag = EL_TAG_PADDING, .bytes = -7},
    {.op = 6, .device = 0, .tag = EL_TAG_BUCKET, .bytes = -50},
};
enum { N_MARKS = sizeof marks / sizeof marks[0] };
static const size_t base[EL_TAG_COUNT] = {[EL_TAG_PARAM] = 1000};

static struct el_recorder *recorder; /* of two devices; each test begins one */
static struct el_memory_timeline timeline;

static int end(void **state)
{
    el_memory_timeline_free(&timeline);
    el_recorder_destroy(recorder);
    recorder = NULL;
    return 0;
}

static void begin(void)
{
    end(NULL);
    assert_int_equal(el_recorder_create(0, 2, &recorder), EL_OK);
}

static void make(int device)
{
    el_memory_timeline_free(&timeline);
    assert_int_equal(el_memory_timeline_make(recorder, device, base, &timeline), EL_OK);
}

/* `stretch`: the step takes so many times as long. `n_marks`: only the first marks, as another list would have. */
static void tell(int64_t stretch, int n_marks)
{
    struct el_span spans[N_OPS];
    int64_t at_ns = 5000000;
    for (int i = 0; i < N_OPS; i++) {
        spans[i] = (struct el_span){at_ns + begins_us[i] * 1000 * stretch, at_ns + ends_us[i] * 1000 * stretch};
    }
    struct el_step_event event = {.whole = {at_ns, at_ns + 100000 * stretch},
                                  .n_ops = N_OPS,
                                  .ops = ops,
                                  .spans = spans,
                                  .n_marks = n_marks,
                                  .marks = marks};
    struct el_probe probe = el_recorder_probe(recorder);
    probe.step(probe.context, &event);
}

struct wanted {
    int64_t at_us;
    int phase;
    int64_t activation, bucket, padding;
};
/* While the compute stream does nothing the phase is that of the other stream's op. */
static const struct wanted wanted[] = {
    {0, EL_PHASE_DATA, 0, 0, 0},       {10, EL_PHASE_FORWARD, 100, 0, 7},
    {30, EL_PHASE_COUNT, 100, 0, 7},   {33, EL_PHASE_COMM, 100, 0, 7},
    {38, EL_PHASE_COUNT, 100, 0, 7},   {40, EL_PHASE_BACKWARD, 100, 50, 7}, /* the peak, a point of its own */
    {40, EL_PHASE_BACKWARD, 0, 50, 0}, {90, EL_PHASE_COUNT, 0, 50, 0},
    {100, EL_PHASE_COUNT, 0, 0, 0},
};
enum { N_WANTED = sizeof wanted / sizeof wanted[0], PEAK = 5 };

static void check(int64_t by)
{
    assert_int_equal(timeline.n, N_WANTED);
    for (int i = 0; i < N_WANTED; i++) {
        const struct el_memory_point *point = &timeline.points[i];
        assert_int_equal(point->at_ns, wanted[i].at_us * 1000 * by);
        assert_int_equal(point->phase, wanted[i].phase);
        assert_int_equal(point->bytes[EL_TAG_PARAM], 1000);
        assert_int_equal(point->bytes[EL_TAG_ACTIVATION], wanted[i].activation);
        assert_int_equal(point->bytes[EL_TAG_BUCKET], wanted[i].bucket);
        assert_int_equal(point->bytes[EL_TAG_PADDING], wanted[i].padding);
        assert_int_equal(point->total_bytes, 1000 + wanted[i].activation + wanted[i].bucket + wanted[i].padding);
    }
    assert_int_equal(timeline.peak, PEAK);
    assert_string_equal(timeline.points[PEAK].label, "backward fc1");
}

static void points_are_on_the_mean_steps_clock(void **state)
{
    begin();
    assert_int_equal(el_memory_timeline_make(recorder, 0, base, &timeline), EL_ERR_INVALID);
    tell(1, N_MARKS);
    make(0);
    check(1);
    tell(5, N_MARKS);
    make(0);
    check(3);
}

struct wanted_box {
    enum el_timeline_lane lane;
    int phase;
    int64_t from_us, to_us;
};

static void check_boxes(const struct wanted_box *boxes, int n)
{
    assert_int_equal(timeline.n_boxes, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(timeline.boxes[i].lane, boxes[i].lane);
        assert_int_equal(timeline.boxes[i].phase, boxes[i].phase);
        assert_int_equal(timeline.boxes[i].span.begin_ns, boxes[i].from_us * 1000);
        assert_int_equal(timeline.boxes[i].span.end_ns, boxes[i].to_us * 1000);
    }
}

/* Two kernels of backward without a gap are one box; the collective's wait is apart as soon as it is known. */
static void lanes_are_compute_and_communication(void **state)
{
    static const struct wanted_box whole[] = {{EL_LANE_COMPUTE, EL_PHASE_DATA, 0, 10},
                                              {EL_LANE_COMPUTE, EL_PHASE_FORWARD, 10, 30},
                                              {EL_LANE_COMM, EL_PHASE_COMM, 33, 38},
                                              {EL_LANE_COMPUTE, EL_PHASE_BACKWARD, 40, 90}};
    static const struct wanted_box apart[] = {{EL_LANE_COMPUTE, EL_PHASE_DATA, 0, 10},
                                              {EL_LANE_COMPUTE, EL_PHASE_FORWARD, 10, 30},
                                              {EL_LANE_COMM, EL_PHASE_COUNT, 33, 36},
                                              {EL_LANE_COMM, EL_PHASE_COMM, 36, 38},
                                              {EL_LANE_COMPUTE, EL_PHASE_BACKWARD, 40, 90}};
    const int64_t latest_ns = 5000000 + 36000;
    begin();
    tell(1, N_MARKS);
    make(0);
    check_boxes(whole, 4);
    assert_int_equal(el_recorder_tell(recorder, 0, EL_RECORDER_MEASURED, &latest_ns, 1, NULL, 0), EL_OK);
    make(0);
    check_boxes(apart, 5);
    json_t *record = el_record_timeline(&timeline);
    assert_string_equal(el_json_text(record, "lanes.lane.2", ""), "comm");
    assert_string_equal(el_json_text(record, "lanes.phase.2", ""), "wait");
    assert_true(el_json_number(record, "lanes.from_ms.2") == 0.033 && el_json_number(record, "lanes.to_ms.2") == 0.036);
    json_decref(record);
}

static void another_device_has_its_own(void **state)
{
    begin();
    tell(1, N_MARKS);
    make(1);
    assert_int_equal(timeline.points[timeline.peak].total_bytes, 1000 + 9999);
    assert_int_equal(timeline.points[timeline.peak].at_ns, 12000);
    assert_string_equal(timeline.points[timeline.peak].label, "elsewhere");
}

/* Steps of other lists do not blur the one that peaks, however many they are. */
static void the_list_that_peaks_is_shown(void **state)
{
    begin();
    for (int i = 0; i < 5; i++) tell(7, 2);
    tell(2, N_MARKS);
    for (int i = 0; i < 5; i++) tell(7, 2);
    make(0);
    check(2);
}

static void a_record_has_columns(void **state)
{
    begin();
    tell(1, N_MARKS);
    make(0);
    json_t *record = el_record_timeline(&timeline);
    end(NULL); /* the record keeps no label of it */
    assert_int_equal(json_array_size(json_object_get(record, "ms")), N_WANTED);
    assert_int_equal(json_array_size(json_object_get(record, "phase")), N_WANTED);
    assert_int_equal(json_object_size(json_object_get(record, "bytes")), 4); /* only tags that occur */
    assert_true(el_json_number(record, "ms.6") == 0.04 && el_json_number(record, "peak_ms") == 0.04);
    assert_true(el_json_number(record, "bytes.param.8") == 1000 && el_json_number(record, "bytes.padding.5") == 7);
    assert_string_equal(el_json_text(record, "phase.2", ""), "idle");
    assert_string_equal(el_json_text(record, "phase.3", ""), "comm");
    assert_string_equal(el_json_text(record, "peak_phase", ""), "backward");
    assert_string_equal(el_json_text(record, "peak_label", ""), "backward fc1");
    json_decref(record);
    record = el_record_timeline(NULL);
    assert_true(json_is_null(record));
    json_decref(record);
}

RUN_TESTS(NULL, end, points_are_on_the_mean_steps_clock, lanes_are_compute_and_communication,
          another_device_has_its_own, the_list_that_peaks_is_shown, a_record_has_columns)
