/* How often does the gate cry wolf, and how often does it miss one? Whole sessions are simulated, blocks in random
 * order, of eight kinds of noise, and judged by the very functions that judge a real one.
 *
 * With -v, and with EVENLOAD_LONG=1, it prints the tables that docs/regress.md sums up (there: EVENLOAD_LONG=1 ... -v).
 */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/regress/regress.h"
#include "bench/stats/stats.h"
#include "tests/unit/regress_noise.h"

enum { BLOCKS_MAX = 40, CELLS_MAX = 20 };
static const int LOOKS[] = {14, 24, 40};

struct ask {
    const struct noise *noise;
    double cv, effect;
    int cells, blocks; /* blocks: one look at so many; 0: 14, 24 and 40 */
    int looks;         /* of 14, 24, 40, with the level split; 0: all */
};

/* Two sides of one cell, as a session would give them. */
struct sides {
    double base[BLOCKS_MAX], head[BLOCKS_MAX];
};

static void draw(const struct ask *ask, struct random *random, struct sides *sides)
{
    double x[2 * BLOCKS_MAX];
    ask->noise->draw(random, x, 2 * BLOCKS_MAX);
    for (int b = 0; b < BLOCKS_MAX; b++) {
        int first = random_u64(random) >> 63 ? 1 : 0;
        sides->base[b] = exp(ask->cv * x[2 * b + first]);
        sides->head[b] = exp(ask->cv * x[2 * b + 1 - first]) * ask->effect;
    }
}

static void look(struct el_regress_set *set, int blocks)
{
    for (size_t c = 0; c < set->n; c++) set->cells[c].n_base = set->cells[c].n_head = (size_t)blocks;
    set->blocks = blocks;
    el_regress_judge(set);
}

static bool all_told(const struct el_regress_set *set)
{
    for (size_t c = 0; c < set->n; c++)
        if (set->cells[c].verdict == EL_CELL_INCONCLUSIVE) return false;
    return true;
}

/* One run of the gate. Returns its exit status; the number of blocks is in the set. */
static enum el_regress_exit session(const struct ask *ask, struct random *random, struct el_regress_set *set,
                                    struct sides *sides)
{
    int looks = ask->looks ? ask->looks : 3;
    for (int c = 0; c < ask->cells; c++) {
        draw(ask, random, &sides[c]);
        set->cells[c] = (struct el_regress_cell){
            .better = EL_BETTER_LOWER, .kind = EL_CELL_PAIRED, .base = sides[c].base, .head = sides[c].head};
    }
    set->n = (size_t)ask->cells;
    set->stage = 0;
    set->last_analysis = ask->blocks > 0;
    if (ask->blocks) {
        look(set, ask->blocks);
        return el_regress_outcome(set);
    }
    for (; set->stage < looks; set->stage++) {
        set->last_analysis = set->stage == 2;
        look(set, LOOKS[set->stage]);
        if (el_regress_outcome(set) == EL_REGRESS_FOUND || all_told(set)) break;
    }
    return el_regress_outcome(set);
}

struct counts {
    int found, inconclusive, better;
    double blocks; /* mean */
};

static struct counts count(const struct ask *ask, int trials, uint64_t seed)
{
    struct el_regress_cell cells[CELLS_MAX];
    struct sides *sides = malloc(CELLS_MAX * sizeof *sides);
    struct counts counts = {0};
    assert_non_null(sides);
    for (int t = 0; t < trials; t++) {
        struct random random = random_seeded(seed + (uint64_t)t);
        struct el_regress_set set = {.cells = cells};
        enum el_regress_exit exit_status = session(ask, &random, &set, sides);
        counts.found += exit_status == EL_REGRESS_FOUND;
        counts.inconclusive += exit_status == EL_REGRESS_INCONCLUSIVE;
        for (int c = 0; c < ask->cells; c++)
            if (cells[c].verdict == EL_CELL_IMPROVEMENT) {
                counts.better++;
                break;
            }
        counts.blocks += set.blocks;
    }
    counts.blocks /= trials;
    free(sides);
    return counts;
}

/* Of sessions at one look, each with the very effect that it says it would find in 90 of 100: how many find it? */
static double detectable_pct(const struct noise *noise, double cv, int blocks, int trials, double *mean_p)
{
    const struct ask ask = {.noise = noise, .cv = cv, .effect = 1, .cells = 1, .blocks = blocks};
    struct el_regress_cell cell;
    struct sides sides;
    int found = 0;
    *mean_p = 0;
    for (int t = 0; t < trials; t++) {
        struct random random = random_seeded(900000 + (uint64_t)t);
        struct el_regress_set set = {.cells = &cell};
        session(&ask, &random, &set, &sides);
        double effect = cell.detectable;
        *mean_p += (effect - 1) / trials;
        for (int b = 0; b < blocks; b++) sides.head[b] *= effect;
        look(&set, blocks);
        if (cell.detectable > effect * (1 + 1e-9) || cell.detectable < effect * (1 - 1e-9)) fail_msg("moved with it");
        found += cell.verdict == EL_CELL_REGRESSION;
    }
    return 100.0 * found / trials;
}

