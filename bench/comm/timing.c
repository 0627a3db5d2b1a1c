/* One member's calls of a curve. All calls of a size are ops of one program, each behind a meeting of all members, and
 * an op's span is its time: host and GPU communicators are timed alike, without the start of a thread in it. */
#include <math.h>
#include <stdlib.h>

#include "bench/comm/wire.h"
#include "runtime/base/clock.h"

enum { SLOT_ALIGNMENT = 256 };

/* Where a call's operands lie: data, result (all zeros where it is in place and as large). */
struct operands {
    struct el_view data, result;
    size_t data_count, result_count;
};

/* One program of `n_calls` calls, and the ops at which each begins and ends. */
struct calls {
    struct el_program *program;
    int n, *begins, *ends; /* [n] op ids */
    double *seconds;       /* [n], of the last run */
    int aggregate;         /* operations of a call */
    bool follow;           /* no barrier: a call begins where the one before ends */
};

enum el_status el_wire_member_open(const struct el_wire_plan *plan, struct el_comm *comm,
                                   struct el_wire_member *member_p)
{
    struct el_wire_member member = {.plan = plan, .comm = comm};
    struct el_device *device = el_comm_device(comm);
    size_t bytes = plan->sizes[plan->n_sizes - 1], memory = el_wire_memory_bytes(plan);
    size_t calls = (size_t)el_wire_rows(plan) * EL_WIRE_PLACES;
    enum el_status status;
    member.samples_s = calloc(calls * (size_t)plan->options->iters, sizeof *member.samples_s);
    if (!member.samples_s) status = el_fail_errno("samples of %zu rows", calls);
    if (!member.samples_s) goto fail;
    EL_TRY_GOTO(el_device_alloc(device, EL_TAG_WORKSPACE, bytes, "data", &member.data), fail);
    EL_TRY_GOTO(el_device_alloc(device, EL_TAG_WORKSPACE, memory, "result", &member.result), fail);
    EL_TRY_GOTO(el_comm_alloc(comm, EL_TAG_WORKSPACE, memory, "in place", &member.in_place), fail);
    EL_TRY_GOTO(el_device_alloc(device, EL_TAG_WORKSPACE, 64, "meeting", &member.meeting), fail);
    EL_TRY_GOTO(el_device_write(el_view_of(member.meeting, 0), (const char[64]){0}, 64), fail);
    *member_p = member;
    return EL_OK;
fail:
    el_wire_member_close(&member);
    return status;
}

void el_wire_member_close(struct el_wire_member *member)
{
    el_device_free(member->meeting);
    el_device_free(member->in_place);
    el_device_free(member->result);
    el_device_free(member->data);
    free(member->samples_s);
    *member = (struct el_wire_member){.plan = NULL};
}

