/* What `explain` concludes from launches made by hand, whose answers are known: parts that add up, alone and in turn,
 * intervals over launches, and the first device's excess by cause. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/explain/explain.h"
#include "tests/unit/record_checks.h"

enum { LAUNCHES = 5 };

/* A step of 20 ms without causes; what each cause costs while its fix is not there. Replicas are hidden behind outputs:
 * they cost nothing while outputs are gathered. */
static bool is_ddp(const struct el_explain_variant *variant)
{
    return !strcmp(variant->mode, "ddp");
}

static double step_ms(const struct el_explain_variant *variant)
{
    static const double cost[EL_DP_FIXES] = {1, 4, 2, 3, 5, 0.5};
    double ms = 20;
    for (int i = 0; i < EL_DP_FIXES && !is_ddp(variant); i++)
        if (!(variant->fixes & el_dp_fix_rows()[i].fix)) ms += cost[i];
    bool hidden = !is_ddp(variant) && !(variant->fixes & EL_DP_FIX_OUTPUTS);
    return ms - (hidden ? 3 : 0) + (is_ddp(variant) ? -0.25 : 0);
}

/* Of three blocks, of which one was disturbed; launch `i` is slower by i ms as a whole, and its ddp by `wobble`. */
static json_t *launch(int i, double wobble)
{
    struct el_explain_way way;
    json_t *variants = json_array();
    assert_int_equal(el_explain_way("dp", &way), EL_OK);
    const struct el_explain_variant *list = way.variants;
    for (int v = 0; v < way.n; v++) {
        double ms = step_ms(&list[v]) + i + (is_ddp(&list[v]) ? wobble : 0);
        bool held = list[v].fixes & EL_DP_FIX_UPDATE || is_ddp(&list[v]);
        json_array_append_new(variants, json_pack("{s:[f, f, f], s:[{s:i}, {s:i}, {s:i}]}", "block_ms", ms, ms + 100,
                                                  ms - 0.1, "memory", "peak_bytes", 400, "peak_bytes", held ? 400 : 190,
                                                  "peak_bytes", held ? 400 : 210));
    }
    return json_pack("{s:o, s:{}, s:f}", "variants", variants, "environment", "others_waited_pct", 10.0 * i);
}

static json_t *document_of(int n_launches)
{
    struct el_trial trial = {.n_devices = 3, .train = {.mode = "dp", .model = {.name = "mlp"}, .global_batch = 24}};
    json_t *samples = json_array();
    for (int i = 0; i < n_launches; i++) json_array_append_new(samples, launch(i, i % 2 ? 0.2 : -0.2));
    json_t *document = el_explain_document(&trial, samples);
    json_decref(samples);
    assert_non_null(document);
    return document;
}

static void parts_are_differences_that_add_up(void **state)
{
    json_t *document = document_of(LAUNCHES);
    static const double in_turn[EL_DP_FIXES] = {1, 1, 2, 3, 5, 0.5};
    double sum = el_json_number(document, "rest.ms");
    for (int c = 0; c < EL_DP_FIXES; c++) {
        char path[32];
        snprintf(path, sizeof path, "causes.%d.ms", c);
        near(document, path, in_turn[c]);
        sum += el_json_number(document, path);
    }
    near(document, "rest.ms", 0.25 + 0.04);
    near(document, "whole.ms", sum);
    near(document, "steps.0.step_ms", 32.5 + 2);
    json_decref(document);
}

static void alone_is_against_dp_as_it_is(void **state)
{
    json_t *document = document_of(LAUNCHES);
    near(document, "causes.1.alone_ms", 1);     /* the model's copies come to light */
    near(document, "causes.3.alone_ms", 1 + 5); /* with outputs and update: nothing is left to hide behind */
    near(document, "causes.4.alone_ms", 5);
    assert_string_equal(el_json_text(document, "causes.3.alone_is", ""), "outputs,update,replicas");
    assert_string_equal(el_json_text(document, "causes.4.alone_is", ""), "overlap");
    json_decref(document);
}

