/* Steps of one small network again and again, on each device by itself: what every op wrote is compared with the first
 * pass's, bit for bit. The conductor compares the first passes of all devices of one kind, and asks by `locate` for the
 * numbers where two differ. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/fleet/fleet.h"
#include "runtime/base/clock.h"
#include "runtime/base/hash.h"
#include "runtime/device/program.h"

/* On a GPU outputs are read only at the end of a pass, as that takes longer than a step. */
enum { STEPS_ON_HOST = 8, STEPS_ON_GPU = 64, WIDTH_ON_HOST = 512, WIDTH_ON_GPU = 2048, ROWS_ON_HOST = 128 };
enum { BLOCK = 256, INJECTED_AT = 1000 };

enum buffer {
    INPUT,
    W1,
    W2,
    W3,
    SCALE,
    SHIFT,
    M1,
    M2,
    M3,
    V1,
    V2,
    V3,
    N_STATE, /* kept from step to step */
    H1 = N_STATE,
    SAVED1,
    N1,
    H2,
    SAVED2,
    N2,
    OUT,
    D_OUT,
    DW3,
    DN2,
    DH2,
    DS2,
    DT2,
    DW2,
    DN1,
    DH1,
    DS1,
    DT1,
    DW1,
    WRONG,
    N_BUFFERS
};
enum size { BY_ROWS, BY_WIDTH, SQUARE, TWO_A_ROW, ONE };
static const enum size sizes[N_BUFFERS] = {
    [W1] = SQUARE,    [W2] = SQUARE,        [W3] = SQUARE,        [SCALE] = BY_WIDTH, [SHIFT] = BY_WIDTH,
    [M1] = SQUARE,    [M2] = SQUARE,        [M3] = SQUARE,        [V1] = SQUARE,      [V2] = SQUARE,
    [V3] = SQUARE,    [SAVED1] = TWO_A_ROW, [SAVED2] = TWO_A_ROW, [DW3] = SQUARE,     [DS2] = BY_WIDTH,
    [DT2] = BY_WIDTH, [DW2] = SQUARE,       [DS1] = BY_WIDTH,     [DT1] = BY_WIDTH,   [DW1] = SQUARE,
    [WRONG] = ONE};

/* p[]: buffers in the kernel's order, -1: none; outputs begin at `first`. */
struct op {
    const char *name;
    enum el_op_kind kind;
    int p[6], n, first;
    enum { PRODUCT, NORM, ALL, WEIGHTS } d;
    double s[5];
};
#define ADAM_S                                                                                                         \
    {                                                                                                                  \
        1e-3, 0.9, 0.999, 1e-8, 0                                                                                      \
    }
static const struct op ops[] = {
    {"linear_forward 1", EL_OP_LINEAR_FORWARD, {INPUT, W1, -1, H1}, 4, 3, PRODUCT, {0}},
    {"layer_norm_forward 1", EL_OP_LAYER_NORM_FORWARD, {H1, SCALE, SHIFT, N1, SAVED1}, 5, 3, NORM, {1e-5}},
    {"linear_forward 2", EL_OP_LINEAR_FORWARD, {N1, W2, -1, H2}, 4, 3, PRODUCT, {0}},
    {"layer_norm_forward 2", EL_OP_LAYER_NORM_FORWARD, {H2, SCALE, SHIFT, N2, SAVED2}, 5, 3, NORM, {1e-5}},
    {"linear_forward 3", EL_OP_LINEAR_FORWARD, {N2, W3, -1, OUT}, 4, 3, PRODUCT, {0}},
    {"scale", EL_OP_SCALE, {OUT, D_OUT}, 2, 1, ALL, {1e-3}},
    {"linear_backward_weights 3", EL_OP_LINEAR_BACKWARD_WEIGHTS, {N2, D_OUT, DW3, -1}, 4, 2, PRODUCT, {0}},
    {"linear_backward_data 3", EL_OP_LINEAR_BACKWARD_DATA, {D_OUT, W3, DN2}, 3, 2, PRODUCT, {0}},
    {"layer_norm_backward 2", EL_OP_LAYER_NORM_BACKWARD, {DN2, H2, SCALE, SAVED2, DH2, DS2}, 6, 4, NORM, {0}},
    {"linear_backward_weights 2", EL_OP_LINEAR_BACKWARD_WEIGHTS, {N1, DH2, DW2, -1}, 4, 2, PRODUCT, {0}},
    {"linear_backward_data 2", EL_OP_LINEAR_BACKWARD_DATA, {DH2, W2, DN1}, 3, 2, PRODUCT, {0}},
    {"layer_norm_backward 1", EL_OP_LAYER_NORM_BACKWARD, {DN1, H1, SCALE, SAVED1, DH1, DS1}, 6, 4, NORM, {0}},
    {"linear_backward_weights 1", EL_OP_LINEAR_BACKWARD_WEIGHTS, {INPUT, DH1, DW1, -1}, 4, 2, PRODUCT, {0}},
    {"adam 1", EL_OP_ADAM, {DW1, W1, M1, V1}, 4, 1, WEIGHTS, ADAM_S},
    {"adam 2", EL_OP_ADAM, {DW2, W2, M2, V2}, 4, 1, WEIGHTS, ADAM_S},
    {"adam 3", EL_OP_ADAM, {DW3, W3, M3, V3}, 4, 1, WEIGHTS, ADAM_S}};
