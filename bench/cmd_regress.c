/* `evenload regress`: command line, output files, exit status, next steps (judgement: bench/regress). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/record/record.h"
#include "bench/regress/answer.h"
#include "bench/regress/launches.h"
#include "bench/regress/store.h"

enum way { AB = 1, FROM = 2, STORE = 4 };

/* Options that are useless in other ways. */
static const struct only {
    unsigned ways;
    const char *options; /* separated by blanks */
    const char *words;
} only[] = {
    {AB, " blocks budget max-samples seed ", "two programs launched interleaved (--ab)"},
    {AB | FROM, " exact higher lower timeout prepare name no-hook ",
     "programs that are launched (--ab, --from): runs have been measured"},
    {FROM, " launches ", "--from 'COMMAND'"},
    {STORE, " add ", "a store to add to: --baseline results/baseline"},
};

static enum el_status check_together(const struct el_options *options)
{
    const struct el_regress_options *r = &options->regress;
    unsigned way = r->ab[0] ? AB : STORE;
    if (r->from[0]) way |= FROM;
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        char word[64];
        snprintf(word, sizeof word, " %s ", row->name);
        for (size_t i = 0; i < sizeof only / sizeof only[0]; i++)
            if (el_option_given(options, row->name) && strstr(only[i].options, word) && !(only[i].ways & way))
                return el_fail(EL_ERR_INVALID, "--%s is for %s", row->name, only[i].words);
    }
    if (r->metrics[0] && !r->metrics[strspn(r->metrics, ", ")])
        return el_fail(EL_ERR_INVALID, "--metric: '%s' names no metric", r->metrics);
    if (el_option_given(options, "blocks") && el_option_given(options, "max-samples"))
        return el_fail(EL_ERR_INVALID, "--blocks %d means one analysis, --max-samples %d the last of three: give one",
                       r->blocks, r->max_samples);
    return EL_OK;
}

static enum el_status check(const struct el_options *options)
{
    const struct el_regress_options *r = &options->regress;
    bool ab = r->ab[0], runs = r->baseline[0] || r->current[0] || r->from[0];
    const struct {
        bool wrong;
        const char *words;
    } rules[] = {
        {ab && runs, "--ab launches two programs, --baseline reads a store of sessions: give one"},
        {ab && !options->dir[0], "--ab takes two commands: regress --ab 'BASE COMMAND' 'HEAD COMMAND'"},
        {!ab && !runs, "nothing to compare: give --ab 'BASE COMMAND' 'HEAD COMMAND', or --baseline DIR and "
                       "--current DIR or --from 'COMMAND'"},
        {r->current[0] && r->from[0], "--current is a run that was measured, --from a command to launch: give one"},
        {r->from[0] && !r->baseline[0], "--from needs --baseline DIR to be compared with"},
        {r->current[0] && !r->baseline[0], "--current needs --baseline DIR to be compared with"},
        {runs && !r->current[0] && !r->from[0],
         "--baseline DIR needs --current DIR, the run that is judged, or --from 'COMMAND'"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].wrong) return el_fail(EL_ERR_INVALID, "%s", rules[i].words);
    if (runs && el_regress_is_run(r->baseline))
        return el_fail(
            EL_ERR_INVALID,
            "--baseline %s is one run, whose times say nothing of how far runs differ: compare two programs by "
            "--ab, or make a store of it: 'evenload baseline add %s --store DIR'",
            r->baseline, r->baseline);
    return check_together(options);
}

/* Checked before measuring. */
static enum el_status check_file(const char *option, const char *path)
{
    char folder[EL_PATH_BYTES];
    struct stat info = {.st_mode = S_IFREG}; /* if it does not exist */
    if (!*path) return EL_OK;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return el_fail(EL_ERR_INVALID, "--%s: %s is a folder: give the name of a file", option, path);
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    /* files are replaced in their folder; pipes and devices are written to */
    if (S_ISREG(info.st_mode) ? access(folder, W_OK | X_OK) == 0 : access(path, W_OK) == 0) return EL_OK;
    return el_fail_errno("--%s: %s cannot be written", option, path);
}

/* `dir`: for --from's launches, the judged run. */
static enum el_status read_runs(const struct el_options *options, struct el_regress_set *set, const char *dir)
{
    const struct el_regress_options *r = &options->regress;
    bool from = r->from[0];
    if (from) EL_TRY(el_launching_from(options, dir, set));
    if (from && el_runner_interrupted()) return EL_OK;
    EL_TRY(el_regress_dirs(r->baseline, from ? dir : r->current, from ? "" : r->metrics, stderr, set));
    if (from) el_regress_name_sides(set, r->baseline, r->from);
    set->last_analysis = true;
    el_regress_judge(set);
    return EL_OK;
}

static enum el_status write_files(const struct el_options *options, const struct el_store *store,
                                  const json_t *document)
{
    const struct el_regress_options *r = &options->regress;
    char path[EL_PATH_BYTES];
    el_store_path(store, path, "regress.json");
    EL_TRY(el_write_json(document, path));
    if (options->json) EL_TRY(el_print_json(document, stdout));
    if (r->junit[0]) EL_TRY(el_answer_write_junit(document, r->junit));
    if (r->markdown[0]) EL_TRY(el_answer_write_markdown(document, r->markdown));
    if (r->github) el_answer_print_github(document, stderr);
    return EL_OK;
}

