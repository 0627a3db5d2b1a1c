/* Why a study holds or fails: the other way of counting beside the judged one, what the difference is made of, for
 * which parameters it would hold, and what was fitted. Every figure is computed. */
#include <math.h>
#include <string.h>

#include "bench/base/text.h"
#include "bench/study/study.h"

enum { TEXT_BYTES = 1024, ERRORS_BYTES = 128, LAST = EL_STUDY_ROWS - 1 };

static const double mib_bytes = 1 << 20;

static double tag_mib(const struct el_study *study, int row, int card, int tag)
{
    return (double)study->memory[row][card].ledger.at_peak_by_tag[tag] / mib_bytes;
}

/* How much a tag moves main minus second from the first batch to the last. */
static double moved_mib(const struct el_study *study, int tag)
{
    double last_mib = tag_mib(study, LAST, EL_STUDY_MAIN, tag) - tag_mib(study, LAST, EL_STUDY_SECOND, tag);
    return last_mib - (tag_mib(study, 0, EL_STUDY_MAIN, tag) - tag_mib(study, 0, EL_STUDY_SECOND, tag));
}

enum el_tag el_study_moving_tag(const struct el_study *study)
{
    int found = 0;
    for (int t = 1; t < EL_TAG_COUNT; t++)
        if (fabs(moved_mib(study, t)) > fabs(moved_mib(study, found))) found = t;
    return (enum el_tag)found;
}

/* Main minus second, in the unit of `card`. */
static double difference_of(const double card[EL_STUDY_CARDS])
{
    return card[EL_STUDY_MAIN] - card[EL_STUDY_SECOND];
}

static double published_mib(const struct el_study *study, int row)
{
    return difference_of(study->rows[row].card_mib);
}

static double our_mib(const struct el_study_account *account, int row)
{
    return difference_of(account->card_bytes[row]) / mib_bytes;
}

static void put_live(const struct el_study *study, FILE *out)
{
    const struct el_study_account *live = &study->live;
    fprintf(out,
            "\nBeside it, not judged: the peak of live bytes of the same ledgers, MiB\n\n"
            "  %-7s%10s%10s%20s%10s%8s\n",
            "batch", "main", "second", "published, m - s", "ours", "error");
    for (int i = 0; i < EL_STUDY_ROWS; i++)
        fprintf(out, "  %-7lld%10.1f%10.1f%20.0f%10.0f%+6.1f %%\n", (long long)study->rows[i].global_batch,
                live->card_bytes[i][EL_STUDY_MAIN] / mib_bytes, live->card_bytes[i][EL_STUDY_SECOND] / mib_bytes,
                published_mib(study, i), our_mib(live, i), live->difference_error_pct[i]);
    fprintf(out, "\n");
}

/* "1807 (-2.0 %), 1777 (-5.4 %) and 1716 (-9.5 %)" */
static void show_errors(const struct el_study_account *account, char text[ERRORS_BYTES])
{
    *text = 0;
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        size_t used = strlen(text);
        snprintf(text + used, ERRORS_BYTES - used, "%s%.0f (%+.1f %%)",
                 !i          ? ""
                 : i == LAST ? " and "
                             : ", ",
                 our_mib(account, i), account->difference_error_pct[i]);
    }
}

/* nvidia-smi does not show bytes alive. */
static void put_why_not_live(const struct el_study *study, FILE *out)
{
    char text[TEXT_BYTES], errors[ERRORS_BYTES];
    enum el_tag tag = el_study_moving_tag(study);
    const struct el_memory_forecast *last = study->memory[LAST];
    show_errors(&study->live_best, errors);
    snprintf(
        text, sizeof text,
        "nvidia-smi does not show this: a peak is what is alive at one moment, and each card has its own. At batch "
        "%lld the main card's is in %s, with %.1f MiB of %s alive; the second's in %s, with %.1f. So %s counts on one "
        "card and not on the other, and from batch %lld on moves the difference by %+.0f MiB of %+.0f (published "
        "%+.0f). Sentences fitted to this count's own growth have %lld words; the differences are %s then.",
        (long long)study->rows[LAST].global_batch, last[EL_STUDY_MAIN].moment, tag_mib(study, LAST, EL_STUDY_MAIN, tag),
        el_tag_name(tag), last[EL_STUDY_SECOND].moment, tag_mib(study, LAST, EL_STUDY_SECOND, tag), el_tag_name(tag),
        (long long)study->rows[0].global_batch, moved_mib(study, tag),
        our_mib(&study->live, LAST) - our_mib(&study->live, 0), published_mib(study, LAST) - published_mib(study, 0),
        (long long)study->live_best.words, errors);
    el_text_wrap(text, "", "", EL_REPORT_COLUMNS, out);
}

