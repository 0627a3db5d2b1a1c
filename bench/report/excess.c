/* The difference between the first device's memory and the others', taken apart by tag. */
#include "bench/report/excess.h"

#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"

double el_excess_of(const json_t *per_device, const char *path)
{
    size_t n = json_array_size(per_device);
    double others = 0;
    for (size_t i = 1; i < n; i++) others += el_json_number(json_array_get(per_device, i), path);
    return el_json_number(json_array_get(per_device, 0), path) - others / (double)(n - 1);
}

void el_excess_by_tag(const json_t *per_device, double bytes_p[EL_TAG_COUNT])
{
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        char path[64];
        snprintf(path, sizeof path, "memory.at_peak_by_tag.%s", el_tag_name((enum el_tag)t));
        double bytes = el_excess_of(per_device, path);
        bytes_p[t] = isnan(bytes) ? 0 : bytes;
    }
    bytes_p[EL_TAG_PARAM] += bytes_p[EL_TAG_REPLICA];
    bytes_p[EL_TAG_REPLICA] = 0;
}

const char *el_excess_word(enum el_tag tag)
{
    switch (tag) {
    case EL_TAG_PARAM:
        return "parameters";
    case EL_TAG_GRAD:
        return "gradients";
    case EL_TAG_OPTIMIZER:
        return "optimizer state";
    case EL_TAG_ACTIVATION:
        return "activations";
    case EL_TAG_INPUT:
        return "inputs";
    case EL_TAG_OUTPUT:
        return "outputs";
    case EL_TAG_BUCKET:
        return "buckets";
    default:
        return el_tag_name(tag);
    }
}

struct part {
    const char *word;
    double bytes;
};

static int larger_first(const void *a, const void *b)
{
    double x = ((const struct part *)a)->bytes, y = ((const struct part *)b)->bytes;
    return (x < y) - (x > y);
}

/* "23.8 MiB of param and 23.7 of grad": the parts of the sign that make up more than a fiftieth of the whole. */
static int list_parts(const struct part *parts, double sign, double whole, FILE *out)
{
    char mib[EL_FIGURE_BYTES];
    int said = 0, n = 0;
    for (int t = 0; t < EL_TAG_COUNT; t++) n += parts[t].bytes * sign > fabs(whole) / 50;
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        if (!(parts[t].bytes * sign > fabs(whole) / 50)) continue;
        fprintf(out, "%s%s%s of %s",
                said == 0       ? ""
                : said == n - 1 ? " and "
                                : ", ",
                el_text_mib(parts[t].bytes * sign, mib), said == 0 ? " MiB" : "", parts[t].word);
        said++;
    }
    return said;
}

void el_excess_say(const json_t *per_device, FILE *out)
{
    double bytes[EL_TAG_COUNT], whole = el_excess_of(per_device, "memory.peak_bytes");
    struct part parts[EL_TAG_COUNT];
    el_excess_by_tag(per_device, bytes);
    for (int t = 0; t < EL_TAG_COUNT; t++)
        parts[t] = (struct part){.word = el_excess_word((enum el_tag)t), .bytes = bytes[t]};
    qsort(parts, EL_TAG_COUNT, sizeof parts[0], larger_first);
    if (list_parts(parts, 1, whole, out) == 0) return;
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        if (!(parts[t].bytes < -fabs(whole) / 50)) continue;
        fprintf(out, ", and less ");
        list_parts(parts, -1, whole, out);
        return;
    }
}
