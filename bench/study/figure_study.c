/* The rate of each command of a study, with its interval and its ratio to the first. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/plot/bars.h"
#include "bench/study/study.h"

static const char *rate_name(const json_t *study)
{
    return el_json_highest(json_object_get(study, "rows"), "samples_per_s") > 0 ? "samples_per_s" : "steps_per_s";
}

static double rate_of(const struct el_bar *bar, const char *name)
{
    (void)name;
    return el_json_number(bar->trial, "rate");
}

static const struct el_bar_part parts[] = {{"step", rate_of}, {NULL, NULL}};

static json_t *bars_of(const json_t *study)
{
    json_t *list = json_array();
    EL_EACH(row, json_object_get(study, "rows"))
        json_array_append_new(list, el_json_of(EL_KEY("mode", el_json_text(row, "name", "?")), EL_KEY("status", "ok"),
                                               EL_KEY("global_batch", 1),
                                               EL_KEY("rate", el_json_number(row, rate_name(study))),
                                               EL_KEY("row", json_incref((json_t *)(uintptr_t)row))));
    return list;
}

static enum el_status write_study(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    (void)figure;
    const json_t *study = json_object_get(document, "study");
    struct el_bars bars;
    struct el_data_names names = {"", ""};
    if (!study) return EL_OK;
    json_t *list = bars_of(study);
    enum el_status status = el_bars_place(list, false, 0, &bars);
    if (status == EL_OK) {
        const bool scale = el_json_is(study, "kind", "scale");
        el_bars_labels(&bars, list,
                       &(struct el_bars_words){scale ? "Rate of a training by number of devices" : "Rate of trainings",
                                               &names, NULL, NULL},
                       file);
        el_bars_parts(&bars, parts, false, file);
        el_data_block(file, "x, low, high", "whiskers");
        fputs("0\t0\t0\n", file); /* left of the axis: a block is never empty */
        for (size_t i = 0; i < bars.n; i++) {
            const double low = el_json_number(bars.list[i].trial, "row.ci95.0");
            const double high = el_json_number(bars.list[i].trial, "row.ci95.1");
            if (low > 0) fprintf(file, "%g\t%.6g\t%.6g\n", bars.list[i].x, low, high);
        }
        el_data_block(file, "x, top, ratio to the first, position", "ratios");
        for (size_t i = 0; i < bars.n; i++) {
            char figure_text[EL_FIGURE_BYTES];
            const double high = el_json_number(bars.list[i].trial, "row.ci95.1");
            fprintf(file, "%g\t%.6g\tx%s\t%zu\n", bars.list[i].x, fmax(high, rate_of(&bars.list[i], "")),
                    el_text_figure(el_json_number(bars.list[i].trial, "row.speedup"), figure_text), i);
        }
        el_data_block(file, "what is counted", "unit");
        fprintf(file, "%s\n", rate_name(study)[1] == 'a' ? "samples" : "steps");
        *any_p = bars.n > 1;
        el_bars_free(&bars);
    }
    json_decref(list);
    return status;
}

const struct el_figure el_figure_study = {.name = "study", .write = write_study};
