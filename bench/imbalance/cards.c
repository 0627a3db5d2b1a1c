/* What a card is called, and single figures of it: what table.c prints and document.c writes. */
#include "bench/base/jvalue.h"
#include "bench/imbalance/imbalance.h"
#include "runtime/base/probe.h"

/* Memory by tag is the ledger's alone: what was watched from outside (bench/watch) has none. */
bool el_imbalance_has_cards(const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    return json_array_size(devices) > 1 && json_object_size(el_json_at(devices, "0.memory.at_peak_by_tag")) > 0;
}

const char *el_imbalance_card(size_t position, char *text)
{
    static const char *const names[] = {"main", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"};
    if (position < sizeof names / sizeof names[0])
        snprintf(text, 16, "%s", names[position]);
    else
        snprintf(text, 16, "card %zu", position + 1);
    return text;
}

double el_imbalance_highs(const json_t *device)
{
    const json_t *tags = el_json_at(device, "memory.peak_by_tag");
    double sum = 0;
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (t != EL_TAG_WORKSPACE && t != EL_TAG_PADDING) sum += el_json_number(tags, el_tag_name((enum el_tag)t));
    return sum;
}