enum { N_OPS = sizeof ops / sizeof ops[0], INJECTED_OP = 2 };

struct soak {
    struct el_device *device;
    struct el_program *program;
    struct el_buffer *buffers[N_BUFFERS];
    size_t counts[N_BUFFERS];
    int64_t width, rows;
    int steps;
    bool gpu;
    double wrong;
    float *host; /* room for the largest buffer */
};

/* An op's last buffer but layer_norm_backward's shift, which has no place in p[] for a row of six. */
static struct el_view view(const struct soak *s, int buffer)
{
    return buffer < 0 ? (struct el_view){0} : el_view_of(s->buffers[buffer], 0);
}

static enum el_status queue(const struct soak *s, const struct op *row)
{
    struct el_kernel_op op = {
        .head = {.label = row->name, .phase = EL_PHASE_FORWARD}, .op = row->kind, .dtype = EL_F32};
    int64_t all = s->rows * s->width, weights = s->width * s->width;
    for (int i = 0; i < row->n; i++) op.views[i] = view(s, row->p[i]);
    if (row->kind == EL_OP_LAYER_NORM_BACKWARD) op.views[6] = view(s, row->p[5] == DS2 ? DT2 : DT1);
    for (int i = 0; i < 5; i++) op.args.s[i] = row->s[i];
    op.args.d[0] = row->d == ALL ? all : row->d == WEIGHTS ? weights : s->rows;
    if (row->d == PRODUCT || row->d == NORM) op.args.d[1] = s->width;
    if (row->d == PRODUCT) op.args.d[2] = s->width;
    return el_program_kernel(s->program, s->device, EL_STREAM_COMPUTE, &op, NULL);
}

/* --inject wrong: one number of one op's result, in each step. */
static enum el_status queue_wrong(const struct soak *s)
{
    const struct el_kernel_op op = {.head = {.label = "injected", .phase = EL_PHASE_FORWARD},
                                    .op = EL_OP_ADD,
                                    .dtype = EL_F32,
                                    .views = {view(s, WRONG), el_view_of(s->buffers[H2], INJECTED_AT * sizeof(float))},
                                    .args.d = {1}};
    return el_program_kernel(s->program, s->device, EL_STREAM_COMPUTE, &op, NULL);
}

static enum el_status build(struct soak *s)
{
    size_t most = 0;
    for (int b = 0; b < N_BUFFERS; b++) {
        const size_t of[] = {[BY_ROWS] = (size_t)(s->rows * s->width),
                             [BY_WIDTH] = (size_t)s->width,
                             [SQUARE] = (size_t)(s->width * s->width),
                             [TWO_A_ROW] = 2 * (size_t)s->rows,
                             [ONE] = 1};
        s->counts[b] = of[sizes[b]];
        if (s->counts[b] > most) most = s->counts[b];
        EL_TRY(
            el_device_alloc(s->device, EL_TAG_WORKSPACE, s->counts[b] * sizeof(float), "fleet's soak", &s->buffers[b]));
    }
    s->host = malloc(most * sizeof *s->host);
    if (!s->host) return el_fail_errno("soak");
    EL_TRY(el_program_create(&s->program));
    for (int i = 0; i < N_OPS; i++) {
        EL_TRY(queue(s, &ops[i]));
        if (i == INJECTED_OP && s->wrong != 0) EL_TRY(queue_wrong(s));
    }
    return el_program_end(s->program);
}

