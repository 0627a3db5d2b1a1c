/* A preset's published figures beside ours: what nvidia-smi showed of two cards, and what an allocator that gives
 * nothing back would have taken for the same training. Only differences are held against each other, since any total
 * can be met by adding a constant. How far it carries: docs/study-two-cards.md. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"

/* What is asked of main minus second, in per cent of the published. */
#define WITHIN_PCT    3.0
#define BYTES_PER_MIB 1048576.0

static json_t *card_of(double published_mib, double peaks_bytes)
{
    double published_bytes = published_mib * BYTES_PER_MIB;
    return json_pack("{s:f, s:f, s:f}", "published_bytes", published_bytes, "peaks_bytes", peaks_bytes, "left_bytes",
                     published_bytes - peaks_bytes);
}

static json_t *row_of(const struct el_published_cards *published, const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    double main_bytes = el_imbalance_highs(json_array_get(devices, 0));
    double second_bytes = el_imbalance_highs(json_array_get(devices, 1)), difference_bytes = main_bytes - second_bytes;
    double published_bytes = (published->main_mib - published->second_mib) * BYTES_PER_MIB;
    double error_pct = 100 * (difference_bytes / published_bytes - 1);
    return json_pack("{s:s, s:I, s:o, s:o, s:{s:f, s:f, s:f, s:b}}", "mode", el_json_text(trial, "mode", "?"),
                     "global_batch", (json_int_t)published->global_batch, "main",
                     card_of(published->main_mib, main_bytes), "second", card_of(published->second_mib, second_bytes),
                     "difference", "published_bytes", published_bytes, "peaks_bytes", difference_bytes, "error_pct",
                     error_pct, "holds", (int)(fabs(error_pct) <= WITHIN_PCT));
}

json_t *el_imbalance_published(const json_t *run, const char *preset)
{
    const json_t *trials = json_object_get(run, "trials");
    const struct el_imbalance_preset *found = preset ? el_imbalance_preset_find(preset) : NULL;
    if (!found || !found->published) return json_null();
    json_t *rows = json_array();
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        bool pair = el_imbalance_has_cards(trial) && json_array_size(json_object_get(trial, "per_device")) == 2;
        for (const struct el_published_cards *p = found->published; pair && p->global_batch; p++)
            if (el_json_number(trial, "global_batch") == (double)p->global_batch)
                json_array_append_new(rows, row_of(p, trial));
    }
    if (json_array_size(rows) > 0)
        return json_pack("{s:s, s:f, s:o}", "source", found->reported, "within_pct", WITHIN_PCT, "rows", rows);
    json_decref(rows);
    return json_null();
}

static void say_holds(const json_t *rows, FILE *out)
{
    char published[EL_FIGURE_BYTES], ours[EL_FIGURE_BYTES];
    double low, high, our_low, our_high;
    int n = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        n += json_is_true(el_json_at(json_array_get(rows, i), "difference.holds"));
    el_json_range(rows, "difference.published_bytes", &low, &high);
    el_json_range(rows, "difference.peaks_bytes", &our_low, &our_high);
    el_text_say("* ", "  ", EL_REPORT_COLUMNS, out,
                "main minus second is within %.0f %% of the published at %d of %zu batches. Between them the published "
                "one varies by %s MiB, ours by %s.",
                WITHIN_PCT, n, json_array_size(rows), el_text_mib(high - low, published),
                el_text_mib(our_high - our_low, ours));
}

static void say_left(const json_t *rows, FILE *out)
{
    static const char *const cards[] = {"main", "second"}, *const paths[] = {"main.left_bytes", "second.left_bytes"};
    char ranges[2][64], from[EL_FIGURE_BYTES], to[EL_FIGURE_BYTES];
    double low, high;
    for (int card = 0; card < 2; card++) {
        el_json_range(rows, paths[card], &low, &high);
        snprintf(ranges[card], sizeof ranges[card], "%s to %s MiB on the %s card", el_text_mib(low, from),
                 el_text_mib(high, to), cards[card]);
    }
    el_text_say("* ", "  ", EL_REPORT_COLUMNS, out,
                "What is left is no tensor of ours: the context, libraries, their workspaces, the allocator's gaps. A "
                "context would be a constant; it is %s, and %s.",
                ranges[1], ranges[0]);
}

void el_imbalance_print_published(const json_t *published, FILE *out, bool colour)
{
    static const struct el_column columns[] = {EL_TEXT("mode", -6, "mode"),
                                               EL_COUNT("batch", 6, "global_batch"),
                                               EL_MIB("published", 11, "main.published_bytes"),
                                               EL_MIB("peaks", 8, "main.peaks_bytes"),
                                               EL_MIB("left", 8, "main.left_bytes"),
                                               EL_MIB("published", 12, "second.published_bytes"),
                                               EL_MIB("peaks", 8, "second.peaks_bytes"),
                                               EL_MIB("left", 8, "second.left_bytes"),
                                               EL_MIB("published", 12, "difference.published_bytes"),
                                               EL_MIB("ours", 8, "difference.peaks_bytes"),
                                               EL_CHANGE("error", 9, "difference.error_pct"),
                                               EL_NO_MORE};
    const struct el_table table = {.columns = columns, .out = out, .colour = colour};
    const json_t *rows = json_object_get(published, "rows");
    if (!json_is_object(published)) return;
    fputc('\n', out);
    el_text_line(out, "Beside what was published (%s), MiB as nvidia-smi shows it; left: published less peaks",
                 el_json_text(published, "source", "?"));
    fputc('\n', out);
    fprintf(out, "%39s%28s%29s\n", "main card", "second card", "main - second");
    el_table_heads(&table, EL_TABLE_BOLD);
    for (size_t i = 0; i < json_array_size(rows); i++) el_table_row(&table, EL_TABLE_PLAIN, json_array_get(rows, i));
    fputc('\n', out);
    say_holds(rows, out);
    say_left(rows, out);
}
