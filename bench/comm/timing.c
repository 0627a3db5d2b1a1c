/* One member's calls of a curve. All calls of a size are ops of one program, each after a barrier of all members; an
 * op's span is its time. */
#include <math.h>
#include <stdlib.h>

#include "bench/comm/wire.h"
#include "bench/stats/stats.h"
#include "runtime/base/clock.h"

enum { SLOT_ALIGNMENT = 256, FITTING_ROUNDS = 5, FITTING_CALLS = 3, FIRST_ROWS = 16, GROWTH = 64 };

/* Result: all zeros if in place and equally large. */
struct operands {
    struct el_view data, result;
    size_t data_count, result_count;
};

struct content {
    int place;
    int aggregate; /* operations */
    bool silent;
    struct el_wire_work work; /* beside the operations */
};

struct call_ops {
    int begins[2], ends[2];
};

struct calls {
    struct el_program *program;
    int n;
    struct call_ops *ops; /* [n] */
    double *seconds;      /* [n], of the last run */
    int aggregate;        /* operations per call */
    bool follow;          /* no barrier: a call begins where the previous one ends */
};

enum el_status el_wire_member_open(const struct el_wire_plan *plan, struct el_comm *comm,
                                   struct el_wire_member *member_p)
{
    struct el_wire_member member = {.plan = plan, .comm = comm};
    struct el_device *device = el_comm_device(comm);
    size_t bytes = plan->sizes[plan->n_sizes - 1], memory = el_wire_memory_bytes(plan);
    size_t calls = (size_t)plan->n_sizes * (size_t)el_wire_series(plan);
    enum el_status status;
    member.samples_s = calloc(calls * (size_t)plan->options->iters, sizeof *member.samples_s);
    if (!member.samples_s) status = el_fail_errno("samples of %zu rows", calls);
    if (!member.samples_s) goto fail;
    EL_TRY_GOTO(el_device_alloc(device, EL_TAG_WORKSPACE, bytes, "data", &member.data), fail);
    EL_TRY_GOTO(el_device_alloc(device, EL_TAG_WORKSPACE, memory, "result", &member.result), fail);
    EL_TRY_GOTO(el_comm_alloc(comm, EL_TAG_WORKSPACE, memory, "in place", &member.in_place), fail);
    EL_TRY_GOTO(el_device_alloc(device, EL_TAG_WORKSPACE, 64, "meeting", &member.meeting), fail);
    EL_TRY_GOTO(el_device_write(el_view_of(member.meeting, 0), (const char[64]){0}, 64), fail);
    if (plan->options->overlap) EL_TRY_GOTO(el_wire_work_open(&member), fail);
    *member_p = member;
    return EL_OK;
fail:
    el_wire_member_close(&member);
    return status;
}

void el_wire_member_close(struct el_wire_member *member)
{
    el_wire_work_close(member);
    el_device_free(member->meeting);
    el_device_free(member->in_place);
    el_device_free(member->result);
    el_device_free(member->data);
    free(member->samples_s);
    *member = (struct el_wire_member){.plan = NULL};
}

static struct el_view next_slot(const struct el_buffer *buffer, size_t bytes, int i)
{
    size_t stride = (bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
    size_t n = buffer->bytes / stride;
    return el_view_of((struct el_buffer *)buffer, n > 1 ? (size_t)i % n * stride : 0);
}

/* In place, data and result of one size share a buffer; otherwise the smaller one is the member's part of the
 * larger. */
static struct operands place_operands(const struct el_wire_member *member, const struct el_wire_data *data, int place,
                                      int i)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(data->verb);
    size_t all = data->count * (size_t)data->n, own = (size_t)el_comm_rank(member->comm) * data->count;
    struct operands at = {.data = el_view_of(member->data, 0), .result = el_view_of(member->result, 0)};
    at.data_count = row->all_data ? all : data->count;
    at.result_count = row->all_result ? all : data->count;
    if (place == EL_WIRE_APART) return at;
    size_t width = el_dtype_bytes(data->dtype), offset = own * width;
    at.data = at.result = next_slot(member->in_place, el_wire_bytes(data->verb, data->count, width, data->n),
                                    place == EL_WIRE_COLD ? i : 0);
    if (row->all_result && !row->all_data) at.data.offset += offset;
    if (row->all_data && !row->all_result) at.result.offset += offset;
    return at;
}

/* `join`: later ops on the compute stream wait for it. */
static enum el_status meet(const struct el_wire_member *member, struct el_program *program, bool join)
{
    struct el_comm_op op = {.verb = EL_COMM_BARRIER, .phase = EL_PHASE_COMM, .join = join};
    /* of one element: nobody has the result before all have arrived */
    if (!el_comm_has_verb(member->comm, EL_COMM_BARRIER)) {
        op.verb = EL_COMM_ALL_REDUCE;
        op.count = 1;
        op.data = el_view_of(member->meeting, 0);
    }
    return el_comm_issue(member->comm, program, &op, NULL);
}

