/* Checkpoints while training goes on; see checkpoint.h. Who waits for whom: a worker's step for its own thread, the
 * first worker's thread for a small file `rank-N.done` of each other one, which says "ok HASH BYTES" or why not. Where
 * there is no room for that either, all hear of it when the next checkpoint begins, or training ends. */
#include "runtime/train/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/state/checkpoint.h"
#include "runtime/train/session.h"
#include "runtime/worker/gather.h"

enum { BEHIND = 15, SAID_BYTES = 256, PATIENCE_S = 60, POLL_NS = 2000000 };

/* What the first worker knows of the others' files. */
enum others { MAY_WRITE, HAVE_WRITTEN, ONE_COULD_NOT, ARE_GONE };

struct el_checkpointer {
    struct el_run *run;
    const struct el_checkpoint_spec *spec;
    struct el_snapshot *state, *best; /* best: of the best epoch; NULL where there was none yet */
    uint64_t data_hash;               /* the first worker's */
    pthread_t thread;
    bool running;
    atomic_int others;
    /* Of the checkpoint in work. */
    char folder[EL_PATH_BYTES];
    int64_t step, began_ns;
    json_t *index; /* the first worker's, but for the files */
    bool failed;
    char reason[EL_CHECKPOINT_REASON_BYTES];
    struct el_checkpoint_result result;
};

/* ---- all of them ---- */

static void path_of(const struct el_checkpointer *c, int worker, const char *end, char path[EL_PATH_BYTES + 64])
{
    snprintf(path, EL_PATH_BYTES + 64, "%s/rank-%d.%s", c->folder, worker, end);
}

static enum el_status write_done(const struct el_checkpointer *c, enum el_status status, uint64_t hash, int64_t bytes)
{
    char path[EL_PATH_BYTES + 64], temporary[EL_PATH_BYTES + 128];
    path_of(c, c->run->index, "done", path);
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (!file) return el_fail_errno("%s", el_path_tail(path));
    if (status == EL_OK)
        fprintf(file, "ok %016" PRIx64 " %" PRId64 "\n", hash, bytes);
    else
        fprintf(file, "failed %s\n", el_error_message());
    return el_file_end(file, temporary, path);
}

/* The other worker's word, when it has given it. */
static enum el_status await(const struct el_checkpointer *c, int worker, json_t *files)
{
    char path[EL_PATH_BYTES + 64], said[SAID_BYTES], hash[17], name[64];
    long long bytes;
    path_of(c, worker, "done", path);
    for (int64_t begin = el_clock_ns();;) {
        const int others = atomic_load(&c->others); /* before the look: what it says is there by then */
        if (el_file_line(path, "", said, sizeof said)) break;
        if (others == ARE_GONE) return el_fail(EL_ERR_PEER, "training has failed");
        if (others == ONE_COULD_NOT)
            return el_fail(EL_ERR_PEER, "rank %d could not write its file; its log says why", worker);
        if (others == MAY_WRITE) begin = el_clock_ns();
        if (el_clock_ns() - begin > INT64_C(1000000000) * PATIENCE_S)
            return el_fail(EL_ERR_TIMEOUT, "the file of rank %d is not seen in %d s", worker, PATIENCE_S);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    unlink(path);
    if (sscanf(said, "ok %16s %lld", hash, &bytes) != 2)
        return el_fail(EL_ERR_PEER, "rank %d:%s", worker, said + strcspn(said, " "));
    snprintf(name, sizeof name, "rank-%d.safetensors", worker);
    json_array_append_new(files, json_pack("{s:s, s:s, s:I}", "name", name, "hash", hash, "bytes", (json_int_t)bytes));
    return EL_OK;
}

static void sync_folder(const char *path)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) fsync(folder), close(folder);
}

/* The first worker: all files are there. */
static enum el_status complete(struct el_checkpointer *c)
{
    char final[EL_PATH_BYTES];
    json_t *files = json_array();
    enum el_status status = EL_OK;
    for (int w = 0; w < c->run->worker.layout->n_workers && status == EL_OK; w++) status = await(c, w, files);
    json_object_set_new(c->index, "files", files);
    if (status == EL_OK) status = el_checkpoint_write_index(c->folder, json_incref(c->index));
    el_checkpoint_folder(c->spec->dir, c->step, true, final);
    if (status == EL_OK) {
        sync_folder(c->folder);
        el_checkpoint_remove(final);
        if (rename(c->folder, final) != 0) status = el_fail_errno("%s", el_path_tail(final));
    }
    if (status != EL_OK) {
        el_checkpoint_remove(c->folder);
        return status;
    }
    sync_folder(c->spec->dir);
    el_checkpoint_tidy(c->spec->dir, c->step, c->spec->keep);
    return EL_OK;
}

