/* What casts doubt on a trial: what its repeats say themselves, and what only all of them together show. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/jvalue.h"
#include "bench/record_stats.h"
#include "bench/stats.h"

enum { STEPS_MIN = 10 };

void el_warn(json_t *warnings, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        if (strcmp(json_string_value(json_array_get(warnings, i)), text) == 0) return;
    }
    json_array_append_new(warnings, el_json_string(text));
}

static void warn_of_each(json_t *warnings, const json_t *repeats)
{
    for (size_t i = 0; i < json_array_size(repeats); i++) {
        const json_t *own = json_object_get(json_array_get(repeats, i), "warnings");
        for (size_t k = 0; k < json_array_size(own); k++) {
            const char *text = json_string_value(json_array_get(own, k));
            if (text != NULL) el_warn(warnings, "%s", text);
        }
    }
}

static void warn_of_samples(json_t *warnings, const json_t *ok)
{
    for (size_t i = 0; i < json_array_size(ok); i++) {
        size_t steps = json_array_size(json_object_get(json_array_get(ok, i), "step_ms"));
        if (steps >= STEPS_MIN) continue;
        el_warn(warnings, "too few samples: %zu measured steps in a repeat, at least %d wanted", steps, STEPS_MIN);
        return;
    }
}

/* The losses of the steps that both took; --min-time may give one of them more. */
static bool losses_differ(const json_t *a, const json_t *b)
{
    size_t n_a = json_array_size(a), n_b = json_array_size(b);
    for (size_t i = 0; i < n_a && i < n_b; i++) {
        if (!json_equal(json_array_get(a, i), json_array_get(b, i))) return true;
    }
    return false;
}

static void warn_of_losses(json_t *warnings, const json_t *ok)
{
    const json_t *first = json_object_get(json_array_get(ok, 0), "loss");
    for (size_t i = 1; i < json_array_size(ok); i++) {
        if (!losses_differ(first, json_object_get(json_array_get(ok, i), "loss"))) continue;
        el_warn(warnings, "not deterministic: the repeats' losses differ");
        return;
    }
}

static bool memory_differs(const json_t *a, const json_t *b)
{
    static const char *const same[] = {"memory.peak_bytes", "memory.at_peak_by_tag", "memory.peak_by_tag"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        json_t *x = el_json_at(a, same[i]), *y = el_json_at(b, same[i]);
        if ((x == NULL) != (y == NULL) || (x != NULL && !json_equal(x, y))) return true;
    }
    return false;
}

static void warn_of_memory(json_t *warnings, const json_t *ok)
{
    const json_t *first = json_object_get(json_array_get(ok, 0), "members");
    for (size_t i = 1; i < json_array_size(ok); i++) {
        const json_t *members = json_object_get(json_array_get(ok, i), "members");
        bool differs = json_array_size(members) != json_array_size(first);
        for (size_t k = 0; k < json_array_size(first) && !differs; k++) {
            differs = memory_differs(json_array_get(first, k), json_array_get(members, k));
        }
        if (!differs) continue;
        el_warn(warnings, "the repeats' memory differs: the ledger should be the same in every run");
        return;
    }
}

void el_trial_warn(json_t *warnings, const json_t *repeats, const json_t *ok)
{
    size_t n = json_array_size(ok), all = json_array_size(repeats);
    warn_of_each(warnings, repeats);
    if (n < all) el_warn(warnings, "%zu of %zu repeats did not finish", all - n, all);
    if (n > 0 && n < EL_REPEATS_MIN) {
        el_warn(warnings, "fewer than %d repeats: no interval can be given", EL_REPEATS_MIN);
    }
    warn_of_samples(warnings, ok);
    warn_of_losses(warnings, ok);
    warn_of_memory(warnings, ok);
}