static enum el_status issue_copy(const struct el_wire_member *member, struct el_program *program, size_t bytes,
                                 int place, int i, int *id)
{
    const struct el_op_head head = {.label = "copy", .phase = EL_PHASE_COMM};
    bool cold = place == EL_WIRE_COLD;
    struct el_view to = next_slot(member->result, bytes, cold ? 2 * i : 0), from = el_view_of(member->data, 0);
    if (cold && 2 * bytes + SLOT_ALIGNMENT <= member->result->bytes) from = next_slot(member->result, bytes, 2 * i + 1);
    return el_program_copy(program, el_comm_device(member->comm), EL_STREAM_COMPUTE, &head, to, from, bytes, id);
}

static enum el_status issue_message(const struct el_wire_member *member, struct el_program *program, size_t count,
                                    bool sends, int partner, struct el_view at, int *id)
{
    struct el_comm_op op = {.verb = sends ? EL_COMM_SEND : EL_COMM_RECV,
                            .dtype = member->curve->dtype,
                            .count = count,
                            .root = partner,
                            .phase = EL_PHASE_COMM};
    *(sends ? &op.data : &op.result) = at;
    return el_comm_issue(member->comm, program, &op, id);
}

static enum el_status issue_uneven(const struct el_wire_member *member, struct el_program *program,
                                   const struct el_wire_data *data, int *begin, int *end)
{
    int rank = el_comm_rank(member->comm), width = (int)el_dtype_bytes(data->dtype), first;
    bool begun = false;
    for (int k = 1; k < 2 * data->n; k++) {
        bool sends = k < data->n;
        int partner = (sends ? rank + k : rank + 2 * data->n - k) % data->n;
        size_t count = sends ? el_wire_part(data, rank, partner) : el_wire_part(data, partner, rank);
        size_t at = sends ? el_wire_part_sent_at(data, rank, partner) : el_wire_part_got_at(data, partner, rank);
        struct el_view view = el_view_of(sends ? member->data : member->result, at * (size_t)width);
        if (count == 0 || partner == rank) continue;
        EL_TRY(issue_message(member, program, count, sends, partner, view, begun ? &first : begin));
        begun = true;
        *end = el_program_op_count(program) - 1;
    }
    return EL_OK;
}

static enum el_status issue(const struct el_wire_member *member, struct el_program *program,
                            const struct el_wire_data *data, int place, int i, int *begin, int *end)
{
    struct operands at = place_operands(member, data, place, i);
    int rank = el_comm_rank(member->comm);
    struct el_comm_op op = {.verb = data->verb,
                            .reduction = data->reduction,
                            .dtype = data->dtype,
                            .count = data->count,
                            .root = el_comm_verb_row(data->verb)->has_root ? data->root : 0,
                            .data = at.data,
                            .result = at.result,
                            .phase = EL_PHASE_COMM};
    bool parts = el_comm_verb_row(data->verb)->all_data || el_comm_verb_row(data->verb)->all_result;
    if (place != EL_WIRE_APART && !parts) op.result = (struct el_view){0};
    if (data->uneven && data->n > 1) return issue_uneven(member, program, data, begin, end);
    if (data->verb == EL_COMM_SEND) {
        EL_TRY(issue_message(member, program, data->count, true, (rank + 1) % data->n, at.data, begin));
        return issue_message(member, program, data->count, false, (rank + data->n - 1) % data->n, at.result, end);
    }
    EL_TRY(el_comm_issue(member->comm, program, &op, begin));
    *end = *begin;
    return EL_OK;
}

static void keep(void *context, const struct el_step_event *event)
{
    struct calls *calls = context;
    int64_t end_ns = 0;
    for (int i = 0; i < calls->n; i++) {
        const struct el_span *spans = event->spans;
        const struct call_ops *ops = &calls->ops[i];
        int64_t begins_ns[2] = {spans[ops->begins[0]].begin_ns, spans[ops->begins[1]].begin_ns};
        int64_t ends_ns[2] = {spans[ops->ends[0]].end_ns, spans[ops->ends[1]].end_ns};
        int64_t begin_ns = begins_ns[0] < begins_ns[1] ? begins_ns[0] : begins_ns[1];
        if (calls->follow && i > 0) begin_ns = end_ns;
        end_ns = ends_ns[0] > ends_ns[1] ? ends_ns[0] : ends_ns[1];
        calls->seconds[i] = (double)(end_ns - begin_ns) * 1e-9 / calls->aggregate;
    }
}

