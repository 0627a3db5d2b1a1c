/* NCCL opens this library in any program (NCCL_PROFILER_PLUGIN); it writes a line per collective and message: NCCL
 * Inspector's form, which `evenload comm --from` reads, plus algorithm, protocol, channels, type, begin and end. A call
 * ends with its channels' kernels, reported later from another thread; its queueing may be reported before or after.
 * Handles are a place and a counter, so stale or foreign ones are detected. Nothing here may harm the job: every
 * function returns NCCL's success. */
#include "profiles/nccl/profiler_api.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 4096, COMMUNICATORS = 512, CHANNELS = 64, BUFFER_BYTES = 1 << 16, LINE_BYTES = 2048, NAME_BYTES = 64 };
enum { TAKEN_SHIFT = 20, PLACE_SHIFT = 8 }; /* of handles; below: channel number plus one, 0 for the call */
enum { NOT_OPENED = -1, CANNOT_WRITE = -2 };
static const int64_t WRITE_EVERY_NS = 1000000000;

struct communicator {
    uint64_t taken, id, n_p2p; /* taken: odd while open */
    int rank, ranks, nodes;    /* ranks 0: unknown */
    char name[NAME_BYTES];
};

struct call {
    uint64_t taken;                         /* odd while it lasts */
    uint64_t communicator, number, stopped; /* stopped: bits of channels */
    size_t count, bytes;
    int64_t begin_ns, end_ns, kernel_begin_ns, kernel_end_ns; /* the host's clock */
    uint64_t gpu_begin_ns, gpu_end_ns;
    int place, rank, ranks, nodes, peer; /* place: its communicator's; peer: or root */
    int channels, awaited;               /* awaited: ends of kernels */
    bool collective;
    char name[NAME_BYTES], function[24], datatype[24], algorithm[24], protocol[16];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows; unlocked in a forked child */
static struct {
    struct communicator communicators[COMMUNICATORS];
    struct call calls[CALLS];
    int free[CALLS], n_free, n_ever; /* n_ever: places ever taken */
    char buffer[BUFFER_BYTES];
    size_t used;
    int64_t written_ns;
    pid_t process;
    char host[64];
} the;
static int file = NOT_OPENED; /* CANNOT_WRITE: recording has stopped */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); /* a host's ranks share this clock */
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Only characters that JSON needs no escape for. */
static void copy_text(char *to, size_t bytes, const char *from)
{
    size_t n = 0;
    for (; from && from[n] && n + 1 < bytes; n++)
        to[n] = (char)(from[n] < ' ' || from[n] > '~' || from[n] == '"' || from[n] == '\\' ? '?' : from[n]);
    to[n] = '\0';
}

/* ---- the file ---- */

static void give_up(const char *path)
{
    fprintf(stderr, "evenload: cannot write %s: %s: no collectives of process %d are recorded\n", path, strerror(errno),
            (int)getpid());
    file = CANNOT_WRITE;
}

/* A forked child gets its own file; its parent's buffer stays the parent's. */
static void open_file(void)
{
    char path[4096], host[64] = "";
    const char *folder = getenv("EVENLOAD_NCCL_DIR");
    if (file != NOT_OPENED && the.process == getpid()) return;
    if (!folder || !*folder) folder = "evenload-nccl";
    gethostname(host, sizeof host - 1);
    copy_text(the.host, sizeof the.host, host);
    the.process = getpid();
    the.used = 0;
    the.written_ns = now_ns();
    mkdir(folder, 0777);
    const int length = snprintf(path, sizeof path, "%s/%s-pid%d.log", folder, the.host, (int)the.process);
    file = -1, errno = ENAMETOOLONG; /* never the file of a cut path */
    if (length < (int)sizeof path) file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) give_up(path);
}

static void write_out(void)
{
    size_t done = 0;
    while (done < the.used && file >= 0 && getpid() == the.process) {
        ssize_t n = write(file, the.buffer + done, the.used - done);
        if (n < 0 && errno != EINTR) give_up("the collectives' file");
        if (n > 0) done += (size_t)n;
    }
    the.used = 0;
    the.written_ns = now_ns();
}

