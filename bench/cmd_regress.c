/* `evenload regress`: did it get slower? Two programs in turns (--ab), or two runs of ours. What is judged and how is
 * bench/regress/'s; here are the command line, the files it asks for, and the exit status. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/record/record.h"
#include "bench/regress/ab.h"
#include "bench/regress/baseline.h"
#include "bench/regress/formats.h"
#include "bench/regress/runs.h"

static bool names_none(const char *list)
{
    return *list && !list[strspn(list, ", ")];
}

/* The first of these options, ended by NULL, that was given; NULL: none. */
static const char *given_of(const struct el_options *options, const char *const *names)
{
    while (*names && !el_option_given(options, *names)) names++;
    return *names;
}

/* What contradicts another option, or would do nothing. */
static enum el_status check_together(const struct el_options *options)
{
    static const char *const of_turns[] = {"blocks",      "budget", "exact",   "higher",
                                           "max-samples", "seed",   "timeout", NULL};
    const struct el_regress_options *r = &options->regress;
    bool ab = r->ab[0];
    const char *idle = ab ? NULL : given_of(options, of_turns);
    if (names_none(r->metrics)) return el_fail(EL_ERR_INVALID, "--metric: '%s' names no metric", r->metrics);
    if (idle)
        return el_fail(EL_ERR_INVALID, "--%s is for programs launched in turns (--ab): runs have been measured already",
                       idle);
    if (el_option_given(options, "session") && ab)
        return el_fail(EL_ERR_INVALID,
                       "--session is for two runs (--baseline): --ab measures both sides in one session");
    if (el_option_given(options, "session") && !el_regress_is_run(r->baseline))
        return el_fail(EL_ERR_INVALID,
                       "--session is for two runs: %s is no run, and how far the sessions of a store differ is in them",
                       r->baseline);
    if (el_option_given(options, "blocks") && el_option_given(options, "max-samples"))
        return el_fail(EL_ERR_INVALID, "--blocks %d is the only look, --max-samples %d the last of three: give one",
                       r->blocks, r->max_samples);
    return EL_OK;
}

static enum el_status check(const struct el_options *options)
{
    const struct el_regress_options *r = &options->regress;
    bool ab = r->ab[0], runs = r->baseline[0] || r->current[0];
    if (ab && runs) return el_fail(EL_ERR_INVALID, "--ab launches two programs, --baseline reads two runs: give one");
    if (ab && !options->dir[0])
        return el_fail(EL_ERR_INVALID, "--ab takes two commands: regress --ab 'BASE COMMAND' 'HEAD COMMAND'");
    if (!ab && !runs)
        return el_fail(EL_ERR_INVALID,
                       "what is to be compared? Give --ab 'BASE COMMAND' 'HEAD COMMAND', or --baseline DIR "
                       "--current DIR");
    if (runs && !r->baseline[0])
        return el_fail(EL_ERR_INVALID, "--current DIR needs --baseline DIR to be held against");
    if (runs && !r->current[0])
        return el_fail(EL_ERR_INVALID, "--baseline DIR needs --current DIR: the run that is judged");
    return check_together(options);
}

