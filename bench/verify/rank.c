/* A rank of verify: trains cells and compares them with the reference. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/program.h"
#include "bench/base/text.h"
#include "bench/job/worker.h"
#include "bench/options/options.h"
#include "bench/verify/verify.h"
#include "runtime/gate/gate.h"

enum { YARDSTICKS = 16 };

static const char STATISTICS[] = "running statistics";

/* f64: all losses and final running statistics; f32: the first step's loss and gradients. */
struct numbers {
    double loss;         /* f64: the last one */
    double *values;      /* losses then running statistics; or gradients */
    int64_t n, n_losses; /* f64: of values */
    bool in_f64;         /* gradients are in f64 */
};

struct yardstick {
    struct el_train_config config;
    struct numbers numbers;
};

struct rank {
    struct el_options options;
    const char *backend;
    int procs, n_done; /* cells */
    struct el_bootstrap *bootstrap;
    FILE *out;                         /* rank 0's */
    const struct el_model_info *model; /* the yardsticks' model and kind */
    int kind;
    struct yardstick yardsticks[YARDSTICKS];
    int n_yardsticks;
};

/* The loss in f32; gradients too, unless the model's row asks for f64, which a GPU's convolution library lacks: a whole
 * batch on a GPU stays in f32. */
static enum el_status compute_first(const struct el_train_config *config, const struct el_train_place *place,
                                    struct numbers *numbers_p)
{
    const struct el_model_check *check = &el_model_find(config->model.name)->check;
    const bool in_f32 = check->gradient > 0 && config->n_devices == 1 && el_device_is_asynchronous(place->devices[0]);
    struct el_train_config exact = *config;
    double loss;
    EL_TRY(el_gate_gradients(config, place, &numbers_p->loss, &numbers_p->values));
    if (!check->f64_gradients || config->dtype == EL_F64 || in_f32) return EL_OK;
    numbers_p->in_f64 = true;
    free(numbers_p->values);
    numbers_p->values = NULL;
    exact.dtype = EL_F64;
    return el_gate_gradients(&exact, place, &loss, &numbers_p->values);
}

static enum el_status compute(const struct el_train_config *config, const struct el_train_place *place, int kind,
                              struct numbers *numbers_p)
{
    struct el_train_result result;
    if (kind == EL_VERIFY_F32) return compute_first(config, place, numbers_p);
    EL_TRY(el_train(config, place, NULL, &result));
    size_t n = (size_t)result.n_steps, more = (size_t)result.n_buffers;
    numbers_p->n = result.n_steps + result.n_buffers;
    numbers_p->n_losses = result.n_steps;
    numbers_p->loss = result.loss[n - 1];
    numbers_p->values = malloc((n + more) * sizeof(double));
    if (numbers_p->values) memcpy(numbers_p->values, result.loss, n * sizeof(double));
    if (numbers_p->values && more) memcpy(numbers_p->values + n, result.buffers, more * sizeof(double));
    el_train_result_free(&result);
    return numbers_p->values ? EL_OK : el_fail_errno("a cell's numbers");
}

static enum el_status compute_mode(const struct el_job *job, int kind, struct numbers *numbers_p)
{
    struct el_job_devices open;
    enum el_status mine = el_job_open_devices(job, &open), status = el_bootstrap_agree(job->bootstrap, mine);
    if (status == EL_OK) {
        struct el_train_place place = el_job_place(job, &open);
        status = compute(&job->trial->train, &place, kind, numbers_p);
    }
    if (mine == EL_OK) el_job_close_devices(&open);
    return status;
}

static enum el_status compute_yardstick(const struct el_job *job, const struct el_train_config *reference, int kind,
                                        struct numbers *numbers_p)
{
    struct el_bootstrap *self;
    struct el_device *device;
    struct el_device_spec spec = {.backend = "cpu", .kernels = el_kernels_reference()};
    EL_TRY(el_bootstrap_open("self", &self));
    enum el_status status = el_device_open(&spec, &device);
    if (status == EL_OK) {
        struct el_train_place place = {.devices = &device, .n_devices = 1, .bootstrap = self, .dataset = job->dataset};
        status = compute(reference, &place, kind, numbers_p);
        el_device_close(device);
    }
    el_bootstrap_close(self);
    return status;
}

static void forget(struct rank *rank)
{
    while (rank->n_yardsticks > 0) free(rank->yardsticks[--rank->n_yardsticks].numbers.values);
}

static bool is_same(const struct el_train_config *a, const struct el_train_config *b)
{
    return a->n_devices == b->n_devices && a->n_accumulate == b->n_accumulate && a->global_batch == b->global_batch &&
           a->sync_params == b->sync_params && a->loss_in_replica == b->loss_in_replica && a->n_pieces == b->n_pieces &&
           a->pieces_in_order == b->pieces_in_order && a->by_samples == b->by_samples &&
           !memcmp(&a->shares, &b->shares, sizeof a->shares) && a->broadcast_buffers == b->broadcast_buffers &&
           !strcmp(a->model.freeze, b->model.freeze);
}

