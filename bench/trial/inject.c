/* The words of --inject. What a disturbance does is the device's business. */
#include "bench/trial/trial.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/options.h"

enum { ITEM_BYTES = 96 };

/* `offset`: of the value in an el_inject; `label`: of the text there that is given before it. */
struct kind {
    const char *name, *form;
    enum { REAL, WHOLE, BYTES, FACTOR, STEP } type; /* STEP: of several the first */
    bool placed;                                    /* POS: before the value */
    double min, max;
    size_t offset, label; /* 0: none */
};

#define INTO(field) offsetof(struct el_inject, field)
static const struct kind kinds[] = {
    {"wire", "MS", REAL, false, 0, 1e6, INTO(wire_ms_per_mib), 0},
    {"delay", "POS:MS", REAL, true, 0, 1e6, INTO(delay_ms), 0},
    {"compute", "RATIO", FACTOR, false, 1, 1000, INTO(stretch), 0},
    {"straggler", "POS:RATIO", FACTOR, true, 1, 1000, INTO(stretch), 0},
    {"op", "LABEL:RATIO", REAL, false, 1, 1000, INTO(op_stretch), INTO(op)},
    {"pause", "LABEL:MS", REAL, false, 0, 1e6, INTO(pause_ms), INTO(pause)},
    {"leak", "POS:BYTES", BYTES, true, 1, 1e12, INTO(leak_bytes), 0},
    {"oversize", "POS:BYTES", BYTES, true, 1, 1e12, INTO(oversize_bytes), 0},
    {"wrong", "POS:X", REAL, true, -1e6, 1e6, INTO(wrong), 0},
    {"disk", "MS", REAL, false, 0, 1e6, INTO(disk_ms), 0},
    {"kill", "POS:STEP", STEP, true, 1, 1e9, INTO(kill_step), 0},
    {"stop", "POS:STEP", STEP, true, 1, 1e9, INTO(stop_step), 0},
    {"come", "STEP", STEP, false, 1, 1e9, INTO(come_step), 0},
    {"worker", "BATCH", WHOLE, false, 1, 1e9, INTO(worker_dies_at), 0},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static enum el_status find_kind(const char *item, size_t length, const struct kind **kind_p)
{
    const char *names[N_KINDS + 1] = {NULL};
    char name[ITEM_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)length, item);
    for (int i = 0; i < N_KINDS; i++) {
        names[i] = kinds[i].name;
        if (strcmp(kinds[i].name, name) == 0) {
            *kind_p = &kinds[i];
            return EL_OK;
        }
    }
    return el_fail_unknown("disturbance", name, names);
}

