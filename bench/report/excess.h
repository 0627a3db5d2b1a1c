/* What the first device holds more than the others, and what that is made of, in one sentence's words. For reports of
 * whole runs and of one imbalance. `per_device` is a trial's, of two devices or more.
 *
 * A replica stands against the first device's parameters: both are a copy of the model, and count as one. */
#ifndef EL_BENCH_EXCESS_H
#define EL_BENCH_EXCESS_H

#include <jansson.h>
#include <stddef.h>

#include "runtime/base/probe.h"

/* The first one's figure at `path` minus the mean of the others'; NAN where one has none. Of any array of objects. */
double el_excess_of(const json_t *per_device, const char *path);
/* Of each tag at the devices' own peaks, replicas among the parameters; what is not recorded is 0. */
void el_excess_by_tag(const json_t *per_device, double bytes_p[EL_TAG_COUNT]);
struct el_tag_bytes {
    enum el_tag tag;
    double bytes;
};
/* All tags with their bytes, the largest first. */
void el_tags_by_size(const double bytes[EL_TAG_COUNT], struct el_tag_bytes parts_p[EL_TAG_COUNT]);
/* A tag as a sentence calls it: "buckets" of bucket. Static text. */
const char *el_excess_word(enum el_tag tag);
/* "10.4 MiB of optimizer state and 9.9 of gradients, and less 17.1 MiB of activations": tags that make up more than a
 * fiftieth of the whole. Returns `text`. */
const char *el_excess_text(const json_t *per_device, char *text, size_t bytes);

#endif
