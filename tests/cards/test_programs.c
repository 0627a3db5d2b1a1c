/* Running programs on cards whose streams run as far out of step as events allow: copies, kernels, spans, failures;
 * and the host's side of the backend `cuda`: what is missing is said, host memory may be used again, cards are made to
 * reach each other once. That a missing wait is found is tested too. */
#include "runtime/base/clock.h"
#include "runtime/base/module.h"
#include "runtime/device/cuda.h"
#include "runtime/device/internal.h"
#include "tests/cards/cards_cases.h"

enum { N = 16, DEVICES = 3, BUFFERS = 8, SEEDS = 8, MIB = 1 << 20, LARGE = 40 * MIB };

struct bench {
    struct el_device *devices[DEVICES];
    struct el_buffer *buffers[BUFFERS]; /* buffer b on device b % DEVICES */
    struct el_program *program;
};

static struct el_buffer *alloc(struct el_device *device, size_t bytes)
{
    struct el_buffer *buffer = NULL;
    if (el_device_alloc(device, EL_TAG_INPUT, bytes, "x", &buffer) != EL_OK) fail_msg("%s", el_error_message());
    return buffer;
}

static void open_bench(struct bench *bench, enum cards_policy policy, uint64_t seed)
{
    cards_set_policy(policy, seed);
    for (int d = 0; d < DEVICES; d++) bench->devices[d] = open_card(d);
    for (int b = 0; b < BUFFERS; b++) {
        float values[N];
        for (int i = 0; i < N; i++) values[i] = (float)(b * N + i + 1);
        bench->buffers[b] = alloc(bench->devices[b % DEVICES], sizeof values);
        assert_int_equal(el_device_write(el_view_of(bench->buffers[b], 0), values, sizeof values), EL_OK);
    }
    assert_int_equal(el_program_create(&bench->program), EL_OK);
}

static void close_bench(struct bench *bench)
{
    el_program_destroy(bench->program);
    for (int d = 0; d < DEVICES; d++) el_device_close(bench->devices[d]);
    assert_nothing_left();
    cards_set_policy(CARDS_FREE, 0);
}

static void run(struct el_program *program, uint64_t step, const struct el_probe *probe)
{
    if (el_program_run(program, step, probe) != EL_OK) fail_msg("%s", el_error_message());
}

static float read_one(const struct bench *bench, int b)
{
    float values[N];
    assert_int_equal(el_device_read(el_view_of(bench->buffers[b], 0), values, sizeof values), EL_OK);
    return values[N - 1];
}

/* y = s * x on the device of y; a copy where x is elsewhere. */
static int add_scale(struct bench *bench, int stream, int x, int y, double s)
{
    int id = -1;
    struct el_kernel_op op = {.op = EL_OP_SCALE,
                              .dtype = EL_F32,
                              .views = {el_view_of(bench->buffers[x], 0), el_view_of(bench->buffers[y], 0)},
                              .args = {.d = {N}, .s = {s}}};
    assert_int_equal(el_program_kernel(bench->program, bench->buffers[y]->device, stream, &op, &id), EL_OK);
    return id;
}

static int add_copy(struct bench *bench, int stream, int x, int y)
{
    int id = -1;
    struct el_op_head head = {.label = "copy", .phase = EL_PHASE_SCATTER};
    assert_int_equal(el_program_copy(bench->program, bench->buffers[y]->device, stream, &head,
                                     el_view_of(bench->buffers[y], 0), el_view_of(bench->buffers[x], 0),
                                     N * sizeof(float), &id),
                     EL_OK);
    return id;
}

/* ---- order ---- */

/* buffer 0 doubled on one stream, copied to device 1 on another, scaled there; whether the outcome is right. */
static bool chain(enum cards_policy policy, uint64_t seed, bool with_waits)
{
    struct bench bench;
    open_bench(&bench, policy, seed);
    int id = add_scale(&bench, 0, 0, 0, 2);
    if (with_waits) el_program_wait(bench.program, bench.devices[1], 1, id);
    id = add_copy(&bench, 1, 0, 1);
    if (with_waits) el_program_wait(bench.program, bench.devices[1], 0, id);
    id = add_scale(&bench, 0, 1, 1, 3);
    if (with_waits) el_program_wait(bench.program, bench.devices[0], 2, id);
    add_copy(&bench, 2, 1, 3);
    assert_int_equal(el_program_end(bench.program), EL_OK);
    run(bench.program, 0, NULL);
    float got = read_one(&bench, 3);
    close_bench(&bench);
    return got == 6.0f * N;
}