/* Before anything is measured: whether the file can be written, or be made in its folder. */
static enum el_status check_file(const char *option, const char *path)
{
    char folder[EL_PATH_BYTES];
    struct stat info;
    if (*path && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return el_fail(EL_ERR_INVALID, "--%s: %s is a folder: give the name of a file", option, path);
    if (*path && stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return access(path, W_OK) == 0 ? EL_OK : el_fail_errno("--%s: %s cannot be written", option, path);
    const char *slash = strrchr(path, '/');
    if (!*path) return EL_OK;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (access(folder, W_OK | X_OK) == 0) return EL_OK;
    return el_fail_errno("--%s: %s cannot be written", option, path);
}

static enum el_status check_files(const struct el_regress_options *r)
{
    EL_TRY(check_file("junit", r->junit));
    EL_TRY(check_file("markdown", r->markdown));
    return check_file("bencher", r->bencher);
}

static bool go_on(void)
{
    return !el_runner_interrupted();
}

/* On standard error: what it will take, said once the first block has shown it, and then a line that is written over.
 */
static void tell_progress(void *context, const struct el_regress_set *set, int next_look, double elapsed_s)
{
    const struct el_regress_ask *ask = context;
    bool terminal = isatty(STDERR_FILENO);
    if (set->blocks == 1) {
        int needed = el_regress_blocks_needed(set->n, el_regress_level(set->stage, ask->blocks > 0));
        fprintf(stderr, "%zu cell%s; a block takes %.1f s, the first look is after %d (about %.0f s)\n", set->n,
                set->n == 1 ? "" : "s", elapsed_s, next_look, elapsed_s * next_look);
        if (needed > next_look)
            fprintf(stderr,
                    "note: no effect in one of %zu timed cells can be told from chance by fewer than %d blocks: "
                    "choose fewer with --metric\n",
                    set->n, needed);
    }
    if (terminal) fprintf(stderr, "\rblock %d of %d, %.0f s ", set->blocks, next_look, elapsed_s);
    if (set->blocks == next_look) fprintf(stderr, terminal ? "\n" : "looked after block %d\n", set->blocks);
}

static enum el_status measure(const struct el_options *options, struct el_regress_set *set)
{
    const struct el_regress_options *r = &options->regress;
    struct el_regress_ask ask = {.base = r->ab,
                                 .head = options->dir,
                                 .timeout_s = options->timeout_s,
                                 .budget_s = r->budget_s,
                                 .blocks = r->blocks,
                                 .max_blocks = r->max_samples,
                                 .seed = options->train.seed,
                                 .metrics = r->metrics,
                                 .exact = r->exact,
                                 .higher = r->higher,
                                 .go_on = go_on};
    if (!options->quiet) ask.tick = tell_progress, ask.context = &ask;
    return el_regress_ab(&ask, set);
}

static enum el_status read_runs(const struct el_options *options, struct el_regress_set *set)
{
    const struct el_regress_options *r = &options->regress;
    EL_TRY(el_regress_dirs(r->baseline, r->current, r->metrics, stderr, set));
    set->last_analysis = true;
    el_regress_judge(set);
    return EL_OK;
}

/* Every form that was asked for, and the record. */
static enum el_status write_files(const struct el_options *options, const struct el_regress_set *set,
                                  const struct el_store *store, int exit_status)
{
    const struct el_regress_options *r = &options->regress;
    char path[EL_PATH_BYTES];
    json_t *document = el_regress_json(set);
    if (!document) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what was compared");
    json_object_set_new(document, "exit_status", json_integer(exit_status));
    json_object_set_new(document, "interrupted", json_boolean(el_runner_interrupted()));
    json_object_set_new(document, "asked", el_options_echo(EL_CMD_REGRESS, options));
    el_store_path(store, path, "regress.json");
    enum el_status status = el_write_json(document, path);
    if (status == EL_OK && options->json) status = el_print_json(document, stdout);
    json_decref(document);
    if (status == EL_OK && r->junit[0]) status = el_regress_write_junit(set, r->junit);
    if (status == EL_OK && r->markdown[0]) status = el_regress_write_markdown(set, r->markdown);
    if (status == EL_OK && r->bencher[0]) status = el_regress_write_bencher(set, r->bencher);
    if (status == EL_OK && r->github) el_regress_print_github(set, stderr);
    return status;
}

/* Of a stored baseline the run that was judged becomes a session, or the level; where it is that already, only another
 * run tells more. */
static bool print_next_of_store(const struct el_options *options, const struct el_regress_set *set)
{
    enum el_regress_exit outcome = el_regress_outcome(set);
    const char *store = options->regress.baseline;
    if (!*store || el_regress_is_run(store) || outcome == EL_REGRESS_USE || outcome == EL_REGRESS_INCONCLUSIVE)
        return false;
    bool found = outcome == EL_REGRESS_FOUND, elsewhere = strcmp(store, EL_BASELINE_STORE) != 0;
    if ((found ? set->other_trials : set->new_trials) == 0) {
        printf("Next: %s compare    (another session: this run is %s already)\n", program_invocation_name,
               found ? "the accepted level" : "one");
        return true;
    }
    printf("Next: %s baseline %s %s%s%s%s\n", program_invocation_name, found ? "accept" : "add",
           options->regress.current, elsewhere ? " --store " : "", elsewhere ? store : "",
           found ? "    (if the new level is right)" : "");
    return true;
}

static void print_next(const struct el_options *options, const struct el_regress_set *set)
{
    enum el_regress_exit outcome = el_regress_outcome(set);
    const char *name = program_invocation_name;
    double floor = 1;
    int more = 0;
    for (size_t i = 0; i < set->n; i++) {
        more = set->cells[i].more > more ? set->cells[i].more : more;
        floor = fmax(floor, set->cells[i].floor);
    }
    if (print_next_of_store(options, set)) return;
    if (outcome == EL_REGRESS_INCONCLUSIVE && set->environment[0])
        printf("Next: %s regress ... --min-effect %.0f    (or on a machine with less going on)\n", name,
               ceil(100 * (floor - 1)));
    else if (outcome == EL_REGRESS_INCONCLUSIVE && !options->regress.ab[0])
        printf("Next: %s regress --ab 'BASE COMMAND' 'HEAD COMMAND'    (in turns tells more than two sessions)\n",
               name);
    else if (outcome == EL_REGRESS_INCONCLUSIVE && more > 0 && set->blocks + more <= 200)
        printf("Next: %s regress ... --%s %d\n", name, options->regress.blocks ? "blocks" : "max-samples",
               set->blocks + more);
    else if (outcome == EL_REGRESS_INCONCLUSIVE)
        printf("Next: %s regress ... --min-effect 5    (a larger effect is told sooner)\n", name);
    else if (outcome == EL_REGRESS_NO_BASELINE)
        printf("Next: %s regress --ab 'BASE COMMAND' 'HEAD COMMAND'    (needs no baseline)\n", name);
    else if (outcome == EL_REGRESS_FOUND && options->regress.ab[0] && options->regress.blocks == 0)
        printf("Next: %s regress ... --blocks 40 --seed 2    (again, in another order, to the end)\n", name);
    else if (outcome == EL_REGRESS_NONE && !options->regress.ab[0])
        printf("Next: %s baseline add %s    (of eight such sessions the spread is known)\n", name,
               options->regress.current);
    else
        printf("Next: %s help regress\n", name);
}

static int exit_status_of(const struct el_options *options, const struct el_regress_set *set)
{
    enum el_regress_exit outcome = el_regress_outcome(set);
    if (outcome != EL_REGRESS_INCONCLUSIVE) return (int)outcome;
    switch (options->regress.inconclusive) {
    case EL_INCONCLUSIVE_PASS:
        return EL_REGRESS_NONE;
    case EL_INCONCLUSIVE_FAIL:
        return EL_REGRESS_FOUND;
    default:
        return EL_REGRESS_INCONCLUSIVE;
    }
}

/* Whatever it is that cannot be made or written: 1 is a regression, and nothing else. */
static int fail_use(enum el_status status)
{
    el_exit_failed(status);
    return EL_EXIT_USE;
}

static int show(const struct el_options *options, const struct el_regress_set *set, const struct el_store *store)
{
    bool interrupted = el_runner_interrupted();
    int exit_status = interrupted ? EL_EXIT_INTERRUPTED : exit_status_of(options, set);
    enum el_status status = write_files(options, set, store, exit_status);
    if (status != EL_OK) return fail_use(status);
    if (!options->json) {
        el_regress_print(set, stdout);
        printf("%s/regress.json\n\n", store->dir);
        print_next(options, set);
    }
    exit_status = el_exit_flush(exit_status);
    if (interrupted)
        fprintf(stderr, "evenload: interrupted after %d block%s\n", set->blocks, set->blocks == 1 ? "" : "s");
    return exit_status;
}

static int regress(const struct el_options *options, struct el_regress_set *set)
{
    struct el_store store;
    bool ab = options->regress.ab[0];
    if (ab) el_runner_catch_signals();
    enum el_status status = el_store_create(options->out, "regress", &store);
    if (status != EL_OK) return fail_use(status);
    set->least_effect = 1 + options->regress.min_effect_pct / 100;
    set->session_effect = 1 + options->regress.session_pct / 100;
    status = ab ? measure(options, set) : read_runs(options, set);
    int exit_status = EL_EXIT_INTERRUPTED;
    if (status != EL_OK && el_exit_failed(status))
        exit_status = status == EL_ERR_ABSENT && !ab ? EL_REGRESS_NO_BASELINE : EL_EXIT_USE;
    else if (set->blocks > 0 || !ab)
        exit_status = show(options, set, &store);
    else
        fprintf(stderr, "evenload: interrupted\n");
    el_store_discard(&store);
    return exit_status;
}

int el_cmd_regress(const struct el_options *options, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct el_regress_set set = {0};
    enum el_status status = check(options);
    if (status == EL_OK) status = check_files(&options->regress);
    int exit_status = status == EL_OK ? regress(options, &set) : fail_use(status);
    el_regress_free(&set);
    return exit_status;
}
