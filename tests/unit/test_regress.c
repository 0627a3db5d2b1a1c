/* The gate's rule on cells made by hand: each kind, each verdict, what cannot be read, and what a set comes to. How
 * often it is wrong is test_regress_rates'. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/regress/answer.h"
#include "bench/stats/stats.h"
#include "tests/unit/near.h"
#include "tests/unit/test_random_common.h"

static struct el_regress_cell *add(struct el_regress_set *set, enum el_cell_kind kind, enum el_better better)
{
    struct el_regress_cell *cell;
    assert_int_equal(el_regress_add(set, "cell", &cell), EL_OK);
    cell->kind = kind;
    cell->better = better;
    return cell;
}

static void sample(struct el_regress_cell *cell, double base, double head)
{
    assert_int_equal(el_regress_append(&cell->base, &cell->n_base, base), EL_OK);
    assert_int_equal(el_regress_append(&cell->head, &cell->n_head, head), EL_OK);
}

/* A pair a block, 10 ms with 1 % of scatter (`cv`), head at `effect` times that. */
static struct el_regress_cell *add_paired(struct el_regress_set *set, enum el_better better, int blocks, double cv,
                                          double effect)
{
    struct random random = random_seeded(set->n + 11);
    struct el_regress_cell *cell = add(set, EL_CELL_PAIRED, better);
    for (int b = 0; b < blocks; b++) {
        double base = 10 * exp(cv * random_normal(&random));
        sample(cell, base, 10 * effect * exp(cv * random_normal(&random)));
    }
    return cell;
}

/* Judges, gives the outcome and the first cell's verdict, and frees. */
static enum el_regress_exit judged(struct el_regress_set *set, enum el_cell_verdict *verdict_p)
{
    el_regress_judge(set);
    enum el_regress_exit outcome = el_regress_outcome(set);
    *verdict_p = set->cells[0].verdict;
    bool plain = *verdict_p == EL_CELL_SAME;
    assert_true(plain == (set->cells[0].reason[0] == 0));
    el_regress_free(set);
    return outcome;
}

static void test_levels(void **state)
{
    near(el_regress_level(0, false) + el_regress_level(1, false) + el_regress_level(2, true), 0.005, 1e-15);
    near(el_regress_level(0, true), 0.005, 1e-15); /* one look has it all */
    near(el_regress_level(1, true), 0.003, 1e-15);
    near(el_regress_level(2, false), 0.0015, 1e-15);
    near(el_regress_level(3, true), 0, 1e-15);
    assert_int_equal(el_regress_blocks_needed(1, 0.005), 8); /* 2^-8 = 0.0039 */
    assert_int_equal(el_regress_blocks_needed(1, 0.002), 9);
    assert_int_equal(el_regress_blocks_needed(32, 0.002), 14); /* 32 cells at the first look, 33 not */
    assert_int_equal(el_regress_blocks_needed(33, 0.002), 15);
}

static void test_paired(void **state)
{
    static const struct {
        enum el_better better;
        int blocks;
        double cv, effect;
        enum el_cell_verdict verdict;
        enum el_regress_exit outcome;
    } cases[] = {
        {EL_BETTER_LOWER, 14, 0.01, 1.00, EL_CELL_SAME, EL_REGRESS_NONE},
        {EL_BETTER_LOWER, 14, 0.01, 1.06, EL_CELL_REGRESSION, EL_REGRESS_FOUND},
        {EL_BETTER_LOWER, 14, 0.01, 0.94, EL_CELL_IMPROVEMENT, EL_REGRESS_NONE},
        {EL_BETTER_HIGHER, 14, 0.01, 0.94, EL_CELL_REGRESSION, EL_REGRESS_FOUND}, /* of a rate less is worse */
        {EL_BETTER_HIGHER, 14, 0.01, 1.06, EL_CELL_IMPROVEMENT, EL_REGRESS_NONE},
        {EL_BETTER_NEITHER, 14, 0.01, 1.06, EL_CELL_REGRESSION, EL_REGRESS_FOUND},
        {EL_BETTER_LOWER, 40, 0.001, 1.01, EL_CELL_SAME, EL_REGRESS_NONE},                /* told from 1, but small */
        {EL_BETTER_LOWER, 7, 0.001, 1.50, EL_CELL_INCONCLUSIVE, EL_REGRESS_INCONCLUSIVE}, /* too few, however large */
        {EL_BETTER_LOWER, 9, 0.001, 1.50, EL_CELL_REGRESSION, EL_REGRESS_FOUND},
        {EL_BETTER_LOWER, 14, 0.2, 1.00, EL_CELL_INCONCLUSIVE, EL_REGRESS_INCONCLUSIVE},
        {EL_BETTER_LOWER, 14, 0, 1.00, EL_CELL_SAME, EL_REGRESS_NONE}, /* all ties */
        {EL_BETTER_LOWER, 14, 0, 1.10, EL_CELL_REGRESSION, EL_REGRESS_FOUND},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_regress_set set = {0};
        enum el_cell_verdict verdict;
        add_paired(&set, cases[i].better, cases[i].blocks, cases[i].cv, cases[i].effect);
        enum el_regress_exit outcome = judged(&set, &verdict);
        if (verdict != cases[i].verdict || outcome != cases[i].outcome)
            fail_msg("case %zu: verdict %d, exit %d", i, (int)verdict, (int)outcome);
    }
}