/* A number, with KiB, MiB or GiB where it is a size. */
static bool read_value(const struct kind *kind, const char *text, double *value_p)
{
    static const struct {
        const char *text;
        double bytes;
    } suffixes[] = {{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
    char *end;
    double value = strtod(text, &end);
    for (int i = 0; kind->type == BYTES && i < 3; i++) {
        if (strcmp(end, suffixes[i].text) != 0) continue;
        value *= suffixes[i].bytes;
        end += strlen(end);
    }
    *value_p = value;
    return end != text && *end == '\0' && isfinite(value) && value >= kind->min && value <= kind->max;
}

static void set_injected(const struct kind *kind, const char *label, double value, struct el_inject *inject)
{
    char *field = (char *)inject + kind->offset;
    double *real = (double *)(void *)field;
    int64_t *whole = (int64_t *)(void *)field;
    if (kind->type == STEP)
        *whole = *whole > 0 && *whole < (int64_t)value ? *whole : (int64_t)value;
    else if (kind->type == WHOLE || kind->type == BYTES)
        *whole = (int64_t)value;
    else
        *real = kind->type == FACTOR && *real > 0 ? *real * value : value;
    if (kind->label) snprintf((char *)inject + kind->label, sizeof inject->op, "%s", label);
}

/* The second of a kind would replace the first. `taken`: the kinds that each device has so far. */
static enum el_status take_once(const char *item, const struct kind *kind, int first, int end, unsigned *taken)
{
    const unsigned bit = 1u << (kind - kinds);
    for (int i = first; i < end; i++) {
        if (taken[i] & bit)
            return el_fail(EL_ERR_INVALID,
                           "--inject %s: device %d has '%s' already: give each disturbance once for a device", item, i,
                           kind->name);
        taken[i] |= bit;
    }
    return EL_OK;
}

static enum el_status take_item(const char *item, int n_devices, struct el_inject *injects, unsigned *taken)
{
    size_t length = strcspn(item, "=");
    const struct kind *kind = kinds;
    char label[sizeof injects->op] = "";
    int first = 0, end = n_devices;
    double value;
    EL_TRY(find_kind(item, length, &kind));
    const char *rest = item[length] ? item + length + 1 : "", *number = rest, *colon = strrchr(rest, ':');
    if (kind->label && colon && colon > rest) {
        snprintf(label, sizeof label, "%.*s", (int)(colon - rest), rest);
        number = colon + 1;
    } else if (kind->placed && colon) {
        char *after;
        long position = strtol(rest, &after, 10);
        if (after == rest || after != colon || position < 0 || position >= n_devices)
            return el_fail(EL_ERR_INVALID, "--inject %s: there is no device %.*s in a trial of %d: give 0 to %d", item,
                           (int)(colon - rest), rest, n_devices, n_devices - 1);
        first = (int)position;
        end = first + 1;
        number = colon + 1;
    } else if (kind->placed || kind->label) {
        number = "";
    }
    if (!read_value(kind, number, &value))
        return el_fail(EL_ERR_INVALID, "--inject %s: give %s=%s, the value from %g to %g", item, kind->name, kind->form,
                       kind->min, kind->max);
    if (kind->type != STEP) EL_TRY(take_once(item, kind, first, end, taken));
    for (int i = first; i < end; i++) set_injected(kind, label, value, &injects[i]);
    return EL_OK;
}

static enum el_status take_items(const char *text, int n_devices, struct el_inject *injects, unsigned *taken)
{
    for (const char *at = text; *at;) {
        char item[ITEM_BYTES];
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof item)
            return el_fail(EL_ERR_INVALID,
                           "--inject: '%s' has an empty or too long item: give a list like wire=2,delay=1:20", text);
        snprintf(item, sizeof item, "%.*s", (int)length, at);
        EL_TRY(take_item(item, n_devices, injects, taken));
        at += length;
        if (*at == ',' && !*++at) return el_fail(EL_ERR_INVALID, "--inject: '%s' ends with a comma", text);
    }
    return EL_OK;
}

enum el_status el_inject_parse(const char *text, int n_devices, struct el_inject *injects)
{
    unsigned *taken = calloc((size_t)n_devices, sizeof *taken);
    if (!taken) return el_fail(EL_ERR_HOST_MEMORY, "--inject: no memory");
    memset(injects, 0, (size_t)n_devices * sizeof *injects);
    enum el_status status = take_items(text, n_devices, injects, taken);
    free(taken);
    return status;
}

/* kill, stop and come: of those the first one by its step. */
bool el_inject_drop_first_fall(char *text)
{
    static const char *const names[] = {"kill=", "stop=", "come="};
    char *first = NULL;
    double least = INFINITY;
    for (char *at = text; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        bool falls = false;
        for (int i = 0; i < 3; i++) falls |= !strncmp(at, names[i], strlen(names[i]));
        const size_t colon = strcspn(at, ":,");
        const double step = strtod(at + (at[colon] == ':' ? colon + 1 : strcspn(at, "=") + 1), NULL);
        if (falls && step < least) least = step, first = at;
    }
    if (!first) return false;
    const char *rest = first + strcspn(first, ",");
    if (*rest == ',') rest++;
    memmove(first, rest, strlen(rest) + 1);
    const size_t n = strlen(text);
    if (n > 0 && text[n - 1] == ',') text[n - 1] = 0;
    return true;
}
