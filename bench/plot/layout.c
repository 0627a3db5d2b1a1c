/* Positions and labels of bars, and the blocks that carry them. */
#include "bench/plot/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"

static const double BATCH_GAP = 1.2;

static void add_slot(struct el_layout *layout, struct el_slot slot)
{
    if (layout->n == layout->capacity) {
        size_t capacity = layout->capacity * 2 + 32;
        struct el_slot *slots = realloc(layout->slots, capacity * sizeof *slots);
        layout->failed = slots == NULL;
        if (layout->failed) return;
        layout->slots = slots;
        layout->capacity = capacity;
    }
    layout->slots[layout->n++] = slot;
}

static void add_trial(struct el_layout *layout, const json_t *trial, bool per_device, double *x)
{
    const json_t *devices = json_object_get(trial, "per_device");
    size_t n = per_device ? json_array_size(devices) : 0;
    for (size_t k = 0; k < n && !layout->failed; k++) {
        add_slot(layout,
                 (struct el_slot){.trial = trial, .device = json_array_get(devices, k), .position = k, .x = *x});
        *x += 1;
    }
    if (n > 0) return;
    add_slot(layout, (struct el_slot){.trial = trial, .x = *x});
    *x += 1;
}

static double batch_of(const json_t *trial)
{
    return el_json_number(trial, "global_batch");
}

/* Whether an earlier trial has the same batch: then its group has been laid out. */
static bool batch_seen(const json_t *trials, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (batch_of(json_array_get(trials, k)) == batch_of(json_array_get(trials, i))) return true;
    }
    return false;
}

void el_layout_build(const json_t *trials, bool per_device, double mode_gap, struct el_layout *layout_p)
{
    double x = 1;
    size_t n = json_array_size(trials);
    *layout_p = (struct el_layout){0};
    for (size_t i = 0; i < n; i++) {
        if (batch_seen(trials, i)) continue;
        if (layout_p->n > 0) x += BATCH_GAP - mode_gap;
        for (size_t k = i; k < n && !layout_p->failed; k++) {
            const json_t *trial = json_array_get(trials, k);
            if (batch_of(trial) != batch_of(json_array_get(trials, i))) continue;
            add_trial(layout_p, trial, per_device, &x);
            x += mode_gap;
        }
    }
    layout_p->right = x - mode_gap;
}

void el_layout_free(struct el_layout *layout)
{
    free(layout->slots);
    *layout = (struct el_layout){0};
}

void el_layout_text(const char *foreign, char *text, size_t bytes)
{
    static const char *const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/ -";
    snprintf(text, bytes, "%s", foreign);
    for (char *at = text; *at; at++)
        if (!strchr(allowed, *at)) *at = '_';
    if (!*text) snprintf(text, bytes, "_");
}

void el_layout_name(const char *foreign, char name[EL_NAME_BYTES])
{
    el_layout_text(foreign, name, EL_NAME_BYTES);
    for (char *at = name; *at; at++)
        if (*at == ' ') *at = '_';
}

void el_layout_append(char *list, size_t bytes, const char *name)
{
    size_t used = strlen(list), length = strlen(name);
    if (used + length + 2 <= bytes) snprintf(list + used, bytes - used, "%s%s", used == 0 ? "" : " ", name);
}

bool el_layout_is_valid(const json_t *trial)
{
    const char *verdict = el_json_text(trial, "verdict", "valid");
    return strcmp(verdict, "valid") == 0 || strcmp(verdict, "predicted") == 0;
}

void el_layout_foot(const json_t *trials, const char *how, char foot[EL_TITLE_BYTES])
{
    size_t n = 0, n_suspect = 0;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        n += !el_layout_is_valid(trial);
        n_suspect += strcmp(el_json_text(trial, "verdict", ""), "suspect") == 0;
    }
    if (n == 0)
        snprintf(foot, EL_TITLE_BYTES, " ");
    else if (n_suspect == 0 || n_suspect == n)
        snprintf(foot, EL_TITLE_BYTES, "%s: %s, see the warnings", how, n_suspect == 0 ? "not checked" : "suspect");
    else
        snprintf(foot, EL_TITLE_BYTES, "%s: suspect (%zu) or not checked (%zu), see the warnings", how, n_suspect,
                 n - n_suspect);
}

