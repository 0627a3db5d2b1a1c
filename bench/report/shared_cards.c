/* Cards (or cores that stand for them) that several devices of a trial are on: their figures added up. Two processes
 * that both take both cards look balanced device by device; what a card holds is the sum. */
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/report/report.h"

/* Adds every number of `more` to the one of the same place; the rest stays the first device's. */
static void add_up(json_t *sum, const json_t *more)
{
    EL_EACH_KEY(key, value, sum) {
        const json_t *other = json_object_get(more, key);
        if (json_is_object(value)) add_up(value, other);
        json_int_t total; /* of a foreign record it may be too large: then the first device's stays */
        if (json_is_integer(value) &&
            !__builtin_add_overflow(json_integer_value(value), json_integer_value(other), &total))
            json_integer_set(value, total);
        else if (json_is_real(value))
            json_real_set(value, json_real_value(value) + json_number_value(other));
    }
}

/* Two ranks may each call a card of their own cuda:0. */
static bool is_same_card(const json_t *a, const json_t *b)
{
    const char *uuid = el_json_text(a, "uuid", NULL);
    if (uuid && el_json_text(b, "uuid", NULL)) return el_json_is(b, "uuid", uuid);
    return el_json_is(a, "device", el_json_text(b, "device", "")) && el_json_is(a, "host", el_json_text(b, "host", ""));
}

json_t *el_report_shared_cards(const json_t *devices)
{
    json_t *cards = json_array();
    EL_EACH(device, devices) {
        json_t *sum = NULL;
        bool first = true;
        for (size_t k = 0; k < device_at.i; k++) first &= !is_same_card(json_array_get(devices, k), device);
        for (size_t k = device_at.i + 1; k < json_array_size(devices) && first; k++) {
            if (!is_same_card(json_array_get(devices, k), device)) continue;
            if (!sum) sum = json_deep_copy(device);
            add_up(sum, json_array_get(devices, k));
        }
        if (!sum) continue;
        el_json_put(sum, "card", json_string("sum"));
        json_array_append_new(cards, sum);
    }
    return cards;
}
