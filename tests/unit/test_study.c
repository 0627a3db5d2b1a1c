/* A study's arithmetic on tables made up so that the answer is known, what the published table comes to, and how much
 * memory the host has. What is printed is in tests/cli/study.bats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/job/host_memory.h"
#include "bench/options/options.h"
#include "bench/study/study.h"

static void assert_near(double value, double wanted, double within)
{
    if (!(fabs(value - wanted) <= within)) fail_msg("%.9g is not %.9g within %g", value, wanted, within);
}

static void a_line_is_found_again(void **state)
{
    (void)state;
    const double x[] = {32, 64, 128}, y[] = {7 + 0.5 * 32, 7 + 0.5 * 64, 7 + 0.5 * 128}, bent[] = {0, 3, 0};
    struct el_study_line line = el_study_line(x, y, 3);
    assert_near(line.at_zero, 7, 1e-9);
    assert_near(line.slope, 0.5, 1e-12);
    assert_near(line.residual, 0, 1e-9);
    /* Of 0, 3, 0 over 1, 2, 3 the best line is flat at 1: two points lie 1 below it, one 2 above. */
    line = el_study_line((const double[]){1, 2, 3}, bent, 3);
    assert_near(line.slope, 0, 1e-12);
    assert_near(line.at_zero, 1, 1e-12);
    assert_near(line.residual, 2, 1e-12);
}

static void copies_by_the_rule(void **state)
{
    (void)state;
    assert_int_equal(el_study_copies(EL_OPT_SGD, false, false), 3);
    assert_int_equal(el_study_copies(EL_OPT_SGD, false, true), 4);
    assert_int_equal(el_study_copies(EL_OPT_MOMENTUM, false, true), 5);
    assert_int_equal(el_study_copies(EL_OPT_MOMENTUM, true, false), 5);
    assert_int_equal(el_study_copies(EL_OPT_ADAM, false, false), 5);
    assert_int_equal(el_study_copies(EL_OPT_ADAM, false, true), 6);
    assert_int_equal(el_study_copies(EL_OPT_ADAM, true, true), 7);
}

/* A table as P, C, k and the bytes of a sample make it. */
static void make_table(double params_mib, double context_mib, int k, double sample_mib, struct el_study_row *rows)
{
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        rows[i].global_batch = 64 << i;
        rows[i].card_mib[EL_STUDY_SECOND] = context_mib + 2 * params_mib + sample_mib * (double)(32 << i);
        rows[i].card_mib[EL_STUDY_MAIN] = rows[i].card_mib[EL_STUDY_SECOND] + (k - 2) * params_mib;
    }
}

/* Whatever made the table is among the candidates, with its own P and C; the others differ by their k alone. */
static void each_candidate_is_found_again(void **state)
{
    (void)state;
    struct el_study_row rows[EL_STUDY_ROWS];
    struct el_study_line lines[EL_STUDY_CARDS];
    struct el_study_candidate candidates[EL_STUDY_CANDIDATES];
    for (int k = 3; k <= 7; k++) {
        int n = 0;
        make_table(120, 300, k, 1.75, rows);
        el_study_lines(rows, EL_STUDY_ROWS, lines);
        el_study_candidates(lines, 20, 0.01, candidates);
        assert_near(lines[EL_STUDY_SECOND].slope, 1.75, 1e-9);
        for (int i = 0; i < EL_STUDY_CANDIDATES; i++) {
            const struct el_study_candidate *c = &candidates[i];
            assert_int_equal(c->copies, el_study_copies(c->optimizer, c->peer_copies, c->kept));
            assert_near(c->params_mib * (c->copies - 2), 120.0 * (k - 2), 1e-6);
            if (c->copies != k) continue;
            n++;
            assert_near(c->params_mib, 120, 1e-6);
            assert_near(c->context_mib, 300, 1e-6);
            assert_near(c->words, 10000, 1e-3);
            assert_true(el_study_possible(c));
        }
        assert_true(n > 0);
    }
}

static void no_context_is_impossible(void **state)
{
    (void)state;
    struct el_study_candidate c = {.context_mib = -1e-6};
    assert_false(el_study_possible(&c));
    assert_non_null(strstr(el_study_credible(&c), "impossible"));
    c.context_mib = 0;
    assert_false(el_study_possible(&c));
    c.context_mib = 1;
    assert_true(el_study_possible(&c));
    assert_non_null(strstr(el_study_credible(&c), "below any"));
    c.context_mib = 871;
    assert_string_equal(el_study_credible(&c), "possible, C as reported");
    c.context_mib = 2000;
    assert_non_null(strstr(el_study_credible(&c), "above any"));
}

