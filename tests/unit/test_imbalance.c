/* Imbalance: cards whose figures are made up so that the difference is known, sentences word for word, presets by
 * forecast, and the figure's data. What is printed for a bad use is in tests/cli/imbalance.bats. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/imbalance/imbalance.h"
#include "bench/options/options.h"
#include "bench/record/jvalue.h"
#include "bench/record/record.h"
#include "bench/record/stats.h"
#include "bench/report/excess.h"
#include "bench/study/study.h"

#define MIB 1048576LL

static void assert_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * fmax(1, fabs(wanted)))) fail_msg("%.12g is not %.12g", value, wanted);
}

/* A card: MiB of its copy of the model under `tag`, of optimizer, outputs, activations and scratch. */
static json_t *card_of(const char *device, const char *tag, int model, int optimizer, int output, int activation,
                       int scratch)
{
    json_t *tags = json_pack("{s:I, s:I, s:I, s:I, s:I}", tag, model * MIB, "optimizer", optimizer * MIB, "output",
                             output * MIB, "activation", activation * MIB, "workspace", scratch * MIB);
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (!json_object_get(tags, el_tag_name((enum el_tag)t)))
            json_object_set_new(tags, el_tag_name((enum el_tag)t), json_integer(0));
    return json_pack("{s:s, s:{s:I, s:O, s:o, s:n}, s:{s:f}, s:I, s:I, s:f}", "device", device, "memory", "peak_bytes",
                     (model + optimizer + output + activation + scratch) * MIB, "at_peak_by_tag", tags, "peak_by_tag",
                     tags, "unattributed_bytes", "utilization", "busy_pct", 80.0, "sent_bytes", 3 * MIB,
                     "received_bytes", 4 * MIB, "step_ms", 10.0);
}

/* Steals `cards`. */
static json_t *trial_of(const char *mode, int batch, json_t *cards)
{
    json_t *imbalance = el_trial_imbalance(cards);
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:[i, i], s:s, s:n, s:s, s:[], s:[], s:b, s:o, s:o}", "mode", mode,
                     "model", "mlp", "dtype", "f32", "optimizer", "adam", "devices", (int)json_array_size(cards),
                     "global_batch", batch, "batch_per_device", batch / 2, batch / 2, "status", "ok", "reason",
                     "verdict", "valid", "warnings", "warning_rules", "simulated", 0, "imbalance", imbalance,
                     "per_device", cards);
}

/* dp whose outputs grow, at two batches, and ddp, even, at both. */
static json_t *made_run(void)
{
    return json_pack("{s:[o, o, o, o]}", "trials",
                     trial_of("dp", 8,
                              json_pack("[o, o]", card_of("cpu:0", "param", 10, 20, 4, 0, 1),
                                        card_of("cpu:1", "replica", 10, 0, 2, 3, 1))),
                     trial_of("ddp", 8,
                              json_pack("[o, o]", card_of("cpu:0", "param", 10, 20, 2, 3, 1),
                                        card_of("cpu:1", "param", 10, 20, 2, 3, 1))),
                     trial_of("dp", 16,
                              json_pack("[o, o]", card_of("cpu:0", "param", 10, 20, 40, 0, 1),
                                        card_of("cpu:1", "replica", 10, 0, 20, 3, 1))),
                     trial_of("ddp", 16,
                              json_pack("[o, o]", card_of("cpu:0", "param", 10, 20, 20, 3, 1),
                                        card_of("cpu:1", "param", 10, 20, 20, 3, 1))));
}

/* What `print` writes, to be freed. */
static char *printed(void (*print)(const json_t *, FILE *), const json_t *of)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    assert_non_null(memory);
    print(of, memory);
    fclose(memory);
    return text;
}

static void print_plain(const json_t *run, FILE *out)
{
    el_imbalance_print(run, out, false);
}