static enum el_status find_yardstick(struct rank *rank, const struct el_job *job, const struct el_verify_cell *cell,
                                     const struct yardstick **found_p)
{
    struct el_train_config reference;
    el_gate_reference_config(&job->trial->train, &reference);
    reference.dtype = EL_F64;
    reference.model.precision = EL_PRECISION_FULL;
    reference.hook = EL_HOOK_NONE;
    if (rank->options.pairs || rank->model != cell->model || rank->kind != cell->kind ||
        rank->n_yardsticks == YARDSTICKS)
        forget(rank);
    rank->model = cell->model;
    rank->kind = cell->kind;
    for (int i = 0; i < rank->n_yardsticks; i++) {
        *found_p = &rank->yardsticks[i];
        if (is_same(&(*found_p)->config, &reference)) return EL_OK;
    }
    struct yardstick *made = &rank->yardsticks[rank->n_yardsticks];
    *made = (struct yardstick){.config = reference};
    EL_TRY(compute_yardstick(job, &reference, cell->kind, &made->numbers));
    rank->n_yardsticks++;
    *found_p = made;
    return EL_OK;
}

static double off(double x, double wanted)
{
    double difference = fabs(x - wanted) / fmax(1, fabs(wanted));
    return isnan(difference) ? INFINITY : difference;
}

/* f64 skips gradients. */
struct judgement {
    double loss, loss_limit, gradient, gradient_limit;
    char where[64];
};

static void judge_losses(const struct numbers *numbers, const struct numbers *wanted, struct judgement *j)
{
    j->loss_limit = EL_VERIFY_F64_LOSS;
    for (int64_t i = 0; i < numbers->n; i++) {
        double difference = off(numbers->values[i], wanted->values[i]);
        if (difference > j->loss && i < numbers->n_losses) snprintf(j->where, sizeof j->where, "step %d", (int)i);
        if (difference > j->loss && i >= numbers->n_losses) snprintf(j->where, sizeof j->where, "%s", STATISTICS);
        j->loss = fmax(j->loss, difference);
    }
}

static enum el_status judge_f32(const struct el_job *job, const struct el_model_check *check,
                                const struct numbers *numbers, const struct numbers *wanted, struct judgement *j)
{
    const struct el_train_config *config = &job->trial->train;
    const struct el_gate_limits limits =
        el_gate_limits(config, el_trial_backend(job->trial).gpu ? EL_GATE_GPU : EL_GATE_CPU);
    j->loss_limit = limits.loss;
    j->gradient_limit = numbers->in_f64       ? EL_VERIFY_F64_GRADIENT
                        : check->gradient > 0 ? check->gradient
                                              : limits.gradient;
    j->loss = off(numbers->loss, wanted->loss);
    EL_TRY(el_gate_compare(config, numbers->values, wanted->values, &j->gradient, j->where, sizeof j->where));
    if (isnan(j->gradient)) j->gradient = INFINITY;
    return EL_OK;
}

static void put_judgement(const struct judgement *j, const struct numbers *numbers, json_t *line)
{
    char reason[256];
    const double last[] = {numbers->loss, j->gradient};
    uint64_t bits = el_hash(EL_HASH_BEGIN, last, sizeof last);
    bits = el_hash(bits, numbers->values, sizeof(double) * (size_t)numbers->n);
    bool ok = j->loss <= j->loss_limit && j->gradient <= j->gradient_limit;
    snprintf(reason, sizeof reason, "%s off by up to %.2g (limit %g)",
             strcmp(j->where, STATISTICS) ? "the loss is" : "numbers are", j->loss, j->loss_limit);
    if (j->gradient_limit > 0)
        el_text_append(reason, sizeof reason, ", gradients by %.2g (limit %g)", j->gradient, j->gradient_limit);
    el_text_append(reason, sizeof reason, ", most in %s", j->where);
    bool gradients = j->gradient_limit > 0;
    el_json_put_all(line, EL_KEY("status", ok ? "ok" : "failed"), EL_KEY("difference", j->loss),
                    EL_KEY("limit", j->loss_limit), EL_KEY("gradient_difference", gradients ? j->gradient : NAN),
                    EL_KEY("gradient_limit", gradients ? j->gradient_limit : NAN), EL_KEY("where", j->where),
                    EL_KEY("bits", json_sprintf("%016llx", (unsigned long long)bits)),
                    EL_KEY("reason", ok ? NULL : (const char *)reason));
}

static enum el_status judge(struct rank *rank, const struct el_job *job, const struct el_verify_cell *cell,
                            const struct numbers *numbers, json_t *line)
{
    struct judgement judgement = {0};
    const struct yardstick *wanted = NULL;
    EL_TRY(find_yardstick(rank, job, cell, &wanted));
    if (cell->kind == EL_VERIFY_F32)
        EL_TRY(judge_f32(job, &cell->model->check, numbers, &wanted->numbers, &judgement));
    else
        judge_losses(numbers, &wanted->numbers, &judgement);
    put_judgement(&judgement, numbers, line);
    json_object_set_new(line, "shares", json_integer(wanted->config.n_devices));
    return EL_OK;
}