static void test_paired_figures(void **state)
{
    struct el_regress_set set = {.last_analysis = true};
    const double logs[] = {0.04, 0.05, 0.06, 0.07, 0.08, 0.045, 0.055, 0.065, 0.075, 0.06};
    struct el_regress_cell *cell = add(&set, EL_CELL_PAIRED, EL_BETTER_LOWER);
    for (int i = 0; i < 10; i++) sample(cell, 100, 100 * exp(logs[i]));
    el_regress_judge(&set);
    near(cell->effect, exp(0.06), 1e-12);
    near(cell->p, 1 / 1024.0, 1e-15);
    near(cell->p_adjusted, cell->p, 0);
    assert_true(cell->low > exp(0.04) && cell->low < cell->effect && cell->high < exp(0.08));
    /* Base never differs from itself, head by 1 % (2 % once): the floor is the least that counts. */
    near(cell->floor, 1.02, 1e-12);
    assert_true(cell->detectable > 1.02 && cell->detectable < 1.06);
    assert_int_equal(cell->verdict, EL_CELL_REGRESSION);
    assert_non_null(strstr(cell->reason, "worse by 6.2 %"));
    set.least_effect = 1.07;
    el_regress_judge(&set);
    near(cell->floor, 1.07, 1e-12);
    assert_int_equal(cell->verdict, EL_CELL_INCONCLUSIVE);
    assert_true(cell->more > 0);
    el_regress_free(&set);
}

static void test_noisy(void **state)
{
    struct el_regress_set set = {0};
    add_paired(&set, EL_BETTER_LOWER, 14, 0.2, 1);
    el_regress_judge(&set);
    assert_true(set.cells[0].floor > 1.05 && set.cells[0].detectable > set.cells[0].floor);
    assert_non_null(strstr(set.environment, "too noisy"));
    assert_non_null(strstr(set.cells[0].reason, "too noisy"));
    set.least_effect = 2; /* who asks for so large an effect can have it told */
    el_regress_judge(&set);
    assert_int_equal(set.cells[0].verdict, EL_CELL_SAME);
    assert_string_equal(set.environment, "");
    el_regress_free(&set);
}

/* 14 blocks tell one of 32 cells, not of 33, for better and for worse: 2^-14 * 33 is above the first look's 0.002. */
static void test_holm_over_cells(void **state)
{
    for (int cells = 32; cells <= 33; cells++)
        for (int worse = 0; worse < 2; worse++) {
            struct el_regress_set set = {0};
            enum el_cell_verdict wanted = worse ? EL_CELL_REGRESSION : EL_CELL_IMPROVEMENT;
            for (int c = 0; c < cells; c++) add_paired(&set, EL_BETTER_LOWER, 14, 0.01, c > 0 ? 1 : worse ? 1.5 : 0.5);
            el_regress_judge(&set);
            assert_true((set.cells[0].verdict == wanted) == (cells == 32));
            if (worse) near(set.cells[0].p_adjusted, cells * ldexp(1, -14), 1e-15);
            if (worse && cells == 33) assert_int_equal(set.cells[0].more, 1);
            set.last_analysis = true;
            el_regress_judge(&set);
            assert_int_equal(set.cells[0].verdict, wanted);
            assert_int_equal(el_regress_outcome(&set), worse ? EL_REGRESS_FOUND : EL_REGRESS_NONE);
            el_regress_free(&set);
        }
}