__attribute__((format(printf, 1, 2))) static void add_line(const char *format, ...)
{
    va_list arguments;
    if (sizeof the.buffer - the.used < LINE_BYTES) write_out();
    va_start(arguments, format);
    int n = vsnprintf(the.buffer + the.used, LINE_BYTES, format, arguments);
    va_end(arguments);
    if (n > 0 && n < LINE_BYTES) the.used += (size_t)n;
    if (now_ns() - the.written_ns > WRITE_EVERY_NS) write_out();
}

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void release_lock(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void at_begin(void)
{
    pthread_atfork(take_lock, release_lock, release_lock);
}

__attribute__((destructor)) static void at_end(void)
{
    take_lock();
    write_out();
    release_lock();
}

/* ---- calls ---- */

static size_t size_of(const char *datatype)
{
    static const struct {
        const char *end;
        size_t bytes;
    } types[] = {{"8e4m3", 1}, {"8e5m2", 1}, {"16", 2}, {"32", 4}, {"64", 8}, {"8", 1}};
    size_t length = strlen(datatype);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t n = strlen(types[i].end);
        if (length > n && strcmp(datatype + length - n, types[i].end) == 0) return types[i].bytes;
    }
    return 1;
}

/* By the GPU's clock, the kernels' times on the host, or the queueing. */
static double time_us(const struct call *call, const char **source_p)
{
    *source_p = "kernel_gpu";
    if (call->gpu_begin_ns && call->gpu_end_ns > call->gpu_begin_ns)
        return (double)(call->gpu_end_ns - call->gpu_begin_ns) / 1e3;
    *source_p = "kernel_cpu";
    if (call->kernel_begin_ns && call->kernel_end_ns > call->kernel_begin_ns)
        return (double)(call->kernel_end_ns - call->kernel_begin_ns) / 1e3;
    *source_p = "collective_cpu";
    return (double)(call->end_ns - call->begin_ns) / 1e3;
}

static void finish(struct call *call)
{
    const char *kind = call->collective ? "coll" : "p2p", *source;
    double us = time_us(call, &source);
    if (call->kernel_begin_ns) call->begin_ns = call->kernel_begin_ns;
    if (call->kernel_end_ns > call->end_ns) call->end_ns = call->kernel_end_ns;
    add_line("{\"header\":{\"id\":\"0x%" PRIx64 "\",\"comm_name\":\"%s\",\"rank\":%d,\"n_ranks\":%d,\"nnodes\":%d},"
             "\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"rec_mechanism\":\"evenload\",\"hostname\":"
             "\"%s\",\"pid\":%d},\"%s_perf\":{\"%s\":\"%s\",\"%s_sn\":%" PRIu64 ",\"%s_msg_size_bytes\":%zu,"
             "\"%s_exec_time_us\":%.3f,\"%s_timing_source\":\"%s\",\"algorithm\":\"%s\",\"protocol\":\"%s\","
             "\"channels\":%d,\"datatype\":\"%s\",\"count\":%zu,\"%s\":%d,\"begin_ns\":%" PRId64 ",\"end_ns\":%" PRId64
             "}}\n",
             call->communicator, call->name, call->rank, call->ranks, call->nodes, the.host, (int)the.process, kind,
             kind, call->function, kind, call->number, kind, call->bytes, kind, us, kind, source, call->algorithm,
             call->protocol, call->channels, call->datatype, call->count, call->collective ? "root" : "p2p_peer",
             call->peer, call->begin_ns, call->end_ns);
    call->taken++;
    the.free[the.n_free++] = (int)(call - the.calls);
}

/* Without a free place the oldest call is written as far as known. */
static void make_room(void)
{
    struct call *oldest = the.calls;
    if (the.n_ever < CALLS) {
        the.free[the.n_free++] = the.n_ever++;
        return;
    }
    for (int i = 1; i < CALLS; i++)
        if (the.calls[i].begin_ns < oldest->begin_ns) oldest = &the.calls[i];
    finish(oldest);
}

static struct call *take_call(void)
{
    if (the.n_free == 0) make_room();
    struct call *call = &the.calls[the.free[--the.n_free]];
    *call = (struct call){.taken = call->taken + 1};
    return call;
}

static void *handle_of(const struct call *call, int channel)
{
    uint64_t place = (uint64_t)(call - the.calls);
    return (void *)(uintptr_t)(call->taken << TAKEN_SHIFT | place << PLACE_SHIFT | (uint64_t)(channel + 1));
}

