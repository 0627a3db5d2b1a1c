/* The study's candidate as a configuration of ours: its memory by forecast, and the one thing that is fitted, the
 * length of a sentence. Measuring it is run.c's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/options.h"
#include "bench/study/study.h"

/* Published for DataParallel on two GPUs, TextCNN, as nvidia-smi shows it. */
static const struct el_study_row two_cards[EL_STUDY_ROWS] = {
    {.global_batch = 64, .card_mib = {3678, 1833}},
    {.global_batch = 128, .card_mib = {3741, 1863}},
    {.global_batch = 256, .card_mib = {3821, 1925}},
};

/* Two lengths between which memory is a straight line in the words; both are far above the windows. */
enum { SHORT_WORDS = 400, LONG_WORDS = 800 };

/* 400,000 words of 300 numbers and Kim's filters, Adam, gradients kept: the candidate that is run. Few steps: the
 * ledger's peak is the same in each. */
static void choose(struct el_train_config *config)
{
    struct el_model_config *model = &config->model;
    snprintf(config->mode, sizeof config->mode, "dp");
    snprintf(model->name, sizeof model->name, "textcnn");
    model->vocab = 400000, model->embed = 300, model->seq = SHORT_WORDS, model->filters = 100, model->classes = 2;
    config->optimizer = EL_OPT_ADAM;
    config->keep_grads = true;
    config->foreach = EL_FOREACH_OFF; /* PyTorch before 2.0, as kept gradients are */
    config->n_devices = EL_STUDY_CARDS;
    config->global_batch = two_cards[0].global_batch;
    config->warmup = 1, config->steps = 2, config->min_time_s = 0;
    config->control = EL_CONTROL_NONE;
}

/* Whatever the study does not choose is as `compare` has it. */
static enum el_status configure(struct el_train_config *config)
{
    struct el_options *options = calloc(1, sizeof *options);
    if (!options) return el_fail_errno("options");
    el_options_defaults(EL_CMD_COMPARE, options);
    *config = options->train;
    free(options);
    choose(config);
    EL_TRY(el_model_resolve(&config->model));
    return el_train_check(config);
}

/* Bytes of all parameters, f32. */
static enum el_status count_params(const struct el_model_config *model, uint64_t *bytes_p)
{
    struct el_graph *graph;
    uint64_t count = 0;
    EL_TRY(el_model_build(model, &graph));
    for (int p = 0; p < graph->n_params; p++) count += (uint64_t)el_param_count(graph, p);
    el_graph_destroy(graph);
    *bytes_p = count * el_dtype_bytes(EL_F32);
    return EL_OK;
}

enum el_status el_study_begin(struct el_study *study)
{
    const double mib_bytes = 1 << 20;
    memset(study, 0, sizeof *study);
    study->rows = two_cards;
    EL_TRY(configure(&study->config));
    const struct el_model_config *model = &study->config.model;
    EL_TRY(count_params(model, &study->param_bytes));
    double word_mib = (double)model->embed * (double)el_dtype_bytes(EL_F32) / mib_bytes;
    double other_mib = (double)study->param_bytes / mib_bytes - (double)model->vocab * word_mib;
    el_study_lines(study->rows, EL_STUDY_ROWS, study->lines);
    el_study_candidates(study->lines, other_mib, word_mib, study->candidates);
    study->copies = el_study_copies(study->config.optimizer, false, study->config.keep_grads);
    study->band = el_study_band(study->rows, study->copies, other_mib, word_mib);
    static const struct el_options nothing_named;
    return el_study_on(study, &nothing_named);
}