static void a_difference_is_against_the_mean_of_the_others(void **state)
{
    (void)state;
    json_t *cards = json_pack("[o, o, o]", card_of("cpu:0", "param", 10, 20, 0, 0, 0),
                              card_of("cpu:1", "replica", 10, 0, 0, 2, 0), card_of("cpu:2", "replica", 10, 0, 0, 4, 0));
    double bytes[EL_TAG_COUNT];
    assert_near(el_excess_of(cards, "memory.peak_bytes"), (30 - 13) * (double)MIB);
    el_excess_by_tag(cards, bytes);
    assert_near(bytes[EL_TAG_OPTIMIZER], 20 * (double)MIB);
    assert_near(bytes[EL_TAG_ACTIVATION], -3 * (double)MIB);
    assert_near(bytes[EL_TAG_PARAM], 0); /* a replica is a copy of the model, as the parameters are */
    assert_near(bytes[EL_TAG_REPLICA], 0);
    assert_true(isnan(el_excess_of(cards, "memory.nothing")));
    json_decref(cards);
}

static void highs_leave_scratch_out(void **state)
{
    (void)state;
    json_t *card = card_of("cpu:0", "param", 10, 20, 4, 5, 100), *bare = json_object();
    assert_near(el_imbalance_highs(card), 39 * (double)MIB);
    assert_true(isnan(el_imbalance_highs(bare)));
    json_decref(card);
    json_decref(bare);
}

static void cards_have_names(void **state)
{
    (void)state;
    char text[16];
    assert_string_equal(el_imbalance_card(0, text), "main");
    assert_string_equal(el_imbalance_card(7, text), "eighth");
    assert_string_equal(el_imbalance_card(63, text), "card 64");
}

static void the_sentences_word_for_word(void **state)
{
    (void)state;
    json_t *run = made_run();
    char *text = printed(el_imbalance_sentences, json_object_get(run, "trials"));
    assert_string_equal(
        text,
        "* dp, batch 8: cpu:0 holds 19.0 MiB more than cpu:1 (2.19 times): 20.0 MiB of optimizer state and 2.0 of\n"
        "  outputs, and less 3.0 MiB of activations.\n"
        "* ddp, batch 8, 16: the main card holds as much as the others, to 1 %.\n"
        "* dp, batch 16: cpu:0 holds 37.0 MiB more than cpu:1 (2.09 times): 20.0 MiB of optimizer state and 20.0 of\n"
        "  outputs, and less 3.0 MiB of activations.\n"
        "* dp: from batch 8 to 16 the difference goes from 19.0 to 37.0 MiB; what moves it most is outputs, by +18.0\n"
        "  MiB.\n");
    free(text);
    json_decref(run);
}

/* dp on two cards and on three at the same batch, and ddp on both: nothing is said of one that holds of the other. */
static void sentences_name_the_devices_where_they_differ(void **state)
{
    (void)state;
    json_t *trials = json_pack(
        "[o, o, o, o]",
        trial_of("dp", 8,
                 json_pack("[o, o]", card_of("cpu:0", "param", 10, 20, 4, 0, 1),
                           card_of("cpu:1", "replica", 10, 0, 2, 3, 1))),
        trial_of("ddp", 8,
                 json_pack("[o, o]", card_of("cpu:0", "param", 10, 20, 2, 3, 1),
                           card_of("cpu:1", "param", 10, 20, 2, 3, 1))),
        trial_of("dp", 16,
                 json_pack("[o, o, o]", card_of("cpu:0", "param", 10, 20, 8, 0, 1),
                           card_of("cpu:1", "replica", 10, 0, 2, 3, 1), card_of("cpu:2", "replica", 10, 0, 2, 3, 1))),
        trial_of("ddp", 8,
                 json_pack("[o, o, o]", card_of("cpu:0", "param", 10, 20, 2, 3, 1),
                           card_of("cpu:1", "param", 10, 20, 2, 3, 1), card_of("cpu:2", "param", 10, 20, 2, 3, 1))));
    char *text = printed(el_imbalance_sentences, trials);
    assert_string_equal(
        text, "* dp on 2 devices, batch 8: cpu:0 holds 19.0 MiB more than cpu:1 (2.19 times): 20.0 MiB of optimizer "
              "state and\n"
              "  2.0 of outputs, and less 3.0 MiB of activations.\n"
              "* ddp on 2 devices, batch 8: the main card holds as much as the others, to 1 %.\n"
              "* dp on 3 devices, batch 16: cpu:0 holds 23.0 MiB more than the others' mean (2.44 times): 20.0 MiB of\n"
              "  optimizer state and 6.0 of outputs, and less 3.0 MiB of activations.\n"
              "* ddp on 3 devices, batch 8: the main card holds as much as the others, to 1 %.\n");
    free(text);
    json_decref(trials);
}

