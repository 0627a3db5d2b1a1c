/* What rank 0, or who sits at its port, answers to another rank: at the meeting on both connections, and in
 * collectives. The input's parts, divided by the byte 0x1E, are what each connection is answered; where the first byte
 * is odd a proper answer goes before it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/comm/tcp/meeting.h"
#include "runtime/comm/tcp/socket.h"
#include "tests/fuzz/fuzz.h"

enum { ANSWERS_MAX = 4 };
/* It gives up after a first failure: it would wait longer for the next attempt. */
static const double PATIENCE_S = 0.005;

struct host {
    int listener;
    const uint8_t *data, *end;
};

static void put(int socket, const void *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(socket, data, bytes, MSG_NOSIGNAL);
        if (sent <= 0) return;
        data = (const char *)data + sent, bytes -= (size_t)sent;
    }
}

static void *answer(void *context)
{
    const struct el_tcp_answer noted = {.magic = EL_TCP_ANSWER_MAGIC, .verdict = EL_TCP_NOTED};
    const struct el_tcp_answer welcome = {.magic = EL_TCP_ANSWER_MAGIC, .verdict = EL_TCP_WELCOME};
    struct host *host = context;
    bool proper = host->data < host->end && *host->data++ % 2;
    int sockets[ANSWERS_MAX], n = 0;
    while (n < ANSWERS_MAX && (sockets[n] = accept4(host->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        const uint8_t *to = memchr(host->data, 0x1E, (size_t)(host->end - host->data));
        if (!to) to = host->end;
        struct el_tcp_hello hello;
        if (proper) recv(sockets[n], &hello, sizeof hello, MSG_WAITALL);
        if (proper) put(sockets[n], &noted, sizeof noted);
        if (proper && n == 0) put(sockets[n], &welcome, sizeof welcome);
        put(sockets[n], host->data, (size_t)(to - host->data));
        shutdown(sockets[n++], SHUT_WR);
        host->data = to < host->end ? to + 1 : to;
    }
    while (n > 0) {
        const struct linger at_once = {.l_onoff = 1};
        setsockopt(sockets[--n], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(sockets[n]);
    }
    return NULL;
}

/* END_JOB is what it says: it would end this process. */
static void take_end_away(uint8_t *data, size_t size)
{
    static const uint8_t end_job[] = {3, 0, 0, 0};
    for (uint8_t *at; (at = memmem(data, size, end_job, sizeof end_job));) *at = 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *own = fuzz_text(data, size), said[64];
    struct host host = {.data = (uint8_t *)own, .end = (uint8_t *)own + size};
    struct el_bootstrap *bootstrap = NULL;
    pthread_t thread;
    take_end_away((uint8_t *)own, size);
    fuzz_expect(el_tcp_listen("127.0.0.1", 0, true, &host.listener) == 0, "the target can listen");
    const struct el_rendezvous place = {.rank = 1,
                                        .size = 2,
                                        .host = "127.0.0.1",
                                        .port = el_tcp_port(host.listener),
                                        .token = "job",
                                        .listener = -1,
                                        .patience_s = PATIENCE_S};
    fcntl(host.listener, F_SETFL, 0); /* the other thread waits for who comes */
    fuzz_expect(pthread_create(&thread, NULL, answer, &host) == 0, "the target has a second thread");
    if (fuzz_status(el_bootstrap_open_tcp(&place, &bootstrap))) {
        fuzz_status(el_bootstrap_broadcast(bootstrap, said, sizeof said));
        fuzz_status(el_bootstrap_gather(bootstrap, "rank 1", &(char **){NULL}));
        el_bootstrap_close(bootstrap);
    }
    shutdown(host.listener, SHUT_RDWR); /* wakes the other thread */
    pthread_join(thread, NULL);
    close(host.listener);
    free(own);
    return 0;
}