/* -z 1: a barrier after each operation. */
static enum el_status issue_several(const struct el_wire_member *member, struct el_program *program,
                                    const struct el_wire_data *data, int place, int i, int aggregate, int *begin,
                                    int *end)
{
    for (int k = 0; k < aggregate; k++) {
        int first;
        EL_TRY(issue(member, program, data, place, i * aggregate + k, k ? &first : begin, end));
        if (member->plan->options->blocking != 1) continue;
        EL_TRY(meet(member, program, false));
        *end = el_program_op_count(program) - 1;
    }
    return EL_OK;
}

/* The compute stream waits for the communication after the work. */
static enum el_status issue_call(const struct el_wire_member *member, struct el_program *program,
                                 const struct el_wire_data *data, const struct content *content, int i,
                                 struct call_ops *ops)
{
    int *begin = &ops->begins[0], *end = &ops->ends[0];
    size_t bytes = data->count * el_dtype_bytes(data->dtype);
    *begin = *end = el_program_op_count(program) - 1; /* ranks that only wait */
    if (member->curve && !content->silent)
        EL_TRY(issue_several(member, program, data, content->place, i, content->aggregate, begin, end));
    else if (!member->curve) {
        EL_TRY(issue_copy(member, program, bytes, content->place, i, begin));
        *end = *begin;
    }
    ops->begins[1] = *begin;
    ops->ends[1] = *end;
    if (content->work.kernels == 0) return EL_OK;
    EL_TRY(el_wire_work_issue(member, program, &content->work, &ops->begins[1], &ops->ends[1]));
    if (content->silent) *begin = ops->begins[1], *end = ops->ends[1];
    return el_program_wait(program, el_comm_device(member->comm), EL_STREAM_COMPUTE, *end);
}

static enum el_status call(const struct el_wire_member *member, const struct el_wire_data *data,
                           const struct content *content, int n, double *seconds)
{
    struct calls calls = {.n = n,
                          .ops = calloc((size_t)n, sizeof *calls.ops),
                          .seconds = seconds,
                          .aggregate = content->aggregate,
                          .follow = member->curve && member->plan->options->blocking == 0};
    bool computes = !member->curve || content->work.kernels > 0; /* on another stream than the barrier */
    enum el_status status = calls.ops ? EL_OK : el_fail_errno("%d calls", n);
    if (status == EL_OK) status = el_program_create(&calls.program);
    for (int i = 0; i < n && status == EL_OK; i++) {
        if (i == 0 || !calls.follow) EL_TRY_GOTO(meet(member, calls.program, computes), done);
        status = issue_call(member, calls.program, data, content, i, &calls.ops[i]);
    }
    const struct el_probe probe = {.context = &calls, .spans = true, .wall_only = true, .step = keep};
    if (status == EL_OK) status = el_program_end(calls.program);
    if (status == EL_OK) status = el_program_run(calls.program, 0, &probe);
done:
    el_program_destroy(calls.program);
    free(calls.ops);
    return status;
}

static enum el_status check(struct el_wire_member *member, const struct el_wire_data *data,
                            const struct content *content, int64_t *wrong_p)
{
    struct operands at = place_operands(member, data, content->place, 0);
    const struct content one = {.place = content->place, .aggregate = 1, .work = content->work};
    int rank = el_comm_rank(member->comm);
    double seconds;
    *wrong_p = 0;
    for (int i = 0; i < member->plan->options->check; i++) {
        int64_t wrong = 0;
        EL_TRY(el_wire_fill(data, rank, at.result_count, at.result, true));
        EL_TRY(el_wire_fill(data, rank, at.data_count, at.data, false));
        EL_TRY(call(member, data, &one, 1, &seconds));
        EL_TRY(el_wire_check(data, rank, at.result, &wrong));
        *wrong_p += wrong;
    }
    return EL_OK;
}

/* Zeros stay zeros in repeated sums in place. Cold calls begin with the least recently used memory. */
static enum el_status fill(const struct el_wire_member *member, const struct el_wire_data *data, int place)
{
    struct operands at = place_operands(member, data, place, 0);
    struct el_buffer *ring = member->curve ? member->in_place : member->result;
    if (place == EL_WIRE_COLD)
        return el_wire_fill(data, 0, ring->bytes / el_dtype_bytes(data->dtype), el_view_of(ring, 0), true);
    EL_TRY(el_wire_fill(data, 0, at.result_count, at.result, true));
    return el_wire_fill(data, el_comm_rank(member->comm), at.data_count, at.data, place == EL_WIRE_IN_PLACE);
}

