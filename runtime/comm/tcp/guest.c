/* The other ranks' side of the meeting: connect until rank 0 answers, then wait until all have come. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/tcp/meeting.h"
#include "runtime/comm/tcp/socket.h"

/* ONE_OF_MANY_NS: time to answer for a port that may belong to another program. HOST_S: rank 0's time starts later
 * than a guest's. */
enum { PAUSE_NS = 10000000, PAUSE_MAX_NS = 500000000, HOST_S = 30 };
static const int64_t ONE_OF_MANY_NS = 2000000000;

struct visit {
    const struct el_rendezvous *rendezvous;
    int64_t deadline_ns;
    int port;
    bool over;
    char why[EL_TCP_WHY_BYTES];
};

/* Waits for a verdict; false: not rank 0 of any job, or it has closed. */
static bool hear(struct visit *visit, int socket, int64_t deadline_ns, struct el_tcp_answer *answer_p)
{
    int number = el_tcp_read(socket, answer_p, sizeof *answer_p, deadline_ns);
    bool rank_0 = number == 0 && memcmp(answer_p->magic, EL_TCP_ANSWER_MAGIC, EL_TCP_MAGIC_BYTES) == 0;
    if (rank_0) answer_p->text[sizeof answer_p->text - 1] = 0;
    if (!rank_0)
        snprintf(visit->why, sizeof visit->why, "%s",
                 number == ETIMEDOUT ? "something is there that does not answer"
                                     : "what is there is not rank 0 of a job");
    return rank_0;
}

static bool say_hello(struct visit *visit, int socket, enum el_tcp_channel channel, struct el_tcp_answer *answer_p)
{
    const struct el_rendezvous *r = visit->rendezvous;
    struct el_tcp_hello hello = {.magic = EL_TCP_HELLO_MAGIC,
                                 .version = EL_TCP_VERSION,
                                 .rank = (uint32_t)r->rank,
                                 .size = (uint32_t)r->size,
                                 .channel = channel,
                                 .token = el_tcp_token(r)};
    int64_t deadline_ns = visit->deadline_ns, soon_ns = el_clock_ns() + ONE_OF_MANY_NS;
    if (r->n_ports > 1 && soon_ns < deadline_ns) deadline_ns = soon_ns;
    el_tcp_write(socket, &hello, sizeof hello); /* a closed connection shows when reading */
    return hear(visit, socket, deadline_ns, answer_p);
}

/* EL_ERR_ABSENT: retry. */
static enum el_status knock(struct visit *visit, enum el_tcp_channel channel, int *socket_p)
{
    const struct el_rendezvous *r = visit->rendezvous;
    struct el_tcp_answer answer;
    int made;
    if (!el_tcp_connect(r->host, visit->port, visit->deadline_ns, &made, visit->why, &visit->over))
        return EL_ERR_ABSENT;
    if (!say_hello(visit, made, channel, &answer)) {
        close(made);
        return EL_ERR_ABSENT;
    }
    if (answer.verdict == EL_TCP_REFUSED) {
        close(made);
        snprintf(visit->why, sizeof visit->why, "%.150s", answer.text);
        if (r->n_ports > 1) return EL_ERR_ABSENT;
        return el_fail(EL_ERR_PEER, "bootstrap tcp: rank 0 at %s:%d refuses rank %d: %s", r->host, visit->port, r->rank,
                       answer.text);
    }
    *socket_p = made;
    return EL_OK;
}

static enum el_status knock_until_heard(struct visit *visit, int *socket_p)
{
    const struct el_rendezvous *r = visit->rendezvous;
    int64_t pause_ns = PAUSE_NS;
    for (int i = 0;; i++) {
        if (r->n_ports > 1) visit->port = r->port + i % r->n_ports;
        enum el_status status = knock(visit, EL_TCP_DATA, socket_p);
        if (status != EL_ERR_ABSENT) return status;
        if (visit->over)
            return el_fail(EL_ERR_INVALID, "bootstrap tcp: rank %d cannot find the host '%s' of rank 0: %s", r->rank,
                           r->host, visit->why);
        if (el_clock_ns() + pause_ns > visit->deadline_ns) break;
        if (r->n_ports <= 1 || (i + 1) % r->n_ports == 0) {
            el_clock_sleep_until(el_clock_ns() + pause_ns);
            pause_ns = pause_ns * 2 < PAUSE_MAX_NS ? pause_ns * 2 : PAUSE_MAX_NS;
        }
    }
    return el_fail(EL_ERR_TIMEOUT, "bootstrap tcp: rank %d did not reach rank 0 at %s:%d within %g s: %s", r->rank,
                   r->host, visit->port, el_tcp_patience_s(r), visit->why);
}

static enum el_status wait_for_welcome(struct visit *visit, int socket)
{
    const struct el_rendezvous *r = visit->rendezvous;
    struct el_tcp_answer answer;
    int64_t deadline_ns = el_tcp_deadline_ns(r) + (int64_t)HOST_S * 1000000000;
    if (!hear(visit, socket, deadline_ns, &answer))
        return el_fail(EL_ERR_PEER, "bootstrap tcp: rank 0 at %s:%d is gone before all ranks had come", r->host,
                       visit->port);
    if (answer.verdict == EL_TCP_WELCOME) return EL_OK;
    return el_fail(EL_ERR_PEER, "rank 0: %s", answer.text);
}

enum el_status el_tcp_visit(const struct el_rendezvous *rendezvous, struct el_tcp_link *link)
{
    struct visit visit = {
        .rendezvous = rendezvous, .deadline_ns = el_tcp_deadline_ns(rendezvous), .port = rendezvous->port};
    enum el_status status = knock_until_heard(&visit, &link->sockets[EL_TCP_DATA]);
    if (status == EL_OK) status = knock(&visit, EL_TCP_ALARM, &link->sockets[EL_TCP_ALARM]);
    /* If rank 0 has ended the meeting meanwhile, the first connection has the reason. */
    if (status == EL_OK || status == EL_ERR_ABSENT) status = wait_for_welcome(&visit, link->sockets[EL_TCP_DATA]);
    if (status == EL_OK && link->sockets[EL_TCP_ALARM] < 0)
        status =
            el_fail(EL_ERR_PEER, "bootstrap tcp: rank 0 at %s:%d welcomes rank %d without its second connection: %s",
                    rendezvous->host, visit.port, rendezvous->rank, visit.why);
    if (status != EL_OK) el_tcp_link_close(link);
    return status;
}
