/* Recovery from hand-made events, with known answers; Young's and Daly's intervals. */
#include "tests/test.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/recover/recover.h"

static const char PATH[] = "/tmp/el-test-recover.csv";

/* The clock of day jumps all the time. Step 0 at 1 s, each step 0.5 s; a kill before step 5 at 3.5 s; seen at 4 s,
 * started at 4.25, going on from step 2 at 5 s; there again at 6.5 s, and at the end, after step 7, at 8 s. */
static const char ONE[] =
    "event,step,unix_s,monotonic_s\nstart,0,10,100.0\nstep,0,1000,101.0\nstep,1,10,101.5\nstep,2,1000,102.0\nstep,3,10,"
    "102.5\n"
    "step,4,1000,103.0\nstep,5,10,103.5\nkill,5,1000,103.5\nend,0,10,104.0\nrestart,2,1000,104.0\nstart,0,10,104.25\n"
    "step,2,1000,105.0\nstep,3,10,105.5\nstep,4,1000,106.0\nstep,5,10,106.5\nstep,6,1000,107.0\nstep,7,10,107.5\nend,0,"
    "1000,108.0\n";

static json_t *read_events(const char *text)
{
    json_t *events;
    FILE *file = fopen(PATH, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
    if (el_recovery_events(PATH, &events) != EL_OK) fail_msg("%s", el_error_message());
    unlink(PATH);
    return events;
}

static void a_fall_stage_by_stage(void **state)
{
    json_t *events = read_events(ONE), *falls = el_recovery_falls(events), *fall = json_array_get(falls, 0);
    assert_int_equal(json_array_size(falls), 1);
    assert_true(el_json_is(fall, "kind", "kill"));
    assert_int_equal(el_json_whole(fall, "step"), 5);
    assert_int_equal(el_json_whole(fall, "resumed"), 2);
    assert_int_equal(el_json_whole(fall, "lost_steps"), 3);
    assert_true(fabs(el_json_number(fall, "s") - 3.5) < 1e-6);
    assert_true(fabs(el_json_number(fall, "detect_s") - 0.5) < 1e-6);
    assert_true(fabs(el_json_number(fall, "restart_s") - 0.25) < 1e-6);
    assert_true(fabs(el_json_number(fall, "load_s") - 0.75) < 1e-6);
    assert_true(fabs(el_json_number(fall, "catch_up_s") - 1.5) < 1e-6);
    /* Eight steps of half a second, in the seven seconds from the first one on. */
    assert_true(fabs(el_recovery_goodput(events, 0.5) - 8 * 0.5 / 7) < 1e-6);
    json_decref(falls);
    json_decref(events);
}

static void two_falls_are_apart_and_what_did_not_come_is_null(void **state)
{
    json_t *events = read_events("event,step,unix_s,monotonic_s\nstart,0,10,0\nstep,0,1000,1\nstep,1,10,2\nstop,1,1000,"
                                 "2\nend,0,10,5\nstart,0,1000,6\nstep,0,10,7\n"
                                 "step,1,1000,8\nkill,1,10,8\nend,0,1000,8.5\n"),
           *falls = el_recovery_falls(events), *first = json_array_get(falls, 0), *second = json_array_get(falls, 1);
    assert_int_equal(json_array_size(falls), 2);
    assert_true(el_json_is(first, "kind", "stop") && el_json_is(second, "kind", "kill"));
    assert_true(fabs(el_json_number(first, "detect_s") - 3) < 1e-6);
    assert_true(fabs(el_json_number(second, "detect_s") - 0.5) < 1e-6);
    assert_true(json_is_null(json_object_get(second, "restart_s")));
    assert_true(json_is_null(json_object_get(second, "resumed")));
    json_decref(falls);
    json_decref(events);
}

/* A checkpoint before step 4, and one before step 8: of steps of 1 s the two behind it take 1.25 and 1.5 s. Of the
 * third one the end is missing. */
static void what_a_checkpoint_costs_of_the_time_to_the_next_one(void **state)
{
    json_t *events = read_events(
               "event,step,unix_s,monotonic_s\nstep,2,10,9\nstep,3,1000,10\nstep,4,10,11.25\nstep,5,1000,12.5\nstep,6,"
               "10,13.5\n"
               "step,7,1000,14.5\nstep,8,10,16\nstep,9,1000,17.5\nstep,10,10,18.5\nstep,11,1000,19.5\nstep,12,10,21\n"),
           *costs = json_array();
    el_recovery_costs(events, 4, costs);
    assert_int_equal(json_array_size(costs), 2);
    assert_true(fabs(json_real_value(json_array_get(costs, 0)) - 100 * 0.5 / 4.5) < 1e-6);
    assert_true(fabs(json_real_value(json_array_get(costs, 1)) - 100 * 1.0 / 5) < 1e-6);
    json_decref(costs);
    json_decref(events);
}

static void what_is_no_event_is_refused_with_its_line(void **state)
{
    json_t *events;
    FILE *file = fopen(PATH, "w");
    assert_true(file && fputs("event,step,unix_s,monotonic_s\nstep,0,1000,1\nstep 1\n", file) >= 0 &&
                fclose(file) == 0);
    assert_int_equal(el_recovery_events(PATH, &events), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), ":3: not event,step,unix_s,monotonic_s"));
    unlink(PATH);
}

RUN_TESTS(NULL, NULL, a_fall_stage_by_stage, two_falls_are_apart_and_what_did_not_come_is_null,
          what_a_checkpoint_costs_of_the_time_to_the_next_one, what_is_no_event_is_refused_with_its_line)
