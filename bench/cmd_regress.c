/* `evenload regress`: did it get slower? Two programs interleaved (--ab), two runs, or a run and a store of sessions.
 * What is judged and how is bench/regress/'s; here are the command line, the files it asks for, and the exit status. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/record/record.h"
#include "bench/regress/advice.h"
#include "bench/regress/baseline.h"
#include "bench/regress/formats.h"
#include "bench/regress/launching.h"
#include "bench/regress/program.h"
#include "bench/regress/runs.h"
#include "runtime/base/utf8.h"

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

static enum el_status check_rule(const struct el_options *options)
{
    const struct el_regress_options *r = &options->regress;
    if (el_option_given(options, "session") && r->ab[0])
        return el_fail(EL_ERR_INVALID,
                       "--session is for two runs (--baseline): --ab measures both sides in one session");
    if (el_option_given(options, "session") && !el_regress_is_run(r->baseline))
        return el_fail(EL_ERR_INVALID,
                       "--session is for two runs: %s is no run, and how far the sessions of a store differ is in them",
                       r->baseline);
    if (el_option_given(options, "blocks") && el_option_given(options, "max-samples"))
        return el_fail(EL_ERR_INVALID, "--blocks %d means one analysis, --max-samples %d the last of three: give one",
                       r->blocks, r->max_samples);
    if (r->add && (r->ab[0] || el_regress_is_run(r->baseline)))
        return el_fail(EL_ERR_INVALID, "--add needs a store to add to: --baseline results/baseline");
    return EL_OK;
}

/* What contradicts another option, or would do nothing. */
static enum el_status check_together(const struct el_options *options)
{
    static const char *const of_ab[] = {"blocks", "budget", "max-samples", "seed", NULL};
    static const char *const of_from[] = {"launches", NULL};
    static const char *const of_launches[] = {"exact", "higher", "timeout", "prepare", "export-csv", "name", NULL};
    const struct el_regress_options *r = &options->regress;
    const char *idle = given_of(options, of_ab);
    if (names_none(r->metrics)) return el_fail(EL_ERR_INVALID, "--metric: '%s' names no metric", r->metrics);
    if (idle && !r->ab[0]) return el_fail(EL_ERR_INVALID, "--%s is for two programs launched interleaved (--ab)", idle);
    idle = given_of(options, of_launches);
    if (idle && !r->ab[0] && !r->from[0])
        return el_fail(EL_ERR_INVALID, "--%s is for programs that are launched (--ab, --from): runs have been measured",
                       idle);
    idle = given_of(options, of_from);
    if (idle && !r->from[0]) return el_fail(EL_ERR_INVALID, "--%s is for --from 'COMMAND'", idle);
    return check_rule(options);
}

static enum el_status check(const struct el_options *options)
{
    const struct el_regress_options *r = &options->regress;
    bool ab = r->ab[0], runs = r->baseline[0] || r->current[0] || r->from[0];
    if (ab && runs) return el_fail(EL_ERR_INVALID, "--ab launches two programs, --baseline reads two runs: give one");
    if (ab && !options->dir[0])
        return el_fail(EL_ERR_INVALID, "--ab takes two commands: regress --ab 'BASE COMMAND' 'HEAD COMMAND'");
    if (!ab && !runs)
        return el_fail(EL_ERR_INVALID,
                       "what is to be compared? Give --ab 'BASE COMMAND' 'HEAD COMMAND', or --baseline DIR and "
                       "--current DIR or --from 'COMMAND'");
    if (r->current[0] && r->from[0])
        return el_fail(EL_ERR_INVALID, "--current is a run that was measured, --from a command to launch: give one");
    if (runs && !r->baseline[0])
        return el_fail(EL_ERR_INVALID, "--%s needs --baseline DIR to be compared with",
                       r->from[0] ? "from" : "current");
    if (runs && !r->current[0] && !r->from[0])
        return el_fail(EL_ERR_INVALID,
                       "--baseline DIR needs --current DIR, the run that is judged, or --from 'COMMAND'");
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
    EL_TRY(check_file("export-csv", r->csv));
    return check_file("bencher", r->bencher);
}

static enum el_status measure(const struct el_options *options, struct el_regress_set *set, const char *dir)
{
    const struct el_regress_options *r = &options->regress;
    struct el_regress_launching launching;
    el_launching_begin(options, &launching);
    EL_TRY(el_regress_ab(&launching.ask, set));
    if (set->blocks == 0) return EL_OK;
    EL_TRY(el_program_save(set, el_launching_name(options), dir));
    return r->csv[0] ? el_regress_write_csv(set, options->train.seed, r->csv) : EL_OK;
}

