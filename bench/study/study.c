/* Launches a study's commands in turns. */
#include "bench/study/study.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/program.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/machine/host.h"
#include "bench/options/options.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/watch/late.h"
#include "bench/watch/watch.h"
#include "runtime/base/hash.h"

#define INTERVAL_S 0.1
#define PLAN       "study.json"

struct study {
    const struct el_options *options;
    const char *kind;
    char command[EL_STUDY_WORDS_BYTES]; /* of scale */
    struct el_study_row rows[EL_STUDY_ROWS_MAX];
    int n;
    struct el_store store;
    json_t *launches; /* [row][repeat]; null: missing */
    bool interrupted;
};

/* ---- what there is to launch ---- */

/* Each {devices} and {batch} replaced. */
static enum el_status fill(const char *word, int devices, int64_t batch, char *text, size_t bytes)
{
    size_t used = strlen(text);
    for (const char *at = word; *at && used + 24 < bytes; used = strlen(text)) {
        if (!strncmp(at, "{devices}", 9)) {
            snprintf(text + used, bytes - used, "%d", devices);
            at += 9;
        } else if (!strncmp(at, "{batch}", 7)) {
            if (batch < 1)
                return el_fail(EL_ERR_INVALID, "{batch}: of what? give --batch N, of all devices together, or "
                                               "--batch-per-device N");
            snprintf(text + used, bytes - used, "%" PRId64, batch);
            at += 7;
        } else {
            snprintf(text + used, bytes - used, "%c", *at++);
        }
    }
    return used + 24 < bytes ? EL_OK : el_fail(EL_ERR_INVALID, "the command is too long");
}

static enum el_status add_row(struct study *study, const char *name, int devices, const char *command)
{
    struct el_study_row row = {.devices = devices};
    if (study->n == EL_STUDY_ROWS_MAX)
        return el_fail(EL_ERR_INVALID, "more than %d commands are compared", EL_STUDY_ROWS_MAX);
    for (int i = 0; i < study->n; i++)
        if (!strcmp(study->rows[i].name, name)) return el_fail(EL_ERR_INVALID, "two commands are called '%s'", name);
    snprintf(row.name, sizeof row.name, "%s", name);
    const char *const words[] = {"/bin/sh", "-c", command};
    for (int i = 0; i < 3; i++)
        if (!(row.words[i] = strdup(words[i]))) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the commands");
    study->rows[study->n++] = row;
    return EL_OK;
}

static enum el_status add_count(struct study *study, int devices)
{
    const struct el_options *options = study->options;
    char name[EL_STUDY_NAME_BYTES], command[EL_STUDY_WORDS_BYTES] = "";
    const bool whole = el_option_given(options, "batch"), each = el_option_given(options, "batch-per-device");
    const int64_t batch = options->n_batches ? options->batches[0] : 0;
    if (whole && batch % devices)
        return el_fail(EL_ERR_INVALID, "--batch %" PRId64 " cannot be divided among %d devices", batch, devices);
    for (int i = options->command_at; i < options->argc; i++) {
        char text[EL_STUDY_WORDS_BYTES] = "", word[EL_STUDY_WORDS_BYTES];
        EL_TRY(fill(options->argv[i], devices, whole ? batch / devices : each ? batch : 0, text, sizeof text));
        if (!*el_shell_word(text, word, sizeof word) || strlen(command) + strlen(word) + 2 > sizeof command)
            return el_fail(EL_ERR_INVALID, "the command is too long");
        el_text_append(command, sizeof command, "%s%s", *command ? " " : "", word);
    }
    snprintf(name, sizeof name, "devices-%d", devices);
    return add_row(study, name, devices, command);
}

/* NAME='COMMAND' */
static enum el_status add_named(struct study *study, const char *text)
{
    char name[EL_STUDY_NAME_BYTES];
    const size_t n = strcspn(text, "=");
    bool good = n > 0 && n < sizeof name && text[n] && text[n + 1];
    for (size_t i = 0; i < n; i++) good = good && (isalnum((unsigned char)text[i]) || strchr("_-.", text[i]));
    if (!good)
        return el_fail(EL_ERR_INVALID,
                       "'%.60s': a command is given as NAME='COMMAND', its name of up to %d letters, digits, _ - and .",
                       text, EL_STUDY_NAME_BYTES - 1);
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    return add_row(study, name, 0, text + n + 1);
}

