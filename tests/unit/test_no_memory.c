/* Memory that runs out: whichever allocation fails, the call fails with a status and nothing of it stays behind. The
 * program's own malloc stands in front of the C library's; sanitizers have one of their own, so there this skips. */
#include "tests/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/process.h"
#include "runtime/comm/comm_ops.h"
#include "runtime/train/forecast.h"
#include "runtime/train/train.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

static void test_skipped(void **state)
{
    skip();
}

RUN_TESTS(NULL, NULL, test_skipped)

#else

/* The C library's own, under the names that it keeps for programs like this one. */
void *__libc_malloc(size_t bytes);             /* NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
void *__libc_calloc(size_t n, size_t bytes);   /* NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
void *__libc_realloc(void *old, size_t bytes); /* NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
void __libc_free(void *memory);                /* NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

enum { BLOCKS_MAX = 4096 };

/* What a scene has allocated and not freed. Nothing is counted before arm(). One thread. */
static struct {
    bool armed;
    int left; /* allocations that still succeed */
    void *blocks[BLOCKS_MAX];
    int n_blocks;
} heap;

static bool is_out(void)
{
    if (!heap.armed || heap.left-- > 0) return false;
    errno = ENOMEM;
    return true;
}

static void *note(void *memory)
{
    if (heap.armed && memory && heap.n_blocks < BLOCKS_MAX) heap.blocks[heap.n_blocks++] = memory;
    return memory;
}

static void forget(const void *memory)
{
    for (int i = 0; memory && i < heap.n_blocks; i++)
        if (heap.blocks[i] == memory) heap.blocks[i] = heap.blocks[--heap.n_blocks];
}

void *malloc(size_t bytes)
{
    return is_out() ? NULL : note(__libc_malloc(bytes));
}

void *calloc(size_t n, size_t bytes)
{
    return is_out() ? NULL : note(__libc_calloc(n, bytes));
}

void *realloc(void *old, size_t bytes)
{
    if (is_out()) return NULL;
    forget(old);
    return note(__libc_realloc(old, bytes));
}

void free(void *memory)
{
    forget(memory);
    __libc_free(memory);
}

/* Fails its 1st, 2nd, ... allocation, until it succeeds. */
static void fail_each(enum el_status (*scene)(struct el_device *const *devices), struct el_device *const *devices)
{
    enum el_status status = EL_ERR_HOST_MEMORY;
    assert_int_equal(scene(devices), EL_OK); /* what the devices make at first use is theirs */
    for (int k = 0; status != EL_OK; k++) {
        heap.left = k;
        heap.n_blocks = 0;
        heap.armed = true;
        status = scene(devices);
        heap.armed = false;
        if (heap.n_blocks != 0) fail_msg("the allocation number %d fails: %d blocks are left", k, heap.n_blocks);
        assert_true(status == EL_OK || status == EL_ERR_HOST_MEMORY);
        assert_true(k < 1000);
    }
}

enum { MEMBERS = 3, OPS = 70 }; /* more ops than the first room for them */

static enum el_status open_staged(struct el_device *const *devices)
{
    struct el_comm *comms[MEMBERS];
    EL_TRY(el_comm_open_with(&el_comm_staged_local_backend, devices, MEMBERS, comms));
    for (int m = 0; m < MEMBERS; m++) el_comm_close(comms[m]);
    return EL_OK;
}

static enum el_status do_nothing(const struct el_call_args *args)
{
    (void)args;
    return EL_OK;
}

/* Each op waits for the one before it, on another stream. */
static enum el_status build_program(struct el_device *const *devices)
{
    struct el_program *program;
    struct el_call_op op = {.head = {.label = "nothing"}, .op_class = EL_CLASS_HOST, .run = do_nothing};
    EL_TRY(el_program_create(&program));
    for (int i = 0; i < OPS; i++) {
        int id = -1;
        el_program_call(program, devices[0], i % 2 ? EL_STREAM_COMM : EL_STREAM_COMPUTE, &op, &id);
        if (id >= 0) el_program_wait(program, devices[0], i % 2 ? EL_STREAM_COMPUTE : EL_STREAM_COMM, id);
    }
    enum el_status status = el_program_end(program);
    el_program_destroy(program);
    return status;
}

static enum el_status forecast(void)
{
    struct el_memory_forecast forecasts[1];
    struct el_train_config config = {.mode = "single", .dtype = EL_F32, .global_batch = 4, .n_devices = 1, .steps = 1};
    strcpy(config.model.name, "textcnn");
    enum el_status status = el_model_resolve(&config.model);
    if (status == EL_OK) status = el_train_check(&config);
    if (status == EL_OK) status = el_train_forecast(&config, el_kernels_cpu(), forecasts);
    return status;
}

/* oneDNN throws in C++ then, which C cannot catch: the process ends, with a line and a status, and not by a signal. */
static void test_the_kernels_library_without_memory(void **state)
{
    enum { STEP = 41, MOST = 200, LINE_BYTES = 200 };
    int n_ended = 0, ended = 1;
    if (!el_kernels_cpu_library()) skip();
    for (int k = 0; k < MOST && ended != 0; k++) {
        char line[LINE_BYTES] = "";
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        pid_t child = fork();
        if (child == 0) {
            dup2(pipes[1], STDERR_FILENO);
            heap.left = 1 + k * STEP;
            heap.armed = true;
            enum el_status status = forecast();
            heap.armed = false;
            _exit(status == EL_OK ? 0 : status == EL_ERR_HOST_MEMORY || status == EL_ERR_OOM ? 1 : 2);
        }
        close(pipes[1]);
        ssize_t n = read(pipes[0], line, sizeof line - 1);
        close(pipes[0]);
        assert_true(child > 0 && waitpid(child, &ended, 0) == child && n >= 0);
        if (!WIFEXITED(ended) || (WEXITSTATUS(ended) > 1 && WEXITSTATUS(ended) != EL_PROCESS_NO_MEMORY))
            fail_msg("allocation %d fails: status %x, %s", 1 + k * STEP, (unsigned)ended, line);
        if (WEXITSTATUS(ended) != EL_PROCESS_NO_MEMORY) continue;
        assert_non_null(strstr(line, "evenload: no memory for oneDNN's kernels: give the process more memory"));
        n_ended++;
    }
    assert_int_equal(ended, 0);
    assert_true(n_ended > 2);
}

static void on_devices(enum el_status (*scene)(struct el_device *const *devices))
{
    struct el_device *devices[MEMBERS];
    for (int m = 0; m < MEMBERS; m++) {
        const struct el_device_spec spec = {.backend = "null", .index = m, .position = m};
        assert_int_equal(el_device_open(&spec, &devices[m]), EL_OK);
    }
    fail_each(scene, devices);
    for (int m = 0; m < MEMBERS; m++) el_device_close(devices[m]);
}

static void test_opening_staged_communicators(void **state)
{
    on_devices(open_staged);
}

static void test_building_a_program(void **state)
{
    on_devices(build_program);
}

RUN_TESTS(NULL, NULL, test_opening_staged_communicators, test_building_a_program,
          test_the_kernels_library_without_memory)

#endif
