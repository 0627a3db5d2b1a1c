/* The words of --inject. What a disturbance does is the device's business. */
#include "bench/trial/inject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/options.h"

enum { ITEM_BYTES = 96 };

struct kind {
    const char *name, *form;
    bool placed;     /* POS: before the value */
    bool labelled;   /* LABEL: before the value */
    double min, max; /* of the value */
};

static const struct kind kinds[] = {
    {"wire", "MS", false, false, 0, 1e6},        {"delay", "POS:MS", true, false, 0, 1e6},
    {"compute", "RATIO", false, false, 1, 1000}, {"straggler", "POS:RATIO", true, false, 1, 1000},
    {"op", "LABEL:RATIO", false, true, 1, 1000}, {"pause", "LABEL:MS", false, true, 0, 1e6},
    {"leak", "POS:BYTES", true, false, 1, 1e12}, {"oversize", "POS:BYTES", true, false, 1, 1e12},
    {"wrong", "POS:X", true, false, -1e6, 1e6},  {"disk", "MS", false, false, 0, 1e6},
    {"worker", "BATCH", false, false, 1, 1e9},
};
enum { WIRE, DELAY, COMPUTE, STRAGGLER, OP, PAUSE, LEAK, OVERSIZE, WRONG, DISK, WORKER, N_KINDS };

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
    bool size = kind == &kinds[LEAK] || kind == &kinds[OVERSIZE];
    for (int i = 0; size && i < 3; i++) {
        if (strcmp(end, suffixes[i].text) != 0) continue;
        value *= suffixes[i].bytes;
        end += strlen(end);
    }
    *value_p = value;
    return end != text && *end == '\0' && isfinite(value) && value >= kind->min && value <= kind->max;
}

static void set_injected(const struct kind *kind, int first, int end, const char *label, double value,
                         struct el_inject *injects)
{
    for (int i = first; i < end; i++) {
        struct el_inject *inject = &injects[i];
        if (kind == &kinds[WIRE]) inject->wire_ms_per_mib = value;
        if (kind == &kinds[DISK]) inject->disk_ms = value;
        if (kind == &kinds[WORKER]) inject->worker_dies_at = (int64_t)value;
        if (kind == &kinds[DELAY]) inject->delay_ms = value;
        if (kind == &kinds[COMPUTE] || kind == &kinds[STRAGGLER])
            inject->stretch = (inject->stretch > 0 ? inject->stretch : 1) * value;
        if (kind == &kinds[LEAK]) inject->leak_bytes = (int64_t)value;
        if (kind == &kinds[OVERSIZE]) inject->oversize_bytes = (int64_t)value;
        if (kind == &kinds[WRONG]) inject->wrong = value;
        if (kind == &kinds[OP]) {
            snprintf(inject->op, sizeof inject->op, "%s", label);
            inject->op_stretch = value;
        } else if (kind == &kinds[PAUSE]) {
            snprintf(inject->pause, sizeof inject->pause, "%s", label);
            inject->pause_ms = value;
        }
    }
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
    const struct kind *kind = &kinds[WIRE];
    char label[sizeof injects->op] = "";
    int first = 0, end = n_devices;
    double value;
    EL_TRY(find_kind(item, length, &kind));
    const char *rest = item[length] ? item + length + 1 : "", *number = rest, *colon = strrchr(rest, ':');
    if (kind->labelled && colon && colon > rest) {
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
    } else if (kind->placed || kind->labelled) {
        number = "";
    }
    if (!read_value(kind, number, &value))
        return el_fail(EL_ERR_INVALID, "--inject %s: give %s=%s, the value from %g to %g", item, kind->name, kind->form,
                       kind->min, kind->max);
    EL_TRY(take_once(item, kind, first, end, taken));
    set_injected(kind, first, end, label, value, injects);
    return EL_OK;
}

static enum el_status take_items(const char *text, int n_devices, struct el_inject *injects, unsigned *taken)
{
    for (const char *at = text; *at;) {
        char item[ITEM_BYTES];
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof item)
            return el_fail(EL_ERR_INVALID,
                           "--inject: '%s' has an empty or too long item: give a list like "
                           "wire=2,delay=1:20",
                           text);
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
