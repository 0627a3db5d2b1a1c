/* The thread at the alarm connections, and what is said there: messages of one size. */
#include "runtime/comm/tcp/meeting.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"

enum alarm_kind { FAREWELL = 1, GONE, END_JOB, ASK, ANSWER };

struct alarm_message {
    uint32_t kind;
    int32_t rank; /* whom it is about */
    int32_t exit_status;
    uint32_t zero;
    char host[EL_TCP_ADDRESS_BYTES]; /* where it was */
};

/* A message is sent whole or not at all, so that half of one means that its sender is gone. */
enum { HALF_MESSAGE_NS = 1000000000, PATIENCE_NS = 1000000000 };

static int rank_of(const struct el_tcp_watch *watch, int link)
{
    return watch->rank == 0 ? link : 0;
}

static void tell(struct el_tcp_watch *watch, const struct alarm_message *message, int link)
{
    el_tcp_write(watch->links[link].sockets[EL_TCP_ALARM], message, sizeof *message);
}

/* Under the mutex: two threads may speak. */
static void tell_all(struct el_tcp_watch *watch, const struct alarm_message *message, int but)
{
    for (int i = watch->first; i < watch->n_links; i++)
        if (i != but && !watch->others[i].left) tell(watch, message, i);
}

/* Under the mutex. The first failure is the cause of all later ones. */
static void fail(struct el_tcp_watch *watch, const struct alarm_message *gone)
{
    if (watch->failed) return;
    watch->failed = true;
    snprintf(watch->reason, sizeof watch->reason, "rank %d is gone (host %.*s)", gone->rank, EL_TCP_ADDRESS_BYTES - 1,
             gone->host);
    for (int i = watch->first; i < watch->n_links; i++) shutdown(watch->links[i].sockets[EL_TCP_DATA], SHUT_RDWR);
}

/* A job that was ended has not succeeded, whatever a peer says. */
static int failing(int exit_status)
{
    return exit_status & 0xff ? exit_status : 1;
}

static void end_here(const struct el_tcp_watch *watch, const struct alarm_message *message)
{
    int exit_status = failing(message->exit_status);
    fprintf(stderr, "evenload: rank %d ends: rank %d ended the job with exit status %d\n", watch->rank, message->rank,
            exit_status);
    _exit(exit_status);
}

/* Under the mutex. */
static void take(struct el_tcp_watch *watch, int link, const struct alarm_message *message)
{
    const struct alarm_message answer = {.kind = ANSWER, .rank = watch->rank};
    switch (message->kind) {
    case ASK:
        tell(watch, &answer, link);
        break;
    case ANSWER:
        watch->others[link].answered = true;
        break;
    case FAREWELL:
        watch->others[link].left = true;
        break;
    case END_JOB:
        if (watch->rank == 0) tell_all(watch, message, link);
        end_here(watch, message);
        break;
    default:
        fail(watch, message);
    }
}

static void hear(struct el_tcp_watch *watch, int link)
{
    struct alarm_message message;
    int number = el_tcp_read(watch->links[link].sockets[EL_TCP_ALARM], &message, sizeof message,
                             el_clock_ns() + HALF_MESSAGE_NS);
    pthread_mutex_lock(&watch->mutex);
    if (number == 0) {
        take(watch, link, &message);
    } else {
        struct alarm_message gone = {.kind = GONE, .rank = rank_of(watch, link)};
        memcpy(gone.host, watch->others[link].host, sizeof gone.host);
        if (watch->rank == 0) tell_all(watch, &gone, link);
        fail(watch, &gone);
        watch->others[link].left = true; /* nothing more is to be heard there */
    }
    pthread_cond_broadcast(&watch->news);
    pthread_mutex_unlock(&watch->mutex);
}

/* Sleeps until there is news; false: the thread is to end. */
static bool listen_once(struct el_tcp_watch *watch)
{
    struct pollfd *polls = watch->polls;
    polls[0] = (struct pollfd){.fd = watch->wake, .events = POLLIN};
    for (int i = watch->first; i < watch->n_links; i++) /* only this thread changes `left` */
        polls[1 + i] =
            (struct pollfd){.fd = watch->others[i].left ? -1 : watch->links[i].sockets[EL_TCP_ALARM], .events = POLLIN};
    if (watch->first == 1) polls[1] = (struct pollfd){.fd = -1};
    if (poll(polls, (nfds_t)watch->n_links + 1, -1) < 0) return errno == EINTR;
    if (polls[0].revents) return false;
    for (int i = watch->first; i < watch->n_links; i++)
        if (polls[1 + i].revents) hear(watch, i);
    return true;
}

