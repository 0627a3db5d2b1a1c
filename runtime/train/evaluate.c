/* Evaluation: a forward-only program over a split, over all owners, as config->eval says. The host sums losses in
 * double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/half.h"
#include "runtime/modes/pipeline/flight.h"
#include "runtime/state/buffers.h"
#include "runtime/train/session.h"
#include "runtime/worker/copies.h"

struct way {
    struct el_worker *worker;
    const struct el_shard *shard;
    struct el_feed *feed;
    struct el_held held;
    struct el_gathered *gathered; /* parameters stored by ranges; else NULL */
    struct el_buffer *logits;     /* of a batch, at the last part; else NULL */
    bool counts;                  /* with tensor parallelism all pieces have the logits, and the first's count */
    void *answers;                /* on the host: [samples, classes] */
};

static size_t logits_bytes(const struct way *way)
{
    const struct el_graph *graph = way->worker->graph;
    return (size_t)(way->feed->samples * el_graph_output_count(graph)) *
           el_dtype_bytes(el_graph_output_dtype(graph, way->shard->config->dtype));
}

/* A row's logits from all pieces: [pieces, rows, classes per piece]. */
struct answer {
    const void *row;
    enum el_dtype dtype;
    int64_t classes, each, stride; /* classes per piece; values between a row's pieces */
};

static double logit_of(const struct answer *answer, int64_t class)
{
    const int64_t at = class / answer->each * answer->stride + class % answer->each;
    if (answer->dtype == EL_BF16) return (double)el_f32_of_bf16(((const uint16_t *)answer->row)[at]);
    return answer->dtype == EL_F64 ? ((const double *)answer->row)[at] : (double)((const float *)answer->row)[at];
}

/* -log softmax of the label; *right_p: whether the label is the first maximum. */
static double cross_entropy(const struct answer *answer, int32_t label, bool *right_p)
{
    int64_t best = 0;
    double sum = 0, largest = logit_of(answer, 0);
    for (int64_t c = 1; c < answer->classes; c++)
        if (logit_of(answer, c) > largest) best = c, largest = logit_of(answer, c);
    for (int64_t c = 0; c < answer->classes; c++) sum += exp(logit_of(answer, c) - largest);
    *right_p = best == label;
    return label < answer->classes ? log(sum) + largest - logit_of(answer, label) : INFINITY;
}

static enum el_status tally(const struct way *way, struct el_score *score)
{
    const struct el_graph *graph = way->worker->graph;
    const enum el_dtype dtype = el_graph_output_dtype(graph, way->shard->config->dtype);
    const int32_t *labels = way->feed->host_labels;
    EL_TRY(el_device_read(el_view_of(way->logits, 0), way->answers, logits_bytes(way)));
    const int64_t rows = way->feed->samples * graph->labels, each = way->shard->graph->classes;
    struct answer answer = {.dtype = dtype, .classes = graph->classes, .each = each, .stride = rows * each};
    for (int64_t i = 0; i < rows; i++) {
        bool right;
        answer.row = (const char *)way->answers + (size_t)(i * answer.each) * el_dtype_bytes(dtype);
        if (labels[i] < 0) continue;
        score->loss += cross_entropy(&answer, labels[i], &right);
        score->correct += right;
        score->counted++;
        score->bytes += 1;
    }
    return EL_OK;
}

/* A batch between two parts: the next part's inputs. */
struct place {
    struct el_program *program;
    struct el_buffer *fed, *labels;
    struct el_view *values, *outputs;
};

static void receive_values(const struct way *way, const struct el_held_part *part, struct place *place)
{
    struct el_buffer *received;
    struct el_edge from = {.peer = part->before, .batch = way->feed->samples};
    if (part->before == EL_HELD_NOBODY) place->values[0] = el_view_of(place->fed, 0);
    for (int i = 0; i < part->graph->n_inputs && part->before >= 0; i++)
        place->values[i] = el_edge_receive(way->worker, place->program, &from, part->graph->inputs[i], &received);
}

static void send_values(const struct way *way, const struct el_held_part *part, const struct place *place)
{
    struct el_edge to = {.peer = part->behind, .batch = way->feed->samples};
    for (int i = 0; i < part->graph->n_outputs && part->behind >= 0; i++)
        el_edge_send(way->worker, place->program, &to, part->graph->outputs[i], place->values[i], NULL);
}

static enum el_status go_through(const struct way *way, const struct el_held_part *part, struct place *place,
                                 struct el_pass **pass_p)
{
    struct el_pass_spec spec = {.graph = part->graph,
                                .device = way->shard->device,
                                .stream = EL_STREAM_COMPUTE,
                                .dtype = way->shard->config->dtype,
                                .batch = way->feed->samples,
                                .sample_stride = 1,
                                .params = part->params,
                                .buffers = part->buffers,
                                .env = {.group = way->worker->group}};
    if (way->gathered) {
        spec.params = el_gathered_params(way->gathered);
        spec.env.before_node = el_gathered_before;
        spec.env.after_node = el_gathered_after;
        spec.env.context = way->gathered;
    }
    EL_TRY(el_pass_open(place->program, &spec, pass_p));
    receive_values(way, part, place);
    el_pass_forward(*pass_p, place->values, place->outputs);
    memcpy(place->values, place->outputs, (size_t)part->graph->n_outputs * sizeof *place->outputs);
    send_values(way, part, place);
    return EL_OK;
}