static void put_why(const struct el_study *study, FILE *out)
{
    char text[TEXT_BYTES];
    const struct el_study_account *ours = &study->reserved;
    double copies_mib = (study->copies - 2) * (double)study->param_bytes / mib_bytes;
    snprintf(
        text, sizeof text,
        "main minus second is %d copies of the parameters, %.1f MiB, and %.1f of the batch's inputs and outputs: from "
        "batch %lld "
        "to %lld it moves by %+.1f MiB, the published by %+.0f. The main card grows by %.3f MiB a local sample, as "
        "does the second (%.3f). What the published main card grows beyond that (%.3f) no tag of ours holds; it may "
        "be the allocator's segments or cuDNN's workspaces, neither of which is measured here.",
        study->copies - 2, copies_mib, our_mib(ours, LAST) - copies_mib, (long long)study->rows[0].global_batch,
        (long long)study->rows[LAST].global_batch, our_mib(ours, LAST) - our_mib(ours, 0),
        published_mib(study, LAST) - published_mib(study, 0), ours->growth_mib[EL_STUDY_MAIN],
        ours->growth_mib[EL_STUDY_SECOND], study->lines[EL_STUDY_MAIN].slope);
    fprintf(out, "\n");
    el_text_wrap(text, "Why   ", "      ", EL_REPORT_COLUMNS, out);
}

/* "in it", or "0.8 MiB below it". */
static const char *show_place(const double band[2], double value, char text[EL_FIGURE_BYTES])
{
    if (value < band[0])
        snprintf(text, EL_FIGURE_BYTES, "%.1f MiB below it", band[0] - value);
    else if (value > band[1])
        snprintf(text, EL_FIGURE_BYTES, "%.1f MiB above it", value - band[1]);
    else
        snprintf(text, EL_FIGURE_BYTES, "in it");
    return text;
}

static void put_band(const struct el_study *study, FILE *out)
{
    char text[TEXT_BYTES], words[2][EL_FIGURE_BYTES], vocab[EL_FIGURE_BYTES], places[2][EL_FIGURE_BYTES];
    const struct el_study_band *band = &study->band;
    double line_mib = study->lines[EL_STUDY_MAIN].at_zero - study->lines[EL_STUDY_SECOND].at_zero;
    double run_mib = (double)study->param_bytes / mib_bytes;
    int k = study->copies;
    snprintf(
        text, sizeof text,
        "arithmetic only: all three differences would lie within %.0f %% where (k - 2) P is from %.1f MiB, the "
        "largest published less %.0f %%, to %.1f, the smallest plus %.0f %%: for k = %d P from %.1f to %.1f MiB, %s to "
        "%s words. What is run, %s words and P = %.1f, lies %s. The straight lines at b = 0 give (k - 2) P = %.1f for "
        "any k, and for k = %d P = %.1f, %s. A P taken from the band would be fitted to this very judgement.",
        EL_STUDY_DIFFERENCE_PCT, band->difference_mib[0], EL_STUDY_DIFFERENCE_PCT, band->difference_mib[1],
        EL_STUDY_DIFFERENCE_PCT, k, band->params_mib[0], band->params_mib[1],
        el_text_figure(round(band->words[0]), words[0]), el_text_figure(round(band->words[1]), words[1]),
        el_text_figure((double)study->config.model.vocab, vocab), run_mib,
        show_place(band->params_mib, run_mib, places[0]), line_mib, k, line_mib / (k - 2),
        show_place(band->params_mib, line_mib / (k - 2), places[1]));
    el_text_wrap(text, "Band  ", "      ", EL_REPORT_COLUMNS, out);
}

static void put_fitted(const struct el_study *study, FILE *out)
{
    char text[TEXT_BYTES];
    snprintf(
        text, sizeof text,
        "fitted to the published figures: the candidate (its P of %.1f MiB), the sentences' length, and by it the "
        "second card's growth, so that judgement only shows that the length is a whole number of words; "
        "C is what is left over. Free: how the difference goes with the batch, the main card's growth, and whether "
        "what is left over is a constant.",
        (double)study->param_bytes / mib_bytes);
    el_text_wrap(text, "Fit   ", "      ", EL_REPORT_COLUMNS, out);
}

static void put_verdict(const struct el_study *study, FILE *out)
{
    const struct el_study_account *ours = &study->reserved;
    int n = 0;
    for (int i = 0; i < EL_STUDY_ROWS; i++) n += ours->difference_holds[i];
    fprintf(
        out,
        "\n%s: main minus second within %.0f %% at %d of %d batches; growth of the second card within %.0f %%: %s\n",
        ours->holds ? "PASS" : "FAIL", EL_STUDY_DIFFERENCE_PCT, n, EL_STUDY_ROWS, EL_STUDY_GROWTH_PCT,
        ours->growth_holds ? "yes" : "no");
}

void el_study_explain(const struct el_study *study, FILE *out)
{
    put_live(study, out);
    put_why_not_live(study, out);
    put_why(study, out);
    put_band(study, out);
    put_fitted(study, out);
    put_verdict(study, out);
}