/* Unless it is worse or unreadable, so a store fills from the first run. */
static enum el_status add_to_store(const struct el_options *options, const struct el_regress_set *set, const char *dir,
                                   bool *added_p)
{
    enum el_regress_exit outcome = el_regress_outcome(set);
    *added_p = false;
    if (!options->regress.add || outcome == EL_REGRESS_FOUND || outcome == EL_REGRESS_USE || set->new_trials == 0)
        return EL_OK;
    EL_TRY(el_baseline_add(options->regress.baseline, dir, false, false));
    *added_p = true;
    return EL_OK;
}

static int exit_status_of(const struct el_options *options, const struct el_regress_set *set, bool added)
{
    enum el_regress_exit outcome = el_regress_outcome(set);
    if (outcome == EL_REGRESS_NO_BASELINE && added) return EL_REGRESS_NONE;
    if (outcome != EL_REGRESS_INCONCLUSIVE) return (int)outcome;
    static const int statuses[] = {[EL_INCONCLUSIVE_TELL] = EL_REGRESS_INCONCLUSIVE,
                                   [EL_INCONCLUSIVE_PASS] = EL_REGRESS_NONE,
                                   [EL_INCONCLUSIVE_FAIL] = EL_REGRESS_FOUND};
    return statuses[options->regress.inconclusive];
}

static void print_outcome(const struct el_options *options, const struct el_regress_set *set, bool added, FILE *out)
{
    enum el_regress_exit outcome = el_regress_outcome(set);
    size_t needed = set->sessions_needed;
    if (added) fprintf(out, "Added to %s.", options->regress.baseline);
    if (added && outcome == EL_REGRESS_NO_BASELINE && needed > 1)
        fprintf(out, " NOT JUDGED: %zu more session%s needed first.", needed - 1, needed == 2 ? " is" : "s are");
    else if (added && outcome == EL_REGRESS_NO_BASELINE)
        fputs(" NOT JUDGED: the next run is the first that can be.", out);
    if (added) fputc('\n', out);
    if (outcome == EL_REGRESS_INCONCLUSIVE && options->regress.inconclusive == EL_INCONCLUSIVE_PASS)
        fputs("INCONCLUSIVE, and exit status 0 only because of --inconclusive pass.\n", out);
}

/* ---- next steps: judged again to find useful advice: a larger --min-effect only passes effects known to be small,
 * more blocks only reduce chance ---- */

enum { BLOCKS_MAX = 200 };
/* No gate accepts more. */
static const int MIN_EFFECT_MAX_PCT = 10;

/* The judged run becomes a session or the level; if it already is, only another run helps. */
static void print_of_store(const char *store, bool found, bool in_store, const char *run, FILE *out)
{
    if (in_store)
        fprintf(out, "Next: measure again for another session: this run is %s\n",
                found ? "the accepted level already" : "in the store already");
    else
        el_baseline_print_next(store, run, found, out);
}

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

/* 0: none up to 200. */
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

/* Useful advice only. `run`: the judged run's folder, "" with --ab. `added`: kept in the store. */
static void print_next(const struct el_options *options, const struct el_regress_set *set, const char *run, bool added,
                       FILE *out)
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

static enum el_status show(const struct el_options *options, const struct el_regress_set *set,
                           const struct el_store *store, int *exit_status_p)
{
    const struct el_regress_options *r = &options->regress;
    const char *run = r->ab[0] ? "" : r->from[0] ? store->dir : r->current;
    bool interrupted = el_runner_interrupted(), added = false;
    if (!interrupted) EL_TRY(add_to_store(options, set, run, &added));
    int exit_status = interrupted ? EL_EXIT_INTERRUPTED : exit_status_of(options, set, added);
    json_t *document = el_answer_json(set);
    el_json_put_all(document, EL_KEY("exit_status", exit_status), EL_KEY("added", added),
                    EL_KEY("interrupted", interrupted), EL_KEY("options", el_options_echo(EL_CMD_REGRESS, options)));
    enum el_status status = write_files(options, store, document);
    if (status == EL_OK && !options->json) {
        el_answer_print(document, stdout);
        print_outcome(options, set, added, stdout);
        el_text_line(stdout, "%s/regress.json", store->dir);
        printf("\n");
        print_next(options, set, run, added, stdout);
    }
    json_decref(document);
    if (status != EL_OK) return status;
    *exit_status_p = el_exit_flush(exit_status);
    if (interrupted)
        fprintf(stderr, "evenload: interrupted after %d block%s\n", set->blocks, set->blocks == 1 ? "" : "s");
    return EL_OK;
}

static enum el_status regress(const struct el_options *options, struct el_regress_set *set,
                              const struct el_store *store, int *exit_status_p)
{
    bool ab = options->regress.ab[0];
    set->least_effect = 1 + options->regress.min_effect_pct / 100;
    enum el_status status = ab ? el_launching_ab(options, store->dir, set) : read_runs(options, set, store->dir);
    if (status == EL_OK && (set->blocks > 0 || set->n > 0)) return show(options, set, store, exit_status_p);
    if (status == EL_OK) *exit_status_p = el_exit_interrupted();
    return status;
}

/* All other failures exit with EL_EXIT_USE: 1 means a regression only. */
enum el_status el_cmd_regress(struct el_options *options, int *exit_status_p)
{
    struct el_regress_set set = {0};
    struct el_store store;
    *exit_status_p = EL_EXIT_USE;
    EL_TRY(check(options));
    EL_TRY(check_file("junit", options->regress.junit));
    EL_TRY(check_file("markdown", options->regress.markdown));
    EL_TRY(el_store_create(options->out, "regress", &store));
    enum el_status status = regress(options, &set, &store, exit_status_p);
    el_store_discard(&store);
    el_regress_free(&set);
    return status;
}