static void *write_all(void *argument)
{
    struct el_checkpointer *c = argument;
    char path[EL_PATH_BYTES + 64];
    struct el_safetensors_sum sum = {0};
    const int64_t begin = el_clock_ns();
    setpriority(PRIO_PROCESS, (id_t)gettid(), BEHIND); /* training goes first */
    path_of(c, c->run->index, "safetensors", path);
    enum el_status status = el_checkpoint_file_write(path, c->state, c->best, &sum);
    if (status == EL_OK) c->result.bytes = sum.bytes;
    const enum el_status said = write_done(c, status, sum.hash, sum.bytes);
    if (status == EL_OK) status = said;
    c->result.write_ns += el_clock_ns() - begin;
    if (c->index && status == EL_OK) status = complete(c);
    if (c->index && status != EL_OK) el_checkpoint_remove(c->folder);
    c->failed = status != EL_OK;
    if (!c->failed || atomic_load(&c->others) == ARE_GONE) return NULL;
    snprintf(c->reason, sizeof c->reason, "no checkpoint of step %" PRId64 ": %s", c->step, el_error_message());
    fprintf(stderr, "evenload: %s; training goes on\n", c->reason);
    return NULL;
}

/* ---- in the loop ---- */

static void await_thread(struct el_checkpointer *c)
{
    if (!c->running) return;
    pthread_join(c->thread, NULL);
    c->running = false;
    c->result.n++;
    if (c->failed && c->result.n_failed++ == 0) memcpy(c->result.reason, c->reason, sizeof c->reason);
    json_decref(c->index);
    c->index = NULL;
}

/* Ends the checkpoint in work. All workers tell the first one whether their files are there. */
static enum el_status settle(struct el_checkpointer *c)
{
    const bool first = el_worker_is_first(&c->run->worker);
    double n_failed = 0;
    if (!c->running) return EL_OK;
    if (!first) await_thread(c);
    if (!first) n_failed = c->failed;
    const enum el_status status = el_worker_sum(&c->run->worker, &n_failed, 1);
    atomic_store(&c->others, status != EL_OK ? ARE_GONE : n_failed > 0 ? ONE_COULD_NOT : HAVE_WRITTEN);
    await_thread(c);
    return status;
}

/* Epochs and their evaluations, for a job that goes on. A loss may be no number. */
static json_t *show_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *show_score(const struct el_score *score)
{
    return json_pack("[f, f, o, f]", score->correct, score->counted, show_real(score->loss), score->bytes);
}

static json_t *show_epochs(const struct el_run *run)
{
    json_t *epochs = json_array();
    for (int e = 0; e < run->result.n_epochs; e++) {
        const struct el_epoch_result *epoch = &run->result.epochs[e];
        json_t *ranks = json_array();
        for (int r = 0; r < epoch->held_out.n_ranks; r++)
            json_array_append_new(ranks, show_score(&epoch->held_out.ranks[r]));
        json_array_append_new(
            epochs, json_pack("{s:f, s:o, s:I, s:o, s:b, s:o, s:o}", "seconds", epoch->seconds, "train_loss",
                              show_real(epoch->train_loss), "samples", (json_int_t)epoch->held_out.samples, "accuracy",
                              show_real(epoch->held_out.accuracy), "own_buffers", (int)epoch->held_out.own_buffers,
                              "all", show_score(&epoch->held_out.all), "ranks", ranks));
    }
    return epochs;
}

static json_t *make_index(const struct el_checkpointer *c, double epoch_loss)
{
    const struct el_run *run = c->run;
    json_t *index = el_checkpoint_describe(run->session->config);
    if (c->spec->job) json_object_set_new(index, "job", json_string(c->spec->job));
    json_object_set_new(index, "step", json_integer(c->step));
    const int64_t batch = c->step - run->origin, of = run->data_steps ? run->data_steps : INT64_MAX;
    json_object_set_new(index, "data",
                        json_pack("{s:I, s:I, s:o}", "epoch", (json_int_t)(batch / of), "samples",
                                  (json_int_t)(batch % of * run->session->config->global_batch), "hash",
                                  el_checkpoint_hex(c->data_hash)));
    json_object_set_new(index, "workers", json_integer(run->worker.layout->n_workers));
    json_object_set_new(index, "epochs", show_epochs(run));
    json_object_set_new(index, "epoch_loss", show_real(epoch_loss));
    json_object_set_new(index, "best_epoch", json_integer(run->result.best_epoch));
    json_object_set_new(index, "best_accuracy", json_real(run->best_accuracy));
    return index;
}

