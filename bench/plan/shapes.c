/* A model's sizes from its number of parameters. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plan/plan.h"

static const double NEAR = 0.15;
/* GPT-2's vocabulary, filled up so that devices can divide it, as Megatron-LM does; GPT-3's context. */
static const int64_t VOCAB = 50304, SEQ = 2048;

/* GPT-3's: Brown et al., 2020, table 2.1, but for what does not divide there (heads of 1.3B, the width of 13B). OPT's:
 * Zhang et al., 2022. Llama's: Touvron et al., 2023. MT-NLG: Smith et al., 2022. */
static const struct shape {
    const char *name;
    int64_t layers, embed, heads;
} shapes[] = {{"GPT-3 125M", 12, 768, 12},   {"GPT-3 350M", 24, 1024, 16},    {"GPT-3 760M", 24, 1536, 16},
              {"GPT-3 1.3B", 24, 2048, 16},  {"GPT-3 2.7B", 32, 2560, 32},    {"GPT-3 6.7B", 32, 4096, 32},
              {"GPT-3 13B", 40, 5120, 40},   {"OPT 30B", 48, 7168, 56},       {"Llama 70B", 80, 8192, 64},
              {"GPT-3 175B", 96, 12288, 96}, {"MT-NLG 530B", 105, 20480, 128}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/* "6.7B": a number, at most with a letter. */
static enum el_status read_number(const char *text, double *number_p)
{
    static const char letters[] = "KMBT";
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    const char *letter = *end ? strchr(letters, *end & ~0x20) : NULL;
    if (letter) number *= pow(1000, (double)(letter - letters) + 1);
    if (errno || end == text || (*end && (!letter || end[1])) || !(number >= 1e6 && number <= 1e13))
        return el_fail(EL_ERR_INVALID, "--params %.40s: must be a number of parameters from 1M to 10T, like 7B", text);
    *number_p = number;
    return EL_OK;
}

static double block_count(double embed)
{
    return 12 * embed * embed + 13 * embed;
}

/* Of the whole model. */
static double count(const struct shape *shape, double vocab, double seq)
{
    const double embed = (double)shape->embed;
    return (double)shape->layers * block_count(embed) + (vocab + seq + 2) * embed;
}

static int64_t set_if_not_given(struct el_model_config *model, const char *name, int64_t value)
{
    if (!el_model_values(model, name)) el_model_set(model, name, &value, 1);
    return el_model_size(model, name);
}

enum el_status el_plan_shape(const char *params, struct el_model_config *model, char words[EL_PLAN_SHAPE_BYTES])
{
    double wanted = 0;
    if (!el_model_size_row(el_model_find(model->name), "heads"))
        return el_fail(EL_ERR_INVALID, "--params: model %s has no layers to choose by it: leave it out", model->name);
    EL_TRY(read_number(params, &wanted));
    const double vocab = (double)set_if_not_given(model, "vocab", VOCAB),
                 seq = (double)set_if_not_given(model, "seq", SEQ);
    struct shape shape = shapes[0];
    for (int i = 1; i < N_SHAPES; i++)
        if (fabs(log(count(&shapes[i], vocab, seq) / wanted)) < fabs(log(count(&shape, vocab, seq) / wanted)))
            shape = shapes[i];
    const bool near = fabs(count(&shape, vocab, seq) / wanted - 1) <= NEAR;
    if (!near) {
        const double embed = (double)shape.embed;
        shape.layers = llround((wanted - (vocab + seq + 2) * embed) / block_count(embed));
    }
    if (shape.layers < 1 || shape.layers > 1000)
        return el_fail(EL_ERR_INVALID,
                       "--params %.40s: no shape is near that (125M to 530B): give --layers, --embed and --heads",
                       params);
    set_if_not_given(model, "layers", shape.layers);
    set_if_not_given(model, "embed", shape.embed);
    set_if_not_given(model, "heads", shape.heads);
    snprintf(words, EL_PLAN_SHAPE_BYTES, "%s %s", near ? "as" : "as wide as", shape.name);
    return EL_OK;
}
