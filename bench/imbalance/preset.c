/* Configurations whose tables people publish or report, as options. */
#include <stdlib.h>
#include <string.h>

#include "bench/imbalance/imbalance.h"
#include "bench/options/options.h"

enum { WORDS_BYTES = 512, ARGUMENTS_MAX = 48, PRESETS_MAX = 16 };

/* A blog's table of TextCNN under DataParallel; docs/study-two-cards.md says what can be concluded from it. */
static const struct el_published two_cards[] = {
    {"dp", 64, 3678, 1833}, {"dp", 128, 3741, 1863}, {"dp", 256, 3821, 1925}, {.mode = NULL}};

static const struct el_imbalance_preset presets[] = {
    /* 280 words: with so long sentences the second card's peaks grow by the published 0.960 MiB a sample. Few steps, as
     * the ledger's peak is the same in each; those of the largest batch take seconds on a core. */
    {.name = "two-cards",
     .reported = "a blog; docs/study-two-cards.md",
     .says = "TextCNN under DataParallel on two GPUs, as nvidia-smi shows it",
     .published = two_cards,
     .words =
         "--modes dp --devices cpu:2 --model textcnn --vocab 400000 --embed 300 --seq 280 --filters 100 --classes 2 "
         "--optimizer adam --zero-grad keep --foreach off --batch 64,128,256 --warmup 1 --steps 2 --min-time 0 "
         "--control none --repeats 1 --timeout 1800 --data dummy"},
    {.name = "outputs",
     .reported = "huggingface/transformers#279; also facebookresearch/DPR#104",
     .says = "4,000 MB on the first of 4 GPUs, 700 MB on each other one, with another model",
     .words = "--model mlp --features 64 --hidden 64 --classes 10000 --optimizer sgd --batch 256,1024,4096 "
              "--data dummy"},
    {.name = "momentum",
     .reported = "facebookresearch/mmf#190",
     .says = "the first GPU holds more than the others, with another model",
     .words = "--model mlp --features 2048 --hidden 2048,2048 --optimizer momentum --batch 64,256 --data dummy"},
    {.name = "adam",
     .reported = "codertimo/BERT-pytorch#10",
     .says = "the first of 4 GPUs holds twice as much as each other one, with another model",
     .words =
         "--model mlp --features 2048 --hidden 2048,2048 --optimizer adam --foreach on --batch 64,256 --data dummy"},
    {.name = NULL},
};

const struct el_imbalance_preset *el_imbalance_presets(void)
{
    return presets;
}

/* NULL where there is none: EL_ERR_INVALID has been said then, with a suggestion. */
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

enum el_status el_imbalance_preset(const char *name, struct el_options *options)
{
    const struct el_imbalance_preset *preset = find(name);
    char text[WORDS_BYTES], command[] = "imbalance", *argv[ARGUMENTS_MAX + 1] = {command}, *rest = NULL;
    int argc = 1;
    if (!preset) return EL_ERR_INVALID;
    el_options_defaults(EL_CMD_IMBALANCE, options);
    snprintf(text, sizeof text, "%s", preset->words);
    for (char *word = strtok_r(text, " ", &rest); word && argc < ARGUMENTS_MAX; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return el_options_parse(EL_CMD_IMBALANCE, argc, argv, options);
}