static void say_first(const json_t *trials, FILE *out)
{
    el_imbalance_say(trials, json_array_get(trials, 0), out);
}

static void a_first_card_that_holds_less(void **state)
{
    (void)state;
    json_t *trial =
        trial_of("dp", 8,
                 json_pack("[o, o, o]", card_of("cpu:0", "param", 10, 0, 1, 0, 0),
                           card_of("cpu:1", "replica", 10, 0, 0, 5, 0), card_of("cpu:2", "replica", 10, 0, 0, 5, 0)));
    json_t *trials = json_pack("[O]", trial);
    char *text = printed(say_first, trials);
    assert_string_equal(text, "dp, batch 8: cpu:0 holds 4.0 MiB less than the others' mean (0.73 times): 1.0 MiB of "
                              "outputs, and less 5.0 MiB of activations.");
    free(text);
    json_decref(trials);
    json_decref(trial);
}

/* Of the parameters a run has in MiB, by forecast. Steals nothing. */
static json_t *foretold(const char *preset, const char *more, struct el_options *options)
{
    struct el_trial_set set;
    json_t *run = NULL;
    char words[64], *argv[8] = {"imbalance"}, *rest = NULL;
    int argc = 1;
    snprintf(words, sizeof words, "%s", more);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) argv[argc++] = word;
    assert_int_equal(el_imbalance_preset(preset, options), EL_OK);
    assert_int_equal(el_options_parse(EL_CMD_IMBALANCE, argc, argv, options), EL_OK);
    assert_int_equal(el_trials_resolve(EL_CMD_IMBALANCE, options, "/nonexistent", &set), EL_OK);
    assert_int_equal(el_imbalance_foretell(&set, &run), EL_OK);
    el_trials_free(&set);
    return run;
}

static double excess_at(const json_t *run, int trial, enum el_tag tag)
{
    double bytes[EL_TAG_COUNT];
    const json_t *of = json_array_get(json_object_get(run, "trials"), (size_t)trial);
    el_excess_by_tag(json_object_get(of, "per_device"), bytes);
    return bytes[tag];
}

/* The published table is the study's, to the byte. */
static void two_cards_is_the_study(void **state)
{
    (void)state;
    struct el_options options;
    struct el_study *study = calloc(1, sizeof *study);
    memset(&options, 0, sizeof options);
    assert_int_equal(el_study_begin(study), EL_OK);
    assert_int_equal(el_study_on(study, &options), EL_OK);
    assert_int_equal(el_study_fit(study), EL_OK);
    el_study_judge(study);
    json_t *run = foretold("two-cards", "--devices cpu:2", &options);
    for (int i = 0; i < EL_STUDY_ROWS; i++)
        for (int card = 0; card < EL_STUDY_CARDS; card++) {
            char path[64];
            snprintf(path, sizeof path, "trials.%d.per_device.%d", i, card);
            const json_t *device = el_json_at(run, path);
            assert_near(el_json_number(device, "memory.peak_bytes"), study->live.card_bytes[i][card]);
            assert_near(el_imbalance_highs(device), study->reserved.card_bytes[i][card]);
        }
    json_decref(run);
    free(study);
}