/* The state before the first step: always the same numbers. */
static enum el_status reset(const struct soak *s)
{
    for (int b = 0; b < N_BUFFERS; b++) {
        uint64_t x = (uint64_t)b * 7919 + 1;
        bool weights = b >= W1 && b <= W3, random = b == INPUT || weights;
        for (size_t i = 0; i < s->counts[b]; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            double unit = (double)(x >> 11) / (double)(UINT64_C(1) << 53) * 2 - 1;
            s->host[i] = random ? (float)(weights ? unit / sqrt((double)s->width) : unit) : b == SCALE ? 1 : 0;
        }
        if (b == WRONG) s->host[0] = (float)s->wrong;
        if (b < N_STATE || b == WRONG) EL_TRY(el_device_write(view(s, b), s->host, s->counts[b] * sizeof(float)));
    }
    return EL_OK;
}

static enum el_status read_buffer(const struct soak *s, int buffer)
{
    return el_device_read(view(s, buffer), s->host, s->counts[buffer] * sizeof(float));
}

/* Of all that an op wrote. */
static enum el_status digest(const struct soak *s, const struct op *op, uint64_t *digest_p)
{
    uint64_t hash = EL_HASH_BEGIN;
    for (int i = op->first; i < op->n; i++) {
        if (op->p[i] < 0) continue;
        EL_TRY(read_buffer(s, op->p[i]));
        hash = el_hash_blocks(hash, s->host, s->counts[op->p[i]] * sizeof(float));
    }
    *digest_p = hash;
    return EL_OK;
}

/* From the start to the end of a step. */
static enum el_status run_to(const struct soak *s, int step)
{
    EL_TRY(reset(s));
    for (int i = 0; i <= step; i++) EL_TRY(el_program_run(s->program, (uint64_t)i, NULL));
    return EL_OK;
}

static int outputs(const struct op *op)
{
    return op->p[op->first];
}

/* What differs is there no more in the next pass: it is kept, and the step made again. */
static enum el_status explain(const struct soak *s, int op, int step, int pass, json_t **wrong_p)
{
    int buffer = outputs(&ops[op]);
    size_t n = s->counts[buffer], at = 0;
    float *is = malloc(n * sizeof *is);
    if (!is) return el_fail_errno("soak");
    enum el_status status = read_buffer(s, buffer);
    if (status == EL_OK) memcpy(is, s->host, n * sizeof *is);
    if (status == EL_OK) status = run_to(s, step);
    if (status == EL_OK) status = read_buffer(s, buffer);
    while (status == EL_OK && at < n && memcmp(&is[at], &s->host[at], sizeof *is) == 0) at++;
    bool found = status == EL_OK && at < n;
    *wrong_p = el_json_of(EL_KEY("op", ops[op].name), EL_KEY("step", step), EL_KEY("pass", pass),
                          EL_KEY("element", found ? json_integer((json_int_t)at) : json_null()),
                          EL_KEY("is", found ? (double)is[at] : (double)NAN),
                          EL_KEY("was", found ? (double)s->host[at] : (double)NAN));
    free(is);
    return status;
}

static bool is_read(const struct soak *s, int step)
{
    return !s->gpu || step == s->steps - 1;
}

/* One pass. `first`: digests[steps * N_OPS] are taken, else compared. */
static enum el_status run_pass(const struct soak *s, int pass, uint64_t *digests, json_t **wrong_p)
{
    EL_TRY(reset(s));
    for (int step = 0; step < s->steps; step++) {
        EL_TRY(el_program_run(s->program, (uint64_t)step, NULL));
        for (int op = 0; op < N_OPS && is_read(s, step); op++) {
            uint64_t now, *then = &digests[step * N_OPS + op];
            EL_TRY(digest(s, &ops[op], &now));
            if (pass == 0) *then = now;
            if (now != *then) return explain(s, op, step, pass, wrong_p);
        }
    }
    return EL_OK;
}

