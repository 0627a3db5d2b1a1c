#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/state/checkpoint.h"
#include "runtime/train/session.h"

static enum el_status restore(const struct el_run *run, const struct el_shard *shard, const struct el_state_item *item,
                              const char *kind)
{
    const struct el_checkpoint *from = run->session->place->checkpoint.resume;
    const json_t *index = el_checkpoint_index(from);
    const bool same = !strcmp(json_string_value(json_object_get(index, "mode")), run->session->config->mode) &&
                      json_integer_value(json_object_get(index, "workers")) == run->worker.layout->n_workers;
    struct el_param whole = *item->array;
    whole.shape = el_slice_origin(&item->array->shape, &item->array->slice);
    whole.slice = (struct el_slice){0};
    const int64_t all = el_shape_count(&whole.shape), n = el_shape_count(&item->array->shape);
    double *values = calloc((size_t)(all + n), sizeof *values), *own = values + all;
    bool found = false;
    if (!values) return el_fail_errno("'%s'", whole.name);
    enum el_status status = el_checkpoint_read(
        from, kind, &whole,
        same && (item->what == EL_STATE_BUFFER || run->session->config->sync_params) ? run->index : -1, values, &found);
    if (status == EL_OK && found) {
        el_slice_take(&item->array->shape, &item->array->slice, values, own);
        status = el_shard_write_item(shard, item, own);
    }
    free(values);
    return status;
}

static enum el_status restore_all(const struct el_run *run, unsigned rows, const char *prefix)
{
    for (int m = 0; m < run->worker.n_members; m++) {
        const struct el_shard *shard = &run->worker.members[m].shard;
        for (struct el_state_item item = {0}; el_shard_next(shard, &item);) {
            char kind[EL_GRAPH_NAME_BYTES];
            const char *found = prefix ? prefix : el_checkpoint_kind(&item.row, item.what, kind);
            if (!(rows & 1U << item.what) || !found || item.count == 0 || !item.view->buffer) continue;
            EL_TRY(restore(run, shard, &item, found));
        }
    }
    return EL_OK;
}

/* null is a NaN. */
static double real(const json_t *value)
{
    return json_is_null(value) ? NAN : json_number_value(value);
}

static double number(const json_t *object, const char *key)
{
    return real(json_object_get(object, key));
}

static void read_score(const json_t *list, struct el_score *score)
{
    *score = (struct el_score){real(json_array_get(list, 0)), real(json_array_get(list, 1)),
                               real(json_array_get(list, 2)), real(json_array_get(list, 3))};
}

static enum el_status read_epochs(struct el_run *run, const json_t *epochs)
{
    size_t e;
    const json_t *entry;
    json_array_foreach(epochs, e, entry)
    {
        const json_t *ranks = json_object_get(entry, "ranks");
        if ((int64_t)e >= run->session->config->epochs) break;
        struct el_epoch_result *epoch = &run->result.epochs[run->result.n_epochs++];
        *epoch =
            (struct el_epoch_result){.seconds = number(entry, "seconds"),
                                     .train_loss = number(entry, "train_loss"),
                                     .held_out = {.samples = (int64_t)number(entry, "samples"),
                                                  .accuracy = number(entry, "accuracy"),
                                                  .own_buffers = json_is_true(json_object_get(entry, "own_buffers")),
                                                  .n_ranks = (int)json_array_size(ranks)}};
        read_score(json_object_get(entry, "all"), &epoch->held_out.all);
        epoch->held_out.ranks = calloc(json_array_size(ranks) + 1, sizeof *epoch->held_out.ranks);
        if (!epoch->held_out.ranks) return el_fail_errno("epochs");
        for (int r = 0; r < epoch->held_out.n_ranks; r++)
            read_score(json_array_get(ranks, (size_t)r), &epoch->held_out.ranks[r]);
    }
    return EL_OK;
}

/* The best epoch's weights pass through device memory before the current ones are restored. */
enum el_status el_run_resume(struct el_run *run)
{
    const struct el_checkpoint *from = run->session->place->checkpoint.resume;
    if (!from || run->session->wants_grads) return EL_OK;
    const json_t *index = el_checkpoint_index(from);
    const int best = (int)number(index, "best_epoch");
    EL_TRY(read_epochs(run, json_object_get(index, "epochs")));
    run->epoch_loss = number(index, "epoch_loss");
    if (run->session->config->epochs && best >= 0) {
        run->result.best_epoch = best;
        run->best_accuracy = number(index, "best_accuracy");
        EL_TRY(restore_all(run, EL_WEIGHT_ROWS, "best"));
        EL_TRY(el_snapshot_open(&run->worker, EL_WEIGHT_ROWS, NULL, &run->best));
        EL_TRY(el_snapshot_take(run->best));
    }
    return restore_all(run, EL_KEPT_ROWS, NULL);
}
