/* The store's rows over time, those with changes first: sessions, levels, and where each change lies. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/base/jvalue.h"
#include "bench/regress/history.h"
#include "bench/regress/session.h"

enum { PANELS_MAX = 6, BARS = 14, DAY_S = 86400, TITLE_LETTERS = 90 };
static const double FAR_SD = 5, MARGIN = 0.12; /* what is farther from all levels stands at the edge */

struct panel {
    const json_t *sessions, *history; /* the workload's, the figure's */
    const char *workload, *name, *unit;
    double low, high;
};

struct picture {
    struct panel panels[PANELS_MAX];
    int n, n_rows;
    double left, right;
};

static double second_of(const json_t *sessions, double number)
{
    struct tm utc = {.tm_mday = 1};
    const char *text = el_json_text(json_array_get(sessions, (size_t)number - 1), "time_utc", "");
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &utc.tm_year, &utc.tm_mon, &utc.tm_mday, &utc.tm_hour, &utc.tm_min,
               &utc.tm_sec) != 6)
        return NAN;
    utc.tm_year -= 1900;
    utc.tm_mon -= 1;
    return (double)timegm(&utc);
}

/* About the levels, with room for scatter. */
static void set_range(struct panel *panel)
{
    double reach = FAR_SD * el_json_number(panel->history, "sd_pct") / 100, low, high;
    double ends[4];
    el_json_range(json_object_get(panel->history, "pieces"), "level", &ends[0], &ends[1]);
    el_json_range(json_object_get(panel->history, "pieces"), "level_last", &ends[2], &ends[3]);
    double bottom = fmin(ends[0], ends[2]), top = fmax(ends[1], ends[3]);
    low = bottom, high = top;
    EL_EACH(value, json_object_get(panel->history, "values")) {
        double y = json_is_number(value) ? json_number_value(value) : top;
        low = fmin(low, fmax(y, bottom * (1 - fmin(reach, 0.9))));
        high = fmax(high, fmin(y, top * (1 + reach)));
    }
    double room = high > low ? MARGIN * (high - low) : 0.01 * high;
    panel->low = low - room;
    panel->high = high + 2 * room; /* the labels' */
}

static void add_panel(struct picture *picture, const struct panel *panel)
{
    struct panel *its = &picture->panels[picture->n++];
    *its = *panel;
    set_range(its);
    for (size_t i = 1; i <= json_array_size(panel->sessions); i++) {
        double at = second_of(panel->sessions, (double)i);
        picture->left = fmin(picture->left, at);
        picture->right = fmax(picture->right, at);
    }
}

static bool changes(const json_t *history)
{
    return json_array_size(json_object_get(history, "changes")) > 0 ||
           json_is_object(json_object_get(history, "creep"));
}

/* Rows as the tables have them, first those with changes, then the others. */
static void choose(const json_t *document, bool with_changes, struct picture *picture)
{
    EL_EACH(machine, json_object_get(document, "machines")) {
        EL_EACH(workload, json_object_get(machine, "workloads")) {
            const json_t *sessions = json_object_get(workload, "history");
            EL_EACH_KEY(name, figure, json_object_get(workload, "figures")) {
                const struct panel panel = {
                    sessions, json_object_get(figure, "history"), el_json_text(workload, "name", "?"),
                    name,     el_json_text(figure, "unit", ""),   0,
                    0};
                if (!el_session_leads(workload, name) || json_array_size(sessions) < 2) continue;
                if (!json_is_object(panel.history) || changes(panel.history) != with_changes) continue;
                picture->n_rows++;
                if (picture->n < PANELS_MAX) add_panel(picture, &panel);
            }
        }
    }
}

/* A long label: safe in parts. */
static void put_label(const char *text, FILE *file)
{
    for (size_t at = 0, length = strnlen(text, TITLE_LETTERS); at < length; at += EL_NAME_BYTES - 1) {
        char part[EL_NAME_BYTES];
        snprintf(part, sizeof part, "%.*s", (int)fmin((double)(length - at), EL_NAME_BYTES - 1), text + at);
        fputs(el_data_label(part).text, file);
    }
}