static void gather_logits(const struct way *way, struct el_program *program, struct el_view own)
{
    struct el_comm *pieces = way->worker->group[EL_AXIS_TENSOR];
    const struct el_graph *graph = way->shard->graph;
    struct el_comm_op op = {.verb = EL_COMM_ALL_GATHER,
                            .dtype = el_graph_output_dtype(graph, way->shard->config->dtype),
                            .count = (size_t)(way->feed->samples * el_graph_output_count(graph)),
                            .data = own,
                            .result = el_view_of(way->logits, 0),
                            .label = "keep logits",
                            .phase = EL_PHASE_COMM,
                            .join = true};
    el_comm_issue(pieces, program, &op, NULL);
}

/* Outputs live until the end: the next part may be on this device, or a message is being sent. */
static enum el_status issue(const struct way *way, struct el_program *program)
{
    struct el_pass *passes[EL_PARTS_MAX] = {NULL};
    size_t n_tensors = (size_t)way->worker->graph->n_tensors;
    struct place place = {.program = program, .values = calloc(2 * n_tensors, sizeof *place.values)};
    enum el_status status = EL_OK;
    if (!place.values) return el_fail_errno("values between parts");
    place.outputs = place.values + n_tensors;
    el_feed_issue(way->feed, program, &place.fed, &place.labels);
    for (int i = 0; i < way->held.n && status == EL_OK; i++)
        status = go_through(way, &way->held.parts[i], &place, &passes[i]);
    if (way->logits && status == EL_OK && way->shard->graph->class_slice.of)
        gather_logits(way, program, place.values[0]);
    else if (way->logits && status == EL_OK)
        el_program_copy(program, way->shard->device, EL_STREAM_COMPUTE,
                        &(struct el_op_head){.label = "keep logits", .phase = EL_PHASE_LOSS},
                        el_view_of(way->logits, 0), place.values[0], logits_bytes(way), NULL);
    for (int i = 0; i < way->held.n; i++) el_pass_close(passes[i]);
    free(place.values);
    EL_TRY(status);
    return el_program_end(program);
}

static enum el_status count(const struct way *way, struct el_score *score)
{
    struct el_program *program;
    EL_TRY(el_program_create(&program));
    enum el_status status = issue(way, program);
    int64_t steps = el_loader_steps_per_epoch(way->feed->loader);
    for (int64_t i = 0; status == EL_OK && i < steps; i++) {
        status = el_program_run(program, (uint64_t)i, NULL);
        if (status == EL_OK && way->logits && way->counts) status = tally(way, score);
    }
    el_program_destroy(program);
    return status;
}

static bool is_cut(const struct el_layout *layout)
{
    return el_layout_per_copy(layout) > 1;
}

static int owners_before(const struct el_layout *layout, int position)
{
    int n = 0;
    for (int d = 0; d < position; d++) n += el_layout_spot(layout, d).owns;
    return n;
}

static int count_ranks(const struct el_layout *layout)
{
    return is_cut(layout) ? layout->n_feeds : owners_before(layout, layout->n_devices);
}

static int rank_of(const struct el_layout *layout, int position)
{
    return is_cut(layout) ? el_layout_spot(layout, position).feed : owners_before(layout, position);
}

/* A member's part of the split. Owners of the whole model share it evenly, in batches as in training; stages all take
 * the whole split, a micro-batch at a time. */
static void spec_feed(const struct el_run *run, int position, struct el_feed_spec *spec)
{
    const struct el_layout *layout = &run->session->layout;
    const struct el_train_config *config = run->session->config;
    spec->n_parts = count_ranks(layout);
    spec->part = rank_of(layout, position);
    if (is_cut(layout)) {
        spec->batch = config->global_batch / (config->n_micro ? config->n_micro : layout->n_feeds);
        spec->what = el_worker_feeds(&run->session->parts, el_layout_spot(layout, position).at[EL_AXIS_STAGE]);
    }
    for (int d = 0; d < layout->n_devices && !is_cut(layout); d++)
        if (el_layout_spot(layout, d).owns)
            spec->batch += (el_layout_spot(layout, d).samples + config->n_accumulate - 1) / config->n_accumulate;
    const int64_t largest = el_share_size(spec->batch, spec->n_parts, 0);
    spec->pad = config->eval == EL_EVAL_PADDED;
    if (spec->pad) spec->batch = largest * spec->n_parts; /* so that rank r has places r, r + n, ... in each batch */
    if (config->eval == EL_EVAL_EXACT && spec->n_parts == layout->n_feeds) spec->shares = el_layout_feed_shares(layout);
    if (config->eval != EL_EVAL_EACH) return;
    spec->batch = largest;
    spec->part = 0, spec->n_parts = 1;
}

