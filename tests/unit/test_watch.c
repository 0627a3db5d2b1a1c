/* The record of a watch and its tables, of processes on a made-up /proc; figures over time in bounded room. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/fake_proc.h"

static json_t *document_of(struct el_process_tree *tree, int64_t begin_ns, int64_t end_ns, int64_t largest_bytes)
{
    struct el_watching *watch = watch_tree(tree);
    watch->begin_ns = begin_ns;
    watch->end_ns = end_ns;
    watch->own_cpu_s = 0.008;
    watch->largest_bytes = largest_bytes;
    json_t *document = el_watch_record(watch, "evenload watch -- job");
    assert_non_null(document);
    el_watch_end(watch);
    return document;
}

/* What was looked at after the command's end does not lengthen its life; shares that mean nothing are left out. */
static void a_short_life(void **state)
{
    struct el_process_tree *tree = open_tree();
    PUT(.pid = 101, .name = "short", .ticks = 1, .resident_kib = 10);
    PUT(.pid = 102, .parent = 101, .name = "late", .resident_kib = 10);
    PUT(.pid = 103, .parent = 101, .name = "ended", .state = 'Z', .ticks = 1);
    discover(tree, 103);
    set_life(tree, 101, 2000000000, 2900000000);
    set_life(tree, 102, 2800000000, 2900000000);
    json_t *document = document_of(tree, 1900000000, 2500000000, 0);
    assert_true(fabs(number(document, "watch.processes.0.end_s") - 0.6) < 1e-9);
    assert_true(fabs(number(document, "watch.processes.0.cpu_pct") - 4) < 1e-9); /* 20 ms of half a second */
    assert_true(fabs(number(document, "watch.processes.0.cpu_of_allowed_pct") - 0.8) < 1e-9); /* 5 CPUs */
    assert_true(number(document, "watch.processes.0.mean_bytes") == 10240); /* seen once: what it held then */
    assert_true(fabs(number(document, "watch.processes.1.begin_s") - 0.6) < 1e-9);
    assert_true(isnan(number(document, "watch.processes.1.cpu_pct")));
    assert_true(isnan(number(document, "watch.processes.2.peak_bytes"))); /* never seen alive */
    assert_true(isnan(number(document, "watch.processes.2.mean_bytes")));
    assert_true(isnan(number(document, "watch.sampler.cpu_pct_of_a_core")));
    char *text = tables_of(document);
    assert_non_null(strstr(text, "Watching took 0.008 s of CPU time: "));
    free(text);
    json_decref(document);
}

/* A process that no row shows, as one that lived for an instant, takes no comparison away; it is said to be left out.
 */
static void what_no_row_shows_is_said_beside_the_comparison(void **state)
{
    for (int unseen = 0; unseen < 2; unseen++) {
        struct el_process_tree *tree = open_tree();
        for (int rank = 0; rank < 2; rank++) {
            put_rank(101 + rank, rank);
            PUT(.pid = 101 + rank, .ticks = 1, .resident_kib = 1024 * (1 + rank));
        }
        discover(tree, 102);
        json_t *document = document_of(tree, 0, INT64_MAX, unseen ? 3 << 20 : 2 << 20);
        char *text = tables_of(document);
        assert_non_null(strstr(text, "At its peak rank 1"));
        assert_int_equal(strstr(text, "Left out: a process reached 3.0 MiB") != NULL, unseen);
        free(text);
        json_decref(document);
        put_last(ANCESTOR);
    }
}

/* Figures as wide as machines have them, and names of any alphabet: columns stay apart and in their places. */
static void columns_stay_apart(void **state)
{
    struct el_process_tree *tree = open_tree();
    static const char name[] = "./\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9"
                               "\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9\xc3\xa9t\xc3\xa9";
    PUT(.pid = 101, .name = "big", .resident_kib = 2000000000, .peak_kib = 2000000000, .private_kib = 2000000000,
        .ticks = 200000000);
    put(101, "cmdline", name, sizeof name);
    discover(tree, 101);
    json_t *document = document_of(tree, 0, INT64_MAX, 0);
    char *text = tables_of(document);
    assert_non_null(strstr(text, "\n    101 "));
    assert_non_null(strstr(text, "\xc3\xa9t... ")); /* 20 characters, whole ones */
    assert_non_null(strstr(text, " 1,953,125 1,953,125 1,953,125 "));
    free(text);
    json_decref(document);
}