static void the_presets_differ_by_what_they_say(void **state)
{
    (void)state;
    struct el_options options;
    json_t *momentum = foretold("momentum", "--modes dp --devices cpu:2", &options);
    json_t *adam = foretold("adam", "--modes dp --devices cpu:2", &options);
    double params = el_json_number(momentum, "trials.0.per_device.0.memory.at_peak_by_tag.param");
    assert_true(params > 0);
    assert_near(excess_at(momentum, 0, EL_TAG_OPTIMIZER), params);
    assert_near(excess_at(adam, 0, EL_TAG_OPTIMIZER), 2 * params);
    json_decref(momentum);
    json_decref(adam);
    json_t *outputs = foretold("outputs", "--modes dp --devices cpu:2", &options);
    for (int trial = 0; trial < options.n_batches; trial++) {
        /* Gathered outputs and their gradients; the second card has its share of both. */
        double bytes = 2.0 * (double)options.batches[trial] * (double)options.train.model.classes * 4;
        assert_true(fabs(excess_at(outputs, trial, EL_TAG_OUTPUT) / (bytes * 3 / 4) - 1) < 0.01);
    }
    json_decref(outputs);
}

static void every_preset_is_named_in_the_help(void **state)
{
    (void)state;
    const struct el_option_row *row = el_option_rows();
    const struct el_command_row *command = el_command_rows();
    struct el_options options;
    while (strcmp(row->name, "preset") != 0) row++;
    while (strcmp(command->name, "imbalance") != 0) command++;
    for (const struct el_imbalance_preset *preset = el_imbalance_presets(); preset->name; preset++) {
        assert_non_null(strstr(row->help, preset->name));
        assert_non_null(strstr(command->examples, preset->name));
        assert_true(preset->summary[0] && preset->reported[0]);
    }
    assert_int_equal(el_imbalance_preset("momentun", &options), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "did you mean 'momentum'"));
}

/* A trial of imbalance is one of any campaign: what overhead's take, and compare's share records with. */
static void it_takes_every_option_of_a_trial(void **state)
{
    (void)state;
    for (const struct el_option_row *row = el_option_rows(); row->name; row++)
        if ((row->commands & EL_CMD_OVERHEAD) && !(row->commands & EL_CMD_IMBALANCE)) fail_msg("no --%s", row->name);
}

static void a_forecast_is_a_record_without_times(void **state)
{
    (void)state;
    struct el_options options;
    json_t *run = foretold("adam", "--devices cpu:4 --batch 66", &options);
    json_t *dp = el_json_at(run, "trials.0"), *document = el_imbalance_document(run, "adam", NULL);
    assert_string_equal(el_json_text(dp, "verdict", ""), "foretold");
    assert_int_equal(json_array_size(json_object_get(dp, "per_device")), 4);
    assert_near(el_json_number(dp, "batch_per_device.3"), 15);
    assert_true(isnan(el_json_number(dp, "per_device.0.sent_bytes")));
    assert_true(isnan(el_json_number(dp, "imbalance.busy.cv")));
    assert_near(el_json_number(dp, "imbalance.memory.first_over_rest"),
                el_json_number(dp, "per_device.0.memory.peak_bytes") * 3 /
                    (el_json_number(dp, "per_device.1.memory.peak_bytes") +
                     el_json_number(dp, "per_device.2.memory.peak_bytes") +
                     el_json_number(dp, "per_device.3.memory.peak_bytes")));
    assert_true(json_is_true(json_object_get(document, "foretold")));
    assert_string_equal(el_json_text(document, "trials.0.cards.3.card", ""), "fourth");
    assert_near(el_json_number(document, "trials.0.difference.peak_bytes"),
                el_excess_of(json_object_get(dp, "per_device"), "memory.peak_bytes"));
    json_decref(document);
    json_decref(run);
}

