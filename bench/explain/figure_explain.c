/* A waterfall from one step to another. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/explain/explain.h"

enum { BARS_MAX = 12, WIDTH_IN_BARS = 16 };

struct bar {
    const char *name;
    const char *mode;      /* a step's; NULL: a part */
    double from, to, half; /* half width of the interval around `to`; 0: none */
    bool shown;            /* its interval excludes 0; always in virtual time */
};

struct waterfall {
    struct bar bars[BARS_MAX];
    int n;
    double at;    /* end of the last bar */
    bool virtual; /* no interval is needed */
};

static bool is_virtual(const json_t *document)
{
    return !strncmp(el_json_text(document, "devices.0", ""), "sim", strlen("sim")) ||
           (json_is_true(el_json_at(document, "a.simulated")) && json_is_true(el_json_at(document, "b.simulated")));
}

static double half_of(const json_t *interval)
{
    double width = el_json_number(interval, "1") - el_json_number(interval, "0");
    return width > 0 ? width / 2 : 0;
}

static void add_step(struct waterfall *fall, const char *name, const char *mode, const json_t *step)
{
    fall->at = el_json_number(step, "step_ms");
    fall->bars[fall->n++] = (struct bar){name, mode, 0, fall->at, half_of(json_object_get(step, "step_ci95")), true};
}

static void add_part(struct waterfall *fall, const char *name, const json_t *part, int sign)
{
    const json_t *interval = json_object_get(part, "ci95");
    double to = fall->at + sign * el_json_number(part, "ms");
    bool shown = fall->virtual || el_json_number(interval, "0") > 0 || el_json_number(interval, "1") < 0;
    if (fall->n + 2 > BARS_MAX) return; /* the last place is the last step's */
    fall->bars[fall->n++] = (struct bar){name, NULL, fall->at, to, half_of(interval), shown};
    fall->at = to;
}

static void take_bars(const json_t *document, bool of_causes, struct waterfall *fall)
{
    const json_t *first = el_json_at(document, of_causes ? "steps.0" : "a"),
                 *last = of_causes ? json_array_get(json_object_get(document, "steps"),
                                                    json_array_size(json_object_get(document, "causes")) + 1)
                                   : json_object_get(document, "b");
    add_step(fall, of_causes ? el_json_text(document, "mode", "dp") : "A", el_json_text(first, "mode", "?"), first);
    EL_EACH(part, json_object_get(document, of_causes ? "causes" : "parts"))
        add_part(fall, el_json_text(part, of_causes ? "cause" : "part", "?"), part, of_causes ? -1 : 1);
    add_part(fall, "rest", json_object_get(document, "rest"), of_causes ? -1 : 1);
    add_step(fall, of_causes ? "ddp" : "B", el_json_text(last, "mode", "?"), last);
}

static double top(const struct bar *bar)
{
    return fmax(fmax(bar->from, bar->to), bar->to + bar->half);
}

/* Good: shortens the step; pale: may be chance. */
static const char *kind_of(const struct bar *bar)
{
    if (bar->mode) return "step";
    if (bar->to > bar->from) return bar->shown ? "bad" : "bad_pale";
    return bar->shown ? "good" : "good_pale";
}

static void name_kinds(const struct waterfall *fall, struct el_data_names *kinds)
{
    static const char *const all[] = {"good", "good_pale", "bad", "bad_pale"};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        bool any = false;
        for (int i = 0; i < fall->n; i++)
            any |= !strcmp(kind_of(&fall->bars[i]), all[k]) && fall->bars[i].from != fall->bars[i].to;
        if (any) el_data_add_name(kinds->present, all[k]);
    }
}

static void put_looks(const struct waterfall *fall, FILE *file)
{
    struct el_data_names modes = {"", ""};
    const char *first = fall->bars[0].mode, *last = fall->bars[fall->n - 1].mode;
    el_data_add_name(modes.present, first);
    if (strcmp(first, last) != 0) el_data_add_name(modes.present, last);
    el_data_looks(file, &modes);
}