static void waits_are_kept_and_a_missing_one_is_found(void **state)
{
    for (int policy = CARDS_LAZY; policy < CARDS_POLICIES; policy++) {
        int n_wrong = 0; /* a lazy stream misses what is queued before it: see the_host_waits_where_a_copy_says_so */
        for (uint64_t seed = 1; seed <= (policy == CARDS_RANDOM ? SEEDS : 1); seed++) {
            assert_true(chain((enum cards_policy)policy, seed, true));
            if (!is_thread_sanitized()) n_wrong += !chain((enum cards_policy)policy, seed, false);
        }
        assert_true(n_wrong > 0 || policy == CARDS_LAZY || is_thread_sanitized());
    }
}

/* Random ops; each waits for all earlier ones that touch a buffer of its own and lie on another stream. */
struct random_op {
    int x, y, stream, id;
};

static void add_random(struct bench *bench, struct random_op *ops, int n, float *truth, uint64_t *random)
{
    struct random_op *op = &ops[n];
    *op = (struct random_op){.x = draw(random, BUFFERS), .y = draw(random, BUFFERS), .stream = draw(random, 3)};
    if (op->x == op->y) op->x = (op->y + 1) % BUFFERS;
    bool same_device = op->x % DEVICES == op->y % DEVICES;
    for (int i = 0; i < n; i++) {
        if (ops[i].y == op->x || ops[i].y == op->y || ops[i].x == op->y)
            el_program_wait(bench->program, bench->buffers[op->y]->device, op->stream, ops[i].id);
    }
    op->id = same_device ? add_scale(bench, op->stream, op->x, op->y, n % 2 ? 2 : 0.5)
                         : add_copy(bench, op->stream, op->x, op->y);
    truth[op->y] = truth[op->x] * (!same_device ? 1 : n % 2 ? 2.0f : 0.5f);
}

static void random_programs_equal_their_order_of_issue(void **state)
{
    enum { OPS = 60 };
    for (uint64_t seed = 1; seed < 3 * SEEDS; seed++) {
        struct bench bench;
        struct random_op ops[OPS];
        float truth[BUFFERS];
        uint64_t random = seed;
        struct el_probe probe = {.spans = seed % 2};
        open_bench(&bench, (enum cards_policy)(CARDS_LAZY + seed % 3), seed);
        for (int b = 0; b < BUFFERS; b++) truth[b] = read_one(&bench, b);
        for (int i = 0; i < OPS; i++) add_random(&bench, ops, i, truth, &random);
        assert_int_equal(el_program_end(bench.program), EL_OK);
        run(bench.program, 0, &probe);
        for (int b = 0; b < BUFFERS; b++) assert_true(read_one(&bench, b) == truth[b]);
        close_bench(&bench);
    }
}

/* ---- the host ---- */

static enum el_status slow_call(const struct el_call_args *args)
{
    (void)args;
    el_clock_sleep_until(el_clock_ns() + 20000000);
    return EL_OK;
}

static void keep_event(void *context, const struct el_step_event *event)
{
    *(struct el_step_event *)context = *event;
}

/* What the host works for a step is told: queueing and loading, but not the calls that wait for others. */
static void the_hosts_work_is_timed_without_waiting(void **state)
{
    for (int blocks = 0; blocks < 2; blocks++) {
        struct bench bench;
        struct el_step_event event = {0};
        struct el_probe probe = {.context = &event, .step = keep_event};
        struct el_call_op call = {
            .head = {.label = "load"}, .op_class = EL_CLASS_HOST, .blocks = blocks, .run = slow_call};
        open_bench(&bench, CARDS_LAZY, 1);
        for (int i = 0; i < 8; i++) add_scale(&bench, 0, 0, 0, 2);
        el_program_call(bench.program, bench.devices[0], 0, &call, NULL);
        assert_int_equal(el_program_end(bench.program), EL_OK);
        run(bench.program, 0, &probe);
        int64_t whole_ns = event.whole.end_ns - event.whole.begin_ns;
        assert_true(event.queue_ns > (blocks ? 0 : 20000000));
        assert_true(event.queue_ns <= whole_ns - (blocks ? 20000000 : 0));
        close_bench(&bench);
    }
}

static enum el_status set_host(const struct el_call_args *args)
{
    float *const *values = args->context; /* to, from */
    for (int i = 0; i < N; i++) values[0][i] = values[1][0] + (float)(10 * args->step);
    return EL_OK;
}

/* What a copy reads where the host fills its buffer anew as soon as it goes on: from pinned memory what lies there when
 * the stream comes to it, from any other what lay there before, and also from pinned memory if the host waits. */