static enum el_status time_calls(const struct el_wire_member *member, const struct el_wire_data *data,
                                 const struct content *content, double *samples_s)
{
    const struct el_wire_options *options = member->plan->options;
    int n = options->warmup + options->iters;
    double *seconds = calloc((size_t)n, sizeof *seconds);
    enum el_status status = seconds ? call(member, data, content, n, seconds) : el_fail_errno("%d calls", n);
    for (int i = 0; i < options->iters && status == EL_OK; i++) samples_s[i] = seconds[options->warmup + i];
    free(seconds);
    return status;
}

/* Fits the work to the time the operations just took. All members make equally many rounds, because they meet before
 * each call. */
static enum el_status time_overlap(const struct el_wire_member *member, const struct el_wire_data *data,
                                   struct content *content, double *row_s)
{
    size_t n = (size_t)member->plan->options->iters, place = (size_t)content->place;
    double pure_s = el_stats_median(row_s + place * n, n), rows = FIRST_ROWS, seconds[FITTING_CALLS];
    content->silent = true;
    for (int round = 0; round < FITTING_ROUNDS; round++) {
        content->work = el_wire_work_of(rows);
        EL_TRY(call(member, data, content, FITTING_CALLS, seconds));
        double ratio = pure_s / el_stats_median(seconds, FITTING_CALLS);
        rows = fmax(1, rows * fmin(ratio, GROWTH)); /* the clock may be coarse */
    }
    content->work = el_wire_work_of(rows);
    EL_TRY(time_calls(member, data, content, row_s + (EL_WIRE_COMPUTE + place) * n));
    content->silent = false;
    return time_calls(member, data, content, row_s + (EL_WIRE_OVERALL + place) * n);
}

static enum el_status give_time(const struct el_wire_member *member)
{
    int64_t left_ns = member->deadline_ns - el_clock_ns();
    if (!member->deadline_ns) return EL_OK;
    double left_s = ceil(1e-8 * (double)(left_ns > 1 ? left_ns : 1)) / 10;
    enum el_status status = el_comm_set_timeout(member->comm, left_s);
    return status == EL_ERR_ABSENT ? EL_OK : status;
}

static enum el_status time_size(struct el_wire_member *member, int s)
{
    uint64_t bytes;
    EL_TRY(give_time(member));
    const struct el_wire_options *options = member->plan->options;
    enum el_comm_verb verb = member->curve ? member->curve->operation->verb : EL_COMM_BROADCAST;
    struct el_wire_data data = {.verb = verb, .dtype = member->plan->copied, .n = member->plan->n};
    if (member->curve) data.dtype = member->curve->dtype, data.root = member->curve->root;
    if (member->curve) data.reduction = member->curve->reduction, data.uneven = member->curve->operation->uneven;
    data.count = el_wire_count(verb, member->plan->sizes[s], el_dtype_bytes(data.dtype), data.n);
    if (member->curve && !el_wire_size(member->plan, member->curve, s, &data.count, &bytes)) return EL_OK;
    const struct el_comm_op op = {.verb = verb, .dtype = data.dtype, .count = data.count};
    if (data.count == 0 && !member->curve) return EL_OK;
    member->used[s] = el_comm_algorithm(member->comm, &op);
    double *row_s = member->samples_s + (size_t)(s * el_wire_series(member->plan) * options->iters);
    for (int place = 0; place < EL_WIRE_PLACES; place++) {
        bool copies_so = place != EL_WIRE_IN_PLACE;
        if (!el_wire_has_place(verb, place, member->plan->sizes[s]) || !(member->curve || copies_so)) continue;
        struct content content = {.place = place, .aggregate = member->curve ? options->aggregate : 1};
        EL_TRY(fill(member, &data, place));
        EL_TRY(time_calls(member, &data, &content, row_s + (size_t)place * (size_t)options->iters));
        if (!member->curve || place == EL_WIRE_COLD) continue;
        if (options->overlap) EL_TRY(time_overlap(member, &data, &content, row_s));
        EL_TRY(check(member, &data, &content, &member->wrong[s][place]));
    }
    return EL_OK;
}

enum el_status el_wire_time(struct el_wire_member *member)
{
    bool sends = member->curve && (member->curve->operation->verb == EL_COMM_SEND || member->curve->operation->uneven);
    if (sends && !el_comm_has_verb(member->comm, EL_COMM_SEND))
        EL_TRY(el_comm_open_mailboxes(member->comm, NULL, member->data->bytes));
    EL_TRY(el_comm_set_algorithm(member->comm, member->curve ? member->curve->algorithm : EL_COMM_AUTO));
    for (int s = 0; s < member->plan->n_sizes; s++) EL_TRY(time_size(member, s));
    return EL_OK;
}