static void *live(void *context)
{
    prctl(PR_SET_NAME, "el-watch");
    while (listen_once(context)) continue;
    return NULL;
}

static void release(struct el_tcp_watch *watch)
{
    if (watch->wake >= 0) close(watch->wake);
    free(watch->others);
    free(watch->polls);
    pthread_cond_destroy(&watch->news);
    pthread_mutex_destroy(&watch->mutex);
}

/* Where the others are, as long as that can be asked; and that they are expected to answer. */
static void look_at_hosts(struct el_tcp_watch *watch)
{
    for (int i = watch->first; i < watch->n_links; i++) {
        el_tcp_address(watch->links[i].sockets[EL_TCP_ALARM], true, watch->others[i].host);
        el_tcp_expect_answers(watch->links[i].sockets[EL_TCP_ALARM]);
    }
}

enum el_status el_tcp_watch_start(struct el_tcp_watch *watch)
{
    el_clock_cond_init(&watch->news);
    pthread_mutex_init(&watch->mutex, NULL);
    watch->others = calloc((size_t)watch->n_links, sizeof *watch->others);
    watch->polls = calloc((size_t)watch->n_links + 1, sizeof *watch->polls);
    watch->wake = eventfd(0, EFD_CLOEXEC);
    if (watch->others) look_at_hosts(watch);
    if (watch->others && watch->polls && watch->wake >= 0 && pthread_create(&watch->thread, NULL, live, watch) == 0)
        return EL_OK;
    release(watch);
    return el_fail(EL_ERR_HOST_MEMORY, "bootstrap tcp: no thread that watches the other ranks");
}

void el_tcp_watch_stop(struct el_tcp_watch *watch)
{
    const struct alarm_message farewell = {.kind = FAREWELL, .rank = watch->rank};
    eventfd_write(watch->wake, 1);
    pthread_join(watch->thread, NULL);
    tell_all(watch, &farewell, -1);
    release(watch);
}

enum el_status el_tcp_watch_explain(struct el_tcp_watch *watch, int link)
{
    const int64_t until_ns = el_clock_ns() + PATIENCE_NS;
    pthread_mutex_lock(&watch->mutex);
    while (!watch->failed && !watch->others[link].left)
        if (!el_clock_cond_wait(&watch->news, &watch->mutex, until_ns)) break;
    enum el_status status = watch->failed
                                ? el_fail(EL_ERR_PEER, "bootstrap tcp: %s", watch->reason)
                                : el_fail(EL_ERR_PEER, "bootstrap tcp: rank %d has left the job", rank_of(watch, link));
    pthread_mutex_unlock(&watch->mutex);
    return status;
}

/* Under the mutex. */
static int next_silent(const struct el_tcp_watch *watch, int link)
{
    while (link < watch->n_links && watch->others[link].answered) link++;
    return link;
}

void el_tcp_watch_silent(struct el_tcp_watch *watch, char *text, size_t bytes)
{
    const struct alarm_message ask = {.kind = ASK, .rank = watch->rank};
    const int64_t until_ns = el_clock_ns() + PATIENCE_NS;
    size_t used = 0;
    pthread_mutex_lock(&watch->mutex);
    for (int i = watch->first; i < watch->n_links; i++) watch->others[i].answered = false;
    tell_all(watch, &ask, -1);
    while (next_silent(watch, watch->first) < watch->n_links)
        if (!el_clock_cond_wait(&watch->news, &watch->mutex, until_ns)) break;
    for (int i = next_silent(watch, watch->first); i < watch->n_links && used + 16 < bytes;
         i = next_silent(watch, i + 1))
        used += (size_t)snprintf(text + used, bytes - used, "%s%d", used ? ", " : "", rank_of(watch, i));
    pthread_mutex_unlock(&watch->mutex);
}

void el_tcp_watch_end_job(struct el_tcp_watch *watch, int exit_status)
{
    const struct alarm_message message = {.kind = END_JOB, .rank = watch->rank, .exit_status = failing(exit_status)};
    pthread_mutex_lock(&watch->mutex);
    tell_all(watch, &message, -1);
    _exit(message.exit_status);
}
