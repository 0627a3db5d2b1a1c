/* NCCL's calls of a profiler are played, in its order and out of it, and what the plugin's file has must be what was
 * played. The plugin is opened as NCCL opens it, and closed after each test. */
#include "tests/test.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiles/nccl/profiler_api.h"
#include "runtime/base/module.h"
#include "runtime/base/rng.h"
#include "tests/sanitized.h"

enum { PLACES = 4096, RANKS = 4 }; /* calls that the plugin keeps at a time */

static void *library;
static const struct el_nccl_profiler_v5 *v5;
static char folder[] = "/tmp/test-nccl-profiler-XXXXXX", file[4096];

static const void *symbol(const char *name)
{
    const void *found = dlsym(library, name);
    assert_non_null(found);
    return found;
}

static void open_plugin(void)
{
    char path[4096], host[256] = "";
    assert_true(el_module_folder(path));
    strcat(path, "/libnccl-profiler-evenload.so");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    v5 = symbol("ncclProfiler_v5");
    gethostname(host, sizeof host - 1);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    setenv("EVENLOAD_NCCL_DIR", folder, 1);
    snprintf(file, sizeof file, "%s/%s-pid%d.log", folder, host, (int)getpid());
}

/* Closes it, as NCCL and the program's end do. Returns the file's lines, each of which is JSON. */
static json_t *lines_of_file(void)
{
    json_t *lines = json_array();
    char line[4096];
    dlclose(library);
    FILE *stream = fopen(file, "r");
    assert_non_null(stream);
    while (fgets(line, sizeof line, stream)) {
        json_t *value = json_loads(line, JSON_DECODE_INT_AS_REAL, NULL); /* of any size */
        if (!value) fail_msg("no JSON: %s", line);
        json_array_append_new(lines, value);
    }
    fclose(stream);
    unlink(file);
    rmdir(folder);
    return lines;
}

static void *communicator(uint64_t id, int rank, int ranks)
{
    void *context = NULL;
    int mask = 0;
    assert_int_equal(v5->init(&context, id, &mask, "a \"name\"", 1, ranks, rank, NULL), 0);
    assert_int_equal(mask, EL_NCCL_EVENT_COLLECTIVE | EL_NCCL_EVENT_P2P | EL_NCCL_EVENT_CHANNEL);
    assert_non_null(context);
    return context;
}

static void *start(void *context, struct el_nccl_event_v5 event)
{
    void *handle = &event;
    assert_int_equal(v5->start_event(context, &handle, &event), 0);
    return handle;
}

static void *all_reduce(void *context, uint64_t number, size_t count, int channels)
{
    return start(context, (struct el_nccl_event_v5){.type = EL_NCCL_EVENT_COLLECTIVE,
                                                    .collective = {.number = number,
                                                                   .function = "AllReduce",
                                                                   .count = count,
                                                                   .datatype = "ncclBfloat16",
                                                                   .channels = (uint8_t)channels,
                                                                   .algorithm = "RING",
                                                                   .protocol = "LL128"}});
}

static void *start_channel(void *context, void *parent, int channel, uint64_t gpu_ns)
{
    return start(context, (struct el_nccl_event_v5){.type = EL_NCCL_EVENT_CHANNEL,
                                                    .parent = parent,
                                                    .channel = {.channel = (uint8_t)channel, .gpu_ns = gpu_ns}});
}

static void stop_channel(void *handle, uint64_t gpu_ns)
{
    union el_nccl_state end = {.gpu_ns = gpu_ns};
    assert_int_equal(v5->record_state(handle, EL_NCCL_STATE_CHANNEL_STOP, &end), 0);
    assert_int_equal(v5->stop_event(handle), 0);
}

static const char *text(const json_t *line, const char *part, const char *key)
{
    const char *found = json_string_value(json_object_get(json_object_get(line, part), key));
    return found ? found : "missing";
}

static double number(const json_t *line, const char *part, const char *key)
{
    return json_number_value(json_object_get(json_object_get(line, part), key));
}