/* *channel_p -1: the call itself. */
static struct call *find_call(const void *handle, int *channel_p)
{
    uint64_t bits = (uintptr_t)handle, place = bits >> PLACE_SHIFT & (CALLS - 1);
    struct call *call = &the.calls[place];
    *channel_p = (int)(bits & 0xff) - 1;
    return call->taken % 2 == 1 && call->taken == bits >> TAKEN_SHIFT && *channel_p < CHANNELS ? call : NULL;
}

static struct communicator *find_communicator(const void *context, int *place_p)
{
    uint64_t bits = (uintptr_t)context;
    *place_p = (int)(bits % COMMUNICATORS);
    struct communicator *communicator = &the.communicators[*place_p];
    return communicator->taken % 2 == 1 && communicator->taken == bits / COMMUNICATORS ? communicator : NULL;
}

/* ---- what the versions have in common ---- */

static int open_communicator(void **context_p, int *mask_p, const char *name, uint64_t id, int nodes, int ranks,
                             int rank)
{
    int place = 0;
    if (!context_p || !mask_p) return 0;
    pthread_mutex_lock(&lock);
    open_file();
    *context_p = NULL;
    while (place < COMMUNICATORS && the.communicators[place].taken % 2 == 1) place++;
    if (place < COMMUNICATORS) {
        struct communicator *communicator = &the.communicators[place];
        *communicator = (struct communicator){
            .taken = communicator->taken + 1, .id = id, .nodes = nodes, .ranks = ranks, .rank = rank};
        copy_text(communicator->name, sizeof communicator->name, name);
        *context_p = (void *)(uintptr_t)(communicator->taken * COMMUNICATORS + (uint64_t)place);
    }
    *mask_p = file >= 0 ? EL_NCCL_EVENT_COLLECTIVE | EL_NCCL_EVENT_P2P | EL_NCCL_EVENT_CHANNEL : 0;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Calls without reported kernels, as in a captured graph that is not launched, end here. */
static int close_communicator(void *context)
{
    int place;
    pthread_mutex_lock(&lock);
    struct communicator *communicator = find_communicator(context, &place);
    for (int i = 0; communicator && i < the.n_ever; i++)
        if (the.calls[i].taken % 2 == 1 && the.calls[i].place == place) finish(&the.calls[i]);
    if (communicator) communicator->taken++;
    write_out();
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Needs the lock. */
static struct call *begin(void *context, int rank, const char *function, const char *datatype, size_t count, int peer)
{
    int place;
    struct communicator *communicator = find_communicator(context, &place);
    struct call *call = communicator && file >= 0 ? take_call() : NULL;
    if (!call) return NULL;
    call->communicator = communicator->id;
    call->rank = communicator->ranks ? communicator->rank : rank;
    call->ranks = communicator->ranks;
    call->nodes = communicator->nodes;
    call->place = place;
    call->peer = peer;
    call->begin_ns = call->end_ns = now_ns();
    copy_text(call->name, sizeof call->name, communicator->name);
    copy_text(call->function, sizeof call->function, function);
    copy_text(call->datatype, sizeof call->datatype, datatype);
    call->count = count;
    call->bytes = count * size_of(call->datatype);
    return call;
}

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

static struct call *begin_collective(void *context, int rank, const struct el_nccl_collective *event)
{
    struct call *call = begin(context, rank, event->function, event->datatype, event->count, event->root);
    if (!call) return NULL;
    call->collective = true;
    call->number = event->number;
    call->channels = event->channels;
    call->awaited = at_most(event->channels, CHANNELS);
    copy_text(call->algorithm, sizeof call->algorithm, event->algorithm);
    copy_text(call->protocol, sizeof call->protocol, event->protocol);
    return call;
}

static struct call *begin_p2p(void *context, int rank, const struct el_nccl_p2p *event, int channels)
{
    int place;
    struct call *call = begin(context, rank, event->function, event->datatype, event->count, event->peer);
    if (!call) return NULL;
    call->number = ++find_communicator(context, &place)->n_p2p;
    call->channels = channels;
    call->awaited = at_most(channels, CHANNELS);
    return call;
}

static void *begin_channel(const void *parent, int channel, uint64_t gpu_ns)
{
    int none;
    struct call *call = find_call(parent, &none);
    if (!call || none != -1 || channel >= CHANNELS) return NULL;
    if (!call->kernel_begin_ns) call->kernel_begin_ns = now_ns();
    if (gpu_ns && (!call->gpu_begin_ns || gpu_ns < call->gpu_begin_ns)) call->gpu_begin_ns = gpu_ns;
    return handle_of(call, channel);
}

static int stop_event(void *handle)
{
    int channel;
    pthread_mutex_lock(&lock);
    struct call *call = find_call(handle, &channel);
    if (call && channel >= 0) {
        call->stopped |= UINT64_C(1) << channel;
        call->kernel_end_ns = now_ns();
    } else if (call) {
        call->end_ns = now_ns();
    }
    if (call && __builtin_popcountll(call->stopped) >= call->awaited) finish(call);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int record_state(void *handle, int state, union el_nccl_state *arguments)
{
    int channel;
    if (state != EL_NCCL_STATE_CHANNEL_STOP || !arguments) return 0;
    pthread_mutex_lock(&lock);
    struct call *call = find_call(handle, &channel);
    if (call && channel >= 0 && arguments->gpu_ns > call->gpu_end_ns) call->gpu_end_ns = arguments->gpu_ns;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* ---- the versions ---- */

static int start(void *context, void **handle_p, const struct el_nccl_event_v5 *event, uint64_t type)
{
    struct call *call = NULL;
    void *channel = NULL;
    pthread_mutex_lock(&lock);
    if (type == EL_NCCL_EVENT_COLLECTIVE) call = begin_collective(context, event->rank, &event->collective);
    if (type == EL_NCCL_EVENT_P2P) call = begin_p2p(context, event->rank, &event->p2p, event->p2p.channels);
    if (type == EL_NCCL_EVENT_CHANNEL)
        channel = begin_channel(event->parent, event->channel.channel, event->channel.gpu_ns);
    *handle_p = call ? handle_of(call, -1) : channel;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int start_v5(void *context, void **handle_p, struct el_nccl_event_v5 *event)
{
    return handle_p && event ? start(context, handle_p, event, event->type) : 0;
}

static int start_v4(void *context, void **handle_p, struct el_nccl_event_v5 *event)
{
    return handle_p && event ? start(context, handle_p, event, *(const uint8_t *)&event->type) : 0;
}

/* The call names its communicator; channels of messages are not reported. */
static int start_v3(void *context, void **handle_p, struct el_nccl_event_v3 *event)
{
    struct call *call = NULL;
    if (!handle_p || !event) return 0;
    pthread_mutex_lock(&lock);
    if (event->type == EL_NCCL_EVENT_COLLECTIVE) call = begin_collective(context, event->rank, &event->collective);
    if (event->type == EL_NCCL_EVENT_P2P) call = begin_p2p(context, event->rank, &event->p2p, 0);
    if (call) call->communicator = event->communicator;
    if (call) copy_text(call->name, sizeof call->name, event->name);
    *handle_p = call                                   ? handle_of(call, -1)
                : event->type == EL_NCCL_EVENT_CHANNEL ? begin_channel(event->parent, event->channel.channel, 0)
                                                       : NULL;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int init_v3(void **context_p, int *mask_p)
{
    return open_communicator(context_p, mask_p, "", 0, 0, 0, 0);
}

static int init_v4(void **context_p, int *mask_p, const char *name, uint64_t id, int nodes, int ranks, int rank,
                   void (*log)(void))
{
    (void)log;
    return open_communicator(context_p, mask_p, name, id, nodes, ranks, rank);
}

static int init_v5(void **context_p, uint64_t id, int *mask_p, const char *name, int nodes, int ranks, int rank,
                   void (*log)(void))
{
    return init_v4(context_p, mask_p, name, id, nodes, ranks, rank, log);
}

#define PROFILER(version, init, start)                                                                                 \
    const struct el_nccl_profiler_##version ncclProfiler_##version = {"evenload", init,         start,                 \
                                                                      stop_event, record_state, close_communicator}
PROFILER(v3, init_v3, start_v3);
PROFILER(v4, init_v4, start_v4);
PROFILER(v5, init_v5, start_v5);
