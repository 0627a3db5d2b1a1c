/* Scaling: its sentences, its table and its figure's data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/printed.h"
#include "tests/unit/scale_trials.h"

/* Of four devices on two cores nothing is said but that they share them. */
static void shared_counts_make_no_claim(void **state)
{
    (void)state;
    double two[REPEATS], four[REPEATS];
    times(1.7, NULL, two);
    times(3.9, NULL, four);
    json_t *shared = make_trial("ddp", 4, true, four, 25);
    mark_shared(shared);
    json_t *document = document_of(
        json_pack("[o, o, o]", make_trial("single", 1, true, PLAIN, 25), make_trial("ddp", 2, true, two, 25), shared));
    assert_string_equal(el_json_text(document, "rows.2.shared", ""), "devices share a core (a and b)");
    char *text = printed(el_scale_print, document);
    assert_non_null(strstr(text, "ddp on 2 devices: 1.70 times plain single"));
    assert_null(strstr(text, "ddp on 4 devices:"));
    assert_non_null(strstr(text, "From 4 devices on (marked *"));
    assert_non_null(strstr(text, "  4*"));
    free(text);
    json_decref(document);
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
    (void)state;
    static const char *const names[] = {"step_ms",    "lost_ms", "compute_ms",   "contention_ms",
                                        "exposed_ms", "idle_ms", "comm_costs_ms"};
    double two[REPEATS];
    times(1.7, NULL, two);
    json_t *document =
        document_of(json_pack("[o, o]", make_trial("single", 1, true, PLAIN, 25), make_trial("ddp", 2, true, two, 25)));
    json_t *step = el_json_at(document, "rows.1.step");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) el_json_put_real(step, names[i], 1234567890123);
    el_json_put(step, "comm_costs_ci95", json_pack("[f, f]", 1234567890123.0, 2345678901234.0));
    el_json_put_real(el_json_at(document, "rows.1"), "peak_bytes", 1e17);
    char *text = printed(el_scale_print, document);
    assert_int_equal(words_of_row(text), 14); /* mode, devices, seven parts, low - high, peak, verdict */
    free(text);
    json_decref(document);
}

/* Points of devices that share are marked, and lose nothing where an interval is missing. */
static void the_figure_marks_shared_counts(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_scale_XXXXXX", path[64], line[256];
    double two[REPEATS];
    bool drawn;
    times(1.7, NULL, two);
    json_t *shared = make_trial("ddp", 4, true, two, 25);
    mark_shared(shared);
    json_t *document = document_of(
        json_pack("[o, o, o]", make_trial("single", 1, true, PLAIN, 25), make_trial("ddp", 2, true, two, 25), shared));
    assert_non_null(mkdtemp(dir));
    assert_int_equal(el_data_save(&el_figure_scale, document, dir, &drawn), EL_OK);
    snprintf(path, sizeof path, "%s/scale.dat", dir);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(drawn);
    bool found_own = false, found_hollow = false;
    while (fgets(line, sizeof line, file)) {
        found_own = found_own || (!strncmp(line, "2\t1.7\t1.7\t1.7\t85\t", 17) && strstr(line, "\tddp\t0\t1\n"));
        found_hollow = found_hollow || (!strncmp(line, "4\t1.7\t", 6) && strstr(line, "\tddp\t1\t1\n"));
    }
    fclose(file);
    unlink(path);
    rmdir(dir);
    json_decref(document);
    assert_true(found_own && found_hollow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_counts_make_no_claim),
        cmocka_unit_test(wide_figures_stand_apart),
        cmocka_unit_test(the_figure_marks_shared_counts),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
