/* Which devices the memory timeline's figure shows, and figures of one from its record. */
#include "bench/plot/panels.h"

#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "runtime/parallel/train.h"

static const double MIB = 1048576;

static const json_t *timeline_of(const json_t *trial, size_t position)
{
    const json_t *device = json_array_get(json_object_get(trial, "per_device"), position);
    const json_t *timeline = el_json_at(device, "memory.timeline");
    return json_array_size(json_object_get(timeline, "ms")) < 2 ? NULL : timeline;
}

/* The mode's finished trial with the largest batch; NULL if none has a timeline. */
static const json_t *largest(const json_t *trials, const char *mode)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (strcmp(el_json_text(trial, "mode", ""), mode) != 0 || timeline_of(trial, 0) == NULL) continue;
        if (strcmp(el_json_text(trial, "status", ""), "ok") != 0) continue;
        if (found == NULL || el_json_number(trial, "global_batch") > el_json_number(found, "global_batch"))
            found = trial;
    }
    return found;
}

static void add_panels(struct el_panels *panels, const json_t *trial)
{
    const struct el_mode_info *info = el_mode_find(el_json_text(trial, "mode", ""));
    size_t wanted = info != NULL && info->controller ? 2 : 1;
    for (size_t k = 0; k < wanted && panels->n < EL_PANELS_MAX; k++) {
        const json_t *timeline = timeline_of(trial, k);
        if (timeline == NULL) return;
        panels->list[panels->n++] =
            (struct el_panel){trial, json_array_get(json_object_get(trial, "per_device"), k), timeline};
    }
}

void el_panels_choose(const json_t *trials, struct el_panels *panels)
{
    panels->n = 0;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const char *mode = el_json_text(json_array_get(trials, i), "mode", "?");
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++) {
            seen = strcmp(el_json_text(json_array_get(trials, k), "mode", "?"), mode) == 0;
        }
        const json_t *trial = seen ? NULL : largest(trials, mode);
        if (trial != NULL) add_panels(panels, trial);
    }
}

size_t el_panel_points(const struct el_panel *panel)
{
    return json_array_size(json_object_get(panel->timeline, "ms"));
}

static double column(const json_t *object, const char *name, size_t i)
{
    const json_t *value = json_array_get(json_object_get(object, name), i);
    return json_is_number(value) ? json_number_value(value) : 0;
}

double el_panel_ms(const struct el_panel *panel, size_t i)
{
    return column(panel->timeline, "ms", i);
}

double el_panel_step_ms(const struct el_panel *panel)
{
    return el_panel_ms(panel, el_panel_points(panel) - 1);
}

double el_panel_below_mib(const struct el_panel *panel, int tag, size_t i)
{
    const json_t *bytes = json_object_get(panel->timeline, "bytes");
    double sum = 0;
    for (int t = 0; t < tag; t++) sum += column(bytes, el_tag_name((enum el_tag)t), i);
    return sum / MIB;
}

double el_panel_peak_mib(const struct el_panel *panel)
{
    double peak = 0;
    for (size_t i = 0; i < el_panel_points(panel); i++) peak = fmax(peak, el_panel_below_mib(panel, EL_TAG_COUNT, i));
    return peak;
}

const char *el_panel_phase(const struct el_panel *panel, size_t i)
{
    const char *phase = json_string_value(json_array_get(json_object_get(panel->timeline, "phase"), i));
    return phase != NULL ? phase : EL_PANEL_IDLE;
}

size_t el_panel_run_end(const struct el_panel *panel, size_t i)
{
    size_t end = i + 1;
    while (end + 1 < el_panel_points(panel) && strcmp(el_panel_phase(panel, end), el_panel_phase(panel, i)) == 0) end++;
    return end;
}

struct el_panel_part el_panel_longest(const struct el_panel *panel, const char *phase)
{
    struct el_panel_part longest = {0, 0};
    for (size_t i = 0, end; i + 1 < el_panel_points(panel); i = end) {
        end = el_panel_run_end(panel, i);
        struct el_panel_part part = {el_panel_ms(panel, i), el_panel_ms(panel, end)};
        if (strcmp(el_panel_phase(panel, i), phase) == 0 && part.to_ms - part.from_ms > longest.to_ms - longest.from_ms)
            longest = part;
    }
    return longest;
}

double el_panel_phase_ratio(const struct el_panel *panel, const char *phase)
{
    struct el_panel_part part = el_panel_longest(panel, phase);
    return (part.to_ms - part.from_ms) / el_panel_step_ms(panel);
}

double el_panel_tag_mib(const struct el_panel *panel, int tag)
{
    double most = 0;
    for (size_t i = 0; i < el_panel_points(panel); i++) {
        most = fmax(most, el_panel_below_mib(panel, tag + 1, i) - el_panel_below_mib(panel, tag, i));
    }
    return most;
}
