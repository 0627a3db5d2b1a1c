/* Figures over time in bounded room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "bench/watch/series.h"

static void figures_over_time(void **state)
{
    static struct el_frames frames;
    struct el_series whole = {0}, late = {0};
    memset(&frames, 0, sizeof frames);
    const int n = 10 * EL_FRAMES_MAX + 37, high = 7777;
    for (int i = 0; i < n; i++) {
        if (el_frames_are_many(&frames)) {
            el_frames_halve(&frames);
            el_series_halve(&whole);
            el_series_halve(&late);
        }
        el_frames_begin(&frames, 1000 + i);
        el_series_put(&frames, &whole, i == high ? 999 : 5, i);
        if (i >= 5003) el_series_put(&frames, &late, 6, i);
    }
    assert_true(frames.n <= EL_FRAMES_MAX && frames.n > EL_FRAMES_MAX / 2);
    assert_int_equal(whole.n, frames.n);
    assert_int_equal(frames.ns[frames.n - 1], 1000 + n - 1);
    assert_int_equal(late.first + late.n, frames.n);
    assert_true(frames.ns[late.first] >= 1000 + 5003 && (late.first == 0 || frames.ns[late.first - 1] < 1000 + 5003));
    int n_high = 0;
    for (int i = 0; i < whole.n; i++) {
        int64_t before_ns = i > 0 ? frames.ns[i - 1] : 0;
        bool holds = before_ns < 1000 + high && frames.ns[i] >= 1000 + high;
        assert_int_equal(whole.points[i].bytes, holds ? 999 : 5);
        assert_int_equal(whole.points[i].cpu_ns, frames.ns[i] - 1000); /* as of the frame's last look */
        n_high += holds;
    }
    assert_int_equal(n_high, 1);
    el_series_free(&whole);
    el_series_free(&late);
}

/* What is not seen for a while, as GPU memory is when the driver fails once, is there again afterwards. */
static void a_gap_over_time(void **state)
{
    static struct el_frames frames;
    struct el_series series = {0};
    memset(&frames, 0, sizeof frames);
    for (int i = 0; i < 10; i++) {
        el_frames_begin(&frames, i);
        if (i < 3 || i > 6) el_series_put(&frames, &series, 100 + i, i);
    }
    assert_int_equal(series.n, 10);
    for (int i = 0; i < 10; i++) assert_int_equal(series.points[i].bytes, i < 3 || i > 6 ? 100 + i : 102);
    el_series_free(&series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_over_time),
        cmocka_unit_test(a_gap_over_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