/* Ours are the table less a constant a card, which differences do not see, and `stretch` of the growth. */
static void make_ours(const struct el_study_row *rows, double main_off_mib, double stretch, struct el_study_account *a)
{
    memset(a, 0, sizeof *a);
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        double grown_mib = 1.75 * (stretch - 1) * (double)rows[i].global_batch / 2;
        a->card_bytes[i][EL_STUDY_MAIN] = (rows[i].card_mib[EL_STUDY_MAIN] - 300 + main_off_mib + grown_mib) * 1048576;
        a->card_bytes[i][EL_STUDY_SECOND] = (rows[i].card_mib[EL_STUDY_SECOND] - 300 + grown_mib) * 1048576;
    }
}

static void differences_are_judged(void **state)
{
    (void)state;
    struct el_study_row rows[EL_STUDY_ROWS];
    struct el_study_line lines[EL_STUDY_CARDS];
    struct el_study_account ours;
    make_table(250, 300, 6, 1.75, rows); /* main minus second: 1000 */
    el_study_lines(rows, EL_STUDY_ROWS, lines);
    make_ours(rows, 0, 1, &ours);
    el_study_compare(rows, lines, &ours);
    assert_true(ours.holds);
    assert_near(ours.difference_error_pct[1], 0, 1e-9);
    make_ours(rows, -29, 1.09, &ours);
    el_study_compare(rows, lines, &ours);
    assert_true(ours.holds);
    assert_near(ours.difference_error_pct[2], -2.9, 1e-6);
    assert_near(ours.growth_error_pct[EL_STUDY_SECOND], 9, 1e-6);
    make_ours(rows, 31, 1, &ours);
    el_study_compare(rows, lines, &ours);
    assert_false(ours.difference_holds[0] || ours.holds);
    assert_true(ours.growth_holds);
    make_ours(rows, 0, 0.89, &ours);
    el_study_compare(rows, lines, &ours);
    assert_true(ours.difference_holds[0]);
    assert_false(ours.growth_holds || ours.holds);
}

/* The band's ends are the (k - 2) P at which the largest and the smallest difference are off by 3 %; a table whose
 * differences spread too far has none. */
static void a_band_is_where_all_differences_hold(void **state)
{
    (void)state;
    struct el_study_row rows[EL_STUDY_ROWS];
    make_table(250, 300, 6, 1.75, rows); /* main minus second: 1000 */
    rows[1].card_mib[EL_STUDY_MAIN] += 20;
    struct el_study_band band = el_study_band(rows, 6, 20, 0.01);
    assert_near(band.difference_mib[0], 1020 * 0.97, 1e-9);
    assert_near(band.difference_mib[1], 1000 * 1.03, 1e-9);
    assert_near(band.params_mib[0], 1020 * 0.97 / 4, 1e-9);
    assert_near(band.words[1], (1000 * 1.03 / 4 - 20) / 0.01, 1e-6);
    rows[1].card_mib[EL_STUDY_MAIN] += 60;
    band = el_study_band(rows, 6, 20, 0.01);
    assert_true(band.difference_mib[0] > band.difference_mib[1]);
}

/* A table within the band holds at all batches, one just below it at all but the largest difference. */
static void the_band_is_the_judgement(void **state)
{
    (void)state;
    struct el_study study;
    struct el_study_account ours = {0};
    assert_int_equal(el_study_begin(&study), EL_OK);
    for (int below = 0; below < 2; below++) {
        for (int i = 0; i < EL_STUDY_ROWS; i++)
            ours.card_bytes[i][EL_STUDY_MAIN] = (study.band.difference_mib[0] + 0.01 - 0.02 * below) * 1048576;
        el_study_compare(study.rows, study.lines, &ours);
        assert_true(ours.difference_holds[0] && ours.difference_holds[1]);
        assert_int_equal(ours.difference_holds[2], !below);
    }
}

/* Live bytes have the closed form's 6 P and 2 P, and activation moves their difference; reserved has 4 P between the
 * cards at any batch. */
