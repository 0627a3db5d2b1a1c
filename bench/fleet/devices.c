/* What a device does by itself: products, memory, copies from the host. Each sample is many ops in a row, about a tenth
 * of a second, so that a core that is taken away for a while shows. */
#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/fleet/fleet.h"
#include "runtime/base/clock.h"
#include "runtime/device/program.h"

enum { WIDTH_ON_HOST = 768, WIDTH_ON_GPU = 8192, OPS_MAX = 20000 };
enum { BYTES_ON_HOST = 48 << 20, BYTES_ON_GPU = 1 << 30, FIRST_LOOKS = 2 };
#define SAMPLE_S    0.1
#define GPU_FLOPS_S 2e11 /* any card has more; an emulated one gets what a host gets */

struct bench {
    struct el_device *device;
    struct el_buffer *buffers[3];
    void *host;
    size_t bytes; /* of a buffer */
    int64_t width;
    bool gpu; /* and no emulated one */
};

struct spans {
    int n_ops;
    double seconds;
};

static void keep(void *context, const struct el_step_event *event)
{
    struct spans *spans = context;
    spans->seconds = 1e-9 * (double)(event->spans[event->n_ops - 1].end_ns - event->spans[0].begin_ns);
}

static enum el_status queue_product(const struct bench *b, struct el_program *program)
{
    const struct el_kernel_op op = {
        .head = {.label = "product", .phase = EL_PHASE_FORWARD},
        .op = EL_OP_LINEAR_BACKWARD_DATA,
        .dtype = b->gpu ? EL_BF16 : EL_F32,
        .views = {el_view_of(b->buffers[0], 0), el_view_of(b->buffers[1], 0), el_view_of(b->buffers[2], 0)},
        .args.d = {b->width, b->width, b->width}};
    return el_program_kernel(program, b->device, EL_STREAM_COMPUTE, &op, NULL);
}

static enum el_status queue_memory(const struct bench *b, struct el_program *program)
{
    const struct el_kernel_op op = {.head = {.label = "memory", .phase = EL_PHASE_OPTIMIZER},
                                    .op = EL_OP_ADD,
                                    .dtype = EL_F32,
                                    .views = {el_view_of(b->buffers[0], 0), el_view_of(b->buffers[1], 0)},
                                    .args.d = {(int64_t)(b->bytes / sizeof(float))}};
    return el_program_kernel(program, b->device, EL_STREAM_COMPUTE, &op, NULL);
}

static enum el_status queue_copy(const struct bench *b, struct el_program *program)
{
    const struct el_op_head head = {.label = "copy", .phase = EL_PHASE_H2D};
    int id;
    EL_TRY(el_program_copy(program, b->device, EL_STREAM_COMPUTE, &head, el_view_of(b->buffers[0], 0),
                           el_view_host(b->host), b->bytes, &id));
    el_program_copy_how(program, id, EL_COPY_PINNED);
    return EL_OK;
}

static double flops(const struct bench *b)
{
    return 2.0 * pow((double)b->width, 3);
}

static double memory_bytes(const struct bench *b)
{
    return 3.0 * (double)b->bytes; /* two read, one written */
}

static double copied_bytes(const struct bench *b)
{
    return (double)b->bytes;
}

static const struct kind {
    const char *key;
    enum el_status (*queue)(const struct bench *b, struct el_program *program);
    double (*work)(const struct bench *b);
} kinds[] = {
    {"products", queue_product, flops}, {"memory", queue_memory, memory_bytes}, {"copies", queue_copy, copied_bytes}};

static enum el_status make(const struct bench *b, const struct kind *kind, int n, struct el_program **program_p)
{
    EL_TRY(el_program_create(program_p));
    for (int i = 0; i < n; i++) EL_TRY(kind->queue(b, *program_p));
    return el_program_end(*program_p);
}

/* A GPU's clock rises in a first run, which does not count. */
static enum el_status time_runs(struct el_program *program, int runs, bool gpu, double *seconds)
{
    struct spans spans = {.seconds = 0};
    const struct el_probe probe = {.context = &spans, .spans = true, .wall_only = true, .step = keep};
    for (int i = gpu ? -1 : 0; i < runs; i++) {
        EL_TRY(el_program_run(program, 0, &probe));
        if (i >= 0) seconds[i] = spans.seconds;
    }
    return EL_OK;
}

