/* The loader: one member's batches in order, made on demand or by workers (team.h). */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/data/team.h"

struct el_loader {
    struct el_loading loading;
    /* One per worker, then the loader's own if lengths differ; without workers only the first. */
    struct el_batcher *batchers[EL_WORKERS_MAX + 1];
    struct el_team *team;
    struct el_load_times times;
    struct el_load_span spans[EL_LOAD_SPANS]; /* a ring: batch i at i % EL_LOAD_SPANS */
    int64_t n_spans;
};

int64_t el_share_size(int64_t global_batch, int ranks, int rank)
{
    return global_batch > rank ? (global_batch - rank + ranks - 1) / ranks : 0;
}

static struct el_batch_part weighted(const struct el_shares *shares, int64_t samples, int w)
{
    struct el_batch_part part = {.stride = 1};
    int64_t sum = 0, left = samples;
    for (int i = 0; i < shares->n; i++) sum += shares->weight[i];
    for (int i = 0; i < shares->n; i++) left -= samples * shares->weight[i] / sum;
    for (int i = 0; i <= w; i++) {
        int64_t rest = samples * shares->weight[i] % sum, before = 0;
        for (int k = 0; k < shares->n; k++) {
            int64_t other = samples * shares->weight[k] % sum;
            before += other > rest || (other == rest && k < i);
        }
        part.first += part.samples;
        part.samples = samples * shares->weight[i] / sum + (before < left);
    }
    return part;
}

struct el_batch_part el_batch_part(const struct el_shares *shares, int64_t batch, int parts, int part)
{
    if (shares->n < 2 || parts < shares->n)
        return (struct el_batch_part){part, parts, el_share_size(batch, parts, part)};
    int64_t n = parts / shares->n, piece = part / shares->n;
    struct el_batch_part own = weighted(shares, el_share_size(batch, (int)n, (int)piece), part % shares->n);
    own.first += piece * (batch / n) + (piece < batch % n ? piece : batch % n);
    return own;
}

enum el_status el_loader_open(const struct el_dataset *dataset, const struct el_loader_spec *spec,
                              struct el_loader **loader_p)
{
    const int workers = spec->loading.workers, prefetch = spec->loading.prefetch;
    if (workers < 0 || workers > EL_WORKERS_MAX || prefetch < 0 || prefetch > EL_PREFETCH_MAX)
        return el_fail(EL_ERR_INVALID, "loader: %d workers, each %d batches ahead: at most %d and %d", workers,
                       prefetch, EL_WORKERS_MAX, EL_PREFETCH_MAX);
    struct el_loader *loader = calloc(1, sizeof *loader);
    if (!loader) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a loader");
    loader->loading = spec->loading;
    enum el_status status = EL_OK;
    for (int w = 0; (w == 0 || w < workers + (spec->least > 0)) && status == EL_OK; w++)
        status = el_batcher_open(dataset, spec, &loader->batchers[w]);
    if (status == EL_OK && workers) status = el_team_open(&loader->loading, loader->batchers, &loader->team);
    if (status == EL_OK)
        *loader_p = loader;
    else
        el_loader_close(loader);
    return status;
}

void el_loader_close(struct el_loader *loader)
{
    if (!loader) return;
    el_team_close(loader->team);
    for (int w = 0; w <= EL_WORKERS_MAX; w++) el_batcher_close(loader->batchers[w]);
    free(loader);
}

int64_t el_loader_steps_per_epoch(const struct el_loader *loader)
{
    return el_batcher_steps(loader->batchers[0]);
}

int64_t el_loader_length(struct el_loader *loader, uint64_t step)
{
    struct el_batcher *own = loader->batchers[loader->loading.workers];
    return el_batcher_length(own ? own : loader->batchers[0], step);
}

enum el_status el_loader_fill(struct el_loader *loader, uint64_t step, void *inputs, int32_t *labels)
{
    struct el_load_span span = {.step = step, .worker = -1};
    if (loader->team) {
        EL_TRY(el_team_take(loader->team, step, inputs, labels, &loader->times, &span));
    } else {
        span.begin_ns = span.asked_ns = el_clock_ns();
        EL_TRY(el_batcher_fill(loader->batchers[0], step, inputs, labels, &loader->times));
        span.end_ns = span.got_ns = el_clock_ns();
    }
    span.length = el_loader_length(loader, step);
    loader->spans[loader->n_spans++ % EL_LOAD_SPANS] = span;
    return EL_OK;
}

void el_loader_account(const struct el_loader *loader, struct el_load_account *account_p)
{
    const int64_t n = loader->n_spans < EL_LOAD_SPANS ? loader->n_spans : EL_LOAD_SPANS;
    *account_p = (struct el_load_account){.times = loader->times, .n_spans = (int)n};
    for (int64_t i = 0; i < n; i++) account_p->spans[i] = loader->spans[(loader->n_spans - n + i) % EL_LOAD_SPANS];
    if (loader->team) account_p->queue_bytes = (int64_t)el_team_bytes(loader->team);
}

void el_load_account_add(const struct el_load_account *more, struct el_load_account *account)
{
    el_load_times_add(&more->times, &account->times);
    account->queue_bytes += more->queue_bytes;
}

void el_loader_reset(struct el_loader *loader)
{
    loader->times = (struct el_load_times){0};
    loader->n_spans = 0;
}
