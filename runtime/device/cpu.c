/* The `cpu` backend: a core stands for a GPU. Each stream is a thread with a queue of one; each device has its own
 * memory, so a transfer is a real copy. `null` skips the kernels and so measures the harness. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/device/device_ops.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum { HUGE_PAGE_BYTES = 2 << 20 };

struct mapping {
    uintptr_t address;
    size_t length;
    struct mapping *next;
};

struct state {
    struct el_device_spec spec;
    char name[EL_DEVICE_NAME_BYTES];
    pthread_mutex_t lock; /* of `mappings`: an op may map (an injected leak) */
    struct mapping *mappings;
};

struct stream {
    struct state *state;
    int index;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*run)(void *argument);
    void *argument;
    bool closing;
};

static enum el_status usable(int *n_devices_p)
{
    cpu_set_t set;
    *n_devices_p = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return EL_OK;
}

static enum el_status open_device(const struct el_device_spec *spec, void **state_p)
{
    struct state *state = calloc(1, sizeof *state);
    if (!state) return el_fail_errno("%s:%d", spec->backend, spec->index);
    state->spec = *spec;
    pthread_mutex_init(&state->lock, NULL);
    snprintf(state->name, sizeof state->name, "evenload %s:%d", spec->backend, spec->index);
    *state_p = state;
    return EL_OK;
}

static void drop(struct mapping **link)
{
    struct mapping *gone = *link;
    *link = gone->next;
    munmap((void *)gone->address, gone->length);
    free(gone);
}

static void close_device(void *argument)
{
    struct state *state = argument;
    while (state->mappings) drop(&state->mappings);
    pthread_mutex_destroy(&state->lock);
    free(state);
}

/* A separate mapping of whole pages, so that its resident pages can be counted; named in /proc/PID/smaps where the
 * kernel can (CONFIG_ANON_VMA_NAME). */
static enum el_status map(void *argument, size_t bytes, uintptr_t *address_p)
{
    struct state *state = argument;
    struct mapping *made = malloc(sizeof *made);
    if (!made) return el_fail_errno("%s", state->name);
    size_t length = bytes ? bytes : 1;
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        free(made);
        return el_fail(EL_ERR_OOM, "%s:%d: the machine has no %zu bytes of memory for it", state->spec.backend,
                       state->spec.index, bytes);
    }
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, memory, length, state->name);
    if (length >= HUGE_PAGE_BYTES) madvise(memory, length, MADV_HUGEPAGE);
    pthread_mutex_lock(&state->lock);
    *made = (struct mapping){.address = (uintptr_t)memory, .length = length, .next = state->mappings};
    state->mappings = made;
    pthread_mutex_unlock(&state->lock);
    *address_p = (uintptr_t)memory;
    return EL_OK;
}

static void unmap(void *argument, uintptr_t address, size_t bytes)
{
    (void)bytes;
    struct state *state = argument;
    pthread_mutex_lock(&state->lock);
    struct mapping **link = &state->mappings;
    while ((*link)->address != address) link = &(*link)->next;
    drop(link);
    pthread_mutex_unlock(&state->lock);
}

/* Pages in memory; < 0: unknown. */
static int64_t count_resident(const struct mapping *mapping, int64_t page)
{
    unsigned char present[4096];
    int64_t pages = ((int64_t)mapping->length + page - 1) / page, count = 0;
    for (int64_t at = 0; at < pages; at += (int64_t)sizeof present) {
        int64_t n = pages - at < (int64_t)sizeof present ? pages - at : (int64_t)sizeof present;
        if (mincore((void *)(mapping->address + (uintptr_t)(at * page)), (size_t)(n * page), present) != 0) return -1;
        for (int64_t i = 0; i < n; i++) count += present[i] & 1;
    }
    return count;
}

static enum el_status resident(void *argument, int64_t *bytes_p)
{
    struct state *state = argument;
    int64_t page = sysconf(_SC_PAGESIZE), bytes = 0;
    bool told = true;
    pthread_mutex_lock(&state->lock);
    for (const struct mapping *mapping = state->mappings; mapping && told; mapping = mapping->next) {
        int64_t pages = count_resident(mapping, page);
        told = pages >= 0;
        bytes += pages * page;
    }
    pthread_mutex_unlock(&state->lock);
    if (!told) return el_fail(EL_ERR_ABSENT, "%s: mincore does not say which pages are resident", state->name);
    *bytes_p = bytes;
    return EL_OK;
}

static enum el_status move(void *state, void *host, uintptr_t address, size_t bytes, bool host_to_device)
{
    (void)state;
    if (bytes == 0) return EL_OK;
    if (host_to_device)
        memcpy((void *)address, host, bytes);
    else
        memcpy(host, (const void *)address, bytes);
    return EL_OK;
}

static void bind_to_cores(const struct el_device_spec *spec, int stream)
{
    if (spec->n_cores == 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (stream != EL_STREAM_COMPUTE && spec->comm_core > 0)
        CPU_SET((size_t)spec->comm_core - 1, &set);
    else
        for (int i = 0; i < spec->n_cores; i++) CPU_SET((size_t)spec->cores[i], &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void *serve(void *argument)
{
    struct stream *stream = argument;
    bind_to_cores(&stream->state->spec, stream->index);
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (!stream->run && !stream->closing) pthread_cond_wait(&stream->changed, &stream->lock);
        if (!stream->run) break;
        void (*run)(void *) = stream->run;
        void *with = stream->argument;
        stream->run = NULL;
        pthread_mutex_unlock(&stream->lock);
        run(with);
        pthread_mutex_lock(&stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static enum el_status stream_open(void *state, int index, void **stream_p)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream) return el_fail_errno("a stream");
    stream->state = state;
    stream->index = index;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    int error = pthread_create(&stream->thread, NULL, serve, stream);
    if (error) {
        pthread_mutex_destroy(&stream->lock);
        pthread_cond_destroy(&stream->changed);
        free(stream);
        return el_fail(EL_ERR_HOST_MEMORY, "%s: no thread for stream %d: %s", ((struct state *)state)->name, index,
                       strerror(error));
    }
    char name[16];
    snprintf(name, sizeof name, "%.6s:%d.%d", stream->state->spec.backend, stream->state->spec.index, index);
    pthread_setname_np(stream->thread, name);
    *stream_p = stream;
    return EL_OK;
}

static void stream_close(void *argument)
{
    struct stream *stream = argument;
    pthread_mutex_lock(&stream->lock);
    stream->closing = true;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->changed);
    free(stream);
}

static void submit(void *argument, void (*run)(void *), void *with)
{
    struct stream *stream = argument;
    pthread_mutex_lock(&stream->lock);
    stream->run = run;
    stream->argument = with;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

static enum el_status copy(void *destination, const void *source, size_t bytes)
{
    if (bytes) memcpy(destination, source, bytes);
    return EL_OK;
}

#define EL_CPU_HOOKS                                                                                                   \
    .usable = usable, .open = open_device, .close = close_device, .map = map, .unmap = unmap, .move = move,            \
    .resident = resident, .stream_open = stream_open, .stream_close = stream_close, .submit = submit, .copy = copy

const struct el_device_ops el_device_cpu = {.name = "cpu",
                                            .summary =
                                                "CPU cores, one per device, with real memory, copies and arithmetic",
                                            .computes = true,
                                            EL_CPU_HOOKS};

const struct el_device_ops el_device_null = {
    .name = "null",
    .summary = "memory, copies and streams are real, kernels are skipped: measures the harness",
    EL_CPU_HOOKS};
