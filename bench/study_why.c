/* Why a study holds or fails: the tag that moves the difference, the other way of counting beside it, and what was
 * fitted. Sentences only; every figure is computed. */
#include <math.h>
#include <string.h>

#include "bench/study.h"
#include "bench/text.h"

enum { TEXT_BYTES = 1024, LAST = EL_STUDY_ROWS - 1 };

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

static double difference_mib(const double card[EL_STUDY_CARDS])
{
    return card[EL_STUDY_MAIN] - card[EL_STUDY_SECOND];
}

static void put_moving_tag(const struct el_study *study, FILE *out)
{
    char text[TEXT_BYTES];
    enum el_tag tag = el_study_moving_tag(study);
    const struct el_study_row *rows = study->rows;
    const struct el_memory_forecast *last = study->memory[LAST];
    double published_mib = difference_mib(rows[LAST].card_mib) - difference_mib(rows[0].card_mib);
    double our_mib = difference_mib(study->peak.card_bytes[LAST]) - difference_mib(study->peak.card_bytes[0]);
    snprintf(
        text, sizeof text,
        "From batch %lld to %lld the published difference moves by %+.0f MiB, ours by %+.0f, of which %s by %+.0f. "
        "At batch %lld the main card's peak is in %s, with %.1f MiB of %s alive; the second's is in %s, with %.1f.",
        (long long)rows[0].global_batch, (long long)rows[LAST].global_batch, published_mib, our_mib / mib_bytes,
        el_tag_name(tag), moved_mib(study, tag), (long long)rows[LAST].global_batch, last[EL_STUDY_MAIN].moment,
        tag_mib(study, LAST, EL_STUDY_MAIN, tag), el_tag_name(tag), last[EL_STUDY_SECOND].moment,
        tag_mib(study, LAST, EL_STUDY_SECOND, tag));
    el_text_wrap(text, "Why   ", "      ", EL_REPORT_COLUMNS, out);
}

/* nvidia-smi does not show bytes alive. */
static void put_kept(const struct el_study *study, FILE *out)
{
    char text[TEXT_BYTES], errors[128] = "";
    const struct el_study_account *kept = &study->kept;
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        size_t used = strlen(errors);
        snprintf(errors + used, sizeof errors - used, "%s%.0f (%+.1f %%)", i ? ", " : "",
                 difference_mib(kept->card_bytes[i]) / mib_bytes, kept->difference_error_pct[i]);
    }
    snprintf(
        text, sizeof text,
        "nvidia-smi shows what the allocator holds, and a caching allocator keeps what was freed. Counted that way "
        "(foretold, not judged: each tag's own highest, without the kernels' scratch; sentences of %lld words fit "
        "then) main minus second is %s, and the main card grows by %.3f MiB a local sample, as does the second "
        "(%.3f). What the main card grows beyond that (%.3f published) no tag of ours holds; it may be the "
        "allocator's segments or cuDNN's workspaces, neither of which is measured here.",
        (long long)kept->words, errors, kept->growth_mib[EL_STUDY_MAIN], kept->growth_mib[EL_STUDY_SECOND],
        study->lines[EL_STUDY_MAIN].slope);
    el_text_wrap(text, "      ", "      ", EL_REPORT_COLUMNS, out);
}

static void put_fitted(const struct el_study *study, FILE *out)
{
    char text[TEXT_BYTES];
    snprintf(
        text, sizeof text,
        "fitted to the published figures: the candidate (its P of %.1f MiB), the sentences' length, and by it the "
        "second card's growth, whose judgement therefore tells only that the length is a whole number of words; "
        "C is what is left over. Free: how the difference goes with the batch, the main card's growth, and whether "
        "what is left over is a constant.",
        (double)study->param_bytes / mib_bytes);
    el_text_wrap(text, "Fit   ", "      ", EL_REPORT_COLUMNS, out);
}

static void put_verdict(const struct el_study *study, FILE *out)
{
    const struct el_study_account *peak = &study->peak;
    int n = 0;
    for (int i = 0; i < EL_STUDY_ROWS; i++) n += peak->difference_holds[i];
    fprintf(
        out,
        "\n%s: main minus second within %.0f %% at %d of %d batches; growth of the second card within %.0f %%: %s\n",
        peak->holds ? "PASS" : "FAIL", EL_STUDY_DIFFERENCE_PCT, n, EL_STUDY_ROWS, EL_STUDY_GROWTH_PCT,
        peak->growth_holds ? "yes" : "no");
}

void el_study_explain(const struct el_study *study, FILE *out)
{
    fprintf(out, "\n");
    put_moving_tag(study, out);
    put_kept(study, out);
    put_fitted(study, out);
    put_verdict(study, out);
}