/* All batches with sentences of `words`. */
static enum el_status predict(const struct el_study *study, int64_t words,
                              struct el_memory_forecast memory[EL_STUDY_ROWS][EL_STUDY_CARDS])
{
    struct el_train_config config = study->config;
    const struct el_kernel_table *kernels = el_kernels_cpu();
    /* A GPU's kernels have other workspaces than a CPU's. */
    if (el_study_has_cards(study)) EL_TRY(el_device_gpu_kernels(&kernels));
    config.model.seq = words;
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        config.global_batch = study->rows[i].global_batch;
        EL_TRY(el_train_forecast(&config, kernels, memory[i]));
    }
    return EL_OK;
}

/* What an allocator ends up with that gives nothing back, not even from one tag to another. Scratch is left out: it is
 * the kernel library's, and another's on a GPU. */
static double reserved_bytes(const struct el_ledger *ledger)
{
    double sum = 0;
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (t != EL_TAG_WORKSPACE && t != EL_TAG_PADDING) sum += (double)ledger->peak_by_tag[t];
    return sum;
}

static double live_bytes(const struct el_ledger *ledger)
{
    return (double)ledger->peak_bytes;
}

typedef double counting(const struct el_ledger *ledger);

static void account_for(const struct el_study *study, struct el_memory_forecast memory[EL_STUDY_ROWS][EL_STUDY_CARDS],
                        counting *count, struct el_study_account *account)
{
    for (int i = 0; i < EL_STUDY_ROWS; i++)
        for (int card = 0; card < EL_STUDY_CARDS; card++) account->card_bytes[i][card] = count(&memory[i][card].ledger);
    el_study_compare(study->rows, study->lines, account);
}

static enum el_status account_at(const struct el_study *study, int64_t words, counting *count,
                                 struct el_study_account *account)
{
    struct el_memory_forecast memory[EL_STUDY_ROWS][EL_STUDY_CARDS];
    EL_TRY(predict(study, words, memory));
    account->words = words;
    account_for(study, memory, count, account);
    return EL_OK;
}

/* Two lengths give the bytes of a word and sample; then the whole number of words that comes nearest. */
static enum el_status fit_words(const struct el_study *study, counting *count, struct el_study_account *account)
{
    struct el_study_account at_short, at_long, at;
    EL_TRY(account_at(study, SHORT_WORDS, count, &at_short));
    EL_TRY(account_at(study, LONG_WORDS, count, &at_long));
    double base_mib = at_short.growth_mib[EL_STUDY_SECOND];
    double word_mib = (at_long.growth_mib[EL_STUDY_SECOND] - base_mib) / (LONG_WORDS - SHORT_WORDS);
    double words = SHORT_WORDS + (study->lines[EL_STUDY_SECOND].slope - base_mib) / word_mib;
    if (!(word_mib > 0) || !(words >= 8) || words > 1e6)
        return el_fail(EL_ERR_INTERNAL, "study: no length of sentences gives the second card's growth: %g MiB a word",
                       word_mib);
    for (int64_t near = llround(words) - 1; near <= llround(words) + 1; near++) {
        EL_TRY(account_at(study, near, count, &at));
        bool first = near == llround(words) - 1;
        double error_pct = fabs(at.growth_error_pct[EL_STUDY_SECOND]);
        if (first || error_pct < fabs(account->growth_error_pct[EL_STUDY_SECOND])) *account = at;
    }
    return EL_OK;
}

enum el_status el_study_fit(struct el_study *study)
{
    EL_TRY(fit_words(study, reserved_bytes, &study->reserved));
    EL_TRY(fit_words(study, live_bytes, &study->live_best));
    study->config.model.seq = study->live.words = study->reserved.words;
    return predict(study, study->reserved.words, study->memory);
}

void el_study_judge(struct el_study *study)
{
    account_for(study, study->memory, reserved_bytes, &study->reserved);
    account_for(study, study->memory, live_bytes, &study->live);
    for (int i = 0; i < EL_STUDY_ROWS; i++)
        for (int card = 0; card < EL_STUDY_CARDS; card++)
            study->unattributed_mib[i][card] =
                study->rows[i].card_mib[card] - study->reserved.card_bytes[i][card] / (1 << 20);
}