static void put_points(const struct panel *p, int k, FILE *file)
{
    el_data_block(file, "second, value, whether it is farther than the axis goes", "points %d", k);
    EL_EACH(value, json_object_get(p->history, "values")) {
        double y = json_is_number(value) ? json_number_value(value) : NAN, shown = fmin(fmax(y, p->low), p->high);
        fprintf(file, "%.0f", second_of(p->sessions, (double)value_at.i + 1));
        el_data_number(file, isnan(y) ? NAN : shown);
        fprintf(file, "\t%d\n", shown != y);
    }
    el_data_block(file, "second, level: two rows a piece", "levels %d", k);
    EL_EACH(piece, json_object_get(p->history, "pieces"))
        fprintf(file, "%.0f\t%.6g\t%d\n%.0f\t%.6g\t%d\n\n", second_of(p->sessions, el_json_number(piece, "first")),
                el_json_number(piece, "level"), json_is_true(json_object_get(piece, "creeps")),
                second_of(p->sessions, el_json_number(piece, "last")), el_json_number(piece, "level_last"),
                json_is_true(json_object_get(piece, "creeps")));
    fputs("?\t?\t0\n", file);
}

static void put_bands(const struct panel *p, int k, FILE *file)
{
    el_data_block(file, "from, to, middle (seconds), label, kind (0 better, 1 worse, 2 accepted or neither)",
                  "bands %d", k);
    EL_EACH(change, json_object_get(p->history, "changes")) {
        double from = second_of(p->sessions, el_json_number(change, "between.0"));
        double to = second_of(p->sessions, el_json_number(change, "between.1"));
        const json_t *worse = json_object_get(change, "worse");
        bool grey = json_is_true(json_object_get(change, "accepted")) || json_is_null(worse);
        fprintf(file, "%.0f\t%.0f\t%.0f\t%+.1f %%\t%d\n", from, to, (from + to) / 2,
                el_json_number(change, "change_pct"), grey ? 2 : json_is_true(worse));
    }
    fputs("?\t?\t?\t_\t2\n", file); /* a block is never empty */
}

static enum el_status write_baseline(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    (void)figure;
    struct picture picture = {.left = INFINITY, .right = -INFINITY};
    char title[EL_TITLE_BYTES] = "Since when: past sessions and their levels";
    choose(document, true, &picture);
    choose(document, false, &picture);
    if (!(picture.right >= picture.left)) return EL_OK;
    if (picture.n_rows > picture.n)
        snprintf(title, sizeof title, "Since when: past sessions and their levels, %d of %d rows", picture.n,
                 picture.n_rows);
    double room = fmax((picture.right - picture.left) * 0.02, DAY_S / 24.0);
    el_data_about(
        file,
        &(struct el_data_about){title, NULL, 1, BARS,
                                "A band is where a change lies (95 %); its label is the change of the level."},
        ", panels, left, right");
    fprintf(file, "\t%d\t%.0f\t%.0f\n", picture.n, picture.left - room, picture.right + room);
    el_data_block(file, "title, lowest, highest", "panels");
    for (int k = 0; k < picture.n; k++) {
        const struct panel *p = &picture.panels[k];
        put_label(p->workload, file);
        fputs(": ", file);
        put_label(p->name, file);
        if (*p->unit) fprintf(file, " (%s)", el_data_label(p->unit).text);
        fprintf(file, "\t%.6g\t%.6g\n", p->low, p->high);
    }
    for (int k = 0; k < picture.n; k++) put_points(&picture.panels[k], k, file);
    for (int k = 0; k < picture.n; k++) put_bands(&picture.panels[k], k, file);
    *any_p = true;
    return EL_OK;
}

const struct el_figure el_figure_baseline = {.name = "baseline", .write = write_baseline};