static json_t *begin_line(const struct rank *rank, const struct el_verify_cell *cell)
{
    const bool bf16 = !rank->options.pairs && strstr(cell->variant, "--precision bf16");
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i}", "backend", rank->backend, "mode", cell->mode->name,
                     "variant", cell->variant, "model", cell->model->name, "kind",
                     bf16 ? "bf16" : el_verify_kind(cell->kind), "devices",
                     el_mode_devices(cell->mode->name, cell->n_devices), "procs", rank->procs);
}

static enum el_status write_line(const struct rank *rank, json_t *line)
{
    bool written = !rank->out || (json_dumpf(line, rank->out, JSON_COMPACT) == 0 && fputc('\n', rank->out) == '\n' &&
                                  fflush(rank->out) == 0);
    json_decref(line);
    return written ? EL_OK : el_fail_errno("the result of a cell could not be written");
}

/* One rank's failure is the cell's, not the job's. A mode cannot serve what it refuses while being built, such as ddp a
 * parameter that no step uses. */
static enum el_status run_cell(struct rank *rank, const struct el_job *job, const struct el_verify_cell *cell)
{
    char command[2 * EL_PATH_BYTES] = "";
    struct numbers numbers = {0};
    struct el_error error;
    json_t *parts = NULL, *line = begin_line(rank, cell);
    enum el_status status = compute_mode(job, cell->kind, &numbers);
    if (status == EL_OK && rank->out) status = judge(rank, job, cell, &numbers, line);
    free(numbers.values);
    enum el_status gathered = el_job_gather(job, status, NULL, &parts, &error);
    json_decref(parts);
    if (rank->out && (gathered != EL_OK || error.status != EL_OK)) {
        bool refused = gathered == EL_OK && error.status == EL_ERR_INVALID;
        el_json_put_text(line, "status", refused ? "unserved" : "failed");
        el_json_put_text(line, "reason", gathered == EL_OK ? error.text : el_error_message());
    }
    if (el_trial_command(job->trial, command, sizeof command) == EL_OK) el_json_put_text(line, "command", command);
    EL_TRY(write_line(rank, line));
    return gathered;
}

static enum el_status visit(void *context, const struct el_verify_cell *cell)
{
    struct rank *rank = context;
    struct el_trial_set set;
    enum el_status status = el_verify_resolve(&rank->options, rank->backend, cell, rank->procs, &set);
    if (status == EL_ERR_INVALID && rank->procs == 1) {
        json_t *line = begin_line(rank, cell);
        el_json_put_text(line, "status", "unserved");
        el_json_put_text(line, "reason", el_error_message());
        return write_line(rank, line);
    }
    if (status != EL_OK) return status == EL_ERR_INVALID ? EL_OK : status;
    const struct el_job job = {.trial = set.trials, .dataset = set.dataset, .bootstrap = rank->bootstrap};
    if (rank->out)
        printf("[%s, %d process%s: cell %d] %s %s on %d, %s%s%s\n", rank->backend, rank->procs,
               rank->procs > 1 ? "es" : "", ++rank->n_done, cell->mode->name, cell->model->name, cell->n_devices,
               el_verify_kind(cell->kind), *cell->variant ? ", " : "", cell->variant);
    fflush(stdout);
    if (set.trials->procs == rank->procs) status = run_cell(rank, &job, cell);
    el_trials_free(&set);
    return status;
}

static enum el_status visit_pairs(struct rank *rank)
{
    struct el_verify_pairs *pairs = el_verify_pairs_open(&rank->options, rank->backend);
    enum el_status status = pairs ? el_verify_pairs_each(pairs, visit, rank) : el_fail_errno("pairs of options");
    json_t *figures = el_verify_pairs_close(pairs);
    if (status == EL_OK) return write_line(rank, figures);
    json_decref(figures);
    return status;
}

enum el_status el_verify_worker(struct el_worker *worker)
{
    enum { RESULT, DATA, BACKEND, PROCS };
    char **argv = worker->arguments;
    struct rank rank = {.kind = -1, .options = worker->options, .backend = argv[BACKEND], .procs = atoi(argv[PROCS])};
    snprintf(rank.options.data, sizeof rank.options.data, "%s", argv[DATA]);
    EL_TRY(el_worker_join(worker, rank.procs > 1));
    rank.bootstrap = worker->bootstrap;
    enum el_status status = EL_OK;
    if (el_bootstrap_rank(rank.bootstrap) == 0) {
        rank.out = fopen(argv[RESULT], "w");
        if (!rank.out) status = el_fail_errno("%s", argv[RESULT]);
    }
    status = el_bootstrap_agree(rank.bootstrap, status);
    if (status == EL_OK && rank.options.pairs)
        status = visit_pairs(&rank);
    else if (status == EL_OK)
        status = el_verify_each(&rank.options, rank.backend, visit, &rank);
    worker->unwritten = status == EL_OK; /* from here on */
    bool lost = rank.out && ferror(rank.out);
    errno = EIO;
    if (rank.out && (fclose(rank.out) != 0 || lost) && status == EL_OK)
        status = el_fail_errno("%s could not be written", argv[RESULT]);
    forget(&rank);
    return status;
}
