/* What `evenload data` makes of launches, on launches made by hand: medians, shares, who waits, and which number of
 * workers is recommended: one that later launches vouch for, not the lucky one of the first. */
#include "tests/test.h"

#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/data/data.h"
#include "bench/options/options.h"
#include "tests/unit/record_checks.h"

enum { TRIALS = 4, LAUNCHES = 3, BATCH = 10 };
static struct el_options options;
static struct el_trial trials[TRIALS];
static json_t *repeats[TRIALS * LAUNCHES];
static struct el_campaign campaign = {.options = &options, .set = {.trials = trials, .n = TRIALS}, .repeats = repeats};

/* A launch of two members, of which the first one's loading is never exposed; the other's is, for `data_ms` of 100. */
static json_t *launch(double data_ms, double wait_ms, double read_ms)
{
    return json_pack("{s:[{s:f, s:{s:f}, s:{s:f, s:f, s:f, s:f, s:f, s:f, s:f}}, {s:f, s:{s:f}, s:{s:f, s:f, s:f, s:f, "
                     "s:f, s:f, s:f, s:f}}]}",
                     "members", "step_ms", 90.0, "busy_ms", "h2d", 0.0, "loading", "exposed_ms", 0.0, "samples", 1.0,
                     "reads", 1.0, "read_ms", 1.0, "decode_ms", 1.0, "collate_ms", 1.0, "wait_ms", 0.0, /**/
                     "step_ms", 100.0, "busy_ms", "h2d", 0.25, "loading", "exposed_ms", data_ms + 0.25, "samples", 8.0,
                     "reads", 8.0, "read_ms", read_ms, "decode_ms", 4.0, "collate_ms", 2.0, "wait_ms", wait_ms,
                     "take_ms", 0.5);
}

static int make_campaign(void **state)
{
    static const int workers[TRIALS] = {0, 1, 2, 4};
    static const double exposed[TRIALS][LAUNCHES] = {{40, 44, 42}, {1, 9, 8}, {1.5, 0.75, 0.25}, {0.25, 0.25, 0.25}};
    options.repeats = LAUNCHES;
    campaign.trials = json_array();
    for (int t = 0; t < TRIALS; t++) {
        trials[t] = (struct el_trial){.n_devices = 2, .in_files = true, .devices = {{"cpu", 0}}};
        trials[t].train.loading = (struct el_loading){.workers = workers[t], .prefetch = 2};
        json_array_append_new(campaign.trials, json_pack("{s:s, s:{s:f}, s:{s:f}}", "status", "ok", "throughput",
                                                         "samples_per_s", 80.0, "step_ms", "mean", BATCH / 80.0 * 1e3));
        for (int r = 0; r < LAUNCHES; r++)
            repeats[t * LAUNCHES + r] = launch(exposed[t][r], workers[t] ? exposed[t][r] : 0, 60 + r);
    }
    return el_dataset_open(&(struct el_dataset_spec){.source = "dummy"}, &campaign.set.dataset);
}

static int drop_campaign(void **state)
{
    for (int i = 0; i < TRIALS * LAUNCHES; i++) json_decref(repeats[i]);
    json_decref(campaign.trials);
    el_dataset_close(campaign.set.dataset);
    return 0;
}

static json_t *document(void)
{
    json_t *made = NULL;
    assert_int_equal(el_loading_document(&campaign, &made), EL_OK);
    return made;
}

static void rows_are_medians_of_the_most_exposed(void **state)
{
    json_t *made = document();
    near(made, "rows.0.exposed_pct", 42.25);
    near(made, "rows.0.read_ms", 61);
    near(made, "rows.0.load_ms", 67);
    near(made, "rows.1.launches_pct.1", 9.25);
    assert_string_equal(el_json_text(made, "rows.0.waits", ""), "compute");
    assert_string_equal(el_json_text(made, "rows.1.waits", ""), "compute");
    assert_string_equal(el_json_text(made, "rows.2.waits", ""), "loader");
    assert_true(json_is_null(json_object_get(made, "pinned")));
    json_decref(made);
}