static void test_exact(void **state)
{
    static const struct {
        enum el_better better;
        double base, head, again;
        enum el_cell_verdict verdict;
    } cases[] = {
        {EL_BETTER_LOWER, 4096, 4096, 4096, EL_CELL_SAME},
        {EL_BETTER_LOWER, 4096, 4097, 4097, EL_CELL_REGRESSION},
        {EL_BETTER_LOWER, 4096, 4095, 4095, EL_CELL_IMPROVEMENT},
        {EL_BETTER_HIGHER, 10, 9, 9, EL_CELL_REGRESSION},
        {EL_BETTER_NEITHER, 10, 9, 9, EL_CELL_REGRESSION},
        {EL_BETTER_LOWER, 0, 0, 0, EL_CELL_SAME},
        {EL_BETTER_LOWER, 0, 8, 8, EL_CELL_REGRESSION},
        {EL_BETTER_LOWER, 10, 10, 11, EL_CELL_UNREADABLE}, /* then it is not exact */
        {EL_BETTER_LOWER, 10, NAN, NAN, EL_CELL_UNREADABLE},
        {EL_BETTER_LOWER, 8e10, 8e10 + 64, 8e10 + 64, EL_CELL_REGRESSION}, /* of 80 GB 64 bytes */
        {EL_BETTER_LOWER, 8e10, 8e10, 8e10 + 1, EL_CELL_UNREADABLE},
        {EL_BETTER_LOWER, 2.1, 2.1 * (1 + 1e-12), 2.1, EL_CELL_SAME}, /* of virtual time */
        {EL_BETTER_LOWER, 2.1, 2.1 * (1 + 1e-8), 2.1 * (1 + 1e-8), EL_CELL_REGRESSION},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_regress_set set = {0};
        enum el_cell_verdict verdict;
        struct el_regress_cell *cell = add(&set, EL_CELL_EXACT, cases[i].better);
        sample(cell, cases[i].base, cases[i].head);
        sample(cell, cases[i].base, cases[i].again);
        judged(&set, &verdict);
        if (verdict != cases[i].verdict) fail_msg("case %zu: verdict %d", i, (int)verdict);
    }
}

/* Of 8: s = 0.01 * sqrt(8/7), t_{.995,7} = 3.499, sqrt(1 + 1/8): the bound is 0.0397. Who asks for large effects only
 * (`least`) can pass with sessions that are as unlike. */
static void test_history(void **state)
{
    const struct {
        int sessions;
        double least, spread, effect;
        enum el_cell_verdict verdict;
    } cases[] = {{7, 1.02, 0.01, 1.5, EL_CELL_NO_BASELINE},
                 {8, 1.02, 0.01, exp(0.0396), EL_CELL_SAME},
                 {8, 1.02, 0.01, exp(0.0398), EL_CELL_REGRESSION},
                 {8, 1.02, 0.01, exp(-0.0398), EL_CELL_IMPROVEMENT},
                 {8, 1.02, 0, 1.01, EL_CELL_SAME}, /* below the least that counts */
                 {8, 1.02, 0, 1.03, EL_CELL_REGRESSION},
                 {8, 1.02, 0.05, 1, EL_CELL_INCONCLUSIVE},
                 {8, 1.02, 0.01, 1, EL_CELL_SAME},
                 {8, 1.12, 0.01, 1, EL_CELL_SAME},
                 {8, 1.12, 0.03, 1, EL_CELL_SAME},
                 {8, 1.02, 0.03, 1, EL_CELL_INCONCLUSIVE},
                 {8, 1.12, 0.08, 1, EL_CELL_INCONCLUSIVE}};
    static const enum el_regress_exit outcomes[] = {EL_REGRESS_NONE,         EL_REGRESS_FOUND, EL_REGRESS_NONE,
                                                    EL_REGRESS_INCONCLUSIVE, EL_REGRESS_USE,   EL_REGRESS_NO_BASELINE};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct el_regress_set set = {.least_effect = cases[c].least};
        struct el_regress_cell *cell = add(&set, EL_CELL_HISTORY, EL_BETTER_LOWER);
        enum el_cell_verdict verdict;
        for (int i = 0; i < cases[c].sessions; i++) sample(cell, exp(cases[c].spread * (i % 2 ? 1 : -1)), 0);
        cell->n_head = 1;
        cell->head[0] = cases[c].effect;
        enum el_regress_exit outcome = judged(&set, &verdict);
        if (verdict != cases[c].verdict || outcome != outcomes[verdict])
            fail_msg("case %zu: verdict %d, exit %d", c, (int)verdict, (int)outcome);
    }
}

