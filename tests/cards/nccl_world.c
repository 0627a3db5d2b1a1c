/* The memory that members of a communicator share, and how they wait in it. Members of one process use one mapping, so
 * that the thread sanitizer can be told of what each has told the others. */
#include "tests/cards/nccl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/cards/cards.h"

enum { LOOK_AGAIN_NS = 5000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known {
    ncclUniqueId id;
    struct nccl_world *world;
    struct known *next;
} * known;

/* "fake NCCL, process 4711, file 7, number 3" */
ncclResult_t nccl_world_make(ncclUniqueId *id_p)
{
    static _Atomic int n;
    int file = memfd_create("fake-nccl", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, sizeof(struct nccl_world)) != 0)
        return nccl_fail(ncclSystemError, "no shared memory: %s", strerror(errno));
    memset(id_p, 0, sizeof *id_p);
    snprintf(id_p->internal, sizeof id_p->internal, "fake NCCL, process %d, file %d, number %d", (int)getpid(), file,
             atomic_fetch_add(&n, 1));
    return ncclSuccess;
}

static ncclResult_t map(const ncclUniqueId *id, struct nccl_world **world_p)
{
    int pid = 0, number = 0;
    char path[64];
    if (sscanf(id->internal, "fake NCCL, process %d, file %d", &pid, &number) != 2)
        return nccl_fail(ncclInvalidArgument, "no id of NCCL's");
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return nccl_fail(ncclSystemError, "connection to process %d refused: %s", pid, strerror(errno));
    *world_p = mmap(NULL, sizeof **world_p, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return *world_p == MAP_FAILED ? nccl_fail(ncclSystemError, "mmap: %s", strerror(errno)) : ncclSuccess;
}

ncclResult_t nccl_world_open(const ncclUniqueId *id, struct nccl_world **world_p)
{
    ncclResult_t result = ncclSuccess;
    pthread_mutex_lock(&lock);
    struct known *one = known;
    while (one && memcmp(&one->id, id, sizeof *id) != 0) one = one->next;
    if (!one) {
        one = calloc(1, sizeof *one);
        if (!one) abort();
        one->id = *id;
        result = map(id, &one->world);
        if (result == ncclSuccess) {
            one->next = known;
            known = one;
        }
    }
    if (result == ncclSuccess)
        *world_p = one->world;
    else
        free(one);
    pthread_mutex_unlock(&lock);
    return result;
}

void nccl_world_forget(const ncclUniqueId *id)
{
    int pid = 0, number = 0;
    if (sscanf(id->internal, "fake NCCL, process %d, file %d", &pid, &number) == 2 && pid == (int)getpid())
        close(number);
}

/* ---- waiting ---- */

void nccl_world_changed(struct nccl_world *world)
{
    atomic_fetch_add(&world->changes, 1);
    syscall(SYS_futex, &world->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool nccl_world_wait(struct nccl_world *world, bool (*is_so)(const void *), const void *what,
                     const struct ncclComm *comm, cudaStream_t stream)
{
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_NS};
    bool so = false;
    cards_turn_block(stream, true);
    for (;;) {
        unsigned seen = atomic_load(&world->changes);
        if (comm && atomic_load(&comm->aborted)) break;
        if ((so = is_so(what))) break;
        if (stream && cards_is_ending(stream)) break;
        if (stream) nccl_comm_want(world);
        syscall(SYS_futex, &world->changes, FUTEX_WAIT, seen, &pause, NULL, 0);
    }
    cards_turn_block(stream, false);
    return so;
}

/* ---- words ---- */

static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;
static char last[256]; /* of the process */

void nccl_breach(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("fake NCCL: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

ncclResult_t nccl_fail(ncclResult_t result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&words_lock);
    vsnprintf(last, sizeof last, format, arguments);
    pthread_mutex_unlock(&words_lock);
    va_end(arguments);
    return result;
}

const char *ncclGetLastError(ncclComm_t comm)
{
    static _Thread_local char copy[sizeof last];
    (void)comm;
    pthread_mutex_lock(&words_lock);
    memcpy(copy, last, sizeof copy);
    pthread_mutex_unlock(&words_lock);
    return copy;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const words[] = {"no error",
                                        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                        "internal error - please report this issue to the NCCL developers",
                                        "invalid argument (run with NCCL_DEBUG=WARN for details)",
                                        "invalid usage (run with NCCL_DEBUG=WARN for details)",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return result >= 0 && result <= ncclInProgress ? words[result] : "unknown result code";
}

ncclResult_t nccl_planned(const char *call, int device)
{
    int code = ncclSystemError;
    if (!cards_fails(call, device, &code)) return ncclSuccess;
    return nccl_fail((ncclResult_t)code, "%s: socketProgress: connection closed by remote peer", call);
}