static void the_published_table(void **state)
{
    (void)state;
    struct el_study study;
    assert_int_equal(el_study_begin(&study), EL_OK);
    assert_near(study.lines[EL_STUDY_SECOND].slope, 0.960, 5e-4);
    assert_near(study.lines[EL_STUDY_MAIN].slope, 1.455, 5e-4);
    for (int i = 0; i < EL_STUDY_CANDIDATES; i++) {
        assert_int_equal(el_study_possible(&study.candidates[i]), study.candidates[i].copies > 4);
        if (study.candidates[i].copies == 6) assert_near(study.candidates[i].words, 400000, 500);
    }
    assert_int_equal(el_study_fit(&study), EL_OK);
    el_study_judge(&study);
    const struct el_memory_forecast *last = study.memory[EL_STUDY_ROWS - 1];
    double params = (double)study.param_bytes;
    assert_near((double)last[EL_STUDY_MAIN].ledger.peak_bytes / params, 6, 0.02);
    double alive = (double)last[EL_STUDY_SECOND].ledger.at_peak_by_tag[EL_TAG_ACTIVATION];
    assert_near(((double)last[EL_STUDY_SECOND].ledger.peak_bytes - alive) / params, 2, 0.02);
    assert_near(study.live_best.growth_error_pct[EL_STUDY_SECOND], 0, 0.2);
    assert_near(study.reserved.growth_error_pct[EL_STUDY_SECOND], 0, 0.5);
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        const double *cards = study.reserved.card_bytes[i];
        assert_near((cards[EL_STUDY_MAIN] - cards[EL_STUDY_SECOND]) / params, 4, 0.002);
    }
    assert_true(study.reserved.difference_holds[1] && !study.reserved.difference_holds[2] && !study.reserved.holds);
    assert_int_equal(el_study_moving_tag(&study), EL_TAG_ACTIVATION);
    assert_near(study.unattributed_mib[0][EL_STUDY_SECOND],
                1833 - study.reserved.card_bytes[0][EL_STUDY_SECOND] / 1048576, 1e-9);
    assert_true(el_study_need_bytes(&study) > 8 * params);
}

/* A worker is started by a command line: each option of the run must be one that the parser takes, and come back. */
static void the_run_is_a_command_line(void **state)
{
    (void)state;
    static struct el_options asked, options, again;
    struct el_study study;
    assert_int_equal(el_study_begin(&study), EL_OK);
    snprintf(asked.out, sizeof asked.out, "somewhere");
    el_study_options(&study, &asked, &options);
    el_options_defaults(EL_CMD_COMPARE, &again);
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        char text[256], read[256];
        if (!(row->commands & EL_CMD_COMPARE) || !row->argument) continue;
        el_option_show(row, &options, text, sizeof text);
        if (!*text) continue;
        if (el_option_set(row, text, &again) != EL_OK) fail_msg("%s", el_error_message());
        el_option_show(row, &again, read, sizeof read);
        assert_string_equal(read, text);
    }
    assert_int_equal(again.n_modes, 1);
    assert_string_equal(again.modes[0], "dp");
    assert_int_equal(again.n_batches, EL_STUDY_ROWS);
    assert_true(again.train.keep_grads && again.train.optimizer == EL_OPT_ADAM && again.train.capture);
    assert_string_equal(again.out, "somewhere");
}

static json_t *card_of(double peak_bytes, const char *uuid, double driver_bytes, int context_bytes)
{
    return json_pack("{s:o, s:{s:f, s:o, s:{s:i, s:i}}}", "uuid", el_json_string(uuid), "memory", "peak_bytes",
                     peak_bytes, "driver_bytes", el_json_real(driver_bytes), "library_bytes", "context", context_bytes,
                     "cuBLAS", context_bytes / 4);
}

static char *held_of(const struct el_study *study)
{
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    el_study_print_held(study, out);
    fclose(out);
    return text;
}

