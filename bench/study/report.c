/* A study on paper: what was published, what each candidate makes of it, ours beside it, the judgement and its reason.
 * The same figures as JSON: json.c. */
#include <math.h>
#include <string.h>

#include "bench/base/text.h"
#include "bench/study/study.h"

enum { TEXT_BYTES = 1024 };

static const char *const optimizer_names[] = {"sgd", "momentum", "adam"};
static const char *const card_names[] = {"main", "second"};

static double mib(double bytes)
{
    return bytes / (1 << 20);
}

static const char *verdict(bool holds)
{
    return holds ? "PASS" : "FAIL";
}

static void put_text(const char *text, FILE *out)
{
    el_text_wrap(text, "", "", EL_REPORT_COLUMNS, out);
}

static double published_difference(const struct el_study *study, int row)
{
    return study->rows[row].card_mib[EL_STUDY_MAIN] - study->rows[row].card_mib[EL_STUDY_SECOND];
}

static void put_published(const struct el_study *study, FILE *out)
{
    fprintf(out, "Published: TextCNN, DataParallel on two GPUs, MiB as nvidia-smi shows them\n\n%-16s%10s%10s%16s\n",
            "  global batch", "main", "second", "main - second");
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        const struct el_study_row *row = &study->rows[i];
        char batch[32];
        snprintf(batch, sizeof batch, "  %lld (2 x %lld)", (long long)row->global_batch,
                 (long long)row->global_batch / EL_STUDY_CARDS);
        fprintf(out, "%-16s%10.0f%10.0f%16.0f\n", batch, row->card_mib[EL_STUDY_MAIN], row->card_mib[EL_STUDY_SECOND],
                published_difference(study, i));
    }
    fprintf(out, "\nStraight lines through them, by least squares, b samples a card (largest distance of a point):\n");
    for (int card = 0; card < EL_STUDY_CARDS; card++) {
        const struct el_study_line *line = &study->lines[card];
        fprintf(out, "  %-6s = %6.1f + %.3f b  (%.1f)\n", card_names[card], line->at_zero, line->slope, line->residual);
    }
}

static void put_candidates(const struct el_study *study, FILE *out)
{
    char words[EL_FIGURE_BYTES];
    fprintf(out,
            "\nEvery candidate: main - second = (k - 2) P and second = C + 2 P at b = 0\n\n"
            "  %-10s%-13s%-11s%3s%9s%9s%16s  %s\n",
            "optimizer", "sums by", "gradients", "k", "P MiB", "C MiB", "words of 300", "possible?");
    for (int i = 0; i < EL_STUDY_CANDIDATES; i++) {
        const struct el_study_candidate *c = &study->candidates[i];
        fprintf(out, "  %-10s%-13s%-11s%3d%9.1f%9.1f%16s  %s\n", optimizer_names[c->optimizer],
                c->peer_copies ? "peer copies" : "NCCL", c->kept ? "kept" : "freed", c->copies, c->params_mib,
                c->context_mib, el_text_figure(round(c->words), words), el_study_credible(c));
    }
    fprintf(out, "\n");
}

/* "5 of 12 stay possible ..." */
static void put_identified(const struct el_study *study, FILE *out)
{
    char text[TEXT_BYTES];
    double low_mib = INFINITY, high_mib = 0;
    bool optimizers[3] = {false};
    int n = 0, n_optimizers = 0;
    for (int i = 0; i < EL_STUDY_CANDIDATES; i++) {
        const struct el_study_candidate *c = &study->candidates[i];
        if (!el_study_possible(c)) continue;
        n++;
        n_optimizers += !optimizers[c->optimizer];
        optimizers[c->optimizer] = true;
        low_mib = fmin(low_mib, c->params_mib);
        high_mib = fmax(high_mib, c->params_mib);
    }
    snprintf(
        text, sizeof text,
        "%d of %d stay possible, with %d optimizers and P from %.0f to %.0f MiB: the figures alone do not identify "
        "the optimizer. Only a C not above 0 is impossible: bare contexts are reported from %.0f to %.0f MiB "
        "(pytorch#28113: 200 to 700; #49481: 871; #28394: 1,005), and the allocator's segments add to that.",
        n, EL_STUDY_CANDIDATES, n_optimizers, low_mib, high_mib, EL_STUDY_CONTEXT_LOW_MIB, EL_STUDY_CONTEXT_HIGH_MIB);
    put_text(text, out);
}