/* Only the last 30 count: a jump before them is forgotten. */
static void test_history_forgets(void **state)
{
    struct el_regress_set set = {0};
    struct el_regress_cell *cell = add(&set, EL_CELL_HISTORY, EL_BETTER_LOWER);
    for (int i = 0; i < 40; i++) sample(cell, i < 10 ? 5 : 10, 10);
    cell->n_head = 1;
    el_regress_judge(&set);
    near(cell->effect, 1, 1e-12);
    el_regress_free(&set);
}

/* Wide figures push the others on; none touch, and what is exact has all its digits. */
static void test_table(void **state)
{
    char *text = NULL;
    size_t bytes = 0;
    struct el_regress_set set = {.last_analysis = true};
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    add_paired(&set, EL_BETTER_LOWER, 14, 0.1, 2.83);
    add_paired(&set, EL_BETTER_LOWER, 14, 0.01, 29);
    struct el_regress_cell *cell = add(&set, EL_CELL_EXACT, EL_BETTER_LOWER);
    sample(cell, 8e10, 8e10 + 64);
    cell = add(&set, EL_CELL_EXACT, EL_BETTER_LOWER);
    sample(cell, 9007199254740990, 9007199254740991);
    el_regress_judge(&set);
    json_t *document = el_answer_json(&set);
    el_answer_print(document, out);
    json_decref(document);
    fclose(out);
    assert_non_null(strstr(text, " 80,000,000,000 80,000,000,064 "));
    assert_non_null(strstr(text, " 9007199254740990 9007199254740991"));
    assert_non_null(strstr(text, "cell: was 80000000000, is 80000000064\n"));
    assert_non_null(strstr(text, " +28")); /* and two digits and no more: the lines below are as narrow as others */
    assert_null(strstr(text, "%+"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) assert_true(strlen(line) <= 110);
    free(text);
    el_regress_free(&set);
}

/* Draws a session of `blocks` with a head that is 6 % slower, of noise that now and then adds time, and judges it as a
 * last analysis */
static enum el_cell_verdict bursty(struct random *random, int blocks, int *more_p)
{
    double base[EL_SIGNED_RANK_MAX], head[EL_SIGNED_RANK_MAX];
    struct el_regress_cell cell = {.better = EL_BETTER_LOWER, .kind = EL_CELL_PAIRED, .base = base, .head = head};
    struct el_regress_set set = {.cells = &cell, .n = 1, .last_analysis = true, .blocks = blocks};
    cell.n_base = cell.n_head = (size_t)blocks;
    for (int i = 0; i < blocks; i++) {
        base[i] = 10 + (random_uniform(random) < 0.3 ? -2 * log(random_uniform(random)) : 0);
        head[i] = 10.6 + (random_uniform(random) < 0.3 ? -2 * log(random_uniform(random)) : 0);
    }
    el_regress_judge(&set);
    *more_p = cell.more;
    return cell.verdict;
}

/* How many more blocks are said to decide, of sessions that 14 left open: so many do, in most of them, and few are
 * given up. 40 blocks find this slowdown in 76 of 100 sessions, 70 in 94. */
static void test_more_blocks_decide(void **state)
{
    int open = 0, hopeless = 0, sum = 0, found = 0, more, ignored;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct random random = random_seeded(seed);
        if (bursty(&random, 14, &more) != EL_CELL_INCONCLUSIVE) continue;
        open++;
        sum += more;
        hopeless += more == 0;
        found += more > 0 && bursty(&random, 14 + more, &ignored) == EL_CELL_REGRESSION;
    }
    printf("# of %d open sessions %d were given up; %d were decided; %d blocks more in the mean\n", open, hopeless,
           found, sum / open);
    assert_true(open > 200);
    assert_true(hopeless * 20 < open);
    assert_true(found * 4 > open * 3);
    assert_true(sum < 70 * open);
}

