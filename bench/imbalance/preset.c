/* Configurations whose tables people publish or report, as options. The first is the study's candidate, taken from
 * there, so that both show the same. */
#include <stdlib.h>
#include <string.h>

#include "bench/imbalance/imbalance.h"
#include "bench/options/options.h"
#include "bench/study/study.h"

enum { WORDS_BYTES = 256, ARGUMENTS_MAX = 32, PRESETS_MAX = 16 };

static const struct el_imbalance_preset presets[] = {
    {.name = "two-cards",
     .summary = "TextCNN under DataParallel with Adam: the published table of two cards",
     .reported = "docs/study-two-cards.md",
     .words = NULL},
    {.name = "outputs",
     .summary = "many classes: outputs are gathered on the first card, and grow with the batch",
     .reported = "facebookresearch/DPR#104, huggingface/transformers#279",
     .words = "--model mlp --features 64 --hidden 64 --classes 10000 --optimizer sgd --batch 256,1024,4096 "
              "--data dummy"},
    {.name = "momentum",
     .summary = "many parameters, SGD with momentum: the first card holds two copies more",
     .reported = "facebookresearch/mmf#190",
     .words = "--model mlp --features 2048 --hidden 2048,2048 --optimizer momentum --batch 64,256 --data dummy"},
    {.name = "adam",
     .summary = "the same parameters with Adam: the first card holds three copies more",
     .reported = "codertimo/BERT-pytorch#10",
     .words =
         "--model mlp --features 2048 --hidden 2048,2048 --optimizer adam --foreach on --batch 64,256 --data dummy"},
    {.name = NULL},
};

const struct el_imbalance_preset *el_imbalance_presets(void)
{
    return presets;
}

/* NULL where there is none: then the failure has been said. */
static const struct el_imbalance_preset *find(const char *name)
{
    const char *names[PRESETS_MAX + 1] = {NULL};
    for (int i = 0; i < PRESETS_MAX && presets[i].name; i++) {
        names[i] = presets[i].name;
        if (!strcmp(name, presets[i].name)) return &presets[i];
    }
    el_fail_unknown("preset", name, names);
    return NULL;
}

/* The devices stay the user's to choose: the study's own two are what comes of naming none. */
static enum el_status set_study(struct el_options *options)
{
    struct el_study *study = calloc(1, sizeof *study);
    struct el_options *own = calloc(1, sizeof *own);
    enum el_status status = study && own ? EL_OK : el_fail_errno("a preset");
    if (status == EL_OK) status = el_study_begin(study);
    if (status == EL_OK) status = el_study_on(study, own);
    if (status == EL_OK) status = el_study_fit(study);
    if (status == EL_OK) el_study_options(study, own, options);
    free(own);
    free(study);
    return status;
}

static enum el_status set_words(const char *words, struct el_options *options)
{
    char text[WORDS_BYTES], command[] = "imbalance", *argv[ARGUMENTS_MAX + 1] = {command}, *rest = NULL;
    int argc = 1;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok_r(text, " ", &rest); word && argc < ARGUMENTS_MAX; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return el_options_parse(EL_CMD_IMBALANCE, argc, argv, options);
}

enum el_status el_imbalance_preset(const char *name, struct el_options *options)
{
    const struct el_imbalance_preset *preset = find(name);
    if (!preset) return EL_ERR_INVALID;
    el_options_defaults(EL_CMD_IMBALANCE, options);
    return preset->words ? set_words(preset->words, options) : set_study(options);
}