static void put_ours(const struct el_study *study, FILE *out)
{
    const struct el_model_config *model = &study->config.model;
    const struct el_study_account *ours = &study->reserved;
    char vocab[EL_FIGURE_BYTES], devices[EL_FIGURE_BYTES * 2];
    fprintf(out,
            "\nOurs, %s: dp on %s, adam, gradients kept, %s words of %lld (P = %.1f MiB),\n"
            "sentences of %lld words (fitted)\n\n",
            study->measured ? "measured" : "predicted", el_study_devices(study, devices, sizeof devices),
            el_text_figure((double)model->vocab, vocab), (long long)model->embed, mib((double)study->param_bytes),
            (long long)ours->words);
    fprintf(out, "  %-5s%33s%33s%34s\n  %-5s%12s%10s%11s%12s%10s%11s%11s%8s%9s\n", "", "main card, MiB",
            "second card, MiB", "main - second, MiB", "batch", "nvidia-smi", "reserved", "unattrib.", "nvidia-smi",
            "reserved", "unattrib.", "published", "ours", "error");
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        fprintf(out, "  %-5lld", (long long)study->rows[i].global_batch);
        for (int card = 0; card < EL_STUDY_CARDS; card++)
            fprintf(out, "%12.0f%10.1f%11.1f", study->rows[i].card_mib[card], mib(ours->card_bytes[i][card]),
                    study->unattributed_mib[i][card]);
        fprintf(out, "%11.0f%8.0f%+7.1f %%  %s\n", published_difference(study, i),
                mib(ours->card_bytes[i][EL_STUDY_MAIN] - ours->card_bytes[i][EL_STUDY_SECOND]),
                ours->difference_error_pct[i], verdict(ours->difference_holds[i]));
    }
}

static void put_growth(const struct el_study *study, FILE *out)
{
    const struct el_study_account *ours = &study->reserved;
    fprintf(out, "\n  growth a local sample, MiB   published      ours     error\n");
    for (int card = EL_STUDY_SECOND; card >= EL_STUDY_MAIN; card--)
        fprintf(out, "    %-25s%11.3f%10.3f%+8.1f %%  %s\n", card_names[card], study->lines[card].slope,
                ours->growth_mib[card], ours->growth_error_pct[card],
                card == EL_STUDY_MAIN ? "not judged" : verdict(ours->growth_holds));
}

/* Smallest and largest of one card, or of both where `card` is EL_STUDY_CARDS. */
static void range_of(const struct el_study *study, int card, double *low_p, double *high_p)
{
    *low_p = INFINITY, *high_p = -INFINITY;
    for (int i = 0; i < EL_STUDY_ROWS; i++)
        for (int c = 0; c < EL_STUDY_CARDS; c++) {
            if (card != EL_STUDY_CARDS && c != card) continue;
            *low_p = fmin(*low_p, study->unattributed_mib[i][c]);
            *high_p = fmax(*high_p, study->unattributed_mib[i][c]);
        }
}

static void put_reserved(FILE *out)
{
    fprintf(out, "\n");
    put_text(
        "Reserved: the sum of each tag's own peak, what a caching allocator ends up with. Compare it, not the peak of "
        "live bytes, with nvidia-smi, which shows what the allocator has taken from the card and keeps when "
        "tensors are freed. Workspace is left out: it depends on the kernel library.",
        out);
}

static void put_unattributed(const struct el_study *study, FILE *out)
{
    char text[TEXT_BYTES];
    double main[2], second[2], both[2];
    range_of(study, EL_STUDY_MAIN, &main[0], &main[1]);
    range_of(study, EL_STUDY_SECOND, &second[0], &second[1]);
    range_of(study, EL_STUDY_CARDS, &both[0], &both[1]);
    snprintf(text, sizeof text,
             "Unattributed: published minus reserved, that is context, cuDNN's workspaces, the allocator's "
             "rounding and fragmentation. A context would be a constant. Over the batches it spreads by %.1f MiB on "
             "the second "
             "card (%.0f "
             "to %.0f) and by %.0f on the main card (%.0f to %.0f); over both cards by %.0f.",
             second[1] - second[0], second[0], second[1], main[1] - main[0], main[0], main[1], both[1] - both[0]);
    fprintf(out, "\n");
    put_text(text, out);
}

void el_study_print(const struct el_study *study, FILE *out)
{
    put_published(study, out);
    put_candidates(study, out);
    put_identified(study, out);
    put_ours(study, out);
    put_growth(study, out);
    put_reserved(out);
    put_unattributed(study, out);
    el_study_print_held(study, out);
    el_study_explain(study, out);
}