static enum el_status open_logits(struct way *way)
{
    const size_t bytes = logits_bytes(way);
    if (way->held.parts[way->held.n - 1].behind != EL_HELD_NOBODY) return EL_OK;
    if (!(way->answers = malloc(bytes + 1))) return el_fail_errno("answers of an evaluation");
    return el_device_alloc(way->shard->device, EL_TAG_OUTPUT, bytes, "logits", &way->logits);
}

static bool is_first_piece(const struct el_run *run, int member)
{
    return el_layout_spot(&run->session->layout, run->worker.first + member).at[EL_AXIS_TENSOR] == 0;
}

static enum el_status count_share(struct el_run *run, int member, enum el_data_split split, bool own_buffers,
                                  struct el_score *score)
{
    const struct el_shard *owner = &run->worker.members[member].shard;
    struct el_feed feed;
    struct el_buffer *buffers = NULL;
    struct way way = {.worker = &run->worker, .shard = owner, .feed = &feed, .counts = is_first_piece(run, member)};
    struct el_feed_spec spec = {.config = owner->config,
                                .graph = run->worker.graph,
                                .device = owner->device,
                                .dataset = run->session->place->dataset,
                                .split = split};
    spec_feed(run, run->worker.first + member, &spec);
    struct el_ledger before = *el_device_ledger(owner->device);
    enum el_status status = el_feed_open(&feed, &spec);
    if (status == EL_OK) status = el_held_open(&run->worker, member, &way.held);
    if (status == EL_OK && !own_buffers) status = el_copies_take_first(&run->worker, member, &way.held, &buffers);
    if (status == EL_OK && owner->config->zero == 3)
        status = el_gathered_open(owner, run->worker.group[EL_AXIS_SHARD], 1, true, 1, &way.gathered);
    if (status == EL_OK) status = open_logits(&way);
    if (status == EL_OK) status = count(&way, score);
    free(way.answers);
    el_device_free(way.logits);
    el_device_free(buffers);
    el_gathered_close(way.gathered);
    el_held_close(&way.held);
    el_feed_close(&feed);
    el_device_ledger_restore_peak(owner->device, &before);
    return status;
}

/* Sums the counts over workers; each rank belongs to one, and others add zeros. */
static enum el_status count_all(struct el_run *run, enum el_data_split split, struct el_evaluation *evaluation)
{
    struct el_worker *worker = &run->worker;
    const int64_t n = evaluation->n_ranks * (int64_t)(sizeof *evaluation->ranks / sizeof(double));
    for (int m = 0; m < worker->n_members; m++)
        if (worker->members[m].shard.params)
            EL_TRY(count_share(run, m, split, evaluation->own_buffers,
                               &evaluation->ranks[rank_of(worker->layout, worker->first + m)]));
    EL_TRY(el_worker_sum(worker, (double *)evaluation->ranks, n));
    const int n_parts = worker->config->eval == EL_EVAL_EACH ? 1 : evaluation->n_ranks;
    for (int r = 0; r < n_parts; r++) {
        evaluation->all.correct += evaluation->ranks[r].correct;
        evaluation->all.counted += evaluation->ranks[r].counted;
        evaluation->all.loss += evaluation->ranks[r].loss;
        evaluation->all.bytes += evaluation->ranks[r].bytes;
    }
    evaluation->accuracy = evaluation->all.correct / evaluation->all.counted;
    return EL_OK;
}

enum el_status el_run_evaluate(struct el_run *run, enum el_data_split split, struct el_evaluation *evaluation_p)
{
    const struct el_worker *worker = &run->worker;
    const struct el_train_config *config = worker->config;
    struct el_evaluation evaluation = {.samples = el_dataset_size(run->session->place->dataset, split), .accuracy = -1};
    *evaluation_p = evaluation;
    if (evaluation.samples == 0 || worker->graph->loss != EL_LOSS_CROSS_ENTROPY ||
        !el_device_computes(worker->members[0].shard.device))
        return EL_OK;
    evaluation.n_ranks = count_ranks(worker->layout);
    evaluation.own_buffers = config->eval != EL_EVAL_EXACT && !config->broadcast_buffers && evaluation.n_ranks > 1 &&
                             worker->graph->n_buffers > 0;
    evaluation.ranks = calloc((size_t)evaluation.n_ranks, sizeof *evaluation.ranks);
    if (!evaluation.ranks) return el_fail_errno("an evaluation by %d ranks", evaluation.n_ranks);
    enum el_status status = count_all(run, split, &evaluation);
    if (status == EL_OK)
        *evaluation_p = evaluation;
    else
        free(evaluation.ranks);
    return status;
}
