/* `evenload explain`: from a mode's step to ddp's; `explain A B`: from one record to another. */
#include <stdio.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/explain/explain.h"
#include "bench/page/page.h"

static void say_compare(const struct el_options *options)
{
    struct el_options next;
    char value[EL_PATH_BYTES], modes[32];
    el_options_defaults(EL_CMD_COMPARE, &next);
    snprintf(modes, sizeof modes, "%s,ddp", options->modes[0]);
    enum el_status status = el_option_set(el_option_of_command(EL_CMD_COMPARE, "modes"), modes, &next);
    for (const struct el_option_row *row = el_option_rows(); row->name && status == EL_OK; row++) {
        const struct el_option_row *theirs = el_option_of_command(EL_CMD_COMPARE, row->name);
        bool ours_too = !strcmp(row->name, "batch") && !el_option_given(options, "batch-per-device");
        if (!(row->commands & EL_CMD_EXPLAIN) || !theirs) continue;
        if (!ours_too && !el_option_given(options, row->name)) continue; /* compare has several batches by default */
        el_option_show(row, options, value, sizeof value);
        if (*value) status = el_option_set(theirs, value, &next);
    }
    printf("\n");
    if (status == EL_OK) el_say_next(EL_CMD_COMPARE, &next, "    (memory and communication of both)");
}

static enum el_status measure(const struct el_options *options, const struct el_trial_set *set, int *exit_status_p)
{
    struct el_store store = {.locked = false};
    json_t *samples = NULL;
    el_runner_catch_signals();
    enum el_status status = el_store_create(options->out, "explain", &store);
    if (status == EL_OK) status = el_store_save_command(&store, EL_CMD_EXPLAIN, options);
    if (status == EL_OK) status = el_explain_measure(options, set, &store, &samples);
    if (!samples) el_store_forget(&store); /* the rest cannot be resumed */
    if (status == EL_OK && !samples) *exit_status_p = el_exit_interrupted();
    if (status == EL_OK && samples) {
        json_t *document = el_explain_document(&set->trials[0], samples);
        status =
            document ? el_printed_show("explain", options, store.dir, document) : el_fail_errno("what explains a step");
        if (status == EL_OK && !options->json) say_compare(options);
        json_decref(document);
    }
    json_decref(samples);
    return status;
}

/* Of run's options, those that explain has too. */
static void keep_explains(const char *words, char *text, size_t bytes)
{
    text[0] = 0;
    for (const char *at = words, *next; *at; at = next) {
        next = strstr(at + 1, " --");
        if (!next) next = at + strlen(at);
        char name[64];
        snprintf(name, sizeof name, "%s", at + strspn(at, " -"));
        name[strcspn(name, " ")] = 0;
        if (el_option_of_command(EL_CMD_EXPLAIN, name)) el_text_append(text, bytes, "%.*s", (int)(next - at), at);
    }
}

/* Both again for more certainty, else the second one device by device. */
static void say_next(const json_t *document, const struct el_side *b)
{
    static const char run_dp[] = "evenload run --mode dp";
    const char *dp = el_json_text(document, "a.command", "");
    const char *slash = strrchr(b->record, '/'), *command = el_json_text(document, "b.command", "");
    char dir[EL_PATH_BYTES], word[EL_WORD_BYTES], kept[2 * EL_PATH_BYTES];
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - b->record) : 1, slash ? b->record : ".");
    printf("\n");
    if (!strncmp(dp, run_dp, strlen(run_dp)) && el_json_is(document, "b.mode", "ddp")) {
        keep_explains(dp + strlen(run_dp), kept, sizeof kept);
        el_text_line(stdout, "Next: %s explain%s    (dp's step, cause by cause)", el_program_word(), kept);
    } else if (el_json_is(document, "b.mode", "watch")) {
        el_text_line(stdout, "Next: %s compare a='CMD' b='CMD'    (both in turns: for intervals)", el_program_word());
    } else if (*command && el_json_text(document, "ci_reason", NULL))
        el_text_line(stdout, "Next: %s --repeats 5    (and A so too: for intervals)", command);
    else
        el_text_line(stdout, "Next: %s report %s", el_program_word(), el_shell_word(dir, word, sizeof word));
}

static enum el_status show_difference(const struct el_options *options, struct el_side *a, struct el_side *b)
{
    struct el_store store = {.locked = false};
    EL_TRY(el_sides_check(a, b));
    EL_TRY(el_store_create(options->out, "explain", &store));
    json_t *document = el_difference_document(a, b);
    enum el_status status = document ? el_printed_show("explain", options, store.dir, document)
                                     : el_fail_errno("the difference of two records");
    if (status == EL_OK && !options->json) say_next(document, b);
    if (status != EL_OK) el_store_discard(&store);
    json_decref(document);
    return status;
}

static enum el_status explain_records(const struct el_options *options)
{
    struct el_side a, b;
    if (!options->other[0] && el_side_open(options->dir, &a) == EL_ERR_IO) return EL_ERR_IO;
    el_side_close(&a);
    if (!options->other[0])
        return el_fail(EL_ERR_INVALID,
                       "explain: %s needs a second record to compare with: give two, or none to measure what makes "
                       "dp slower than ddp",
                       options->dir);
    EL_TRY(el_options_check_records_alone("explain", options));
    enum el_status status = el_side_open(options->dir, &a);
    if (status == EL_OK) status = el_side_open(options->other, &b);
    if (status == EL_OK) status = show_difference(options, &a, &b);
    el_side_close(&a);
    el_side_close(&b);
    return status;
}

enum el_status el_cmd_explain(struct el_options *options, int *exit_status_p)
{
    struct el_trial_set set;
    if (options->dir[0]) return explain_records(options);
    EL_TRY(el_explain_resolve(options, &set));
    enum el_status status = measure(options, &set, exit_status_p);
    el_trials_free(&set);
    return status;
}