/* Of the trial's own headline: the step of 125 ms that 80 samples/s are with a batch of 10, not the members' 100. */
static void a_row_contradicts_neither_itself_nor_the_sentence(void **state)
{
    json_t *made = document();
    EL_EACH(row, json_object_get(made, "rows")) {
        double step_ms = el_json_number(row, "step_ms"), exposed_ms = el_json_number(row, "exposed_ms");
        assert_float_equal(step_ms * el_json_number(row, "samples_per_s"), BATCH * 1e3, 1e-9);
        assert_float_equal(100 * exposed_ms / step_ms, el_json_number(row, "exposed_pct"), 1e-9);
        assert_float_equal(exposed_ms + el_json_number(row, "compute_ms"), step_ms, 1e-9);
    }
    near(made, "recommended.0.exposed_pct", el_json_number(made, "rows.2.exposed_pct"));
    near(made, "recommended.0.step_ms", el_json_number(made, "rows.2.step_ms"));
    near(made, "recommended.0.without_pct", el_json_number(made, "rows.0.exposed_pct"));
    json_decref(made);
}

static void a_lucky_launch_does_not_vouch_for_itself(void **state)
{
    json_t *made = document();
    assert_int_equal(json_array_size(json_object_get(made, "recommended")), 1);
    assert_int_equal(el_json_whole(made, "recommended.0.workers"), 2);
    near(made, "recommended.0.exposed_pct", 1); /* of 1.75, 1 and 0.5 */
    near(made, "recommended.0.without_pct", 42.25);
    assert_int_equal(el_json_whole(made, "recommended.0.estimate"), 1); /* 67 ms of loading, and 57.75 % of 125 */
    assert_string_equal(el_json_text(made, "recommended.0.slowest_stage", ""), "read");
    near(made, "recommended.0.ms_per_read", 61.0 / 8);
    json_decref(made);
}

/* On GPUs of pinned memory alone, where both were measured; what is taken out of a queue is put into pinned memory. */
static void pinned_memory_is_told_apart(void **state)
{
    assert_int_equal(el_option_take(EL_CMD_DATA, el_option_of_command(EL_CMD_DATA, "pin-memory"), "on,off", &options),
                     EL_OK);
    for (int t = 0; t < TRIALS; t++) {
        trials[t].devices[0] = (struct el_device_name){"cuda", 0};
        trials[t].train.loading.pageable = t == 2;
    }
    json_t *made = document();
    assert_string_equal(el_json_text(made, "pinned", ""), "both");
    assert_string_equal(el_json_text(made, "non_blocking", ""), "on");
    assert_true(is_null(made, "rows.0.pin_ms"));
    near(made, "rows.1.pin_ms", 0.5);
    assert_string_equal(el_json_text(made, "rows.2.pinned", ""), "off");
    assert_true(is_null(made, "rows.2.pin_ms"));
    assert_int_equal(el_json_whole(made, "recommended.0.workers"), 4);
    json_decref(made);
    options.n_lists = 0;
    for (int t = 0; t < TRIALS; t++) {
        trials[t].devices[0] = (struct el_device_name){"cpu", 0};
        trials[t].train.loading.pageable = false;
    }
}

static void none_that_hides_is_none(void **state)
{
    campaign.set.n = 2; /* 0 and 1 */
    json_t *made = document();
    campaign.set.n = TRIALS;
    assert_true(is_null(made, "recommended.0.workers"));
    json_decref(made);
}

static void a_launch_that_failed_is_no_figure(void **state)
{
    json_t *kept = repeats[3 * LAUNCHES];
    repeats[3 * LAUNCHES] = NULL;
    json_t *made = document();
    repeats[3 * LAUNCHES] = kept;
    assert_true(is_null(made, "rows.3.launches_pct.0"));
    near(made, "rows.3.exposed_pct", 0.5);
    json_decref(made);
}

RUN_TESTS(make_campaign, drop_campaign, rows_are_medians_of_the_most_exposed,
          a_row_contradicts_neither_itself_nor_the_sentence, a_lucky_launch_does_not_vouch_for_itself,
          pinned_memory_is_told_apart, none_that_hides_is_none, a_launch_that_failed_is_no_figure)