/* The whisker is the part's interval at its end. */
static void put_bar(const struct bar *bar, int place, bool last, FILE *file)
{
    char text[EL_FIGURE_BYTES];
    double change = bar->to - bar->from;
    fprintf(file, "%d\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%s%s\t%s\t%s", place + 1, fmin(bar->from, bar->to),
            fmax(bar->from, bar->to), bar->to - bar->half, bar->to + bar->half, top(bar),
            bar->mode || change == 0 ? ""
            : change < 0             ? "-"
                                     : "+",
            el_text_figure(fabs(change), text), el_data_word(bar->name).text, kind_of(bar));
    el_data_number(file, last ? NAN : bar->to);
    fprintf(file, "\t%s\n", el_data_word(bar->mode ? bar->mode : "_").text);
}

static void make_title(const json_t *document, bool of_causes, char title[EL_TITLE_BYTES])
{
    const struct el_data_text model = el_data_label(el_json_text(document, "model", "?"));
    double batch = el_json_number(document, "global_batch");
    const char *simulated = is_virtual(document) ? "simulated " : "";
    if (of_causes)
        snprintf(title, EL_TITLE_BYTES, "From %s's step to ddp's: %s, batch %.0f on %.0f %sdevices",
                 el_json_text(document, "mode", "dp"), model.text, batch,
                 (double)json_array_size(json_object_get(document, "devices")), simulated);
    else if (!el_json_text(document, "model", NULL))
        snprintf(title, EL_TITLE_BYTES, "From A to B: a step of the rank that waits least");
    else
        snprintf(title, EL_TITLE_BYTES, "From A (%s) to B (%s): %s, batch %.0f%s",
                 el_data_label(el_json_text(document, "a.mode", "?")).text,
                 el_data_label(el_json_text(document, "b.mode", "?")).text, model.text, batch,
                 *simulated ? ", simulated" : "");
}

static const char *foot_of(const json_t *document, const struct waterfall *fall, bool of_causes)
{
    bool known = json_is_array(el_json_at(document, of_causes ? "whole.ci95" : "parts.0.ci95")), whiskers = false;
    for (int i = 0; i < fall->n; i++) whiskers |= fall->bars[i].half > 0;
    if (!known && !fall->virtual) return "No intervals: all parts are pale, because chance cannot be excluded.";
    return whiskers ? "Error bars: 95 % intervals. Pale: the interval contains 0." : NULL;
}

static enum el_status write_explain(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    (void)figure;
    struct waterfall fall = {.virtual = is_virtual(document)};
    double high = 0;
    struct el_data_names kinds = {"", ""};
    char title[EL_TITLE_BYTES];
    bool of_causes = !el_json_is(document, "kind", "difference");
    take_bars(document, of_causes, &fall);
    if (!(fall.bars[0].to > 0)) return EL_OK;
    for (int i = 0; i < fall.n; i++) high = fmax(high, top(&fall.bars[i]));
    make_title(document, of_causes, title);
    name_kinds(&fall, &kinds);
    el_data_about(
        file, &(struct el_data_about){title, &kinds, fall.n + 1, WIDTH_IN_BARS, foot_of(document, &fall, of_causes)},
        ", highest ms, what the bars are");
    fprintf(file, "\t%.6g\t%s\n", 1.12 * high, of_causes ? "cause removed (cumulative)" : "part of the step");
    put_looks(&fall, file);
    el_data_block(file,
                  "place, lower end, upper end, whisker from, to, of the label, label, name, kind, where the next one "
                  "begins, mode of a step",
                  "bars");
    for (int i = 0; i < fall.n; i++) put_bar(&fall.bars[i], i, i + 1 == fall.n, file);
    fputs("?\t?\t?\t?\t?\t?\t_\t_\tgood\t?\t_\n", file);
    *any_p = true;
    return EL_OK;
}

const struct el_figure el_figure_explain = {.name = "explain", .write = write_explain};