/* All other options are of evenload's own training. `more`: " devices ", or " ". */
static enum el_status check_options(const struct el_options *options, const char *more)
{
    static const char mine[] = " repeats seed timeout out json quiet ";
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        char word[64];
        snprintf(word, sizeof word, " %s ", row->name);
        if (el_option_given(options, row->name) && !strstr(mine, word) && !strstr(more, word))
            return el_fail(EL_ERR_INVALID,
                           "--%s is of evenload's own training: with a command of your own there are --repeats, "
                           "--seed, --timeout, --out, --json and --quiet, and for scale --devices, --batch and "
                           "--batch-per-device",
                           row->name);
    }
    return EL_OK;
}

/* ---- a folder, new or begun ---- */

static json_t *plan_json(const struct study *study)
{
    json_t *rows = json_array();
    for (int i = 0; i < study->n; i++)
        json_array_append_new(rows, el_json_of(EL_KEY("name", (const char *)study->rows[i].name),
                                               EL_KEY("command", (const char *)study->rows[i].words[2])));
    return el_json_of(EL_KEY("kind", study->kind), EL_KEY("rows", rows));
}

/* DIR/FOLDER/NAME-K.ENDING */
static void launch_path(const struct study *study, int row, int repeat, const char *folder, const char *ending,
                        char path[EL_PATH_BYTES])
{
    el_store_path(&study->store, path, "%s/%s-%d.%s", folder, study->rows[row].name, repeat + 1, ending);
}

static json_t *launch_at(const struct study *study, int row, int repeat)
{
    return json_array_get(json_array_get(study->launches, (size_t)row), (size_t)repeat);
}

static void put_launch(const struct study *study, int row, int repeat, json_t *launch)
{
    json_array_set_new(json_array_get(study->launches, (size_t)row), (size_t)repeat, launch);
}

static enum el_status open_begun(struct study *study, const json_t *plan)
{
    char path[EL_PATH_BYTES];
    json_t *there = NULL;
    EL_TRY(el_store_open(study->options->out, &study->store));
    EL_TRY(el_store_lock(&study->store));
    el_store_path(&study->store, path, PLAN);
    EL_TRY(el_read_json(path, &there));
    const bool same = json_equal(plan, there);
    json_decref(there);
    if (same) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s holds a study of other commands: give another --out", study->options->out);
}

static enum el_status open_new(struct study *study, const json_t *plan)
{
    char path[EL_PATH_BYTES];
    EL_TRY(el_store_create(study->options->out, study->kind, &study->store));
    el_store_path(&study->store, path, PLAN);
    return el_write_json(plan, path);
}

static void load_launches(struct study *study)
{
    for (int r = 0; r < study->n; r++) {
        json_array_append_new(study->launches, json_array());
        for (int k = 0; k < study->options->repeats; k++) {
            char path[EL_PATH_BYTES];
            json_t *launch = NULL;
            launch_path(study, r, k, "repeats", "json", path);
            if (access(path, R_OK) != 0 || el_read_json(path, &launch) != EL_OK) launch = json_null();
            json_array_append_new(json_array_get(study->launches, (size_t)r), launch);
        }
    }
}

static enum el_status open_folder(struct study *study)
{
    char path[EL_PATH_BYTES + sizeof PLAN];
    snprintf(path, sizeof path, "%s/" PLAN, study->options->out);
    json_t *plan = plan_json(study);
    const bool begun = *study->options->out && access(path, F_OK) == 0;
    enum el_status status = begun ? open_begun(study, plan) : open_new(study, plan);
    json_decref(plan);
    if (status == EL_OK) load_launches(study);
    return status;
}

/* ---- a launch ---- */

static json_t *launch_json(const struct el_watching *watch, int repeat, int order, const char *log)
{
    const int status = el_watch_exit_status(watch);
    char reason[EL_PATH_BYTES + 80] = "";
    json_t *training = el_late_document(&watch->hook);
    if (watch->timed_out)
        snprintf(reason, sizeof reason, "launch %d did not end in time (--timeout): see %s", repeat + 1, log);
    else if (status != 0)
        snprintf(reason, sizeof reason, "launch %d ended with exit status %d: see %s", repeat + 1, status, log);
    else if (!json_is_object(training))
        snprintf(reason, sizeof reason, "launch %d made no step with PyTorch: see %s", repeat + 1, log);
    return el_json_of(EL_KEY("repeat", repeat), EL_KEY("order", order), EL_KEY("status", *reason ? "failed" : "ok"),
                      EL_KEY("reason", el_json_filled(reason)),
                      EL_KEY("seconds", 1e-9 * (double)(watch->end_ns - watch->begin_ns)),
                      EL_KEY("peak_bytes", watch->largest_bytes), EL_KEY("training", training));
}