/* The best epoch's weights, as they are now. */
static enum el_status copy_best(struct el_checkpointer *c)
{
    const struct el_snapshot *best = c->run->best;
    if (!best) return EL_OK;
    if (!c->best) EL_TRY(el_snapshot_open(&c->run->worker, EL_WEIGHT_ROWS, el_checkpoint_file_has, &c->best));
    el_snapshot_copy(best, c->best);
    return EL_OK;
}

/* By the first worker alone: one that comes later would make it again when that has given it up. If it cannot be, all
 * say so when they write. */
static enum el_status make_folder(const struct el_checkpointer *c)
{
    double made = 0;
    if (el_worker_is_first(&c->run->worker)) made = mkdir(c->folder, 0777) == 0;
    return el_worker_take_first(&c->run->worker, &made, 1);
}

static enum el_status begin(struct el_checkpointer *c)
{
    double epoch_loss = 0;
    const int64_t began = c->began_ns = el_clock_ns();
    EL_TRY(settle(c));
    const int64_t waited = el_clock_ns();
    c->result.wait_ns += waited - began;
    c->step = c->run->n_done;
    el_checkpoint_folder(c->spec->dir, c->step, false, c->folder);
    EL_TRY(make_folder(c));
    EL_TRY(el_run_epoch_loss(c->run, &epoch_loss));
    EL_TRY(el_snapshot_take(c->state));
    EL_TRY(copy_best(c));
    if (el_worker_is_first(&c->run->worker)) c->index = make_index(c, epoch_loss);
    atomic_store(&c->others, MAY_WRITE);
    if (pthread_create(&c->thread, NULL, write_all, c) != 0)
        return el_fail(EL_ERR_HOST_MEMORY, "a thread to write a checkpoint could not be made");
    c->running = true;
    c->result.copy_ns += el_clock_ns() - waited;
    if (c->spec->async) return EL_OK;
    const int64_t copied = el_clock_ns();
    const enum el_status status = settle(c);
    c->result.wait_ns += el_clock_ns() - copied;
    return status;
}

enum el_status el_run_checkpoint(struct el_run *run)
{
    struct el_checkpointer *c = run->checkpointer;
    if (!c) return EL_OK;
    double due = c->spec->every > 0 ? run->n_done % c->spec->every == 0
                                    : (double)(el_clock_ns() - c->began_ns) >= 1e9 * c->spec->every_s;
    if (c->spec->every == 0) EL_TRY(el_worker_take_first(&run->worker, &due, 1));
    return due != 0 ? begin(c) : EL_OK;
}

enum el_status el_run_open_checkpoints(struct el_run *run)
{
    const struct el_checkpoint_spec *spec = &run->session->place->checkpoint;
    if (!spec->dir || run->session->wants_grads) return EL_OK;
    struct el_checkpointer *c = calloc(1, sizeof *c);
    if (!c) return el_fail_errno("checkpoints");
    *c = (struct el_checkpointer){.run = run, .spec = spec, .began_ns = el_clock_ns()};
    run->checkpointer = c;
    EL_TRY(el_snapshot_open(&run->worker, EL_KEPT_ROWS, el_checkpoint_file_has, &c->state));
    memset(c->state->bytes, 0, c->state->size); /* else the first copy waits for pages */
    double ready = 0;
    if (el_worker_is_first(&run->worker)) {
        EL_TRY(el_dataset_hash(run->session->place->dataset, &c->data_hash));
        el_checkpoint_remove_parts(spec->dir);
    }
    return el_worker_take_first(&run->worker, &ready, 1); /* nobody writes before what is stale is gone */
}

enum el_status el_run_close_checkpoints(struct el_run *run, enum el_status status)
{
    struct el_checkpointer *c = run->checkpointer;
    struct el_error error;
    if (!c) return status;
    if (status == EL_OK) status = settle(c);
    el_error_take(status, &error);
    atomic_store(&c->others, ARE_GONE);
    await_thread(c);
    if (c->state) c->result.copied = (int64_t)(c->state->size + (c->best ? c->best->size : 0));
    run->result.checkpoints = c->result;
    el_snapshot_close(c->state);
    el_snapshot_close(c->best);
    free(c);
    run->checkpointer = NULL;
    return el_error_give(&error);
}
