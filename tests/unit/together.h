/* Operations for which one thread issues for all members, on fake asynchronous devices whose streams run out of step:
 * each verb, on the data of comm_case.h. Data comes and goes on the compute streams right before and
 * behind an operation, so that one that waits too little reads or leaves rubbish. */
#ifndef EL_TESTS_TOGETHER_H
#define EL_TESTS_TOGETHER_H

#include "runtime/comm/comm_ops.h"
#include "tests/conformance/comm_case.h"
#include "tests/unit/fake_async.h"

enum { TOGETHER = 3, TOGETHER_PART_MAX = 1000, TOGETHER_BYTES = TOGETHER * TOGETHER_PART_MAX * 8 };

/* A communicator and what its operation works on, a row a member. */
struct lane {
    struct el_comm *comms[TOGETHER];
    struct el_buffer *source[TOGETHER], *data[TOGETHER], *result[TOGETHER], *out[TOGETHER], *rubbish[TOGETHER];
    struct comm_case now;
};

static size_t together_elements(const struct comm_case *c, bool parts)
{
    return c->count * (parts ? TOGETHER : 1);
}

static void lane_open(struct lane *lane, const struct el_comm_backend *backend, struct el_device *const *devices)
{
    if (el_comm_open_with(backend, devices, TOGETHER, lane->comms) != EL_OK) fail_msg("%s", el_error_message());
    struct el_buffer **sides[] = {lane->source, lane->data, lane->result, lane->out, lane->rubbish};
    static char ones[TOGETHER_BYTES];
    memset(ones, 1, sizeof ones);
    for (int m = 0; m < TOGETHER; m++) {
        for (size_t s = 0; s < sizeof sides / sizeof sides[0]; s++)
            assert_int_equal(el_device_alloc(devices[m], EL_TAG_GRAD, TOGETHER_BYTES, "side", &sides[s][m]), EL_OK);
        assert_int_equal(el_device_write(el_view_of(lane->rubbish[m], 0), ones, sizeof ones), EL_OK);
    }
}

static void lane_close(struct lane *lane)
{
    for (int m = 0; m < TOGETHER; m++) el_comm_close(lane->comms[m]);
}

/* Where member m's data and result are; with nothing in `given_p` where the result is left out. */
static void lane_views(const struct lane *lane, int m, struct el_view *data_p, struct el_view *result_p, bool *given_p)
{
    const struct comm_case *c = &lane->now;
    const struct el_comm_verb_row *row = el_comm_verb_row(c->verb);
    size_t mine = (size_t)m * c->count * el_dtype_bytes(c->dtype);
    bool parted = !row->has_root || m == c->root, in_place = c->in_place && c->verb != EL_COMM_ALL_TO_ALL;
    *data_p = el_view_of(lane->data[m], 0);
    *result_p = el_view_of(lane->result[m], 0);
    *given_p = true;
    if (in_place && row->all_data && parted) *result_p = el_view_of(lane->data[m], mine);
    if (in_place && row->all_result && parted) *data_p = el_view_of(lane->result[m], mine);
    if (!in_place || row->all_data || row->all_result) return;
    *result_p = *data_p;
    *given_p = false;
}

static void lane_copy(struct el_program *program, struct el_device *device, struct el_view to, struct el_view from,
                      size_t bytes)
{
    const struct el_op_head head = {.phase = EL_PHASE_COMM};
    assert_int_equal(el_program_copy(program, device, EL_STREAM_COMPUTE, &head, to, from, bytes, NULL), EL_OK);
}

/* Member m's part: data comes, the operation, its outcome is put away, its memory is used again. */
static void lane_issue_member(struct lane *lane, struct el_program *program, int m)
{
    const struct comm_case *c = &lane->now;
    const struct el_comm_verb_row *row = el_comm_verb_row(c->verb);
    struct el_device *device = el_comm_device(lane->comms[m]);
    size_t width = el_dtype_bytes(c->dtype), n_data = together_elements(c, row->all_data) * width;
    size_t n_result = together_elements(c, row->all_result) * width;
    struct el_view data, result;
    bool given;
    lane_views(lane, m, &data, &result, &given);
    struct el_comm_op op = {.verb = c->verb,
                            .reduction = c->reduction,
                            .dtype = c->dtype,
                            .count = c->count,
                            .root = c->root,
                            .data = data,
                            .phase = EL_PHASE_COMM,
                            .join = true};
    if (given) op.result = result;
    lane_copy(program, device, data, el_view_of(lane->source[m], 0), n_data);
    if (el_comm_issue(lane->comms[m], program, &op, NULL) != EL_OK) fail_msg("%s", el_error_message());
    lane_copy(program, device, el_view_of(lane->out[m], 0), result, n_result);
    lane_copy(program, device, data, el_view_of(lane->rubbish[m], 0), n_data);
}