/* Two devices on one card: the context counts once, and what the driver cannot tell apart is no figure. */
static void the_driver_tells_of_cards(void **state)
{
    (void)state;
    struct el_study study;
    static struct el_options options = {.n_devices = 2, .dry_run = true};
    json_t *trials = json_array(), *run = json_pack("{s:o}", "trials", trials);
    for (int i = 0; i < EL_STUDY_ROWS; i++)
        json_array_append_new(trials, json_pack("{s:s, s:[o, o]}", "status", "ok", "per_device",
                                                card_of(5e9 + i, "GPU-1", i ? NAN : 3 * 1048576, 2 << 20),
                                                card_of(1e9, i == 2 ? NULL : "GPU-1", NAN, 0)));
    assert_int_equal(el_study_begin(&study), EL_OK);
    assert_false(el_study_has_cards(&study));
    assert_int_equal(el_study_read(run, &study), EL_OK);
    char *text = held_of(&study);
    assert_string_equal(text, ""); /* a CPU has no driver */
    free(text);
    for (int card = 0; card < 2; card++) options.devices[card] = (struct el_device_name){.backend = "cuda"};
    assert_int_equal(el_study_on(&study, &options), EL_OK);
    assert_true(el_study_has_cards(&study));
    assert_near(study.held[0][EL_STUDY_MAIN].outside_bytes, 2.5 * 1048576, 0);
    assert_near(study.held[0][EL_STUDY_SECOND].outside_bytes, 0, 0);
    assert_true(isnan(study.held[2][EL_STUDY_SECOND].outside_bytes) && isnan(study.held[1][0].driver_bytes));
    assert_near((double)study.memory[1][0].ledger.peak_bytes, 5e9 + 1, 0);
    text = held_of(&study);
    assert_non_null(strstr(text, "  64              3.0                2.5             -                0.0\n"));
    print_message("%s", text);
    assert_non_null(strstr(text, "Both devices are on one card"));
    free(text);
    json_t *held = el_study_held_json(&study);
    assert_true(json_is_null(el_json_at(held, "1.0.driver_bytes")));
    assert_near(el_json_number(held, "1.0.outside_bytes"), 2.5 * 1048576, 0);
    json_decref(held);
    json_decref(run);
}

static void a_study_has_two_devices(void **state)
{
    (void)state;
    struct el_study study;
    char text[64];
    static struct el_options options = {.n_devices = 3};
    assert_int_equal(el_study_begin(&study), EL_OK);
    assert_string_equal(el_study_devices(&study, text, sizeof text), "2 cpu devices");
    assert_int_equal(el_study_on(&study, &options), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "has two cards, 3 devices are named"));
    options.n_devices = 2;
    options.dry_run = true;
    for (int card = 0; card < 2; card++)
        options.devices[card] = (struct el_device_name){.backend = "cuda", .index = 7 * card};
    assert_int_equal(el_study_on(&study, &options), EL_OK);
    assert_string_equal(el_study_devices(&study, text, sizeof text), "cuda:0 and cuda:7");
}

static void put_file(const char *root, const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *at = name + strlen(root) + 1; *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        mkdir(name, 0777);
        *at = '/';
    }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void memory_that_is_free(void **state)
{
    (void)state;
    char root[] = "/tmp/el-study-XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    assert_true(isnan(el_host_free_bytes(root)));
    put_file(root, "/proc/meminfo", "MemTotal:  100 kB\nMemFree:   10 kB\nMemAvailable:   50 kB\n");
    assert_near(el_host_free_bytes(root), 50 * 1024, 0);
    put_file(root, "/sys/fs/cgroup/memory.max", "max\n");
    put_file(root, "/sys/fs/cgroup/memory.current", "30000\n");
    assert_near(el_host_free_bytes(root), 50 * 1024, 0);
    put_file(root, "/sys/fs/cgroup/memory.max", "40000\n");
    put_file(root, "/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 5000\nactive_file 7\n");
    assert_near(el_host_free_bytes(root), 15000, 0);
    put_file(root, "/sys/fs/cgroup/memory.max", "90000000\n");
    assert_near(el_host_free_bytes(root), 50 * 1024, 0);
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder of the test's own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_found_again),         cmocka_unit_test(copies_by_the_rule),
        cmocka_unit_test(each_candidate_is_found_again), cmocka_unit_test(no_context_is_impossible),
        cmocka_unit_test(differences_are_judged),        cmocka_unit_test(a_band_is_where_all_differences_hold),
        cmocka_unit_test(the_band_is_the_judgement),     cmocka_unit_test(the_published_table),
        cmocka_unit_test(the_run_is_a_command_line),     cmocka_unit_test(the_driver_tells_of_cards),
        cmocka_unit_test(a_study_has_two_devices),       cmocka_unit_test(memory_that_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