static enum el_status measure(const struct bench *b, const struct kind *kind, int repeats, json_t **rates_p)
{
    struct el_program *program = NULL;
    double *seconds = calloc((size_t)repeats + 1, sizeof *seconds), one = 0;
    enum el_status status = seconds ? make(b, kind, 1, &program) : el_fail_errno("%d repeats", repeats);
    if (status == EL_OK) status = time_runs(program, 1, true, &one); /* libraries choose and load kernels */
    el_program_destroy(program);
    program = NULL;
    int n = (int)fmin(fmax(SAMPLE_S / fmax(one, 1e-9), 1), OPS_MAX);
    if (el_device_is_simulated(b->device)) n = 1;
    if (status == EL_OK) status = make(b, kind, n, &program);
    if (status == EL_OK) status = time_runs(program, repeats, b->gpu, seconds);
    el_program_destroy(program);
    *rates_p = json_array();
    for (int i = 0; i < repeats && status == EL_OK; i++)
        json_array_append_new(*rates_p, el_json_real(n * kind->work(b) / seconds[i]));
    free(seconds);
    return status;
}

enum el_status el_fleet_is_large(struct el_device *device, bool *large_p)
{
    struct bench b = {.device = device, .width = WIDTH_ON_HOST};
    struct el_program *program = NULL;
    double seconds[FIRST_LOOKS] = {INFINITY, INFINITY};
    *large_p = false;
    if (el_device_is_host_memory(device)) return EL_OK;
    enum el_status status = EL_OK;
    for (int i = 0; i < 3 && status == EL_OK; i++)
        status = el_device_alloc(device, EL_TAG_WORKSPACE, (size_t)(b.width * b.width) * sizeof(float), "fleet's look",
                                 &b.buffers[i]);
    if (status == EL_OK) status = make(&b, &kinds[0], 1, &program);
    if (status == EL_OK) status = time_runs(program, FIRST_LOOKS, false, seconds);
    el_program_destroy(program);
    for (int i = 0; i < 3; i++) el_device_free(b.buffers[i]);
    *large_p = flops(&b) / seconds[FIRST_LOOKS - 1] > GPU_FLOPS_S;
    return status;
}

static enum el_status open_bench(struct el_device *device, struct bench *b)
{
    bool large;
    EL_TRY(el_fleet_is_large(device, &large));
    *b = (struct bench){.device = device,
                        .gpu = large,
                        .width = large ? WIDTH_ON_GPU : WIDTH_ON_HOST,
                        .bytes = large ? BYTES_ON_GPU : BYTES_ON_HOST};
    for (int i = 0; i < 3; i++)
        EL_TRY(el_device_alloc(device, EL_TAG_WORKSPACE, b->bytes, "fleet's data", &b->buffers[i]));
    EL_TRY(el_device_host_alloc(device, true, b->bytes, &b->host));
    float *values = b->host;
    for (size_t i = 0; i < b->bytes / sizeof *values && !el_device_is_simulated(device); i++)
        values[i] = (float)(i % 17) * 0.001f;
    for (int i = 0; i < 3; i++) EL_TRY(el_device_write(el_view_of(b->buffers[i], 0), b->host, b->bytes));
    return EL_OK;
}

static void close_bench(struct bench *b)
{
    for (int i = 0; i < 3; i++) el_device_free(b->buffers[i]);
    el_device_host_free(b->device, true, b->host);
}

/* Of a core's time, what this process had. */
static double process_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum el_status el_fleet_measure_device(struct el_fleet_rank *rank, json_t **document_p)
{
    struct bench b = {.device = rank->device};
    json_t *document = json_object();
    enum el_status status = open_bench(rank->device, &b);
    double begin_s = process_s(), granted;
    int64_t begin_ns = el_clock_ns();
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0] && status == EL_OK; k++) {
        json_t *rates = NULL;
        status = measure(&b, &kinds[k], rank->options->repeats, &rates);
        el_json_put(document, kinds[k].key, rates);
    }
    granted = (process_s() - begin_s) / (1e-9 * (double)(el_clock_ns() - begin_ns));
    if (!b.gpu) el_json_put_real(document, "granted_pct", 100 * fmin(granted, 1));
    close_bench(&b);
    *document_p = document;
    return status;
}