/* Lines fit the width, a card a line up to the eighth, and what failed or has one device is not among the cards. */
static void the_table_keeps_its_width(void **state)
{
    (void)state;
    json_t *many = json_array(), *run = made_run(), *trials = json_object_get(run, "trials");
    for (int i = 0; i < 12; i++) {
        char name[16];
        snprintf(name, sizeof name, "cuda:%d", i);
        json_array_append_new(many, card_of(name, i ? "replica" : "param", 12345, i ? 0 : 45678, 999, 888, 777));
    }
    json_array_append_new(trials, trial_of("dp", 4096, many));
    json_array_append_new(trials, trial_of("single", 8, json_pack("[o]", card_of("cpu:0", "param", 10, 20, 4, 3, 1))));
    json_array_append_new(trials, json_pack("{s:s, s:i, s:s, s:s, s:[]}", "mode", "ddp", "global_batch", 99, "status",
                                            "oom", "reason", "the memory of cpu:1 is full", "per_device"));
    char *text = printed(print_plain, run), *rest = NULL;
    assert_non_null(strstr(text, "  eighth  cuda:7"));
    assert_null(strstr(text, "cuda:8"));
    assert_non_null(strstr(text, "  and 4 cards more, 15,009 to 15,009 MiB each"));
    assert_non_null(strstr(text, "ddp, batch 99: oom: the memory of cpu:1 is full"));
    assert_null(strstr(text, "single"));
    assert_non_null(strstr(text, "dp, batch 4096 (2 x 2048): valid\n"));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strlen(line) > 110) fail_msg("%zu columns: %s", strlen(line), line);
    free(text);
    json_decref(run);
}

/* The block's rows of five numbers: sums of (to - from), and the highest `to`. */
static void read_block(const char *path, const char *name, double *sum_p, double *top_p)
{
    char line[512], head[80];
    bool inside = false;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    snprintf(head, sizeof head, "# %s\n", name);
    *sum_p = *top_p = 0;
    while (fgets(line, sizeof line, file)) {
        double v[5];
        if (line[0] == '#' && strncmp(line, "# columns", 9) != 0) inside = strcmp(line, head) == 0;
        if (!inside || sscanf(line, "%lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4]) != 5) continue;
        *sum_p += v[4] - v[3];
        *top_p = fmax(*top_p, v[4]);
    }
    fclose(file);
}

static void the_figure_has_the_same_sums(void **state)
{
    (void)state;
    char dir[] = "/tmp/test-imbalance-XXXXXX", path[64];
    double sum, top;
    bool drawn = false;
    json_t *run = made_run();
    assert_non_null(mkdtemp(dir));
    assert_int_equal(el_imbalance_plot(run, dir, &drawn), EL_OK);
    assert_true(drawn);
    snprintf(path, sizeof path, "%s/imbalance.dat", dir);
    read_block(path, "optimizer", &sum, &top);
    assert_near(sum, 6 * 20); /* dp's masters, and all of ddp's */
    read_block(path, "workspace", &sum, &top);
    assert_near(top, 71); /* the highest stack is its card's peak */
    read_block(path, "more optimizer", &sum, &top);
    assert_near(sum, 40);
    read_block(path, "more output", &sum, &top);
    assert_near(sum, 22);
    assert_near(top, 40); /* upon the optimizer's 20 */
    read_block(path, "more activation", &sum, &top);
    assert_near(sum, -6);
    read_block(path, "more replica", &sum, &top);
    assert_near(sum, 0);
    unlink(path);
    json_array_clear(json_object_get(run, "trials"));
    assert_int_equal(el_imbalance_plot(run, dir, &drawn), EL_OK);
    assert_false(drawn);
    assert_int_not_equal(access(path, F_OK), 0);
    rmdir(dir);
    json_decref(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_difference_is_against_the_mean_of_the_others),
        cmocka_unit_test(highs_leave_scratch_out),
        cmocka_unit_test(cards_have_names),
        cmocka_unit_test(the_sentences_word_for_word),
        cmocka_unit_test(sentences_name_the_devices_where_they_differ),
        cmocka_unit_test(a_first_card_that_holds_less),
        cmocka_unit_test(two_cards_is_the_study),
        cmocka_unit_test(the_presets_differ_by_what_they_say),
        cmocka_unit_test(every_preset_is_named_in_the_help),
        cmocka_unit_test(it_takes_every_option_of_a_trial),
        cmocka_unit_test(a_forecast_is_a_record_without_times),
        cmocka_unit_test(the_table_keeps_its_width),
        cmocka_unit_test(the_figure_has_the_same_sums),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
