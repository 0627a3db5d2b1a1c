/* What to do next. Which advice helps is found by judging again: a larger --min-effect passes only what is already
 * known to be small, and more blocks only shrink what chance does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/options.h"
#include "bench/regress/answer.h"
#include "bench/regress/store.h"

enum { BLOCKS_MAX = 200 };
/* Nobody who asks for a gate lets more than this through. */
static const int MIN_EFFECT_MAX_PCT = 10;

/* Of a stored baseline the run that was judged becomes a session, or the level; where it is that already, only another
 * run helps. */
static void print_of_store(const char *store, bool found, bool in_store, const char *run, FILE *out)
{
    if (in_store)
        fprintf(out, "Next: measure again for another session: this run is %s\n",
                found ? "the accepted level already" : "in the store already");
    else
        el_baseline_print_next(store, run, found, out);
}

/* Whether nothing would be left open, were only effects above so many per cent to count. */
static bool decides(const struct el_regress_set *set, int pct)
{
    struct el_regress_set other = *set;
    other.least_effect = 1 + pct / 100.0;
    other.cells = malloc(set->n * sizeof *other.cells);
    if (!other.cells) return false;
    memcpy(other.cells, set->cells, set->n * sizeof *other.cells); /* samples are only read */
    el_regress_judge(&other);
    bool decided = el_regress_outcome(&other) == EL_REGRESS_NONE;
    free(other.cells);
    return decided;
}

/* Blocks that would decide all that is open; 0: no number up to 200 would. */
static int deciding_blocks(const struct el_regress_set *set)
{
    int more = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (set->cells[i].verdict != EL_CELL_INCONCLUSIVE) continue;
        if (set->cells[i].more == 0) return 0;
        if (set->cells[i].more > more) more = set->cells[i].more;
    }
    return set->blocks + more <= BLOCKS_MAX ? set->blocks + more : 0;
}

static void print_of_open_ab(const struct el_options *options, const struct el_regress_set *set, FILE *out)
{
    int blocks = deciding_blocks(set), pct = (int)floor(100 * (fmax(set->least_effect, 1.02) - 1)) + 1;
    while (blocks == 0 && pct <= MIN_EFFECT_MAX_PCT && !decides(set, pct)) pct++;
    fprintf(out, "Next: %s regress ... ", el_program_word());
    if (blocks > 0)
        fprintf(out, "--%s %d\n", options->regress.blocks ? "blocks" : "max-samples", blocks);
    else if (pct <= MIN_EFFECT_MAX_PCT)
        fprintf(out, "--min-effect %d    (if slowdowns below %d %% do not matter)\n", pct, pct);
    else
        fputs("with longer launches, fewer metrics (--metric) or a quieter machine\n", out);
}

void el_answer_print_next(const struct el_options *options, const struct el_regress_set *set, const char *run,
                          bool added, FILE *out)
{
    enum el_regress_exit outcome = el_regress_outcome(set);
    const char *name = el_program_word(), *store = options->regress.baseline;
    bool found = outcome == EL_REGRESS_FOUND, open = outcome == EL_REGRESS_INCONCLUSIVE, ab = options->regress.ab[0];
    if (*store && outcome != EL_REGRESS_USE && (added || !open))
        print_of_store(store, found, added || (found ? set->other_trials : set->new_trials) == 0, run, out);
    else if (open && ab)
        print_of_open_ab(options, set, out);
    else if (open)
        fprintf(out, "Next: %s regress --ab 'BASE COMMAND' 'HEAD COMMAND'    (detects more than sessions do)\n", name);
    else if (found && ab && options->regress.blocks == 0)
        fprintf(out, "Next: %s regress ... --blocks 40 --seed 2    (again, in another order, to the end)\n", name);
    else
        fprintf(out, "Next: %s help regress\n", name);
}