/* Two medians may differ the other way than pairs do: the table's figures go with the effect. */
static void test_figures_agree(void **state)
{
    static const double base[] = {10, 20, 30, 10.1, 20.1, 30.1, 10.2, 20.2, 30.2, 30.3, 10.3};
    for (int higher = 0; higher < 2; higher++) {
        struct el_regress_set set = {.last_analysis = true};
        struct el_regress_cell *cell = add(&set, EL_CELL_PAIRED, higher ? EL_BETTER_HIGHER : EL_BETTER_LOWER);
        for (int i = 0; i < 11; i++) sample(cell, base[i], base[i] * (base[i] > 19 && base[i] < 21 ? 0.98 : 1.01));
        el_regress_judge(&set);
        double shown_base, shown_head;
        json_t *document = el_answer_json(&set);
        el_answer_figures(el_json_at(document, "cells.0"), &shown_base, &shown_head);
        json_decref(document);
        assert_true((shown_head > shown_base) == (cell->effect > 1) || higher);
        near(shown_head / shown_base, higher ? 1 / cell->effect : cell->effect, 1e-12);
        near(shown_base, 20.1, 1e-12);
        el_regress_free(&set);
    }
}

static void test_unreadable(void **state)
{
    static const double bad[] = {NAN, INFINITY, 0, -1};
    enum el_cell_verdict verdict;
    for (int i = 0; i < 4; i++)
        for (int kind = EL_CELL_PAIRED; kind <= EL_CELL_HISTORY; kind++) {
            struct el_regress_set set = {0};
            struct el_regress_cell *cell = add_paired(&set, EL_BETTER_LOWER, 14, 0.01, 1);
            cell->kind = (enum el_cell_kind)kind;
            cell->head[0] = bad[i];
            add_paired(&set, EL_BETTER_LOWER, 14, 0.01, 2); /* a regression elsewhere does not hide it */
            assert_int_equal(judged(&set, &verdict), EL_REGRESS_USE);
            assert_int_equal(verdict, EL_CELL_UNREADABLE);
        }
    for (int side = 0; side < 2; side++) {
        struct el_regress_set set = {0};
        struct el_regress_cell *cell = add_paired(&set, EL_BETTER_LOWER, 14, 0.01, 1);
        *(side ? &cell->n_head : &cell->n_base) = side ? 13 : 0;
        assert_int_equal(judged(&set, &verdict), EL_REGRESS_USE);
    }
    struct el_regress_set nothing = {0};
    assert_int_equal(el_regress_outcome(&nothing), EL_REGRESS_USE);
}

/* What was found by who filled the cell in; the outcome is the other cell's, which is slower, where it may be. */
static void test_faults(void **state)
{
    static const struct {
        enum el_cell_verdict fault;
        enum el_regress_exit outcome;
    } cases[] = {{EL_CELL_NO_BASELINE, EL_REGRESS_FOUND}, {EL_CELL_UNREADABLE, EL_REGRESS_USE}};
    for (int i = 0; i < 2; i++) {
        struct el_regress_set set = {0};
        el_regress_fault(add_paired(&set, EL_BETTER_LOWER, 14, 0.01, 1), cases[i].fault, "another %s", "unit");
        el_regress_fault(&set.cells[0], EL_CELL_UNREADABLE, "the first stays");
        add_paired(&set, EL_BETTER_LOWER, 14, 0.01, 2);
        el_regress_judge(&set);
        assert_string_equal(set.cells[0].reason, "another unit");
        assert_int_equal(set.cells[0].verdict, cases[i].fault);
        assert_int_equal(el_regress_outcome(&set), cases[i].outcome);
        el_regress_free(&set);
    }
}

/* A step that is compared exactly is of simulated devices: the sentence says so. */
static void test_simulated(void **state)
{
    static const char *const sentences[] = {"No regression in 1 cell.",
                                            "No regression in 2 cells. Times are simulated, and compared exactly."};
    struct el_regress_set set = {.last_analysis = true};
    for (int i = 0; i < 2; i++) {
        struct el_regress_cell *cell;
        assert_int_equal(el_regress_add(&set, i ? "ddp 2: step_median_ms" : "cell", &cell), EL_OK);
        cell->kind = EL_CELL_EXACT;
        sample(cell, 2.5, 2.5);
        el_regress_judge(&set);
        json_t *document = el_answer_json(&set);
        assert_string_equal(el_json_text(document, "sentence", ""), sentences[i]);
        json_decref(document);
    }
    el_regress_free(&set);
}

RUN_TESTS(NULL, NULL, test_levels, test_paired, test_paired_figures, test_noisy, test_holm_over_cells, test_exact,
          test_history, test_history_forgets, test_unreadable, test_faults, test_table, test_simulated,
          test_more_blocks_decide, test_figures_agree)