/* A drift from launch to launch is in both sides of a difference; t of 4 degrees of freedom is 2.776. */
static void intervals_are_over_launches(void **state)
{
    json_t *document = document_of(LAUNCHES), *few = document_of(LAUNCHES - 1);
    assert_true(is_null(document, "causes.4.ci95"));            /* 5 in each launch: no scatter, no interval */
    double half = 2.7764451 * 0.2 * sqrt(1.2) / sqrt(LAUNCHES); /* of 0.2, -0.2, 0.2, -0.2, 0.2 */
    assert_true(fabs(el_json_number(document, "rest.ci95.1") - (0.29 + half)) < 1e-6);
    assert_true(is_null(few, "causes.4.ci95"));
    json_decref(document);
    json_decref(few);
}

static void excess_is_charged_to_its_cause(void **state)
{
    json_t *document = document_of(LAUNCHES);
    near(document, "steps.0.excess_bytes", 200);
    near(document, "causes.2.excess_bytes", 200); /* update: the others hold as much then */
    near(document, "causes.0.excess_bytes", 0);
    near(document, "steps.7.excess_bytes", 0);
    json_decref(document);
}

static void every_fix_alone_is_measured_once(void **state)
{
    struct el_explain_way way;
    assert_int_equal(el_explain_way("dp", &way), EL_OK);
    const struct el_explain_variant *list = way.variants;
    const int n = way.n;
    assert_true(is_ddp(&list[way.n_causes + 1]) && list[EL_DP_FIXES].fixes == EL_DP_FIX_ALL && list[0].fixes == 0);
    for (int c = 0; c < EL_DP_FIXES; c++) {
        int v = way.causes[c].alone;
        assert_in_range(v, 1, n - 1);
        assert_int_equal(list[v].fixes, el_dp_fix_close(el_dp_fix_rows()[c].fix));
    }
    for (int v = 0; v < n; v++)
        for (int w = 0; w < v; w++) assert_true(list[v].fixes != list[w].fixes || is_ddp(&list[v]) || is_ddp(&list[w]));
}

/* Each rung leaves out one thing, and what is left of the way from zero2 is the same. */
static void sharded_state_has_a_way_too(void **state)
{
    static const char *const modes[] = {"zero3", "zero3", "zero2", "zero1", "ddp"};
    struct el_explain_way way, rest;
    assert_int_equal(el_explain_way("zero3", &way), EL_OK);
    assert_int_equal(el_explain_way("zero2", &rest), EL_OK);
    assert_int_equal(way.n, 5);
    assert_int_equal(way.n_causes, 3);
    assert_int_equal(rest.n_causes, 1);
    for (int v = 0; v < way.n; v++) assert_string_equal(way.variants[v].mode, modes[v]);
    for (int v = 0; v < rest.n; v++) assert_string_equal(rest.variants[v].mode, modes[v + 2]);
    assert_string_equal(way.variants[1].option, "reshard");
    assert_string_equal(way.causes[2].name, rest.causes[0].name);
    assert_int_equal(el_explain_way("tp", &way), EL_ERR_INVALID);
}

static void the_table_says_what_is_not_known(void **state)
{
    char *text = NULL;
    size_t length;
    json_t *document = document_of(2);
    FILE *out = open_memstream(&text, &length);
    el_explain_print(document, out);
    fclose(out);
    assert_non_null(
        strstr(text, "What makes dp slower than ddp here: mlp, batch 24 on 3 devices, 2 launches of 3 blocks"));
    assert_non_null(
        strstr(text, "replicas     3.00             none       6.00             none  outputs,update,replicas"));
    assert_non_null(strstr(text, "An interval needs five launches"));
    assert_non_null(strstr(text, "! other programs took up to 10 % of a core"));
    free(text);
    json_decref(document);
}

RUN_TESTS(NULL, NULL, parts_are_differences_that_add_up, alone_is_against_dp_as_it_is, intervals_are_over_launches,
          excess_is_charged_to_its_cause, every_fix_alone_is_measured_once, sharded_state_has_a_way_too,
          the_table_says_what_is_not_known)
