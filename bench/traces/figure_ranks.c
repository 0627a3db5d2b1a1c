/* Where each rank's step goes, as stacked bars. */
#include "bench/base/jvalue.h"
#include "bench/plot/bars.h"
#include "bench/report/report.h"
#include "bench/traces/traces.h"

enum { RANKS_MAX = 64 };

static double part_of(const struct el_bar *bar, const char *name)
{
    return el_json_number(json_object_get(bar->device, "parts_ms"), name);
}

/* As a step goes. */
static const struct el_bar_part parts[] = {{"data", part_of},    {"forward", part_of}, {"backward", part_of},
                                           {"compute", part_of}, {"copies", part_of},  {"optimizer", part_of},
                                           {"pause", part_of},   {"other", part_of},   {"transfer", part_of},
                                           {"wait", part_of},    {NULL, NULL}};

static enum el_status write_ranks(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    (void)figure;
    struct el_bars bars;
    struct el_data_names names = {"", ""};
    const json_t *watched = el_json_at(document, "watch.training.late");
    const json_t *ranks = json_object_get(watched ? watched : json_object_get(document, "job"), "ranks");
    const size_t n = json_array_size(ranks);
    char title[EL_TITLE_BYTES], foot[EL_TITLE_BYTES] = "";
    if (n < 2) return EL_OK;
    json_t *devices = json_array();
    EL_EACH(rank, ranks)
        if (rank_at.i < RANKS_MAX) json_array_append(devices, (json_t *)(uintptr_t)rank);
    json_t *trials = json_pack("[{s:s, s:s, s:i, s:i, s:o}]", "mode", "ranks", "status", "ok", "global_batch", 1,
                               "devices", (int)n, "per_device", devices);
    snprintf(title, sizeof title, "Where the step of each of %zu ranks goes", n);
    if (n > RANKS_MAX) snprintf(foot, sizeof foot, "The first %d of %zu ranks.", RANKS_MAX, n);
    enum el_status status = el_bars_place(trials, true, 0, &bars);
    if (status == EL_OK) {
        for (const struct el_bar_part *part = parts; part->name; part++) {
            bool any = false;
            for (size_t i = 0; i < bars.n; i++) any = any || part_of(&bars.list[i], part->name) > 0;
            if (any) el_data_add_name(names.present, part->name);
        }
        el_bars_labels(&bars, trials, &(struct el_bars_words){title, &names, *foot ? foot : NULL, NULL}, file);
        el_bars_parts(&bars, parts, true, file);
        *any_p = *names.present;
        el_bars_free(&bars);
    }
    json_decref(trials);
    return status;
}

const struct el_figure el_figure_ranks = {.name = "ranks", .write = write_ranks};
