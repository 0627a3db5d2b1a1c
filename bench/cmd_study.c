/* `evenload study NAME`: a published table taken apart, by forecast (--dry-run) or measured. Without a name: the list.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/job/host_memory.h"
#include "bench/record/record.h"
#include "bench/study/study.h"

struct study_row {
    const char *name, *summary;
};

static const struct study_row studies[] = {
    {"two-cards", "DataParallel's TextCNN on two GPUs: what the published memory of both cards shows"},
};

enum { N_STUDIES = sizeof studies / sizeof studies[0] };

static int list_studies(const struct el_options *options)
{
    json_t *list = json_array();
    for (int i = 0; i < N_STUDIES; i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", studies[i].name, "summary", studies[i].summary));
    if (options->json) json_dumpf(list, stdout, JSON_INDENT(1));
    for (int i = 0; i < N_STUDIES && !options->json; i++) printf("%-10s %s\n", studies[i].name, studies[i].summary);
    if (options->json)
        printf("\n");
    else
        printf("\nNext: %s study %s --dry-run\n", program_invocation_name, studies[0].name);
    json_decref(list);
    return el_exit_flush(0);
}

static enum el_status find_study(const char *name)
{
    const char *names[N_STUDIES + 1] = {NULL};
    for (int i = 0; i < N_STUDIES; i++) {
        if (!strcmp(name, studies[i].name)) return EL_OK;
        names[i] = studies[i].name;
    }
    return el_fail_unknown("study", name, names);
}

static enum el_status check_memory(const struct el_study *study, bool quiet)
{
    const double gib_bytes = 1 << 30;
    double need_bytes = el_study_need_bytes(study), free_bytes = el_host_free_bytes("");
    if (free_bytes < need_bytes)
        return el_fail(EL_ERR_ABSENT,
                       "study: the run needs %.1f GiB of memory, %.1f GiB are free here: make room, or give --dry-run, "
                       "which predicts the same",
                       need_bytes / gib_bytes, free_bytes / gib_bytes);
    if (!quiet)
        fprintf(stderr, "memory: %.1f GiB needed, %.1f GiB free\n", need_bytes / gib_bytes, free_bytes / gib_bytes);
    return EL_OK;
}

static enum el_status work(const struct el_options *options, struct el_study *study)
{
    EL_TRY(el_study_begin(study));
    EL_TRY(el_study_on(study, options));
    EL_TRY(el_study_fit(study));
    if (!options->dry_run) {
        /* A card that is too small refuses by itself, and says by how much. */
        if (!el_study_has_cards(study)) EL_TRY(check_memory(study, options->quiet));
        EL_TRY(el_study_run(study, options));
    }
    el_study_judge(study);
    return EL_OK;
}

static enum el_status show(const struct el_options *options, const struct el_study *study)
{
    if (options->json) {
        json_t *document = el_study_json(study);
        enum el_status status = document ? el_print_json(document, stdout) : el_fail_errno("the study's document");
        json_decref(document);
        return status;
    }
    el_study_print(study, stdout);
    if (study->measured) {
        char word[EL_WORD_BYTES];
        printf("\n");
        el_text_line(stdout, "%s/results.json", study->dir);
        el_text_line(stdout, "%s/trials.csv", study->dir);
        printf("\n");
        el_text_line(stdout, "Next: %s plot %s --term", program_invocation_name,
                     el_shell_word(study->dir, word, sizeof word));
    } else if (el_study_has_cards(study))
        printf("\nNext: %s study two-cards --devices cuda:%d,cuda:%d    (the same, measured on the cards)\n",
               program_invocation_name, study->devices[0].index, study->devices[1].index);
    else
        printf("\nNext: %s study two-cards    (the same, measured: about a minute, %.1f GiB)\n",
               program_invocation_name, el_study_need_bytes(study) / (1 << 30));
    return EL_OK;
}

int el_cmd_study(const struct el_options *options, int argc, char **argv)
{
    (void)argc, (void)argv;
    if (!options->dir[0]) return list_studies(options);
    enum el_status status = find_study(options->dir);
    if (status != EL_OK) return el_exit_failed(status);
    struct el_study *study = calloc(1, sizeof *study);
    if (!study) return el_exit_failed(el_fail_errno("a study"));
    status = work(options, study);
    int exit_status = status == EL_OK ? 0 : el_exit_failed(status);
    if (status == EL_OK && el_runner_interrupted()) {
        fprintf(stderr, "evenload: interrupted\n");
        exit_status = EL_EXIT_INTERRUPTED;
    } else if (status == EL_OK) {
        status = show(options, study);
        exit_status =
            status != EL_OK ? el_exit_failed(status) : el_exit_flush(study->reserved.holds ? 0 : EL_EXIT_TRIAL);
    }
    free(study);
    return exit_status;
}