static enum el_status launch(struct study *study, int row, int repeat, int order)
{
    char log[EL_PATH_BYTES], path[EL_PATH_BYTES];
    struct el_watching *watch;
    struct el_python_hook hook;
    int exit_status;
    launch_path(study, row, repeat, "logs", "log", log);
    launch_path(study, row, repeat, "repeats", "json", path);
    el_python_hook_begin(study->store.dir, "", &hook);
    EL_TRY(el_watch_begin(study->rows[row].words, INTERVAL_S, &hook, log, &watch, &exit_status));
    watch->timeout_s = study->options->timeout_s;
    enum el_status status = el_watch_run(watch, false);
    el_watch_kill(watch, SIGKILL); /* what it left would disturb the next launch */
    study->interrupted = watch->asked_to_end;
    json_t *json = launch_json(watch, repeat, order, log);
    if (status == EL_OK && !study->interrupted) status = el_write_json(json, path);
    if (study->interrupted)
        json_decref(json);
    else
        put_launch(study, row, repeat, json);
    el_python_hook_end(&hook);
    el_watch_release_signals(watch);
    el_watch_end(watch);
    return status;
}

static void say(const struct study *study, int done, int n, int row, int repeat)
{
    if (study->options->quiet) return;
    fprintf(stderr, "[%d/%d] %s, launch %d\n", done, n, study->rows[row].name, repeat + 1);
}

static enum el_status launch_all(struct study *study)
{
    const int repeats = study->options->repeats, n = study->n * repeats;
    struct el_plan_entry *plan = calloc((size_t)n + 1, sizeof *plan);
    enum el_status status = plan ? EL_OK : el_fail_errno("plan of %d launches", n);
    if (plan) el_plan_make(study->n, repeats, study->options->train.seed, plan);
    for (int i = 0; i < n && status == EL_OK && !study->interrupted; i++) {
        if (json_is_object(launch_at(study, plan[i].trial, plan[i].repeat))) continue;
        say(study, i + 1, n, plan[i].trial, plan[i].repeat);
        status = launch(study, plan[i].trial, plan[i].repeat, i);
    }
    free(plan);
    return status;
}

/* ---- the record ---- */

/* The study's row as a trial of a run's document, so that its readers work. */
static json_t *trial_json(const struct el_study_row *row, const json_t *figures, const json_t *launches)
{
    char id[EL_TRIAL_ID_BYTES];
    snprintf(id, sizeof id, "%016" PRIx64, el_hash(EL_HASH_BEGIN, row->words[2], strlen(row->words[2])));
    json_t *last = NULL;
    EL_EACH(launch, launches)
        if (el_json_is(launch, "status", "ok")) last = launch;
    const bool samples = el_json_number(figures, "samples_per_s") > 0;
    json_t *throughput =
        el_json_of(EL_KEY("samples_per_s", el_json_number(figures, "samples_per_s")),
                   EL_KEY("ci95", samples ? json_incref(json_object_get(figures, "ci95")) : json_null()));
    json_t *trial = el_json_of(
        EL_KEY("id", (const char *)id), EL_KEY("mode", (const char *)row->name), EL_KEY("model", "a command"),
        EL_KEY("devices", row->devices ? row->devices : (int)json_array_size(el_json_at(last, "training.ranks"))),
        EL_KEY("procs", (int)json_array_size(el_json_at(last, "training.ranks"))),
        EL_KEY("command", (const char *)row->words[2]), EL_KEY("status", last ? "ok" : "failed"),
        EL_KEY("reason", el_json_text(figures, "reason", NULL)));
    el_json_put_all(trial, EL_KEY("warnings", json_array()), EL_KEY("warning_rules", json_array()),
                    EL_KEY("simulated", false), EL_KEY("step_ms", json_incref(json_object_get(figures, "step_ms"))),
                    EL_KEY("throughput", throughput), EL_KEY("per_device", json_array()),
                    EL_KEY("imbalance", json_null()), EL_KEY("launches", json_incref((json_t *)(uintptr_t)launches)));
    return trial;
}