/* `dir`: where --from's launches go, as the run that is judged. */
static enum el_status read_runs(const struct el_options *options, struct el_regress_set *set, const char *dir)
{
    const struct el_regress_options *r = &options->regress;
    if (r->from[0]) {
        struct el_regress_set launched = {0};
        struct el_regress_launching launching;
        el_launching_begin(options, &launching);
        enum el_status status = el_launching_program(&launching, options, dir, &launched);
        el_regress_free(&launched);
        if (status != EL_OK || el_runner_interrupted()) return status;
    }
    EL_TRY(el_regress_dirs(r->baseline, r->from[0] ? dir : r->current, r->from[0] ? "" : r->metrics, stderr, set));
    if (r->from[0]) snprintf(set->head_name, sizeof set->head_name, "%s", r->from);
    el_utf8_printable(set->head_name);
    set->last_analysis = true;
    el_regress_judge(set);
    return EL_OK;
}

/* Every form that was asked for, and the record. */
static enum el_status write_files(const struct el_options *options, const struct el_regress_set *set,
                                  const struct el_store *store, bool added, int exit_status)
{
    const struct el_regress_options *r = &options->regress;
    char path[EL_PATH_BYTES];
    json_t *document = el_regress_json(set);
    if (!document) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what was compared");
    json_object_set_new(document, "exit_status", json_integer(exit_status));
    json_object_set_new(document, "added", json_boolean(added));
    json_object_set_new(document, "interrupted", json_boolean(el_runner_interrupted()));
    json_object_set_new(document, "options", el_options_echo(EL_CMD_REGRESS, options));
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

/* Keeps the run that was judged, unless it is worse or cannot be read: so a store fills from the first run on. */
static enum el_status add_to_store(const struct el_options *options, const struct el_regress_set *set, const char *dir,
                                   bool *added_p)
{
    enum el_regress_exit outcome = el_regress_outcome(set);
    *added_p = false;
    if (!options->regress.add || outcome == EL_REGRESS_FOUND || outcome == EL_REGRESS_USE || set->new_trials == 0)
        return EL_OK;
    EL_TRY(el_baseline_add(options->regress.baseline, dir, false, false, stderr));
    *added_p = true;
    return EL_OK;
}

static int exit_status_of(const struct el_options *options, const struct el_regress_set *set, bool added)
{
    enum el_regress_exit outcome = el_regress_outcome(set);
    if (outcome == EL_REGRESS_NO_BASELINE && added) return EL_REGRESS_NONE;
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

/* What the exit status does not say. */
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

/* Whatever it is that cannot be made or written: 1 is a regression, and nothing else. */
static int fail_use(enum el_status status)
{
    el_exit_failed(status);
    return EL_EXIT_USE;
}

static int show(const struct el_options *options, const struct el_regress_set *set, const struct el_store *store)
{
    const struct el_regress_options *r = &options->regress;
    const char *run = r->ab[0] ? "" : r->from[0] ? store->dir : r->current;
    bool interrupted = el_runner_interrupted(), added = false;
    enum el_status status = interrupted ? EL_OK : add_to_store(options, set, run, &added);
    int exit_status = interrupted ? EL_EXIT_INTERRUPTED : exit_status_of(options, set, added);
    if (status == EL_OK) status = write_files(options, set, store, added, exit_status);
    if (status != EL_OK) return fail_use(status);
    if (!options->json) {
        el_regress_print(set, stdout);
        print_outcome(options, set, added, stdout);
        el_text_line(stdout, "%s/regress.json", store->dir);
        printf("\n");
        el_regress_print_next(options, set, run, added, stdout);
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
    enum el_status status = el_store_create(options->out, "regress", &store);
    if (status != EL_OK) return fail_use(status);
    set->least_effect = 1 + options->regress.min_effect_pct / 100;
    set->session_effect = 1 + options->regress.session_pct / 100;
    status = ab ? measure(options, set, store.dir) : read_runs(options, set, store.dir);
    int exit_status = EL_EXIT_INTERRUPTED;
    if (status != EL_OK && el_exit_failed(status))
        exit_status = status == EL_ERR_ABSENT && !ab ? EL_REGRESS_NO_BASELINE : EL_EXIT_USE;
    else if (set->blocks > 0 || set->n > 0)
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