/* ---- a job: threads that queue, each on its communicator, and a proxy that tells later what the GPU did ---- */

enum { CALLS = 300 };
struct queued {
    void *context, *handle;
    int rank, number, channels;
};
static struct queued queue[RANKS * CALLS];
static size_t n_queued;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;

/* Of rank r call n begins at 1 ms x (n + 1) on the GPU, and takes 1000 (r + 1) + n ns. */
static uint64_t begin_of(int n)
{
    return UINT64_C(1000000) * (uint64_t)(n + 1);
}

static void *queue_calls(void *argument)
{
    const int rank = (int)(intptr_t)argument;
    void *context = communicator(0xabc, rank, RANKS);
    for (int n = 0; n < CALLS; n++) {
        struct queued call = {context, NULL, rank, n, 1 + n % 3};
        call.handle = all_reduce(context, (uint64_t)n, (size_t)n + 1, call.channels);
        assert_non_null(call.handle);
        pthread_mutex_lock(&lock);
        queue[n_queued++] = call;
        pthread_cond_signal(&more);
        pthread_mutex_unlock(&lock);
        v5->stop_event(call.handle); /* before the kernel, beside it or after it */
    }
    return context;
}

static void *tell_of_kernels(void *argument)
{
    for (size_t i = 0; i < RANKS * CALLS; i++) {
        void *channels[3];
        pthread_mutex_lock(&lock);
        while (n_queued <= i) pthread_cond_wait(&more, &lock);
        struct queued call = queue[i];
        pthread_mutex_unlock(&lock);
        for (int c = 0; c < call.channels; c++)
            channels[c] = start_channel(call.context, call.handle, c,
                                        begin_of(call.number) + (uint64_t)(call.channels - 1 - c)); /* the first last */
        for (int c = 0; c < call.channels; c++)
            stop_channel(channels[c], begin_of(call.number) + 1000 * (uint64_t)(call.rank + 1) + (uint64_t)call.number -
                                          (c ? 100 : 0));
    }
    return argument;
}

static void a_job_is_recorded_as_it_was_played(void **state)
{
    open_plugin();
    pthread_t threads[RANKS], proxy;
    bool seen[RANKS][CALLS] = {{false}};
    n_queued = 0;
    pthread_create(&proxy, NULL, tell_of_kernels, NULL);
    for (int r = 0; r < RANKS; r++) pthread_create(&threads[r], NULL, queue_calls, (void *)(intptr_t)r);
    pthread_join(proxy, NULL);
    for (int r = 0; r < RANKS; r++) {
        void *context;
        pthread_join(threads[r], &context);
        v5->finalize(context);
    }
    json_t *lines = lines_of_file(), *line;
    size_t i;
    assert_int_equal(json_array_size(lines), RANKS * CALLS);
    json_array_foreach(lines, i, line)
    {
        int rank = (int)number(line, "header", "rank"), n = (int)number(line, "coll_perf", "coll_sn");
        assert_in_range(rank, 0, RANKS - 1);
        assert_in_range(n, 0, CALLS - 1);
        assert_false(seen[rank][n]);
        seen[rank][n] = true;
        assert_string_equal(text(line, "header", "id"), "0xabc");
        assert_string_equal(text(line, "header", "comm_name"), "a ?name?");
        assert_int_equal(number(line, "header", "n_ranks"), RANKS);
        assert_string_equal(text(line, "coll_perf", "coll"), "AllReduce");
        assert_string_equal(text(line, "coll_perf", "algorithm"), "RING");
        assert_string_equal(text(line, "coll_perf", "protocol"), "LL128");
        assert_string_equal(text(line, "coll_perf", "datatype"), "ncclBfloat16");
        assert_string_equal(text(line, "coll_perf", "coll_timing_source"), "kernel_gpu");
        assert_int_equal(number(line, "coll_perf", "channels"), 1 + n % 3);
        assert_int_equal(number(line, "coll_perf", "count"), n + 1);
        assert_int_equal(number(line, "coll_perf", "coll_msg_size_bytes"), 2 * (n + 1));
        assert_int_equal(1000 * number(line, "coll_perf", "coll_exec_time_us") + 0.5, 1000 * (rank + 1) + n);
        assert_true(number(line, "coll_perf", "begin_ns") > 1e18);
        assert_true(number(line, "coll_perf", "begin_ns") <= number(line, "coll_perf", "end_ns"));
    }
    json_decref(lines);
}