/* Memory for `bytes` of call `i`: call after call goes on to the next, and after the last to the first. */
static struct el_view next_slot(const struct el_buffer *buffer, size_t bytes, int i)
{
    size_t stride = (bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
    size_t n = buffer->bytes / stride;
    return el_view_of((struct el_buffer *)buffer, n > 1 ? (size_t)i % n * stride : 0);
}

/* Of call `i`. In place: of data and result of one size the one buffer; else the smaller is the member's own part of
 * the larger. */
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

static enum el_status meet(const struct el_wire_member *member, struct el_program *program)
{
    /* Copies are on another stream than the meeting. */
    struct el_comm_op op = {.verb = EL_COMM_BARRIER, .phase = EL_PHASE_COMM, .join = !member->curve};
    if (!el_comm_has_verb(member->comm, EL_COMM_BARRIER)) { /* of one element: nobody has it before all have come */
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

/* To `partner`, or from it. */
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

/* The lower rank sends first and gets it back, the higher one answers. */
static enum el_status issue_pair(const struct el_wire_member *member, struct el_program *program, size_t count,
                                 int *begin, int *end)
{
    int partner = el_wire_partner(member);
    for (int i = 0; i < 2 && partner >= 0; i++) {
        bool sends = (el_comm_rank(member->comm) < partner) == (i == 0);
        EL_TRY(issue_message(member, program, count, sends, partner,
                             el_view_of(sends ? member->data : member->result, 0), i ? end : begin));
    }
    return EL_OK;
}

/* alltoallv: a message to each other rank, then one from each; `*begin` is the first one's. */
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
    for (int i = 0; i < calls->n; i++) {
        int64_t begin_ns = event->spans[calls->begins[i]].begin_ns;
        if (calls->follow && i > 0) begin_ns = event->spans[calls->ends[i - 1]].end_ns;
        calls->seconds[i] = (double)(event->spans[calls->ends[i]].end_ns - begin_ns) * 1e-9 / calls->aggregate;
    }
}

/* Operations of call `i`, of which the first begins the call; -m has several, and -z 1 a barrier behind each. */
static enum el_status issue_several(const struct el_wire_member *member, struct el_program *program,
                                    const struct el_wire_data *data, int place, int i, int aggregate, int *begin,
                                    int *end)
{
    for (int k = 0; k < aggregate; k++) {
        int first;
        EL_TRY(issue(member, program, data, place, i * aggregate + k, k ? &first : begin, end));
        if (member->plan->options->blocking != 1) continue;
        EL_TRY(meet(member, program));
        *end = el_program_op_count(program) - 1;
    }
    return EL_OK;
}

/* Builds `n` calls of `aggregate` operations each and runs them; seconds[n] of an operation of each. */
static enum el_status call(const struct el_wire_member *member, const struct el_wire_data *data, int place, int n,
                           int aggregate, double *seconds)
{
    bool follow = member->curve && member->plan->options->blocking == 0;
    struct calls calls = {.n = n,
                          .begins = calloc(2 * (size_t)n, sizeof(int)),
                          .seconds = seconds,
                          .aggregate = aggregate,
                          .follow = follow};
    enum el_status status = calls.begins ? EL_OK : el_fail_errno("%d calls", n);
    if (status == EL_OK) calls.ends = calls.begins + n;
    if (status == EL_OK) status = el_program_create(&calls.program);
    for (int i = 0; i < n && status == EL_OK; i++) {
        if (i == 0 || !calls.follow) EL_TRY_GOTO(meet(member, calls.program), done);
        calls.begins[i] = calls.ends[i] = el_program_op_count(calls.program) - 1; /* of ranks that only wait */
        if (member->curve && member->plan->pairs)
            status = issue_pair(member, calls.program, data->count, &calls.begins[i], &calls.ends[i]);
        else if (member->curve)
            status = issue_several(member, calls.program, data, place, i, aggregate, &calls.begins[i], &calls.ends[i]);
        else
            status = issue_copy(member, calls.program, data->count * el_dtype_bytes(data->dtype), place, i,
                                &calls.begins[i]);
        if (!member->curve) calls.ends[i] = calls.begins[i];
    }
    const struct el_probe probe = {.context = &calls, .spans = true, .wall_only = true, .step = keep};
    if (status == EL_OK) status = el_program_end(calls.program);
    if (status == EL_OK) status = el_program_run(calls.program, 0, &probe);
done:
    el_program_destroy(calls.program);
    free(calls.begins);
    return status;
}

/* On data that is new each time; where it shall come to lie there are zeros before. */
static enum el_status check(struct el_wire_member *member, const struct el_wire_data *data, int place, int64_t *wrong_p)
{
    struct operands at = place_operands(member, data, place, 0);
    int rank = el_comm_rank(member->comm);
    double seconds;
    *wrong_p = 0;
    for (int i = 0; i < member->plan->options->check; i++) {
        int64_t wrong = 0;
        EL_TRY(el_wire_fill(data, rank, at.result_count, at.result, true));
        EL_TRY(el_wire_fill(data, rank, at.data_count, at.data, false));
        EL_TRY(call(member, data, place, 1, 1, &seconds));
        EL_TRY(el_wire_check(data, rank, at.result, &wrong));
        *wrong_p += wrong;
    }
    return EL_OK;
}

/* Zeros where sums are taken in place again and again: they stay what they are. Cold calls begin where this has been
 * longest ago. */
static enum el_status fill(const struct el_wire_member *member, const struct el_wire_data *data, int place)
{
    struct operands at = place_operands(member, data, place, 0);
    struct el_buffer *ring = member->curve ? member->in_place : member->result;
    if (place == EL_WIRE_COLD)
        return el_wire_fill(data, 0, ring->bytes / el_dtype_bytes(data->dtype), el_view_of(ring, 0), true);
    EL_TRY(el_wire_fill(data, 0, at.result_count, at.result, true));
    return el_wire_fill(data, el_comm_rank(member->comm), at.data_count, at.data, place == EL_WIRE_IN_PLACE);
}

/* Warm-up calls, and those that count. */
static enum el_status time_calls(const struct el_wire_member *member, const struct el_wire_data *data, int place,
                                 double *samples_s)
{
    const struct el_wire_options *options = member->plan->options;
    int n = options->warmup + options->iters, aggregate = member->curve ? options->aggregate : 1;
    double *seconds = calloc((size_t)n, sizeof *seconds);
    enum el_status status = seconds ? call(member, data, place, n, aggregate, seconds) : el_fail_errno("%d calls", n);
    for (int i = 0; i < options->iters && status == EL_OK; i++) samples_s[i] = seconds[options->warmup + i];
    free(seconds);
    return status;
}

/* Where the communicator can say whom it waits for. */
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
    for (int place = 0; place < EL_WIRE_PLACES; place++) {
        bool copies_so = place != EL_WIRE_IN_PLACE; /* a copy is out of place, or cold */
        if (!el_wire_has_place(verb, place, member->plan->sizes[s]) || !(member->curve || copies_so)) continue;
        size_t first = ((size_t)s * EL_WIRE_PLACES + (size_t)place) * (size_t)options->iters;
        EL_TRY(fill(member, &data, place));
        EL_TRY(time_calls(member, &data, place, member->samples_s + first));
        if (member->curve && place != EL_WIRE_COLD) EL_TRY(check(member, &data, place, &member->wrong[s][place]));
    }
    return EL_OK;
}

/* A pair, with one size: place 0 the smaller, 1 the larger. Data are checked where there is a larger one. */
static enum el_status time_pair(struct el_wire_member *member, int place, double *samples_s)
{
    EL_TRY(give_time(member));
    const struct el_wire_options *options = member->plan->options;
    const struct el_view seen = el_view_of(member->result, 0);
    int rank = el_comm_rank(member->comm), partner = el_wire_partner(member);
    struct el_wire_data data = {.verb = EL_COMM_BROADCAST, .dtype = member->curve->dtype, .n = member->plan->n};
    int64_t wrong = 0;
    data.root = partner;
    data.count = el_wire_pair_count(member->plan, place);
    EL_TRY(el_wire_fill(&data, rank, data.count, el_view_of(member->data, 0), false));
    EL_TRY(el_wire_fill(&data, 0, data.count, seen, true));
    EL_TRY(time_calls(member, &data, EL_WIRE_APART, samples_s));
    if (partner >= 0 && options->check) EL_TRY(el_wire_check(&data, rank, seen, &wrong));
    member->wrong[0][place] += wrong;
    return EL_OK;
}

enum el_status el_wire_time(struct el_wire_member *member)
{
    bool sends = member->curve && (member->curve->operation->verb == EL_COMM_SEND || member->curve->operation->uneven);
    if (sends && !el_comm_has_verb(member->comm, EL_COMM_SEND))
        EL_TRY(el_comm_open_mailboxes(member->comm, NULL, member->data->bytes));
    if (member->curve && member->plan->pairs) {
        double *samples_s = member->samples_s;
        for (member->pair = 0; member->pair < el_wire_pairs(member->plan->n); member->pair++)
            for (int place = 0; place < EL_WIRE_PLACES; place++, samples_s += member->plan->options->iters)
                if (place != EL_WIRE_COLD) EL_TRY(time_pair(member, place, samples_s));
        return EL_OK;
    }
    EL_TRY(el_comm_set_algorithm(member->comm, member->curve ? member->curve->algorithm : EL_COMM_AUTO));
    for (int s = 0; s < member->plan->n_sizes; s++) EL_TRY(time_size(member, s));
    return EL_OK;
}
