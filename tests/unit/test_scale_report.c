/* Scaling: its sentences, its table and its figure's data. */
#include "tests/test.h"

#include "bench/report/report.h"
#include "tests/unit/figure_data.h"
#include "tests/unit/printed.h"
#include "tests/unit/scale_trials.h"

/* Of four devices on two cores nothing is said but that they share them. */
static void shared_counts_make_no_claim(void **state)
{
    json_t *shared = make_trial("ddp", 4, true, 3.9, NULL);
    mark_shared(shared);
    json_t *document =
        document_of(json_pack("[o, o, o]", make_single(true), make_trial("ddp", 2, true, 1.7, NULL), shared));
    assert_string_equal(el_json_text(document, "rows.2.shared", ""), "devices share a core (a and b)");
    char *text = printed(el_scale_print, document);
    assert_non_null(strstr(text, "ddp on 2 devices: 1.70 times plain single"));
    assert_null(strstr(text, "ddp on 4 devices:"));
    assert_non_null(strstr(text, "From 4 devices on (marked *"));
    assert_non_null(strstr(text, "  4*"));
    free(text);
    json_decref(document);
}

/* A launch failed. */
static const double FAILS[REPEATS] = {NAN, 1, 1, 1, 1};

static json_t *suspect(json_t *trial)
{
    json_object_set_new(trial, "verdict", json_string("suspect"));
    json_object_set_new(trial, "warnings", json_pack("[s, s]", "overlap is time-sliced", "others were there"));
    json_object_set_new(trial, "warning_rules", json_pack("[s, s]", "time_sliced", "others"));
    return trial;
}

/* Of rows in doubt, its own or the baseline's, no ratio is stated without the word, and none without an interval. */
static void doubtful_rows_say_so(void **state)
{
    for (int i = 0; i < 4; i++) {
        json_t *one = make_single(false), *ddp = make_trial("ddp", 2, false, 1.7, i & 1 ? FAILS : WOBBLE);
        json_t *document = document_of(json_pack("[o, o]", i & 2 ? suspect(one) : one, i & 2 ? ddp : suspect(ddp)));
        char *text = said(el_scale_print, document);
        assert_non_null(strstr(text, i & 1
                                         ? "ddp on 2 devices: no speed-up is stated. It is suspect: others were there."
                                         : "ddp on 2 devices: 1.70 times plain single (1.69 to 1.71, suspect). It is "
                                           "suspect: others were there."));
        free(text);
        json_decref(document);
    }
}

/* Weak scaling has pairs on several numbers of devices: each ratio has its own. */
static void pairs_name_their_devices(void **state)
{
    json_t *run =
        make_run(json_pack("[o, o, o, o]", make_trial("dp", 1, false, 1, NULL), make_trial("dp", 2, false, 1, NULL),
                           make_trial("ddp", 1, false, 1.2, WOBBLE), make_trial("ddp", 2, false, 1.7, WOBBLE)));
    char *text = said(el_report_sentences, run);
    assert_non_null(strstr(text, "ddp against dp, samples/s: 1.20 times at batch 8 on 1 (1.1"));
    assert_non_null(strstr(text, "; 1.70 times at batch 8 on 2 (1.6"));
    free(text);
    json_decref(run);
}

static void doubtful_modes_say_so(void **state)
{
    for (int i = 0; i < 3; i++) {
        json_t *ddp = make_trial("ddp", 2, false, 1.7, i == 1 ? FAILS : WOBBLE);
        json_t *run = make_run(json_pack("[o, o]", make_trial("dp", 2, false, 1, NULL), i < 2 ? suspect(ddp) : ddp));
        char *text = said(el_report_sentences, run);
        assert_non_null(strstr(text, "ddp against dp on 2 devices, samples/s: "));
        assert_non_null(strstr(text, i == 0   ? "1.70 times at batch 8 (1.685 to 1.715, suspect); 95 %"
                                     : i == 1 ? "no ratio at batch 8 (suspect). It is suspect: others"
                                              : "1.70 times at batch 8 (1.685 to 1.715); 95 %"));
        assert_int_equal(strstr(text, "others were there.") != NULL, i < 2);
        assert_int_equal(strstr(text, "suspect") != NULL, i < 2);
        free(text);
        json_decref(run);
    }
}

