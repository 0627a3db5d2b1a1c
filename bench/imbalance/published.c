/* What a preset's source published, beside what is held here: the same figures for --json and for the table. */
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/report/report.h"

enum { COLUMNS = 100 };

#define MIB (1024.0 * 1024)

/* NULL: the trial is not of the published mode and batch on two devices. Peaks are what a caching allocator ends up
 * with, which is what nvidia-smi shows. */
static json_t *row_of(const struct el_published *published, const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    bool same = !strcmp(el_json_text(trial, "mode", ""), published->mode) &&
                el_json_number(trial, "global_batch") == published->batch;
    if (!same || !el_imbalance_has_cards(trial) || json_array_size(devices) != 2) return NULL;
    double first = el_imbalance_highs(json_array_get(devices, 0));
    double second = el_imbalance_highs(json_array_get(devices, 1));
    double told_first = published->first_mib * MIB, told_second = published->second_mib * MIB;
    json_t *row = json_pack("{s:s, s:i}", "mode", published->mode, "global_batch", published->batch);
    el_json_put_all(row, EL_KEY("published_first_bytes", told_first), EL_KEY("published_second_bytes", told_second),
                    EL_KEY("published_difference_bytes", told_first - told_second), EL_KEY("first_bytes", first),
                    EL_KEY("second_bytes", second), EL_KEY("difference_bytes", first - second),
                    EL_KEY("difference_off_pct", 100 * ((first - second) / (told_first - told_second) - 1)));
    return row;
}

json_t *el_imbalance_published(const json_t *run, const char *preset)
{
    const struct el_imbalance_preset *row = el_imbalance_presets();
    const json_t *trials = json_object_get(run, "trials");
    while (row->name && strcmp(row->name, preset ? preset : "") != 0) row++;
    if (!row->name) return json_null();
    json_t *rows = json_array();
    for (const struct el_published *p = row->published; p && p->mode; p++)
        for (size_t i = 0; i < json_array_size(trials); i++) {
            json_t *beside = row_of(p, json_array_get(trials, i));
            if (beside) json_array_append_new(rows, beside);
        }
    return json_pack("{s:s, s:s, s:o}", "source", row->reported, "says", row->says, "rows", rows);
}

void el_imbalance_put_published(const json_t *run, const char *preset, FILE *out, bool colour)
{
    static const struct el_column columns[] = {
        {.head = "published", .width = -9, .path = "mode"},
        EL_COUNT("batch", 5, "global_batch"),
        {.head = "main", .gap = 3, .width = 6, .kind = EL_CELL_MIB, .path = "published_first_bytes"},
        EL_MIB("second", 7, "published_second_bytes"),
        EL_MIB("difference", 11, "published_difference_bytes"),
        {.head = "here main", .gap = 3, .width = 9, .kind = EL_CELL_MIB, .path = "first_bytes"},
        EL_MIB("second", 7, "second_bytes"),
        EL_MIB("difference", 11, "difference_bytes"),
        EL_CHANGE("off by", 9, "difference_off_pct"),
        EL_NO_MORE};
    const struct el_table table = {.columns = columns, .out = out, .colour = colour};
    json_t *published = el_imbalance_published(run, preset);
    const json_t *rows = json_object_get(published, "rows");
    if (json_is_null(published)) return;
    fputc('\n', out);
    if (json_array_size(rows) > 0) el_table_heads(&table, EL_TABLE_BOLD);
    for (size_t i = 0; i < json_array_size(rows); i++) el_table_row(&table, EL_TABLE_PLAIN, json_array_get(rows, i));
    if (json_array_size(rows) > 0) fputc('\n', out);
    el_text_say("", "", COLUMNS, out, "Reported: %s (%s).%s", el_json_text(published, "says", ""),
                el_json_text(published, "source", ""),
                json_array_size(rows) > 0 ? " MiB; here: peaks. What a card holds beside tensors, its context above "
                                            "all, is in the published figures only: compare differences, not ratios."
                                          : "");
    json_decref(published);
}