static json_t *record(const struct study *study)
{
    json_t *trials = json_array();
    json_t *json = el_study_json(study->rows, study->n, study->launches, study->kind, study->command);
    EL_EACH(row, json_object_get(json, "rows"))
        json_array_append_new(trials,
                              trial_json(&study->rows[row_at.i], row, json_array_get(study->launches, row_at.i)));
    json_t *run = el_record_run(el_environment(), trials);
    if (run) el_json_put(run, "study", json);
    return run;
}

static enum el_status show(const struct study *study, int *exit_status_p)
{
    json_t *run = record(study);
    if (!run) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the record");
    enum el_status status = el_store_save_run(&study->store, run);
    *exit_status_p = 0;
    EL_EACH(row, el_json_at(run, "study.rows"))
        if (el_json_number(row, "launches") < 1) *exit_status_p = EL_EXIT_TRIAL;
    if (status == EL_OK && study->options->json) status = el_print_json(run, stdout);
    if (status == EL_OK && !study->options->json) {
        static const struct el_figure *const figure = &el_figure_study;
        char word[EL_WORD_BYTES];
        el_study_print(run, stdout);
        printf("\n");
        el_text_line(stdout, "%s/results.json", study->store.dir);
        el_say_not_drawn(el_plot_figures(&figure, 1, run, study->store.dir, stdout), stdout);
        printf("\n");
        el_text_line(stdout, "Next: %s report %s", el_program_word(),
                     el_shell_word(study->store.dir, word, sizeof word));
    }
    json_decref(run);
    return status;
}

static enum el_status run(struct study *study, int *exit_status_p)
{
    EL_TRY(open_folder(study));
    enum el_status status = launch_all(study);
    if (status == EL_OK && study->interrupted) {
        el_text_line(stderr,
                     "evenload: interrupted; what was measured is kept. Go on with: the same command and --out %s",
                     study->store.dir);
        *exit_status_p = EL_EXIT_INTERRUPTED;
    } else if (status == EL_OK) {
        status = show(study, exit_status_p);
    }
    el_store_discard(&study->store);
    return status;
}

static void end(struct study *study)
{
    for (int i = 0; i < study->n; i++)
        for (int w = 0; w < 3; w++) free(study->rows[i].words[w]);
    json_decref(study->launches);
    free(study);
}

static enum el_status begin(const struct el_options *options, const char *kind, const char *more,
                            struct study **study_p)
{
    EL_TRY(check_options(options, more));
    struct study *study = calloc(1, sizeof *study);
    if (!study) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a study");
    study->options = options;
    study->kind = kind;
    study->launches = json_array();
    *study_p = study;
    return EL_OK;
}

enum el_status el_study_scale(const struct el_options *options, int *exit_status_p)
{
    struct study *study;
    if (options->n_counts == 0 || strcmp(options->counts_backend, "cpu") != 0)
        return el_fail(EL_ERR_INVALID, "scale -- COMMAND needs numbers, --devices 1,2,4, and {devices} in the command");
    EL_TRY(begin(options, "scale", " devices batch batch-per-device ", &study));
    enum el_status status = EL_OK;
    for (int i = options->command_at; i < options->argc; i++)
        el_text_append(study->command, sizeof study->command, "%s%s", *study->command ? " " : "", options->argv[i]);
    if (!strstr(study->command, "{devices}"))
        status = el_fail(EL_ERR_INVALID, "scale: the command has no {devices}, so that it is the same for any number");
    for (int i = 0; i < options->n_counts && status == EL_OK; i++) status = add_count(study, options->counts[i]);
    if (status == EL_OK) status = run(study, exit_status_p);
    end(study);
    return status;
}

enum el_status el_study_compare(const struct el_options *options, int *exit_status_p)
{
    struct study *study;
    EL_TRY(begin(options, "compare", " ", &study));
    enum el_status status = EL_OK;
    for (int i = options->command_at; i < options->argc && status == EL_OK; i++)
        status = add_named(study, options->argv[i]);
    if (status == EL_OK && study->n < 2)
        status =
            el_fail(EL_ERR_INVALID, "compare: one command is compared with none: give NAME='COMMAND' twice or more");
    if (status == EL_OK) status = run(study, exit_status_p);
    end(study);
    return status;
}
