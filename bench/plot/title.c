/* What was measured, and on what: the line above a figure. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/plot/layout.h"

enum { CPUS_MAX = 1024 };

/* The trial with the most devices says what they are. */
static const json_t *widest(const json_t *trials)
{
    const json_t *found = json_array_get(trials, 0);
    for (size_t i = 1; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        double here = (double)json_array_size(json_object_get(trial, "per_device"));
        double there = (double)json_array_size(json_object_get(found, "per_device"));
        if (here != there ? here > there : el_json_number(trial, "devices") > el_json_number(found, "devices"))
            found = trial;
    }
    return found;
}

/* "cpu" of "cpu:0", if all devices have it; else "". */
static void backend_of(const json_t *devices, char backend[EL_NAME_BYTES])
{
    backend[0] = '\0';
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const char *name = el_json_text(json_array_get(devices, i), "device", "?");
        char own[EL_NAME_BYTES];
        snprintf(own, sizeof own, "%.*s", (int)strcspn(name, ":"), name);
        if (i > 0 && strcmp(own, backend) != 0) {
            backend[0] = '\0';
            return;
        }
        snprintf(backend, EL_NAME_BYTES, "%s", own);
    }
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
            double cpu = el_json_number(json_array_get(cores, k), "cpu");
            if (!(cpu >= 0 && cpu < CPUS_MAX) || used[(int)cpu]) continue;
            used[(int)cpu] = true;
            n++;
        }
    }
    return n;
}

/* The model of the GPU, if all have the same; else "". */
static const char *gpu_model(const json_t *devices)
{
    const char *model = el_json_text(json_array_get(devices, 0), "model", "");
    for (size_t i = 1; i < json_array_size(devices); i++)
        if (strcmp(el_json_text(json_array_get(devices, i), "model", ""), model) != 0) return "";
    return model;
}

/* "2 CPU cores", "4 CPU devices on 2 cores", "2 x NVIDIA H100", "2 simulated devices", "2 devices". */
static void devices_text(const json_t *trial, char text[EL_TITLE_BYTES])
{
    const json_t *devices = json_object_get(trial, "per_device");
    int n = (int)json_array_size(devices), cores = count_cores(devices);
    char backend[EL_NAME_BYTES], model[EL_NAME_BYTES];
    if (n == 0) n = (int)fmax(0, fmin(1e6, el_json_number(trial, "devices")));
    const char *s = n == 1 ? "" : "s";
    bool simulated = json_is_true(json_object_get(trial, "simulated"));
    backend_of(devices, backend);
    if (strcmp(el_json_text(trial, "verdict", ""), "predicted") == 0) backend[0] = '\0'; /* it ran on none */
    el_layout_text(gpu_model(devices), model, sizeof model);
    if (simulated)
        snprintf(text, EL_TITLE_BYTES, "%d simulated device%s", n, s);
    else if (strcmp(backend, "cpu") == 0 && cores == n)
        snprintf(text, EL_TITLE_BYTES, "%d CPU core%s", n, s);
    else if (strcmp(backend, "cpu") == 0 && cores > 0)
        snprintf(text, EL_TITLE_BYTES, "%d CPU device%s on %d core%s", n, s, cores, cores == 1 ? "" : "s");
    else if (strcmp(backend, "cpu") == 0)
        snprintf(text, EL_TITLE_BYTES, "%d CPU device%s", n, s);
    else if (*gpu_model(devices))
        snprintf(text, EL_TITLE_BYTES, "%d x %s", n, model);
    else
        snprintf(text, EL_TITLE_BYTES, "%d device%s", n, s);
}

void el_layout_title(const json_t *trials, char title[EL_TITLE_BYTES])
{
    const json_t *first = json_array_get(trials, 0);
    char model[EL_NAME_BYTES], dtype[EL_NAME_BYTES], optimizer[EL_NAME_BYTES], devices[EL_TITLE_BYTES];
    el_layout_text(el_json_text(first, "model", "?"), model, sizeof model);
    el_layout_text(el_json_text(first, "dtype", "?"), dtype, sizeof dtype);
    el_layout_text(el_json_text(first, "optimizer", "?"), optimizer, sizeof optimizer);
    devices_text(widest(trials), devices);
    snprintf(title, EL_TITLE_BYTES, "%s, %s, %s, %.100s", model, dtype, optimizer, devices);
}