/* A session has a level of its own, its launches scatter round it. */
static void draw_session(struct random *random, double spread, double cv, double *x, int launches)
{
    double level = spread * random_normal(random);
    for (int i = 0; i < launches; i++) x[i] = exp(level + cv * random_normal(random));
}

/* A history of so many sessions, of medians of 5 launches. */
static double unpaired_pct(double spread, int sessions, double effect, int trials)
{
    int found = 0;
    for (int t = 0; t < trials; t++) {
        double base[64], head, launches[5];
        struct random random = random_seeded(500000 + (uint64_t)t);
        struct el_regress_cell cell = {.better = EL_BETTER_LOWER,
                                       .kind = EL_CELL_HISTORY,
                                       .base = base,
                                       .head = &head,
                                       .n_base = (size_t)sessions,
                                       .n_head = 1};
        struct el_regress_set set = {.cells = &cell, .n = 1, .last_analysis = true};
        for (int s = 0; s < sessions; s++) {
            draw_session(&random, spread, 0.01, launches, 5);
            base[s] = el_stats_median(launches, 5);
        }
        draw_session(&random, spread, 0.01, launches, 5);
        head = effect * el_stats_median(launches, 5);
        el_regress_judge(&set);
        found += cell.verdict == EL_CELL_REGRESSION;
    }
    return 100.0 * found / trials;
}

/* How many sessions a question gets: in the short run a third of what it takes to promise a rate, a tenth under a
 * sanitizer; in the long run seven times as many. */
static int trials_of(int usual)
{
    const char *long_run = getenv("EVENLOAD_LONG"), *sanitizer = getenv("EVENLOAD_SANITIZER");
    if (sanitizer != NULL && *sanitizer && strcmp(sanitizer, "none") != 0) return usual / 10;
    return long_run != NULL && strcmp(long_run, "1") == 0 ? usual * 7 : usual / 3;
}

enum { FALSE_ALARM_TRIALS = 2857, POWER_TRIALS = 800, DETECTABLE_TRIALS = 400, UNPAIRED_TRIALS = 8400 };

/* At most 1 % with 99 % confidence, where so many sessions can say so; else no more hits than 1 % would explain. */
static void at_most_one_pct(const char *name, int hits, int trials)
{
    if (trials >= FALSE_ALARM_TRIALS ? rate_at_most(hits, trials) > 0.01 : rate_at_least(hits, trials) > 0.01)
        fail_msg("%s: %d false alarms in %d, up to %.2f %%", name, hits, trials, 100 * rate_at_most(hits, trials));
}

static void at_least(const char *name, int found, int trials, double rate)
{
    if (trials >= POWER_TRIALS ? rate_at_least(found, trials) < rate : rate_at_most(found, trials) < rate)
        fail_msg("%s: found %d of %d, %.0f %% promised", name, found, trials, 100 * rate);
}

static void test_false_alarms(void **state)
{
    int trials = trials_of(FALSE_ALARM_TRIALS);
    for (int f = 0; f < NOISES_COUNT; f++) {
        const struct ask noisy = {.noise = &NOISES[f], .cv = 0.05, .effect = 1, .cells = 1};
        at_most_one_pct(NOISES[f].name, count(&noisy, trials, 1000000).found, trials);
        const struct ask many = {.noise = &NOISES[f], .cv = 0.02, .effect = 1, .cells = CELLS_MAX};
        int hits = count(&many, trials / 40, 2000000).found; /* the family's rate is no higher: Holm */
        if (rate_at_least(hits, trials / 40) > 0.01) fail_msg("%s, 20 cells: %d", NOISES[f].name, hits);
    }
}

/* What the gate is for, with the blocks that a quiet and a less quiet machine take. */
static const struct promise {
    double cv, effect;
    int looks;
    double rate;
} PROMISES[] = {{0.01, 1.05, 1, 0.90}, {0.02, 1.05, 2, 0.90}, {0.02, 1.10, 2, 0.97}, {0.05, 1.20, 3, 0.97}};
enum { PROMISES_COUNT = sizeof PROMISES / sizeof PROMISES[0] };

