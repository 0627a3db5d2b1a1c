/* Scaling: the bucket sweep, and what it recommends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/printed.h"
#include "tests/unit/scale_trials.h"

static void give_buckets(json_t *trial, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_pack("{s:i}", "bytes", MIB / n));
    json_object_set_new(trial, "collectives", list);
}

/* ddp on 2 with 25, and with 1 (always `ratio` of its step) and 100 (the buckets of 25, and by chance far faster). */
static json_t *make_sweep(double ratio, const double *noise)
{
    double base[REPEATS], small[REPEATS], same[REPEATS];
    times(1.6, NULL, base);
    times(1.6 / ratio, noise, small);
    times(3.2, NULL, same);
    json_t *trials[] = {make_trial("single", 1, true, PLAIN, 25), make_trial("ddp", 2, true, base, 25),
                        make_trial("ddp", 2, true, small, 1), make_trial("ddp", 2, true, same, 100)};
    give_buckets(trials[1], 2);
    give_buckets(trials[2], 6);
    give_buckets(trials[3], 2);
    return json_pack("[o, o, o, o]", trials[0], trials[1], trials[2], trials[3]);
}

static void a_size_is_recommended_only_beyond_chance(void **state)
{
    (void)state;
    static const double noise[REPEATS] = {0.97, 1.04, 1.01, 0.96, 1.03};
    static const struct {
        double ratio, recommended;
    } cases[] = {{0.8, 1}, {0.99, NAN}, {1.2, NAN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *document = document_of(make_sweep(cases[i].ratio, noise));
        assert_int_equal(json_array_size(json_object_get(document, "rows")), 2); /* the sweep's are not counts */
        double found = el_json_number(document, "buckets.recommended_mib");
        assert_true(isnan(cases[i].recommended) ? isnan(found) : found == cases[i].recommended);
        assert_near(el_json_number(document, "buckets.comparisons"), 1);
        assert_near(el_json_number(document, "buckets.rows.0.mib"), 1);
        assert_near(el_json_number(document, "buckets.rows.0.buckets"), 6);
        assert_near(el_json_number(document, "buckets.rows.1.ratio"), 1);
        assert_true(json_is_true(el_json_at(document, "buckets.rows.2.same")));
        char *text = printed(el_scale_print, document);
        assert_non_null(strstr(text, isnan(cases[i].recommended) ? "keep 25" : "take --bucket-mb 1"));
        free(text);
        json_decref(document);
    }
}

static void shared_devices_get_no_recommendation(void **state)
{
    (void)state;
    json_t *trials = make_sweep(0.5, NULL);
    mark_shared(json_array_get(trials, 1));
    json_t *document = document_of(trials);
    assert_true(json_is_null(el_json_at(document, "buckets.recommended_mib")));
    json_decref(document);
}

/* Nothing is kept or taken where the usual size failed, or no other has an interval. */
static void without_the_usual_size_none_is_recommended(void **state)
{
    (void)state;
    json_t *trials = make_sweep(0.5, NULL);
    json_object_set_new(json_array_get(trials, 1), "status", json_string("failed"));
    json_t *document = document_of(trials);
    char *text = printed(el_scale_print, document);
    assert_non_null(strstr(text, "25, which the others are compared with, did not finish"));
    free(text);
    json_decref(document);
    trials = make_sweep(0.5, NULL);
    json_array_clear(json_object_get(json_array_get(trials, 2), "repeats"));
    document = document_of(trials);
    text = printed(el_scale_print, document);
    assert_non_null(strstr(text, "no size has an interval"));
    free(text);
    json_decref(document);
}

/* What is missing from a foreign record, or is out of range there, is null. */
static void buckets_without_figures(void **state)
{
    (void)state;
    json_t *trials = make_sweep(0.5, NULL);
    json_object_set_new(json_array_get(trials, 1), "collectives", json_pack("[{s:n}, {}]", "bytes"));
    json_object_set_new(json_array_get(trials, 2), "collectives", json_pack("[{s:f}]", "bytes", 1e300));
    json_t *document = document_of(trials);
    for (int i = 0; i < 2; i++) {
        const json_t *row = el_json_at(document, i ? "buckets.rows.1" : "buckets.rows.0");
        assert_true(json_is_null(json_object_get(row, "first_bytes")));
        assert_true(json_is_null(json_object_get(row, "largest_bytes")));
    }
    json_decref(document);
}

/* With more looks the same scatter is told less. */
static void looking_at_more_sizes_asks_for_more(void **state)
{
    (void)state;
    assert_near(el_stats_stretch_of_looks(5, 1), 1);
    assert_near(el_stats_stretch_of_looks(5, 3), el_stats_t_quantile(1 - 0.025 / 3, 4) / el_stats_t_quantile(0.975, 4));
    const double a[REPEATS] = {1.10, 1.20, 1.05, 1.15, 1.12}, b[REPEATS] = {1, 1, 1, 1, 1};
    struct el_interval narrow = el_stats_ratio_paired(a, b, REPEATS), wide = el_stats_interval_stretch(narrow, 2);
    assert_near(wide.centre, narrow.centre);
    assert_near(log(wide.high / wide.centre), 2 * log(narrow.high / narrow.centre));
    assert_near(log(wide.low / wide.centre), 2 * log(narrow.low / narrow.centre));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_is_recommended_only_beyond_chance),
        cmocka_unit_test(shared_devices_get_no_recommendation),
        cmocka_unit_test(without_the_usual_size_none_is_recommended),
        cmocka_unit_test(buckets_without_figures),
        cmocka_unit_test(looking_at_more_sizes_asks_for_more),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
