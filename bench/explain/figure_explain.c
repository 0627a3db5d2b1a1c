/* The figure of `explain`: a waterfall from dp's step down to ddp's, with the interval of each part. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/explain/explain.h"

enum { BARS = EL_DP_FIXES + 3, WIDTH_IN_BARS = 12 };

struct bar {
    const char *name, *kind; /* "step", "saved" or "added": by its colour */
    double from, to;
    double value; /* as its label has it */
    const json_t *interval;
};

static struct bar step_bar(const json_t *document, size_t v, const char *name)
{
    const json_t *step = json_array_get(json_object_get(document, "steps"), v);
    double ms = el_json_number(step, "step_ms");
    return (struct bar){name, "step", 0, ms, ms, json_object_get(step, "step_ci95")};
}

/* From the step before to the one after. */
static struct bar part_bar(const json_t *part, const char *name, double from)
{
    double ms = el_json_number(part, "ms");
    return (struct bar){name, ms < 0 ? "added" : "saved", from, from - ms, ms, json_object_get(part, "ci95")};
}

static void take_bars(const json_t *document, struct bar bars[BARS])
{
    const json_t *causes = json_object_get(document, "causes");
    int n = 0;
    bars[n++] = step_bar(document, 0, "dp");
    double at = bars[0].to;
    for (size_t c = 0; c < EL_DP_FIXES; c++, n++) {
        const json_t *cause = json_array_get(causes, c);
        bars[n] = part_bar(cause, el_json_text(cause, "cause", "?"), at);
        at = bars[n].to;
    }
    bars[n] = part_bar(json_object_get(document, "rest"), "rest", at);
    bars[n + 1] = step_bar(document, EL_EXPLAIN_DDP, "ddp");
}

/* Where the axis begins, so that small parts of a long step are seen, and where it ends. */
static void find_extent(const struct bar bars[BARS], double *low_p, double *high_p)
{
    double low = INFINITY, high = 0;
    for (int i = 0; i < BARS; i++) {
        double half = (el_json_number(bars[i].interval, "1") - el_json_number(bars[i].interval, "0")) / 2;
        low = fmin(low, bars[i].to - (half > 0 ? half : 0));
        high = fmax(high, fmax(bars[i].from, bars[i].to) + (half > 0 ? half : 0));
    }
    *low_p = fmax(0, low - 0.35 * (high - low));
    if (*low_p < 0.3 * high) *low_p = 0;
    *high_p = high + 0.16 * (high - *low_p);
}

/* The whisker is the part's interval, at the end to which it goes. */
static void put_bar(const struct bar *bar, int place, double low, FILE *file)
{
    char text[EL_FIGURE_BYTES];
    double width = el_json_number(bar->interval, "1") - el_json_number(bar->interval, "0"),
           half = width > 0 ? width / 2 : 0;
    fprintf(file, "%d\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%s%s\t%s\t%s\n", place + 1, fmax(low, fmin(bar->from, bar->to)),
            fmax(bar->from, bar->to), bar->to - half, bar->to + half, fmax(bar->from, bar->to) + half,
            bar->from > 0 && bar->value > 0 ? "-"
            : bar->from > 0                 ? "+"
                                            : "",
            el_text_figure(fabs(bar->value), text), el_data_word(bar->name).text, bar->kind);
}

static enum el_status write_explain(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    (void)figure;
    struct bar bars[BARS];
    double low, high;
    char title[EL_TITLE_BYTES];
    take_bars(document, bars);
    if (!(bars[0].to > 0)) return EL_OK;
    find_extent(bars, &low, &high);
    snprintf(title, sizeof title, "From dp's step to ddp's: %s, batch %.0f on %.0f devices",
             el_data_label(el_json_text(document, "model", "?")).text, el_json_number(document, "global_batch"),
             (double)json_array_size(json_object_get(document, "devices")));
    el_data_about(
        file,
        &(struct el_data_about){title, NULL, BARS + 1, WIDTH_IN_BARS, low > 0 ? "the axis does not begin at 0" : NULL},
        ", lowest, highest ms");
    fprintf(file, "\t%.6g\t%.6g\n", low, high);
    el_data_block(file, "place, lower end, upper end, whisker from, to, of the label, label, name, kind", "bars");
    for (int i = 0; i < BARS; i++) put_bar(&bars[i], i, low, file);
    fputs("?\t?\t?\t?\t?\t?\t_\t_\t_\n", file);
    *any_p = true;
    return EL_OK;
}

const struct el_figure el_figure_explain = {.name = "explain", .write = write_explain};