static void the_host_waits_where_a_copy_says_so(void **state)
{
    static const struct {
        unsigned how;
        float read;
    } cases[] = {{0, 1},
                 {EL_COPY_PAGEABLE, 1},
                 {EL_COPY_PAGEABLE | EL_COPY_WAITS, 1},
                 {EL_COPY_PINNED | EL_COPY_WAITS, 1},
                 {EL_COPY_PINNED, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench bench;
        bool pinned = cases[i].how & EL_COPY_PINNED;
        if (cases[i].read == 2 && is_thread_sanitized()) continue;
        float values[] = {1, 2}, *pairs[2][2];
        void *host;
        int id = -1;
        open_bench(&bench, CARDS_LAZY, 1);
        assert_int_equal(el_device_host_alloc(bench.devices[0], pinned, N * sizeof(float), &host), EL_OK);
        for (int k = 0; k < 2; k++) {
            pairs[k][0] = host;
            pairs[k][1] = &values[k];
            struct el_call_op call = {.op_class = EL_CLASS_HOST, .run = set_host, .context = pairs[k]};
            struct el_op_head head = {.phase = EL_PHASE_H2D};
            el_program_call(bench.program, bench.devices[0], 0, &call, NULL);
            if (k == 1) continue;
            el_program_copy(bench.program, bench.devices[0], 0, &head, el_view_of(bench.buffers[0], 0),
                            el_view_host(host), N * sizeof(float), &id);
            el_program_copy_how(bench.program, id, cases[i].how);
        }
        assert_int_equal(el_program_end(bench.program), EL_OK);
        for (uint64_t step = 0; step < 2; step++) {
            run(bench.program, step, NULL);
            assert_true(read_one(&bench, 0) == cases[i].read + (float)(10 * step));
        }
        el_device_host_free(bench.devices[0], pinned, host);
        close_bench(&bench);
    }
}

static void check_spans(void *context, const struct el_step_event *event)
{
    *(int *)context += 1;
    assert_non_null(event->spans);
    assert_null(event->cpu_ns);
    assert_true(event->span_error_ns > 0);
    for (int i = 0; i < event->n_ops; i++) {
        assert_true(event->spans[i].begin_ns >= event->whole.begin_ns - event->span_error_ns);
        assert_true(event->spans[i].end_ns >= event->spans[i].begin_ns);
        assert_true(event->spans[i].end_ns <= event->whole.end_ns + event->span_error_ns);
        if (i) assert_true(event->spans[i].begin_ns >= event->spans[i - 1].end_ns - event->span_error_ns);
    }
}

/* And later steps have the events of the first. */
static void spans_follow_the_waits(void **state)
{
    struct bench bench;
    struct cards_counts counts;
    int n_steps = 0, n_events = 0, id = -1;
    open_bench(&bench, CARDS_RANDOM, 3);
    for (int i = 0; i < 20; i++) {
        el_program_wait(bench.program, bench.devices[0], i % 3, id);
        id = add_scale(&bench, i % 3, 0, 0, 1);
    }
    assert_int_equal(el_program_end(bench.program), EL_OK);
    struct el_probe probe = {.context = &n_steps, .spans = true, .step = check_spans};
    for (uint64_t step = 0; step < 5; step++) {
        run(bench.program, step, &probe);
        cards_count(0, &counts);
        if (step == 0) n_events = counts.events;
        assert_int_equal(counts.events, n_events);
    }
    assert_int_equal(n_steps, 5);
    close_bench(&bench);
}

/* ---- failures ---- */

static void count(void *context)
{
    ++*(int *)context;
}

/* All of a device's life: it is opened, given memory, and a program with a wait and copies to and from it is run. */
static enum el_status live(struct el_device **device_p, struct el_program **program_p, int *n_told)
{
    const struct el_device_spec spec = {.backend = "cuda"};
    struct el_buffer *x;
    static float host[N]; /* a copy may come when nobody waits for it any more */
    int id = -1;
    struct el_op_head head = {.label = "copy", .phase = EL_PHASE_H2D};
    host[0] = 1;
    EL_TRY(el_device_open(&spec, device_p));
    EL_TRY(el_device_alloc(*device_p, EL_TAG_INPUT, sizeof host, "x", &x));
    EL_TRY(el_program_create(program_p));
    struct el_view view = el_view_of(x, 0);
    struct el_kernel_op op = {.op = EL_OP_SCALE, .dtype = EL_F32, .views = {view, view}, .args = {.d = {N}, .s = {2}}};
    EL_TRY(el_program_copy(*program_p, *device_p, 0, &head, view, el_view_host(host), sizeof host, &id));
    EL_TRY(el_program_wait(*program_p, *device_p, 1, id));
    EL_TRY(el_program_kernel(*program_p, *device_p, 1, &op, NULL));
    el_program_on_failure(*program_p, count, n_told);
    EL_TRY(el_program_end(*program_p));
    enum el_status status = el_program_run(*program_p, 0, NULL);
    if (*n_told != (status != EL_OK)) fail_msg("the hook of a failure was called %d times", *n_told);
    if (status == EL_OK) status = el_device_read(view, host, sizeof host);
    if (status == EL_OK) assert_true(host[0] == 2);
    return status;
}

/* Each call of each function, by turns: the failure is in CUDA's words with the function's name, and nothing is left.
 */
static void a_call_that_fails_is_named(void **state)
{
    static const struct {
        const char *call;
        int least;         /* of its calls that a life needs */
        const char *words; /* NULL: its name */
    } calls[] = {{"cudaSetDevice", 1, NULL},
                 {"cudaFree", 1, NULL},
                 {"cudaGetDeviceProperties", 1, NULL},
                 {"cudaStreamCreateWithFlags", 2, "cudaStreamCreate:"},
                 {"cudaMalloc", 1, NULL},
                 {"cudaHostAlloc", 1, NULL},
                 {"cudaEventCreateWithFlags", 2, "cudaEventCreate:"},
                 {"cudaEventRecord", 2, NULL},
                 {"cudaStreamWaitEvent", 1, NULL},
                 {"cudaMemcpyAsync", 2, NULL},
                 {"cudaStreamSynchronize", 1, NULL},
                 {"cudaLaunchKernel", 1, "cuda kernel"}};
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        int n_failed = 0;
        bool races = strcmp(calls[c].call, "cudaStreamSynchronize") == 0; /* as nothing is waited for then */
        if (races && is_thread_sanitized()) continue;
        for (int call = 1; call <= 4; call++) {
            struct el_device *device = NULL;
            struct el_program *program = NULL;
            char rule[64];
            int n_told = 0;
            snprintf(rule, sizeof rule, "%s:0:%d=719", calls[c].call, call);
            cards_set_failures(rule);
            enum el_status status = live(&device, &program, &n_told);
            cards_set_failures(NULL);
            n_failed += status != EL_OK;
            if (status != EL_OK && !strstr(el_error_message(), calls[c].words ? calls[c].words : calls[c].call))
                fail_msg("%s: '%s'", rule, el_error_message());
            el_program_destroy(program);
            el_device_close(device);
            assert_nothing_left();
        }
        if (n_failed < calls[c].least) fail_msg("%s: %d failures", calls[c].call, n_failed);
    }
}