static void lane_fill(struct lane *lane)
{
    static char host[TOGETHER_BYTES];
    const struct comm_case *c = &lane->now;
    for (int m = 0; m < TOGETHER; m++) {
        for (size_t i = 0; i < together_elements(c, el_comm_verb_row(c->verb)->all_data); i++)
            case_store(host, c->dtype, i, case_value(c, TOGETHER, m, i));
        assert_int_equal(el_device_write(el_view_of(lane->source[m], 0), host, sizeof host), EL_OK);
        memset(host, 0, sizeof host);
        assert_int_equal(el_device_write(el_view_of(lane->out[m], 0), host, sizeof host), EL_OK);
    }
}

static void lane_check(const struct lane *lane)
{
    static char host[TOGETHER_BYTES], expected[TOGETHER_BYTES];
    const struct comm_case *c = &lane->now;
    const struct el_comm_verb_row *row = el_comm_verb_row(c->verb);
    size_t n = together_elements(c, row->all_result), width = el_dtype_bytes(c->dtype);
    for (int m = 0; m < TOGETHER; m++) {
        if (row->result_on_root && m != c->root) continue;
        for (size_t i = 0; i < n; i++) case_store(expected, c->dtype, i, case_expected(c, TOGETHER, m, i));
        assert_int_equal(el_device_read(el_view_of(lane->out[m], 0), host, sizeof host), EL_OK);
        if (memcmp(host, expected, n * width) != 0)
            fail_msg("%s of %zu %s, %s, root %d%s: member %d got something else", row->name, c->count,
                     el_dtype_name(c->dtype), el_comm_reduction_name(c->reduction), c->root,
                     c->in_place ? ", in place" : "", m);
    }
}

/* One program with one operation of each lane, issued by turns; run twice. */
static void lanes_run(struct lane *lanes, int n_lanes)
{
    struct el_program *program;
    assert_int_equal(el_program_create(&program), EL_OK);
    for (int m = 0; m < TOGETHER; m++)
        for (int l = 0; l < n_lanes; l++) lane_issue_member(&lanes[l], program, m);
    assert_int_equal(el_program_end(program), EL_OK);
    for (uint64_t step = 0; step < 2; step++) {
        for (int l = 0; l < n_lanes; l++) lane_fill(&lanes[l]);
        if (el_program_run(program, step, NULL) != EL_OK) fail_msg("%s", el_error_message());
        for (int l = 0; l < n_lanes; l++) lane_check(&lanes[l]);
    }
    el_program_destroy(program);
}

static void together_devices(struct el_device **devices)
{
    for (int m = 0; m < TOGETHER; m++) devices[m] = fake_device(m);
}

/* Every collective, with each reduction and type that the backend has, in and out of place. */
static inline void together_product(const struct el_comm_backend *backend)
{
    static const size_t counts[] = {1, 17, TOGETHER_PART_MAX};
    struct el_device *devices[TOGETHER];
    struct lane lane = {.now.count = 1};
    int number = 0;
    together_devices(devices);
    lane_open(&lane, backend, devices);
    for (int verb = 0; verb < EL_COMM_SEND; verb++)
        for (int reduction = 0; reduction < (el_comm_verb_row(verb)->reduces ? EL_COMM_AND : 1); reduction++)
            for (int dtype = 0; dtype <= EL_U8; dtype++, number++) {
                if (el_comm_verb_row(verb)->reduces && !backend->ops->reduces(reduction, dtype)) continue;
                lane.now = (struct comm_case){.verb = verb,
                                              .reduction = reduction,
                                              .dtype = dtype,
                                              .count = counts[number % 3],
                                              .root = el_comm_verb_row(verb)->has_root ? number / 3 % TOGETHER : 0};
                lanes_run(&lane, 1);
                lane.now.in_place = true;
                lanes_run(&lane, 1);
            }
    lane_close(&lane);
    for (int m = 0; m < TOGETHER; m++) el_device_close(devices[m]);
}

/* Two communicators over the same devices, what they do drawn at random. */
static inline void together_two(const struct el_comm_backend *backend, int n_programs, void (*look)(void))
{
    struct el_device *devices[TOGETHER];
    struct lane lanes[2];
    together_devices(devices);
    for (int l = 0; l < 2; l++) lane_open(&lanes[l], backend, devices);
    for (int p = 0; p < n_programs; p++) {
        for (int l = 0; l < 2; l++) {
            enum el_comm_verb verb = (enum el_comm_verb)(fake_random() % EL_COMM_SEND);
            lanes[l].now = (struct comm_case){.verb = verb,
                                              .dtype = EL_F32,
                                              .count = (size_t)(fake_random() % TOGETHER_PART_MAX + 1),
                                              .root = el_comm_verb_row(verb)->has_root ? fake_random() % TOGETHER : 0,
                                              .in_place = fake_random() % 2};
        }
        lanes_run(lanes, 2);
        if (look) look();
    }
    for (int l = 0; l < 2; l++) lane_close(&lanes[l]);
    for (int m = 0; m < TOGETHER; m++) el_device_close(devices[m]);
}

#endif
