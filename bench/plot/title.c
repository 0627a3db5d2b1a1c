/* What was measured, and on what: the line above a figure. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/plot/data_file.h"

enum { CPUS_MAX = 1024 };

static const json_t *devices_of(const json_t *trial)
{
    return json_object_get(trial, "per_device");
}

/* The trial with the most devices says what they are. */
static const json_t *widest(const json_t *trials)
{
    const json_t *found = json_array_get(trials, 0);
    for (size_t i = 1; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        size_t here = json_array_size(devices_of(trial)), there = json_array_size(devices_of(found));
        if (here != there ? here > there : el_json_number(trial, "devices") > el_json_number(found, "devices"))
            found = trial;
    }
    return found;
}

/* What all devices have at `key`, up to any of `ends` ("cpu" of "cpu:0"); else "". */
static struct el_data_text common(const json_t *devices, const char *key, const char *ends)
{
    struct el_data_text all = {""}, own;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const char *text = el_json_text(json_array_get(devices, i), key, "");
        snprintf(own.text, sizeof own.text, "%.*s", (int)strcspn(text, ends), text);
        if (i > 0 && strcmp(own.text, all.text) != 0) return (struct el_data_text){""};
        all = own;
    }
    return all;
}

/* The cores that all devices compute on; 0: the record does not say. */
static int count_cores(const json_t *devices)
{
    bool used[CPUS_MAX] = {false};
    int n = 0;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *cores = json_object_get(json_array_get(devices, i), "cores");
        if (json_array_size(cores) == 0) return 0;
        for (size_t k = 0; k < json_array_size(cores); k++) {
            int64_t cpu = el_json_whole(json_array_get(cores, k), "cpu");
            if (cpu < 0 || cpu >= CPUS_MAX || used[cpu]) continue;
            used[cpu] = true;
            n++;
        }
    }
    return n;
}

/* "2 CPU cores", "4 CPU devices on 2 cores", "2 x NVIDIA H100", "2 simulated devices", "2 devices". */
static void devices_text(const json_t *trial, char text[EL_TITLE_BYTES])
{
    int n = (int)json_array_size(devices_of(trial)), cores = count_cores(devices_of(trial));
    if (n == 0) n = (int)fmax(0, fmin(1e6, el_json_number(trial, "devices")));
    struct el_data_text model = common(devices_of(trial), "model", "");
    bool ran = strcmp(el_json_text(trial, "verdict", ""), "predicted") != 0;
    bool cpu = ran && strcmp(common(devices_of(trial), "device", ":").text, "cpu") == 0;
    const char *s = n == 1 ? "" : "s";
    if (json_is_true(json_object_get(trial, "simulated")))
        snprintf(text, EL_TITLE_BYTES, "%d simulated device%s", n, s);
    else if (cpu && cores == n)
        snprintf(text, EL_TITLE_BYTES, "%d CPU core%s", n, s);
    else if (cpu && cores > 0)
        snprintf(text, EL_TITLE_BYTES, "%d CPU device%s on %d core%s", n, s, cores, cores == 1 ? "" : "s");
    else if (cpu)
        snprintf(text, EL_TITLE_BYTES, "%d CPU device%s", n, s);
    else if (*model.text)
        snprintf(text, EL_TITLE_BYTES, "%d x %s", n, el_data_label(model.text).text);
    else
        snprintf(text, EL_TITLE_BYTES, "%d device%s", n, s);
}

void el_data_title(const json_t *trials, char title[EL_TITLE_BYTES])
{
    const json_t *first = json_array_get(trials, 0);
    char devices[EL_TITLE_BYTES];
    devices_text(widest(trials), devices);
    snprintf(title, EL_TITLE_BYTES, "%s, %s, %s, %.100s", el_data_label(el_json_text(first, "model", "?")).text,
             el_data_label(el_json_text(first, "dtype", "?")).text,
             el_data_label(el_json_text(first, "optimizer", "?")).text, devices);
}