/* cuBLAS and cuDNN say "execution failed" of what a kernel before them did. The last test: the card stays broken. */
static void a_librarys_failure_says_what_the_card_has(void **state)
{
    enum { EXECUTION_FAILED = 13 };
    enum el_status (*check)(int error, const char *call);
    struct el_device *device = NULL;
    struct el_program *program = NULL;
    int n_told = 0;
    if (el_module_open("cuda", "el_cublas_check", (void **)&check) != EL_OK) fail_msg("%s", el_error_message());
    assert_int_equal(check(EXECUTION_FAILED, "cublasSgemm(x)"), EL_ERR_INTERNAL);
    assert_string_equal(el_error_message(), "cublasSgemm: CUBLAS_STATUS_EXECUTION_FAILED");
    cards_set_failures("kernel:0:1");
    assert_int_not_equal(live(&device, &program, &n_told), EL_OK);
    assert_int_equal(check(EXECUTION_FAILED, "cublasSgemm(x)"), EL_ERR_INTERNAL);
    assert_string_equal(el_error_message(), "cublasSgemm: CUBLAS_STATUS_EXECUTION_FAILED, after an illegal memory "
                                            "access was encountered (cudaErrorIllegalAddress)");
    el_program_destroy(program);
    el_device_close(device);
}

int main(void)
{
    set_up_cards();
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); /* a first launch would wait for the card, and hide what does not */
    return RUN(NULL, NULL, waits_are_kept_and_a_missing_one_is_found, random_programs_equal_their_order_of_issue,
               the_hosts_work_is_timed_without_waiting, the_host_waits_where_a_copy_says_so, spans_follow_the_waits,
               a_call_that_fails_is_named, a_librarys_failure_says_what_the_card_has);
}