/* Words of the last line that begins with "ddp". */
static int words_of_row(char *text)
{
    int n = 0;
    char *row = NULL, *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (!strncmp(line, "ddp ", 4)) row = line;
    assert_non_null(row);
    for (char *word = strtok_r(row, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) n++;
    return n;
}

/* Steps of minutes: figures that are wider than their columns still stand apart. */
static void wide_figures_stand_apart(void **state)
{
    static const char *const names[] = {"step_ms",    "lost_ms", "compute_ms",   "contention_ms",
                                        "exposed_ms", "idle_ms", "comm_costs_ms"};
    json_t *document = document_of(json_pack("[o, o]", make_single(true), make_trial("ddp", 2, true, 1.7, NULL)));
    json_t *step = el_json_at(document, "rows.1.step");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) el_json_put_real(step, names[i], 1234567890123);
    el_json_put(step, "comm_costs_ci95", json_pack("[f, f]", 1234567890123.0, 2345678901234.0));
    el_json_put_real(el_json_at(document, "rows.1"), "peak_bytes", 1e17);
    char *text = printed(el_scale_print, document);
    assert_int_equal(words_of_row(text), 14); /* mode, devices, seven parts, low - high, peak, verdict */
    free(text);
    json_decref(document);
}

static json_t *with_ops(json_t *trial, double products_ms, double others_ms)
{
    const int devices = (int)el_json_whole(trial, "devices");
    json_t *ops = json_pack("[{s:s, s:s, s:f, s:i}, {s:s, s:s, s:f, s:i}, {s:s, s:s, s:f, s:i}]", "op",
                            "linear_forward a", "phase", "forward", "ms", products_ms, "bytes", 8, "op", "adam a",
                            "phase", "optimizer", "ms", others_ms, "bytes", 8, "op", "loss", "phase", "loss", "ms",
                            5.0 * devices, "bytes", 8 * devices); /* the last has more to do on more devices */
    json_object_set_new(trial, "device_names", json_pack("[s]", "cpu:0"));
    json_object_set_new(json_array_get(json_object_get(trial, "per_device"), 0), "ops", ops);
    json_object_set_new(trial, "slowest_member", json_integer(0));
    return trial;
}

/* Which ops take longer beside others tells shared bandwidth from slower cores. */
static void slower_ops_name_their_cause(void **state)
{
    static const struct {
        double products_ms, others_ms;
        const char *words;
    } cases[] = {
        {10.2, 3, "Matrix products take 2 % longer than in plain single, other ops 50 %: the devices share the"},
        {12, 2.4, "Matrix products take 20 % longer than in plain single, other ops 20 %: the cores are slower"},
        {10.2, 2.04, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *document = document_of(
            json_pack("[o, o]", with_ops(make_single(true), 10, 2),
                      with_ops(make_trial("ddp", 2, true, 1.7, NULL), cases[i].products_ms, cases[i].others_ms)));
        char *text = said(el_scale_print, document);
        assert_non_null(strstr(text, "ddp on 2 devices: 1.70 times plain single"));
        if (cases[i].words) assert_non_null(strstr(text, cases[i].words));
        if (!cases[i].words) assert_null(strstr(text, "longer"));
        free(text);
        json_decref(document);
    }
}

/* Points of devices that share are open, and lose nothing where an interval is missing. One alone stands at its count,
 * two stand around it. */
static void the_figure_marks_shared_counts(void **state)
{
    json_t *shared = make_trial("ddp", 4, true, 1.7, NULL);
    mark_shared(shared);
    json_t *document =
        document_of(json_pack("[o, o, o]", make_single(true), make_trial("ddp", 2, true, 1.7, NULL), shared));
    DRAWS(&el_figure_scale, document, "\n2\t1.7\t1.7\t1.7\t85\t85\t85\tddp\t0\t1\n",
          "\n4\t1.7\t1.7\t1.7\t42.5\t42.5\t42.5\tddp\t1\t1\n");
    json_decref(document);
}

RUN_TESTS(NULL, NULL, shared_counts_make_no_claim, doubtful_rows_say_so, pairs_name_their_devices,
          doubtful_modes_say_so, wide_figures_stand_apart, slower_ops_name_their_cause, the_figure_marks_shared_counts)