/* A script of Python's that is a program of its own goes by its name, and any other by what is run; folders are left
 * out. */
static void programs_go_by_their_names(void **state)
{
    static const struct {
        const char *command, *shown;
    } rows[] = {
        {"/usr/bin/python3.11 /usr/local/bin/torchrun --nproc_per_node 2 a/train.py", " torchrun --nproc_per... "},
        {"/usr/bin/python3 -u train.py --lr 1", " python3 -u train.py ... "},
        {"/opt/python3 /home/me/train.py", " python3 train.py "},
        {"/bin/sh /usr/bin/torchrun", " sh torchrun "}};
    struct el_process_tree *tree = open_tree();
    for (int i = 0; i < 4; i++) {
        PUT(.pid = 101 + i, .name = "python3", .resident_kib = 10);
        put(101 + i, "cmdline", rows[i].command, strlen(rows[i].command));
    }
    discover(tree, 104);
    json_t *document = document_of(tree, 0, INT64_MAX, 0);
    char *text = tables_of(document);
    for (int i = 0; i < 4; i++)
        if (!strstr(text, rows[i].shown)) fail_msg("no '%s' in:\n%s", rows[i].shown, text);
    free(text);
    json_decref(document);
}

/* A reading of Pss stands as a lower bound once the process has grown beyond it. */
static void an_old_pss_is_marked(void **state)
{
    for (int grown = 0; grown < 2; grown++) {
        struct el_process_tree *tree = open_tree();
        static const char rollup[] = "[rollup]\nRss: 2048 kB\nPss: 1536 kB\n";
        PUT(.pid = 101, .resident_kib = 2048, .peak_kib = 2048);
        put(101, "smaps_rollup", rollup, sizeof rollup - 1);
        discover(tree, 101);
        set_life(tree, 101, el_clock_ns() - 1000000000, el_clock_ns());
        el_process_tree_look_shared(tree);
        if (grown) PUT(.pid = 101, .resident_kib = 4096, .peak_kib = 4096);
        el_process_tree_look(tree);
        json_t *document = document_of(tree, 0, INT64_MAX, 0);
        assert_true(number(document, "watch.processes.0.pss_resident_bytes") == 2048 * 1024);
        char *text = tables_of(document);
        assert_non_null(strstr(text, grown ? " >1.5 " : " 1.5 "));
        free(text);
        json_decref(document);
        put_last(ANCESTOR);
    }
}

/* Many and unreadable ones: the table stays short and narrow. */
static void a_table_of_many(void **state)
{
    struct el_process_tree *tree = open_tree();
    char command[200];
    memset(command, 'x', sizeof command);
    command[0] = '/', command[60] = ' ';
    PUT(.pid = 101, .name = "command", .resident_kib = 2000000000, .peak_kib = 2000000000, .ticks = 2000000);
    put(101, "cmdline", command, sizeof command);
    for (int pid = 102; pid < 140; pid++)
        PUT(.pid = pid, .parent = 101, .name = "many", .resident_kib = pid, .ticks = 1);
    discover(tree, 140);
    struct el_watching *watch = watch_tree(tree);
    watch->end_ns = el_clock_ns() + 1;
    json_t *document = el_watch_record(watch, "evenload watch");
    char *text = tables_of(document);
    assert_non_null(strstr(text, "39 processes"));
    assert_non_null(strstr(text, "and 23 more: none above"));
    free(text);
    json_decref(document);
    el_watch_end(watch);
}

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
    const struct CMUnitTest tests[] = {TEST(a_short_life),
                                       TEST(what_no_row_shows_is_said_beside_the_comparison),
                                       TEST(columns_stay_apart),
                                       TEST(programs_go_by_their_names),
                                       TEST(an_old_pss_is_marked),
                                       TEST(a_table_of_many),
                                       cmocka_unit_test(figures_over_time),
                                       cmocka_unit_test(a_gap_over_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
