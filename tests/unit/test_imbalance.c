/* Imbalance: differences that are known, sentences word for word, the table, and the figure's data. What is printed for
 * a bad use is in tests/cli/imbalance.bats. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/base/text.h"
#include "bench/report/report.h"
#include "tests/unit/figure_data.h"
#include "tests/unit/imbalance_cards.h"
#include "tests/unit/printed.h"

static void print_plain(const json_t *run, FILE *out)
{
    el_imbalance_print(run, out);
}

static void a_difference_is_against_the_mean_of_the_others(void **state)
{
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
    json_t *card = card_of("cpu:0", "param", 10, 20, 4, 5, 100), *bare = json_object();
    assert_near(el_imbalance_highs(card), 39 * (double)MIB);
    assert_true(isnan(el_imbalance_highs(bare)));
    json_decref(card);
    json_decref(bare);
}

/* Below 1 MiB all have two digits, so that what stands beside each other adds up. */
static void small_figures_have_two_digits(void **state)
{
    static const struct {
        double mib;
        const char *text;
    } cases[] = {{0, "0"},           {0.0004, "0.0004"}, {0.0947, "0.095"}, {0.0993, "0.099"}, {0.113, "0.11"},
                 {-0.4961, "-0.50"}, {0.994, "0.99"},    {0.996, "1.0"},    {1.26, "1.3"},     {1234.6, "1,235"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[EL_FIGURE_BYTES];
        assert_string_equal(el_text_mib(cases[i].mib * (double)MIB, text), cases[i].text);
    }
}

static void the_sentences_word_for_word(void **state)
{
    json_t *run = made_run();
    char *text = printed(el_imbalance_explain, json_object_get(run, "trials"));
    assert_string_equal(
        text, "* dp, batch 8: cpu:0 holds 19.0 MiB more than cpu:1 (2.19 times): 20.0 MiB of optimizer state and\n"
              "  2.0 of outputs, and less 3.0 MiB of activations.\n"
              "* ddp, batch 8, 16: the first device holds as much as the others, within 1 %.\n"
              "* dp, batch 16: cpu:0 holds 37.0 MiB more than cpu:1 (2.09 times): 20.0 MiB of optimizer state and\n"
              "  20.0 of outputs, and less 3.0 MiB of activations.\n"
              "* dp: from batch 8 to 16 the difference goes from 19.0 to 37.0 MiB, mostly by outputs (+18.0 MiB).\n");
    free(text);
    json_decref(run);
}

/* dp on two cards and on three at the same batch, and ddp on both: nothing is said of one that holds of the other. */
static void sentences_name_the_devices_where_they_differ(void **state)
{
    json_t *trials = json_pack(
        "[o, o, o, o]", dp_on_two(8, 4), ddp_on_two(8, 2),
        trial_of("dp", 16,
                 json_pack("[o, o, o]", card_of("cpu:0", "param", 10, 20, 8, 0, 1),
                           card_of("cpu:1", "replica", 10, 0, 2, 3, 1), card_of("cpu:2", "replica", 10, 0, 2, 3, 1))),
        trial_of("ddp", 8,
                 json_pack("[o, o, o]", card_of("cpu:0", "param", 10, 20, 2, 3, 1),
                           card_of("cpu:1", "param", 10, 20, 2, 3, 1), card_of("cpu:2", "param", 10, 20, 2, 3, 1))));
    char *text = printed(el_imbalance_explain, trials);
    assert_string_equal(
        text, "* dp on 2 devices, batch 8: cpu:0 holds 19.0 MiB more than cpu:1 (2.19 times): 20.0 MiB of optimizer\n"
              "  state and 2.0 of outputs, and less 3.0 MiB of activations.\n"
              "* ddp on 2 devices, batch 8: the first device holds as much as the others, within 1 %.\n"
              "* dp on 3 devices, batch 16: cpu:0 holds 23.0 MiB more than the others' mean (2.44 times): 20.0 MiB\n"
              "  of optimizer state and 6.0 of outputs, and less 3.0 MiB of activations.\n"
              "* ddp on 3 devices, batch 8: the first device holds as much as the others, within 1 %.\n");
    free(text);
    json_decref(trials);
}

static void say_first(const json_t *trials, FILE *out)
{
    char text[EL_SENTENCE_BYTES];
    el_imbalance_sentence(trials, json_array_get(trials, 0), text);
    fputs(text, out);
}

static void a_first_card_that_holds_less(void **state)
{
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

/* Lines fit the width, a card a line up to the eighth, and what failed or has one device is not among the cards. */
static void the_table_keeps_its_width(void **state)
{
    json_t *many = json_array(), *run = made_run(), *trials = json_object_get(run, "trials");
    for (int i = 0; i < 12; i++) {
        char name[24];
        snprintf(name, sizeof name, "cuda:%d", i);
        json_array_append_new(many, card_of(name, i ? "replica" : "param", 12345, i ? 0 : 45678, 999, 888, 777));
    }
    json_array_append_new(trials, trial_of("dp", 4096, many));
    json_array_append_new(trials, trial_of("single", 8, json_pack("[o]", card_of("cpu:0", "param", 10, 20, 4, 3, 1))));
    json_array_append_new(trials, json_pack("{s:s, s:i, s:s, s:s, s:[]}", "mode", "ddp", "global_batch", 99, "status",
                                            "oom", "reason", "the memory of cpu:1 is full", "per_device"));
    json_t *document = el_imbalance_document(run, NULL, NULL);
    assert_string_equal(el_json_text(document, "trials.4.cards.11.card", ""), "card 12");
    json_decref(document);
    char *text = printed(print_plain, run), *rest = NULL;
    assert_non_null(strstr(text, "  eighth  cuda:7"));
    assert_null(strstr(text, "cuda:8"));
    assert_non_null(strstr(text, "  and 4 more cards, 15,009 to 15,009 MiB each"));
    assert_non_null(strstr(text, "ddp, batch 99: oom: the memory of cpu:1 is full"));
    assert_null(strstr(text, "single"));
    assert_non_null(strstr(text, "dp, batch 4096 (2 x 2048): valid\n"));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strlen(line) > 110) fail_msg("%zu columns: %s", strlen(line), line);
    free(text);
    json_decref(run);
}

/* Of three cards one that sends a byte more than the others: no difference. Figures as wide as their column keep a
 * blank before them. */
static void cells_never_touch(void **state)
{
    json_t *cards = json_pack("[o, o, o]", card_of("cpu:0", "param", 10, 20, 4, 3, 1),
                              card_of("cpu:1", "param", 10, 20, 4, 3, 1), card_of("cpu:2", "param", 10, 20, 4, 3, 1));
    json_t *run = json_pack("{s:[o]}", "trials", trial_of("ddp", 24, cards)), *main = json_array_get(cards, 0);
    json_object_set_new(main, "sent_bytes", json_integer(3 * MIB + 60));
    json_object_set_new(main, "received_bytes", json_integer(4 * MIB - 60));
    char *text = printed(print_plain, run);
    if (!strstr(text, "  main - others      0      0      0      0      0      0      0      0      0      0      0\n"))
        fail_msg("a difference of 60 bytes is shown:\n%s", text);
    free(text);
    for (size_t k = 0; k < 3; k++) {
        json_t *card = json_array_get(cards, k);
        json_object_set_new(json_object_get(card, "utilization"), "busy_pct", json_real(k ? 0.000123 : 100));
        json_object_set_new(card, "sent_bytes", json_integer(60));
        json_object_set_new(card, "received_bytes", json_integer(60));
    }
    text = printed(print_plain, run);
    if (!strstr(text, " 0.00012 5.7e-05 5.7e-05\n")) fail_msg("cells without a blank:\n%s", text);
    free(text);
    json_decref(run);
}

/* A tag's rows in a block, of five numbers and the tag: the sum of (to - from), or the highest `to`. */
static double of_block(const char *text, const char *name, const char *tag, bool sum)
{
    char head[80], row_tag[32];
    double result = 0, v[5];
    snprintf(head, sizeof head, "# %s\n", name);
    const char *line = strstr(text, head);
    assert_non_null(line);
    for (line += strlen(head); *line && *line != '\n'; line += strcspn(line, "\n") + 1)
        if (sscanf(line, "%lf %lf %lf %lf %lf %31s", &v[0], &v[1], &v[2], &v[3], &v[4], row_tag) == 6 &&
            strcmp(row_tag, tag) == 0)
            result = sum ? result + v[4] - v[3] : fmax(result, v[4]);
    return result;
}

static void the_figure_has_the_same_sums(void **state)
{
    json_t *run = made_run();
    char *text = data_of(&el_figure_imbalance, run);
    assert_near(of_block(text, "bars", "optimizer", true), 6 * 20); /* dp's masters, and all of ddp's */
    assert_near(of_block(text, "bars", "workspace", false), 71);    /* the highest stack is its card's peak */
    assert_near(of_block(text, "more", "optimizer", true), 40);
    assert_near(of_block(text, "more", "output", true), 22);
    assert_near(of_block(text, "more", "output", false), 40); /* upon the optimizer's 20 */
    assert_near(of_block(text, "more", "activation", true), -6);
    assert_near(of_block(text, "more", "replica", true), 0);
    free(text);
    json_array_clear(json_object_get(run, "trials"));
    assert_null(data_of(&el_figure_imbalance, run));
    json_decref(run);
}

RUN_TESTS(NULL, NULL, a_difference_is_against_the_mean_of_the_others, highs_leave_scratch_out,
          small_figures_have_two_digits, the_sentences_word_for_word, sentences_name_the_devices_where_they_differ,
          a_first_card_that_holds_less, the_table_keeps_its_width, cells_never_touch, the_figure_has_the_same_sums)