/* ---- what is seldom ---- */

/* Kernels that are never told of hold no place for ever: the oldest call is written with the time of its queueing. */
static void calls_without_kernels_give_way(void **state)
{
    open_plugin();
    void *context = communicator(1, 0, 1);
    for (int n = 0; n < PLACES + 100; n++) v5->stop_event(all_reduce(context, (uint64_t)n, 1, 1));
    v5->finalize(context);
    json_t *lines = lines_of_file();
    assert_int_equal(json_array_size(lines), PLACES + 100);
    for (int n = 0; n < 100; n++) assert_int_equal(number(json_array_get(lines, (size_t)n), "coll_perf", "coll_sn"), n);
    assert_string_equal(text(json_array_get(lines, 0), "coll_perf", "coll_timing_source"), "collective_cpu");
    json_decref(lines);
}

/* As the kernels of a graph that is launched again: their call is over. */
static void events_of_calls_that_are_over_are_nothing(void **state)
{
    open_plugin();
    void *context = communicator(1, 0, 2), *other = communicator(2, 1, 2);
    assert_null(start(context, (struct el_nccl_event_v5){.type = UINT64_C(1) << 40}));
    assert_null(start(NULL, (struct el_nccl_event_v5){.type = EL_NCCL_EVENT_COLLECTIVE}));
    void *call = all_reduce(context, 7, 1, 1), *channel = start_channel(context, call, 0, 10);
    v5->stop_event(call);
    v5->stop_event(call);
    assert_null(start_channel(context, channel, 0, 10)); /* a channel is no call */
    assert_null(start_channel(context, call, 64, 10));
    stop_channel(channel, 5010);
    stop_channel(channel, 9010);
    v5->stop_event(call);
    assert_null(start_channel(context, call, 0, 10));
    assert_ptr_not_equal(all_reduce(other, 8, 1, 0), call); /* in its place */
    v5->stop_event(call);
    assert_null(start_channel(context, call, 0, 10));
    v5->stop_event(NULL);
    v5->record_state(NULL, 3, NULL);
    v5->finalize(context);
    v5->finalize(context);
    assert_null(all_reduce(context, 9, 1, 1));
    usleep(2000);
    v5->finalize(other); /* ends its call */
    json_t *lines = lines_of_file();
    assert_int_equal(json_array_size(lines), 2);
    assert_true(number(json_array_get(lines, 0), "coll_perf", "coll_exec_time_us") == 5);
    assert_int_equal(number(json_array_get(lines, 1), "coll_perf", "coll_sn"), 8);
    assert_true(number(json_array_get(lines, 1), "coll_perf", "coll_exec_time_us") == 0); /* it was never queued */
    json_decref(lines);
}

/* Version 4's type is a byte beside rubbish; version 3 names the communicator with each call, and knows no GPU's time.
 */