static json_t *digests_json(const struct soak *s, const uint64_t *digests)
{
    json_t *steps = json_array();
    for (int step = 0; step < s->steps; step++) {
        json_t *row = json_array();
        if (!is_read(s, step)) {
            json_decref(row);
            continue;
        }
        for (int op = 0; op < N_OPS; op++)
            json_array_append_new(row, json_sprintf("%016" PRIx64, digests[step * N_OPS + op]));
        json_array_append_new(steps, el_json_of(EL_KEY("step", step), EL_KEY("digests", row)));
    }
    return steps;
}

static json_t *names_json(void)
{
    json_t *names = json_array();
    for (int op = 0; op < N_OPS; op++) json_array_append_new(names, json_string(ops[op].name));
    return names;
}

/* At least two passes. */
static enum el_status soak(const struct soak *s, double seconds, json_t *document)
{
    uint64_t *digests = calloc((size_t)s->steps * N_OPS, sizeof *digests);
    int64_t end_ns = el_clock_ns() + (int64_t)(seconds * 1e9);
    enum el_status status = digests ? EL_OK : el_fail_errno("soak");
    json_t *wrong = NULL;
    int pass = 0;
    for (; status == EL_OK && !wrong && (pass < 2 || el_clock_ns() < end_ns); pass++)
        status = run_pass(s, pass, digests, &wrong);
    el_json_put_all(document, EL_KEY("passes", pass), EL_KEY("steps", pass * s->steps), EL_KEY("ops", names_json()),
                    EL_KEY("first", digests_json(s, digests)), EL_KEY("wrong", wrong ? wrong : json_null()));
    free(digests);
    return status;
}

/* "locate:STEP:OP:BLOCK": hashes of blocks of what the op wrote (BLOCK -1), or the numbers of one. */
static enum el_status locate(const struct soak *s, const char *words, json_t *document)
{
    int step, op, block;
    json_t *list = json_array();
    el_json_put(document, "list", list);
    if (sscanf(words, "locate:%d:%d:%d", &step, &op, &block) != 3 || op < 0 || op >= N_OPS)
        return el_fail(EL_ERR_INTERNAL, "%s", words);
    size_t n = s->counts[outputs(&ops[op])];
    EL_TRY(run_to(s, step));
    EL_TRY(read_buffer(s, outputs(&ops[op])));
    for (size_t at = block < 0 ? 0 : (size_t)block * BLOCK; at < n; at += block < 0 ? BLOCK : 1) {
        size_t length = n - at < BLOCK ? n - at : BLOCK;
        if (block >= 0 && at >= ((size_t)block + 1) * BLOCK) break;
        if (block < 0)
            json_array_append_new(
                list, json_sprintf("%016" PRIx64, el_hash(EL_HASH_BEGIN, s->host + at, length * sizeof(float))));
        else
            json_array_append_new(list, el_json_real((double)s->host[at]));
    }
    el_json_put(document, "block", json_integer(BLOCK));
    return EL_OK;
}

enum el_status el_fleet_soak(struct el_fleet_rank *rank, const char *words, json_t **document_p)
{
    bool gpu;
    EL_TRY(el_fleet_is_large(rank->device, &gpu));
    struct soak s = {.device = rank->device,
                     .gpu = gpu,
                     .steps = gpu ? STEPS_ON_GPU : STEPS_ON_HOST,
                     .width = gpu ? WIDTH_ON_GPU : WIDTH_ON_HOST,
                     .rows = gpu ? WIDTH_ON_GPU : ROWS_ON_HOST,
                     .wrong = rank->wrong};
    json_t *document = json_object();
    enum el_status status = build(&s);
    if (status == EL_OK)
        status =
            strncmp(words, "locate", 6) ? soak(&s, rank->options->fleet.soak_s, document) : locate(&s, words, document);
    el_program_destroy(s.program);
    for (int b = 0; b < N_BUFFERS; b++) el_device_free(s.buffers[b]);
    free(s.host);
    *document_p = document;
    return status;
}