void el_layout_begin(FILE *file, const char *name, const char *columns)
{
    fprintf(file, "# %s\n# columns: %s\n", name, columns);
}

void el_layout_end(FILE *file)
{
    fputs("\n\n", file);
}

static bool same_batch(const struct el_slot *a, const struct el_slot *b)
{
    return batch_of(a->trial) == batch_of(b->trial);
}

static bool same_trial(const struct el_slot *a, const struct el_slot *b)
{
    return a->trial == b->trial;
}

/* A row a run of slots that belong together, at their middle. */
static void write_groups(const struct el_layout *layout, bool (*same)(const struct el_slot *, const struct el_slot *),
                         bool batches, FILE *file)
{
    for (size_t i = 0, end; i < layout->n; i = end) {
        const struct el_slot *slot = &layout->slots[i];
        for (end = i + 1; end < layout->n && same(slot, &layout->slots[end]);) end++;
        fprintf(file, "%g\t", (slot->x + layout->slots[end - 1].x) / 2);
        char mode[EL_NAME_BYTES];
        el_layout_name(el_json_text(slot->trial, "mode", "?"), mode);
        if (batches)
            fprintf(file, "batch %.0f\n", batch_of(slot->trial));
        else
            fprintf(file, "%s%s\n", mode, el_layout_is_valid(slot->trial) ? "" : "*");
    }
}

/* Trials that have no bar say why. A row without text keeps the block from being empty. */
static void write_notes(const struct el_layout *layout, FILE *file)
{
    fputs("0\t \n", file);
    for (size_t i = 0; i < layout->n; i++) {
        char mode[EL_NAME_BYTES], status[EL_NAME_BYTES];
        bool first = i == 0 || layout->slots[i - 1].trial != layout->slots[i].trial;
        el_layout_name(el_json_text(layout->slots[i].trial, "mode", "?"), mode);
        el_layout_name(el_json_text(layout->slots[i].trial, "status", "failed"), status);
        if (first && strcmp(status, "ok") != 0) fprintf(file, "%g\t%s: %s\n", layout->slots[i].x, mode, status);
    }
}

void el_layout_about(FILE *file, const char *title, const char *present, const char *thin, double right, double bars,
                     const char *foot)
{
    fprintf(file, "%s\t%s\t%s\t%.6g\t%g\t%s", title, *present ? present : " ", *thin ? thin : " ", right, bars, foot);
}

void el_layout_write(const struct el_layout *layout, const json_t *trials, const char *title, const char *present,
                     const char *thin, FILE *file)
{
    char foot[EL_TITLE_BYTES];
    el_layout_foot(trials, "* and cross-hatched", foot);
    el_layout_begin(file, "about", EL_ABOUT_COLUMNS);
    el_layout_about(file, title, present, thin, layout->right, (double)layout->n, foot);
    fputc('\n', file);
    el_layout_end(file);
    el_layout_begin(file, "devices", "x, position of the device");
    for (size_t i = 0; i < layout->n; i++) {
        const struct el_slot *slot = &layout->slots[i];
        if (slot->device != NULL) fprintf(file, "%g\t%zu\n", slot->x, slot->position);
    }
    el_layout_end(file);
    el_layout_begin(file, "modes", "x, mode (*: not valid)");
    write_groups(layout, same_trial, false, file);
    el_layout_end(file);
    el_layout_begin(file, "batches", "x, global batch");
    write_groups(layout, same_batch, true, file);
    el_layout_end(file);
    el_layout_begin(file, "notes", "x, status of a trial without figures");
    write_notes(layout, file);
    el_layout_end(file);
}