static void older_interfaces_are_taken(void **state)
{
    open_plugin();
    const struct el_nccl_profiler_v4 *v4 = symbol("ncclProfiler_v4");
    const struct el_nccl_profiler_v3 *v3 = symbol("ncclProfiler_v3");
    void *context, *call, *channel;
    int mask = 0;
    struct el_nccl_event_v5 message = {
        .type = UINT64_C(0xffffffffffffff00) | EL_NCCL_EVENT_P2P,
        .p2p = {.function = "Send", .datatype = "ncclFloat8e4m3", .count = 10, .peer = 3, .channels = 0}};
    v4->init(&context, &mask, NULL, 4, 1, 8, 5, NULL);
    v4->start_event(context, &call, &message);
    v4->stop_event(call);
    v4->finalize(context);
    struct el_nccl_event_v3 gather = {
        .type = EL_NCCL_EVENT_COLLECTIVE,
        .rank = 6,
        .communicator = 3,
        .collective = {.function = "AllGather", .count = 4, .datatype = "ncclInt64", .channels = 1}};
    struct el_nccl_event_v3 kernel = {.type = EL_NCCL_EVENT_CHANNEL};
    v3->init(&context, &mask);
    v3->start_event(context, &call, &gather);
    kernel.parent = call;
    v3->start_event(context, &channel, &kernel);
    usleep(2000);
    v3->stop_event(channel);
    v3->stop_event(call);
    v3->finalize(context);
    json_t *lines = lines_of_file(), *sent = json_array_get(lines, 0), *gathered = json_array_get(lines, 1);
    assert_int_equal(json_array_size(lines), 2);
    assert_string_equal(text(sent, "p2p_perf", "p2p"), "Send");
    assert_int_equal(number(sent, "header", "rank"), 5);
    assert_int_equal(number(sent, "p2p_perf", "p2p_peer"), 3);
    assert_int_equal(number(sent, "p2p_perf", "p2p_msg_size_bytes"), 10);
    assert_string_equal(text(gathered, "header", "id"), "0x3");
    assert_int_equal(number(gathered, "header", "rank"), 6);
    assert_int_equal(number(gathered, "coll_perf", "coll_msg_size_bytes"), 32);
    assert_string_equal(text(gathered, "coll_perf", "coll_timing_source"), "kernel_cpu");
    assert_true(number(gathered, "coll_perf", "coll_exec_time_us") >= 2000);
    json_decref(lines);
}

