/* Which rank sees which sample, by DistributedSampler's rules: an epoch, the next one with set_epoch and without it,
 * and what comes of ranks that shuffle by seeds of their own. */
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/data/data.h"

enum { SHOWN_BYTES = 84 };

struct way {
    const char *name;
    int64_t epoch;     /* whose order is taken */
    bool seed_by_rank; /* each rank shuffles by seed + rank */
};
static const struct way ways[] = {{"epoch 0", 0, false},
                                  {"epoch 1, after set_epoch(1)", 1, false},
                                  {"epoch 1, without set_epoch", 0, false},
                                  {"epoch 0, each rank with seed + rank", 0, true}};

/* Samples that are in several places, each as often as it is one too many; and samples that nobody sees. */
static void put_seen(json_t *document, const int64_t *seen, int64_t length)
{
    json_t *repeated = json_array(), *unseen = json_array();
    for (int64_t i = 0; i < length; i++) {
        for (int64_t more = 1; more < seen[i]; more++) json_array_append_new(repeated, json_integer(i));
        if (seen[i] == 0) json_array_append_new(unseen, json_integer(i));
    }
    el_json_put(document, "repeated", repeated);
    el_json_put(document, "unseen", unseen);
}

static enum el_status deal(const struct way *way, const struct el_sampler_spec *all, int64_t *indices, int64_t *seen,
                           json_t *document)
{
    json_t *ranks = json_array();
    const int64_t count = el_sampler_count(all);
    enum el_status status = EL_OK;
    for (int r = 0; r < all->ranks && status == EL_OK; r++) {
        struct el_sampler_spec spec = *all;
        spec.rank = r;
        if (way->seed_by_rank) spec.seed += (uint64_t)r;
        status = el_sampler_indices(&spec, way->epoch, indices);
        json_t *list = json_array();
        for (int64_t k = 0; k < count && status == EL_OK; k++) {
            seen[indices[k]]++;
            json_array_append_new(list, json_integer(indices[k]));
        }
        json_array_append_new(ranks, list);
    }
    el_json_put_text(document, "name", way->name);
    el_json_put(document, "ranks", ranks);
    put_seen(document, seen, all->length);
    return status;
}

enum el_status el_sampler_document(const struct el_options *options, int64_t length, json_t **document_p)
{
    const struct el_sampler_spec spec = {.length = length,
                                         .ranks = options->sampler.ranks,
                                         .shuffle = !options->sampler.no_shuffle,
                                         .drop_last = options->sampler.drop_last,
                                         .seed = options->train.seed};
    const int64_t count = el_sampler_count(&spec);
    int64_t *indices = malloc((size_t)(count + 1) * sizeof *indices);
    if (!indices) return el_fail_errno("a sampler of %lld samples", (long long)length);
    json_t *document = json_pack("{s:I, s:i, s:I, s:b, s:b, s:I}", "samples", (json_int_t)length, "ranks", spec.ranks,
                                 "each", (json_int_t)count, "shuffle", spec.shuffle, "drop_last", spec.drop_last,
                                 "seed", (json_int_t)spec.seed);
    json_t *dealt = json_array();
    enum el_status status = EL_OK;
    for (size_t w = 0; w < sizeof ways / sizeof ways[0] && status == EL_OK; w++) {
        int64_t *seen = calloc((size_t)length + 1, sizeof *seen);
        json_t *one = json_object();
        status = seen ? deal(&ways[w], &spec, indices, seen, one) : el_fail_errno("%lld samples", (long long)length);
        json_array_append_new(dealt, one);
        free(seen);
    }
    free(indices);
    el_json_put(document, "epochs", dealt);
    if (status == EL_OK)
        *document_p = document;
    else
        json_decref(document);
    return status;
}

/* "3 1 4 1 5 ..." */
static const char *show(const json_t *list, char text[SHOWN_BYTES])
{
    size_t n = json_array_size(list), i = 0;
    *text = 0;
    for (int used = 0; i < n && used < SHOWN_BYTES - 24; i++)
        used += snprintf(text + used, (size_t)(SHOWN_BYTES - used), "%s%lld", i ? " " : "",
                         (long long)json_integer_value(json_array_get(list, i)));
    if (i < n) el_text_append(text, SHOWN_BYTES, " ... (%zu)", n);
    return n ? text : "none";
}

void el_sampler_print(const json_t *document, FILE *out)
{
    char text[SHOWN_BYTES];
    const json_t *epochs = json_object_get(document, "epochs");
    bool drop = json_is_true(json_object_get(document, "drop_last"));
    el_text_line(out, "%.0f samples on %.0f ranks: %.0f each, %s", el_json_number(document, "samples"),
                 el_json_number(document, "ranks"), el_json_number(document, "each"),
                 drop ? "the rest dropped (drop_last)" : "filled up from the start of the order");
    for (size_t e = 0; e < json_array_size(epochs); e++) {
        const json_t *epoch = json_array_get(epochs, e), *ranks = json_object_get(epoch, "ranks");
        bool same = e > 0 && json_equal(ranks, el_json_at(epochs, "0.ranks"));
        fputc('\n', out);
        el_text_line(out, "%s%s", el_json_text(epoch, "name", "?"), same ? ": the same again" : "");
        for (size_t r = 0; r < json_array_size(ranks); r++)
            el_text_line(out, "  rank %-4zu %s", r, show(json_array_get(ranks, r), text));
        el_text_line(out, "  twice     %s", show(json_object_get(epoch, "repeated"), text));
        el_text_line(out, "  never     %s", show(json_object_get(epoch, "unseen"), text));
    }
}
