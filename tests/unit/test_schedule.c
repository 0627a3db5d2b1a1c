/* Schedules: their rows as papers print them, how many micro-batches they hold, and that they cannot dead-lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "runtime/parallel/schedule.h"

enum { ONE_F_ONE_B, GPIPE };
static const int stage_counts[] = {1, 2, 4, 8}, micro_counts[] = {1, 2, 4, 5, 8};
#define EACH(i, list) (size_t i = 0; (i) < sizeof(list) / sizeof(list)[0]; (i)++)

static const char *row(int schedule, int n_stages, int n_micro, int stage)
{
    static char text[256];
    struct el_action actions[2 * EL_MICRO_MAX];
    int n = el_schedule_fill(&el_schedule_list()[schedule], n_stages, n_micro, stage, actions), at = 0;
    for (int i = 0; i < n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%c%d", i ? " " : "",
                       actions[i].kind == EL_ACTION_FORWARD ? 'F' : 'B', actions[i].micro);
    return text;
}

static void rows_are_those_of_the_papers(void **state)
{
    (void)state;
    assert_string_equal(row(GPIPE, 2, 3, 0), "F0 F1 F2 B0 B1 B2");
    assert_string_equal(row(GPIPE, 2, 3, 1), "F0 F1 F2 B0 B1 B2");
    assert_string_equal(row(ONE_F_ONE_B, 4, 4, 0), "F0 F1 F2 F3 B0 B1 B2 B3");
    assert_string_equal(row(ONE_F_ONE_B, 4, 4, 1), "F0 F1 F2 B0 F3 B1 B2 B3");
    assert_string_equal(row(ONE_F_ONE_B, 4, 4, 2), "F0 F1 B0 F2 B1 F3 B2 B3");
    assert_string_equal(row(ONE_F_ONE_B, 4, 4, 3), "F0 B0 F1 B1 F2 B2 F3 B3");
    assert_string_equal(row(ONE_F_ONE_B, 2, 1, 0), "F0 B0");
}

static void a_stage_holds_as_many_as_its_closed_form(void **state)
{
    (void)state;
    for
        EACH(p, stage_counts)
        for
            EACH(m, micro_counts)
        for (int s = 0; s < stage_counts[p]; s++) {
            int left = stage_counts[p] - s, micro = micro_counts[m];
            const struct el_schedule *list = el_schedule_list();
            assert_int_equal(el_schedule_in_flight(&list[GPIPE], stage_counts[p], micro, s), micro);
            assert_int_equal(el_schedule_in_flight(&list[ONE_F_ONE_B], stage_counts[p], micro, s),
                             left < micro ? left : micro);
        }
}

/* Time in units of one forward, which a backward takes too; messages cost nothing. Returns the end of the last one;
 * -1: some stage never goes on. */
static int makespan(int schedule, int n_stages, int n_micro)
{
    enum { STAGES = 8 };
    static struct el_action actions[STAGES][2 * EL_MICRO_MAX];
    static int ends[2][STAGES][EL_MICRO_MAX];
    int n = 0, next[STAGES] = {0}, time[STAGES] = {0}, last = 0, done = 0;
    for (int s = 0; s < n_stages; s++) {
        n = el_schedule_fill(&el_schedule_list()[schedule], n_stages, n_micro, s, actions[s]);
        for (int m = 0; m < n_micro; m++) ends[0][s][m] = ends[1][s][m] = -1;
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < n_stages; s++) {
            if (next[s] == n) continue;
            struct el_action action = actions[s][next[s]];
            bool is_backward = action.kind == EL_ACTION_BACKWARD;
            int from = is_backward ? s + 1 : s - 1, ready = 0;
            if (from >= 0 && from < n_stages) ready = ends[is_backward][from][action.micro];
            if (from == n_stages) ready = ends[0][s][action.micro];
            if (ready < 0) continue;
            time[s] = (ready > time[s] ? ready : time[s]) + 1;
            ends[is_backward][s][action.micro] = time[s];
            if (time[s] > last) last = time[s];
            next[s]++;
            done++;
            moved = true;
        }
    }
    return done == n * n_stages ? last : -1;
}

/* (p - 1) / (m + p - 1) of the stages' time is idle: the whole takes 2 (m + p - 1). */
static void the_bubble_is_the_papers(void **state)
{
    (void)state;
    for (int schedule = 0; el_schedule_list()[schedule].name; schedule++)
        for
            EACH(p, stage_counts)
            for
                EACH(m, micro_counts)
            assert_int_equal(makespan(schedule, stage_counts[p], micro_counts[m]),
                             2 * (micro_counts[m] + stage_counts[p] - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_papers),
        cmocka_unit_test(a_stage_holds_as_many_as_its_closed_form),
        cmocka_unit_test(the_bubble_is_the_papers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