/* The parent's call, which is not written yet, is not the child's too. */
static void a_fork_has_a_file_of_its_own(void **state)
{
    open_plugin();
    char *begin = strrchr(file, '-'), parents[sizeof file];
    void *context = communicator(1, 0, 1);
    int status = -1;
    v5->stop_event(all_reduce(context, 1, 1, 0));
    pid_t child = fork();
    if (child == 0) {
        void *own = communicator(2, 0, 1);
        v5->stop_event(all_reduce(own, 2, 1, 0));
        v5->finalize(own);
        _exit(0);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    v5->finalize(context);
    strcpy(parents, file);
    sprintf(begin, "-pid%d.log", (int)child);
    json_t *lines = lines_of_file();
    assert_int_equal(json_array_size(lines), 1);
    assert_int_equal(number(json_array_get(lines, 0), "coll_perf", "coll_sn"), 2);
    json_decref(lines);
    assert_int_equal(unlink(parents), 0);
    rmdir(folder);
}

static void *call_until_told(void *over)
{
    void *context = communicator(3, 0, 1);
    while (!atomic_load((atomic_bool *)over)) v5->stop_event(all_reduce(context, 1, 1, 0));
    v5->finalize(context);
    return NULL;
}

/* As PyTorch's loaders do, whose program's end closes the library. */
static void a_child_ends_though_its_parent_forked_in_the_middle_of_a_call(void **state)
{
    open_plugin();
    atomic_bool over = false;
    pthread_t thread;
    int status = 0;
    pthread_create(&thread, NULL, call_until_told, &over);
    for (int i = 0; i < 20 && status == 0; i++) {
        usleep(1000);
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            dlclose(library);
            _exit(0);
        }
        waitpid(child, &status, 0);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    json_decref(lines_of_file());
    assert_int_equal(status, 0);
}

static void a_folder_that_cannot_be_written_stops_nothing(void **state)
{
    open_plugin();
    void *context;
    int mask = 1;
    setenv("EVENLOAD_NCCL_DIR", "/proc/nowhere", 1);
    assert_int_equal(v5->init(&context, 1, &mask, "", 1, 1, 0, NULL), 0);
    assert_int_equal(mask, 0);
    assert_null(all_reduce(context, 1, 1, 1));
    v5->finalize(context);
    dlclose(library);
    rmdir(folder);
}

/* ---- anything at all ---- */

static void *call_wildly(void *argument)
{
    static const char *const words[] = {NULL,
                                        "",
                                        "AllReduce",
                                        "ncclInt8",
                                        "\"}\\\n\x7f\xff",
                                        "a name that is longer than any room that is kept for it, by far and away"};
    const struct el_rng_key key = {.seed = (uintptr_t)argument};
    void *handles[64] = {NULL}, *contexts[4] = {NULL};
    for (int i = 0, n = is_sanitized() ? 20000 : 100000; i < n; i++) {
        const uint64_t bits = el_rng_u64(&key, (uint64_t)i, 0), more_bits = el_rng_u64(&key, (uint64_t)i, 1);
        void **handle_p = &handles[bits >> 8 & 63], **context_p = &contexts[bits >> 16 & 3];
        struct el_nccl_event_v5 event = {.type = UINT64_C(1) << (bits >> 20 & 7), .parent = handles[bits >> 24 & 63]};
        union el_nccl_state end = {.gpu_ns = more_bits};
        int mask;
        event.collective = (struct el_nccl_collective){
            .number = more_bits, .count = more_bits, .root = (int)more_bits, .channels = (uint8_t)more_bits};
        if (event.type == EL_NCCL_EVENT_P2P)
            event.p2p = (struct el_nccl_p2p){.peer = (int)more_bits, .channels = (uint8_t)(bits >> 30)};
        if (event.type == EL_NCCL_EVENT_CHANNEL)
            event.channel = (struct el_nccl_channel){(uint8_t)more_bits, more_bits >> 8};
        if (event.type == EL_NCCL_EVENT_COLLECTIVE)
            event.collective.function = words[more_bits % 6], event.collective.datatype = words[more_bits / 6 % 6],
            event.collective.algorithm = words[more_bits / 36 % 6];
        switch (bits & 15) {
        case 0:
            v5->finalize(*context_p);
            v5->init(context_p, bits, &mask, words[more_bits % 6], 1, (int)more_bits, (int)bits, NULL);
            break;
        case 1:
            *handle_p = (void *)(uintptr_t)more_bits;
            break;
        case 2:
            *handle_p = (void *)((uintptr_t)*handle_p ^ UINT64_C(1) << (more_bits & 63));
            break;
        case 3:
        case 4:
        case 5:
            v5->record_state(*handle_p, (int)(more_bits % 32), more_bits & 64 ? &end : NULL);
            break;
        case 6:
        case 7:
        case 8:
            v5->stop_event(*handle_p);
            break;
        default:
            v5->start_event(bits >> 40 & 15 ? *context_p : *handle_p, handle_p, &event);
        }
    }
    for (int i = 0; i < 4; i++) v5->finalize(contexts[i]);
    return NULL;
}

static void a_wild_caller_breaks_nothing(void **state)
{
    open_plugin();
    pthread_t threads[3];
    for (uintptr_t t = 0; t < 3; t++) pthread_create(&threads[t], NULL, call_wildly, (void *)(t + 1));
    for (int t = 0; t < 3; t++) pthread_join(threads[t], NULL);
    json_t *lines = lines_of_file();
    assert_true(json_array_size(lines) > 1000);
    json_decref(lines);
}

RUN_TESTS(NULL, NULL, a_job_is_recorded_as_it_was_played, calls_without_kernels_give_way,
          events_of_calls_that_are_over_are_nothing, older_interfaces_are_taken, a_fork_has_a_file_of_its_own,
          a_child_ends_though_its_parent_forked_in_the_middle_of_a_call, a_folder_that_cannot_be_written_stops_nothing,
          a_wild_caller_breaks_nothing)
