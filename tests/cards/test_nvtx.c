/* NVTX ranges as a profiler sees them: this program is the profiler, through a library that NVTX loads as it would load
 * a profiler's. Types are NVTX's own, as far as they are needed. */
#include "tests/test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "profiles/nvtx.h"
#include "tests/cards/cards_cases.h"

enum { EVENTS_MAX = 256, CALLBACKS = 1, CORE2 = 5, PUSH = 4, POP = 5, CREATE = 12 };

struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
};

struct callbacks {
    size_t size;
    int (*get_table)(int module, void ****table_p, unsigned *n_p);
};

/* ">text" for a push, "<" for a pop, a thread's in its order. */
static struct {
    pthread_mutex_t lock;
    char domain[32];
    int n_domains, n;
    struct {
        pthread_t thread;
        char text[64];
        uint64_t payload;
    } events[EVENTS_MAX];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note(const char *mark, const char *text, uint64_t payload)
{
    pthread_mutex_lock(&seen.lock);
    if (seen.n < EVENTS_MAX) {
        seen.events[seen.n].thread = pthread_self();
        seen.events[seen.n].payload = payload;
        snprintf(seen.events[seen.n++].text, sizeof seen.events[0].text, "%s%s", mark, text);
    }
    pthread_mutex_unlock(&seen.lock);
}

static void *create(const char *name)
{
    snprintf(seen.domain, sizeof seen.domain, "%s", name);
    seen.n_domains++;
    return &seen;
}

static int push(void *domain, const struct attributes *attributes)
{
    note(">", domain == &seen ? attributes->message : "(another domain)", attributes->payload);
    return 0;
}

static int pop(void *domain)
{
    note("<", domain == &seen ? "" : "(another domain)", 0);
    return 0;
}

static void take(void ***table, unsigned n, unsigned which, void (*function)(void))
{
    if (which < n && table[which]) memcpy(table[which], &function, sizeof function);
}

int nvtx_be_injected(const void *(*get_export_table)(uint32_t id));

int nvtx_be_injected(const void *(*get_export_table)(uint32_t id))
{
    const struct callbacks *callbacks = get_export_table(CALLBACKS);
    void ***table;
    unsigned n;
    if (!callbacks || !callbacks->get_table(CORE2, &table, &n)) return 0;
    take(table, n, PUSH, (void (*)(void))push);
    take(table, n, POP, (void (*)(void))pop);
    take(table, n, CREATE, (void (*)(void))create);
    return 1;
}

/* The library lies beside this program. */
static struct el_watch *open_watch(void)
{
    static struct el_watch watch;
    char path[4096] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    if (length > 0) snprintf(strrchr(path, '/'), 64, "/nvtx_injection.so");
    setenv("NVTX_INJECTION64_PATH", path, 1);
    if (el_nvtx_open(&watch) == EL_OK) return &watch;
    print_message("# skip: %s\n", el_error_message());
    return NULL;
}

static enum el_status nothing(const struct el_call_args *args)
{
    (void)args;
    return EL_OK;
}

static void add(struct el_program *program, struct el_device *device, enum el_phase phase, enum el_op_class op_class,
                const char *label)
{
    struct el_call_op op = {.head = {.label = label, .phase = phase, .sent_bytes = op_class == EL_CLASS_COMM ? 96 : 0},
                            .op_class = op_class,
                            .run = nothing};
    assert_int_equal(el_program_call(program, device, EL_STREAM_COMPUTE, &op, NULL), EL_OK);
}

/* What the threads other, or not other, than this one did since `from`, one text. */
static void gather(int from, int own, char *text, size_t bytes)
{
    size_t at = 0;
    for (int i = from; i < seen.n; i++)
        if (!!pthread_equal(seen.events[i].thread, pthread_self()) == own)
            at += (size_t)snprintf(text + at, bytes - at, "%s ", seen.events[i].text);
}

static void ranges_nest_as_the_step_does(void **state)
{
    struct el_device_spec spec = {.backend = "cpu"};
    struct el_device *device;
    struct el_program *program;
    char text[1024] = "";
    if (!*state) skip();
    struct el_probe probe = {.watch = *state};
    assert_int_equal(el_device_open(&spec, &device), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    add(program, device, EL_PHASE_DATA, EL_CLASS_HOST, "load");
    add(program, device, EL_PHASE_BACKWARD, EL_CLASS_HOST, "a");
    add(program, device, EL_PHASE_BACKWARD, EL_CLASS_HOST, "b");
    add(program, device, EL_PHASE_COMM, EL_CLASS_COMM, "bucket_0");
    add(program, device, EL_PHASE_COMM, EL_CLASS_COMM, "bucket_1");
    assert_int_equal(el_program_end(program), EL_OK);
    int from = seen.n;
    assert_int_equal(el_program_run(program, 7, &probe), EL_OK);
    gather(from, 1, text, sizeof text);
    assert_string_equal(text, ">step 7 < ");
    gather(from, 0, text, sizeof text);
    assert_string_equal(text, ">data < >backward < >comm >bucket_0 < >bucket_1 < < ");
    int n_paid = 0;
    for (int i = from; i < seen.n; i++) n_paid += seen.events[i].payload == 96;
    assert_int_equal(n_paid, 2);
    int before = seen.n;
    assert_int_equal(el_program_run(program, 8, NULL), EL_OK);
    assert_int_equal(seen.n, before);
    el_program_destroy(program);
    el_device_close(device);
}

/* On asynchronous devices one thread issues for all streams: phases and collectives lie within the step. */
static void one_thread_issues_within_the_step(void **state)
{
    struct el_program *program;
    char text[1024] = "";
    if (!*state) skip();
    struct el_probe probe = {.watch = *state};
    struct el_device *device = open_card(0);
    assert_int_equal(el_program_create(&program), EL_OK);
    add(program, device, EL_PHASE_BACKWARD, EL_CLASS_HOST, "a");
    add(program, device, EL_PHASE_COMM, EL_CLASS_COMM, "bucket_0");
    add(program, device, EL_PHASE_BACKWARD, EL_CLASS_HOST, "b");
    assert_int_equal(el_program_end(program), EL_OK);
    int from = seen.n;
    assert_int_equal(el_program_run(program, 3, &probe), EL_OK);
    gather(from, 1, text, sizeof text);
    assert_string_equal(text, ">step 3 >backward < >comm >bucket_0 < < >backward < < ");
    el_program_destroy(program);
    el_device_close(device);
}

static void the_domain_is_ours(void **state)
{
    if (!*state) skip();
    assert_string_equal(seen.domain, "evenload");
    assert_int_equal(seen.n_domains, 1);
}

int main(void)
{
    set_up_cards();
    struct el_watch *watch = open_watch();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(ranges_nest_as_the_step_does, watch),
        cmocka_unit_test_prestate(one_thread_issues_within_the_step, watch),
        cmocka_unit_test_prestate(the_domain_is_ours, watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