static void test_power(void **state)
{
    int trials = trials_of(POWER_TRIALS);
    for (int f = 0; f < NOISES_COUNT; f++) {
        for (int k = 0; k < PROMISES_COUNT; k++) {
            const struct promise *promise = &PROMISES[k];
            const struct ask ask = {
                .noise = &NOISES[f], .cv = promise->cv, .effect = promise->effect, .cells = 1, .looks = promise->looks};
            at_least(NOISES[f].name, count(&ask, trials, 3000000).found, trials, promise->rate);
        }
    }
}

/* Better is not worse: a program that got faster is never said to be slower, and is said to be faster. */
static void test_improvement(void **state)
{
    const struct ask ask = {.noise = &NOISES[0], .cv = 0.01, .effect = 1 / 1.05, .cells = 1};
    struct counts counts = count(&ask, 200, 4000000);
    assert_int_equal(counts.found, 0);
    assert_true(counts.better >= 190);
}

static void test_detectable(void **state)
{
    int trials = trials_of(DETECTABLE_TRIALS);
    for (int f = 0; f < NOISES_COUNT; f++) {
        double mean, low = strcmp(NOISES[f].name, "quantised") == 0 ? 0.80 : 0.85;
        for (int n = 14; n <= 40; n += 26) {
            double got = detectable_pct(&NOISES[f], n == 14 ? 0.03 : 0.01, n, trials, &mean);
            if (got < 100 * low) fail_msg("%s, %d blocks: %.1f %% found of 90 promised", NOISES[f].name, n, got);
        }
    }
}

static void test_sessions(void **state)
{
    int trials = trials_of(UNPAIRED_TRIALS);
    static const int pasts[] = {8, 30};
    for (int k = 0; k < 2; k++)
        for (int s = 1; s <= 3; s++) {
            char name[64];
            snprintf(name, sizeof name, "%d sessions that differ by %d %%", pasts[k], s);
            at_most_one_pct(name, (int)lround(unpaired_pct(0.01 * s, pasts[k], 1, trials) * trials / 100), trials);
        }
}

static void print_paired(int trials)
{
    puts("| noise | false alarms, CV 1 % | 2 % | 5 % | 10 % | bound | untold, CV 2 % | 5 % | +5 %, CV 1 %, n = 14 | +5 "
         "%, CV 2 "
         "%, n = 24 | +10 %, CV 2 %, n = 24 | +10 %, CV 5 %, n = 40 |");
    puts("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (int f = 0; f < NOISES_COUNT; f++) {
        static const double cvs[] = {0.01, 0.02, 0.05, 0.10};
        static const struct promise power[] = {
            {0.01, 1.05, 1, 0}, {0.02, 1.05, 2, 0}, {0.02, 1.10, 2, 0}, {0.05, 1.10, 3, 0}};
        struct counts null[4];
        int most = 0;
        printf("| %s |", NOISES[f].name);
        for (int k = 0; k < 4; k++) {
            const struct ask ask = {.noise = &NOISES[f], .cv = cvs[k], .effect = 1, .cells = 1};
            null[k] = count(&ask, trials, 1000000);
            most = null[k].found > most ? null[k].found : most;
            printf(" %.2f |", 100.0 * null[k].found / trials);
        }
        printf(" %.2f | %.1f | %.1f |", 100 * rate_at_most(most, trials), 100.0 * null[1].inconclusive / trials,
               100.0 * null[2].inconclusive / trials);
        for (int k = 0; k < 4; k++) {
            const struct ask ask = {
                .noise = &NOISES[f], .cv = power[k].cv, .effect = power[k].effect, .cells = 1, .looks = power[k].looks};
            printf(" %.1f |", 100.0 * count(&ask, trials, 3000000).found / trials);
        }
        puts("");
    }
}

static void print_sessions(int trials)
{
    puts("\n| sessions differ by | 8 past sessions: false alarms | "
         "+5 % | +10 % | 30: false alarms | +5 % | +10 % |");
    puts("| --- | --- | --- | --- | --- | --- | --- |");
    for (int k = 0; k < 6; k++) {
        double spread = (double[]){0.005, 0.01, 0.02, 0.03, 0.05, 0.08}[k];
        printf("| %.1f %% |", 100 * spread);
        for (int past = 8; past <= 30; past += 22)
            printf(" %.2f | %.0f | %.0f |", unpaired_pct(spread, past, 1, trials),
                   unpaired_pct(spread, past, 1.05, trials), unpaired_pct(spread, past, 1.10, trials));
        puts("");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "-v") == 0) {
        print_paired(trials_of(FALSE_ALARM_TRIALS));
        print_sessions(trials_of(FALSE_ALARM_TRIALS));
    }
    if (trials_of(1000) <= 1000)
        puts("# long: twenty times as many sessions a kind of noise, and rates with 99 % confidence");
    return RUN(NULL, NULL, test_false_alarms, test_power, test_improvement, test_detectable, test_sessions);
}
