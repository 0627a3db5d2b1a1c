/* Linear layers' f32 products by a CBLAS found at run time, and which library's are the fastest here. */
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "runtime/base/clock.h"
#include "runtime/base/module.h"

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112, FILES = 3, TEXT_BYTES = 96 };

typedef void sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float *a, int a_row, const float *b, int b_row, float beta, float *c, int c_row);

/* Written once under `opened`, then only read. */
static struct library {
    const char *name, *files[FILES];
    sgemm_function *sgemm; /* NULL: not there */
    char text[TEXT_BYTES]; /* with its version, or why it is not there */
} libraries[] = {[EL_PRODUCTS_MKL] = {"MKL", {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1"}},
                 [EL_PRODUCTS_OPENBLAS] = {"OpenBLAS", {"libopenblas.so.0"}},
                 [EL_PRODUCTS_BLIS] = {"BLIS", {"libblis.so.4", "libblis.so.3"}}};
enum { N_LIBRARIES = sizeof libraries / sizeof libraries[0] };

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static _Atomic(const struct library *) chosen; /* NULL: oneDNN */

/* One computing thread: the caller. */
static void compute_alone(void *handle)
{
    int (*set_layer)(int);
    void (*set)(int);
    void (*set_long)(long);
    enum { SEQUENTIAL = 1, LP64 = 0 };
    *(void **)&set_layer = dlsym(handle, "MKL_Set_Threading_Layer");
    if (set_layer) set_layer(SEQUENTIAL);
    *(void **)&set_layer = dlsym(handle, "MKL_Set_Interface_Layer");
    if (set_layer) set_layer(LP64); /* sides are int, whatever the environment says */
    *(void **)&set = dlsym(handle, "openblas_set_num_threads");
    if (set) set(1);
    *(void **)&set_long = dlsym(handle, "bli_thread_set_num_threads");
    if (set_long) set_long(1);
}

/* "MKL 2026.2-Product", "OpenBLAS 0.3.21 (Cooperlake)": OpenBLAS may take a processor for an older one. */
static void write_version(struct library *library, void *handle)
{
    const char *(*tell)(void), *(*tell_core)(void), *word;
    void (*write)(char *text, int bytes);
    char version[4 * TEXT_BYTES] = "";
    *(void **)&tell = dlsym(handle, "openblas_get_config");
    *(void **)&tell_core = dlsym(handle, "openblas_get_corename");
    if (!tell) *(void **)&tell = dlsym(handle, "bli_info_get_version_str");
    *(void **)&write = dlsym(handle, "MKL_Get_Version_String");
    if (tell) snprintf(version, sizeof version, "%s", tell());
    if (write) write(version, sizeof version - 1);
    word = version + strcspn(version, "0123456789");
    snprintf(library->text, sizeof library->text, "%s%s%.*s%s%.30s%s", library->name, *word ? " " : "",
             (int)strcspn(word, " \n"), word, tell_core ? " (" : "", tell_core ? tell_core() : "",
             tell_core ? ")" : "");
}

static void open_all(void)
{
    for (int l = 0; l < N_LIBRARIES; l++) {
        struct library *library = &libraries[l];
        void *handle = NULL;
        for (int f = 0; f < FILES && library->files[f] && !handle; f++)
            if (el_library_open_apart(library->name, library->files[f], &handle) != EL_OK) handle = NULL;
        if (handle) *(void **)&library->sgemm = dlsym(handle, "cblas_sgemm");
        if (!library->sgemm) continue;
        compute_alone(handle);
        write_version(library, handle);
    }
}

enum el_status el_kernels_cpu_products(enum el_products products)
{
    const struct library *library = NULL;
    if (products > EL_PRODUCTS_ONEDNN) {
        pthread_once(&opened, open_all);
        library = &libraries[products];
        if (!library->sgemm)
            return el_fail(EL_ERR_ABSENT,
                           "--products: no %s with CBLAS (%s) is found: install it, by pip too, or name its folder in "
                           "LD_LIBRARY_PATH",
                           library->name, library->files[0]);
    }
    atomic_store(&chosen, library);
    return EL_OK;
}

const char *el_kernels_cpu_blas(char *text, size_t bytes)
{
    size_t n = 0;
    pthread_once(&opened, open_all);
    if (bytes) *text = 0;
    for (int l = 0; l < N_LIBRARIES && n < bytes; l++)
        if (libraries[l].sgemm) n += (size_t)snprintf(text + n, bytes - n, "%s%s", n ? ", " : "", libraries[l].text);
    return text;
}

EL_VECTOR static void add_bias(const float *restrict bias, int64_t rows, int64_t n, int relu, float *restrict y)
{
    for (int64_t r = 0; r < rows; r++, y += n)
        for (int64_t i = 0; i < n; i++) {
            const float value = y[i] + (bias ? bias[i] : 0);
            y[i] = relu && value < 0 ? 0 : value;
        }
}

static enum el_status forward(const struct el_kernel_args *args)
{
    const struct library *library = args->plan;
    const int b = (int)args->d[0], i = (int)args->d[1], o = (int)args->d[2], relu = args->s[0] != 0;
    library->sgemm(ROW_MAJOR, PLAIN, TRANSPOSED, b, o, i, 1, args->p[0], i, args->p[1], i, 0, args->p[3], o);
    if (args->p[2] || relu) add_bias(args->p[2], b, o, relu, args->p[3]);
    return EL_OK;
}

static enum el_status backward_data(const struct el_kernel_args *args)
{
    const struct library *library = args->plan;
    const int b = (int)args->d[0], i = (int)args->d[1], o = (int)args->d[2];
    const float acc = args->s[0] != 0;
    library->sgemm(ROW_MAJOR, PLAIN, PLAIN, b, i, o, 1, args->p[0], o, args->p[1], i, acc, args->p[2], i);
    return EL_OK;
}

static enum el_status backward_weights(const struct el_kernel_args *args)
{
    const struct library *library = args->plan;
    const int b = (int)args->d[0], i = (int)args->d[1], o = (int)args->d[2];
    const float acc = args->s[0] != 0;
    library->sgemm(ROW_MAJOR, TRANSPOSED, PLAIN, o, i, b, 1, args->p[1], o, args->p[0], i, acc, args->p[2], i);
    if (args->p[3]) el_vector_sum_rows(args->p[1], b, o, acc != 0, args->p[3]);
    return EL_OK;
}

/* The plan is the library that was chosen then. */
static enum el_status prepare(const struct el_kernel_args *args, void **plan_p)
{
    const struct library *library = atomic_load(&chosen);
    if (!library) return el_fail(EL_ERR_INTERNAL, "--products: another library was chosen meanwhile");
    if (args->d[0] > INT_MAX || args->d[1] > INT_MAX || args->d[2] > INT_MAX)
        return el_fail(EL_ERR_INTERNAL, "%s: a side of a product is above %d", library->name, INT_MAX);
    memcpy(plan_p, &library, sizeof library);
    return EL_OK;
}

static void release(void *plan)
{
    (void)plan;
}

static const char *describe(const void *plan)
{
    return ((const struct library *)plan)->text;
}

const struct el_kernel *el_cpu_blas(enum el_op_kind op)
{
#define ROW(function)                                                                                                  \
    {                                                                                                                  \
        .run = function, .prepare = prepare, .release = release, .describe = describe                                  \
    }
    static const struct el_kernel rows[] = {ROW(forward), ROW(backward_data), ROW(backward_weights)};
#undef ROW
    if (!atomic_load(&chosen)) return NULL;
    return op == EL_OP_LINEAR_FORWARD            ? &rows[0]
           : op == EL_OP_LINEAR_BACKWARD_DATA    ? &rows[1]
           : op == EL_OP_LINEAR_BACKWARD_WEIGHTS ? &rows[2]
                                                 : NULL;
}

enum { SIDE = 512, TRIES = 4 };

/* The shortest of some runs of a product of SIDE x SIDE x SIDE; INFINITY: it fails. `p`: three matrices. */
static double try_op(enum el_op_kind op, float *const p[3])
{
    struct el_kernel_args args = {.d = {SIDE, SIDE, SIDE}};
    struct el_workspace workspace = {0};
    const struct el_kernel *row = el_kernels_cpu()->find(op, EL_F32);
    double best_ns = (double)INFINITY;
    for (int i = 0; i < 3; i++) args.p[i] = p[i];
    if (op == EL_OP_LINEAR_FORWARD) args.p[2] = NULL, args.p[3] = p[2];
    if (row->workspace && row->workspace(&args, &workspace) != EL_OK) return best_ns;
    args.workspace = aligned_alloc(64, (workspace.bytes + 127) / 64 * 64);
    bool ready = args.workspace && (!row->prepare || row->prepare(&args, &args.plan) == EL_OK);
    for (int i = 0; i < TRIES && ready; i++) {
        const int64_t begin_ns = el_clock_ns();
        if (row->run(&args) != EL_OK) break;
        const double ns = (double)(el_clock_ns() - begin_ns);
        if (ns < best_ns) best_ns = ns;
    }
    if (row->release) row->release(args.plan);
    free(args.workspace);
    return best_ns;
}

static double try_library(enum el_products products, float *const p[3])
{
    if (el_kernels_cpu_products(products) != EL_OK) return (double)INFINITY;
    return try_op(EL_OP_LINEAR_FORWARD, p) + try_op(EL_OP_LINEAR_BACKWARD_DATA, p) +
           try_op(EL_OP_LINEAR_BACKWARD_WEIGHTS, p);
}

static enum el_products fastest = EL_PRODUCTS_ONEDNN;

static void find_fastest(void)
{
    static const double CLEARLY = 0.95; /* what stands is not left for noise */
    const struct library *before = atomic_load(&chosen);
    float *values = aligned_alloc(64, (size_t)3 * SIDE * SIDE * sizeof *values), *p[3];
    if (!values || !*el_kernels_cpu_blas((char[TEXT_BYTES]){0}, TEXT_BYTES)) {
        free(values);
        return;
    }
    for (int i = 0; i < 3 * SIDE * SIDE; i++) values[i] = (float)(i % 7) / 8;
    for (int i = 0; i < 3; i++) p[i] = values + (size_t)i * SIDE * SIDE;
    double best_ns = el_kernels_cpu_missing() ? (double)INFINITY : CLEARLY * try_library(EL_PRODUCTS_ONEDNN, p);
    for (int l = EL_PRODUCTS_ONEDNN + 1; l < N_LIBRARIES; l++) {
        const double ns = try_library((enum el_products)l, p);
        if (!(ns < best_ns)) continue;
        best_ns = ns;
        fastest = (enum el_products)l;
    }
    atomic_store(&chosen, before);
    free(values);
}

enum el_products el_kernels_cpu_fastest(void)
{
    static pthread_once_t tried = PTHREAD_ONCE_INIT;
    pthread_once(&tried, find_fastest);
    return fastest;
}
