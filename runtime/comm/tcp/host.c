/* Rank 0's side of the meeting: one loop over the listener and all guests, so that a silent guest delays nobody. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/tcp/meeting.h"
#include "runtime/comm/tcp/socket.h"

/* TICK_NS: interval of checking silent guests. GUESTS_MAX: one more replaces the longest silent one. */
enum { GUESTS_MAX = 64, SILENCE_S = 5, TICK_NS = 500000000 };

struct guest {
    int socket;
    int64_t since_ns;
    size_t have;
    struct el_tcp_hello hello;
    char from[EL_TCP_ADDRESS_BYTES];
};

struct meeting {
    const struct el_rendezvous *rendezvous;
    struct el_tcp_link *links;
    int listener, n_missing; /* connections */
    struct guest guests[GUESTS_MAX];
    int n_guests, n_strays;
    char stray[EL_TCP_ADDRESS_BYTES];
    char contradiction[160]; /* the last rank that contradicts us; "": none */
    struct pollfd *polls;
};

static void answer(int socket, enum el_tcp_verdict verdict, const char *text)
{
    struct el_tcp_answer words = {.magic = EL_TCP_ANSWER_MAGIC, .verdict = verdict};
    snprintf(words.text, sizeof words.text, "%s", text);
    el_tcp_write(socket, &words, sizeof words); /* a closed connection shows at the next poll */
}

static void answer_all(const struct meeting *m, enum el_tcp_verdict verdict, const char *text)
{
    for (int rank = 1; rank < m->rendezvous->size; rank++)
        if (m->links[rank].sockets[EL_TCP_DATA] >= 0) answer(m->links[rank].sockets[EL_TCP_DATA], verdict, text);
    for (int i = 0; verdict == EL_TCP_REFUSED && i < m->n_guests; i++) answer(m->guests[i].socket, verdict, text);
}

static void list_missing(const struct meeting *m, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (int rank = 1; rank < m->rendezvous->size && used < bytes - 16; rank++)
        if (m->links[rank].sockets[EL_TCP_DATA] < 0 || m->links[rank].sockets[EL_TCP_ALARM] < 0)
            used += (size_t)snprintf(text + used, bytes - used, "%s%d", used ? ", " : "", rank);
}

static enum el_status fail_late(const struct meeting *m)
{
    char missing[96], strays[128] = "";
    list_missing(m, missing, sizeof missing);
    if (m->n_strays)
        snprintf(strays, sizeof strays, "; %d other connection%s turned away, the last from %s", m->n_strays,
                 m->n_strays == 1 ? " was" : "s were", m->stray);
    return el_fail(EL_ERR_TIMEOUT, "bootstrap tcp: waited %g s at port %d for rank %s of %d%s: %s",
                   el_tcp_patience_s(m->rendezvous), m->rendezvous->port, missing, m->rendezvous->size, strays,
                   *m->contradiction ? m->contradiction : "was it started?");
}

static void dismiss(struct meeting *m, int i)
{
    m->guests[i] = m->guests[--m->n_guests];
}

static void turn_away(struct meeting *m, int i)
{
    close(m->guests[i].socket);
    memcpy(m->stray, m->guests[i].from, sizeof m->stray);
    m->n_strays++;
    dismiss(m, i);
}

static void turn_oldest_away(struct meeting *m)
{
    int oldest = 0;
    for (int i = 1; i < m->n_guests; i++)
        if (m->guests[i].since_ns < m->guests[oldest].since_ns) oldest = i;
    turn_away(m, oldest);
}

/* Even if many connect to keep others out: the job's ranks introduce themselves at once, and each new one is heard
 * before it can be the oldest. */
static enum el_status take_connections(struct meeting *m)
{
    for (int i = 0; i < GUESTS_MAX - 1; i++) {
        int made, number = el_tcp_accept(m->listener, el_clock_ns(), &made);
        bool full = number == EMFILE || number == ENFILE;
        if (full && m->n_guests == 0) {
            errno = number;
            return el_fail_errno("bootstrap tcp: rank 0 cannot take a connection: raise 'ulimit -n'");
        }
        if (full || (number == 0 && m->n_guests == GUESTS_MAX)) turn_oldest_away(m);
        if (number == 0) {
            struct guest *guest = &m->guests[m->n_guests++];
            *guest = (struct guest){.socket = made, .since_ns = el_clock_ns()};
            el_tcp_address(made, true, guest->from);
        } else if (!full) {
            break;
        }
    }
    return EL_OK;
}

/* Whether a guest with the right token agrees with us; else why not. The meeting goes on: the right ranks may still
 * come. */
static bool fits(const struct meeting *m, const struct guest *guest, char *why, size_t bytes)
{
    const struct el_tcp_hello *hello = &guest->hello;
    uint32_t size = (uint32_t)m->rendezvous->size;
    if (hello->size != size)
        snprintf(why, bytes, "rank %u (%s) expects %u ranks, and rank 0 expects %u", hello->rank, guest->from,
                 hello->size, size);
    else if (hello->rank == 0 || hello->rank >= size || hello->channel >= EL_TCP_CHANNELS)
        snprintf(why, bytes, "a process at %s says it is rank %u too, of %u", guest->from, hello->rank, size);
    else if (m->links[hello->rank].sockets[hello->channel] >= 0)
        snprintf(why, bytes, "rank %u came twice, the second time from %s", hello->rank, guest->from);
    else
        return true;
    return false;
}

static void admit(struct meeting *m, int i)
{
    struct guest guest = m->guests[i];
    if (guest.hello.version != EL_TCP_VERSION || guest.hello.token != el_tcp_token(m->rendezvous)) {
        answer(guest.socket, EL_TCP_REFUSED,
               "it belongs to another job, has another EVENLOAD_SECRET, or is another version of evenload");
        turn_away(m, i);
    } else if (!fits(m, &guest, m->contradiction, sizeof m->contradiction)) {
        answer(guest.socket, EL_TCP_REFUSED, m->contradiction);
        turn_away(m, i);
    } else {
        m->links[guest.hello.rank].sockets[guest.hello.channel] = guest.socket;
        m->n_missing--;
        dismiss(m, i);
        answer(guest.socket, EL_TCP_NOTED, "");
    }
}

static void listen_to(struct meeting *m, int i)
{
    struct guest *guest = &m->guests[i];
    char *place = (char *)&guest->hello + guest->have;
    ssize_t got = recv(guest->socket, place, sizeof guest->hello - guest->have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) guest->have += (size_t)got;
    size_t known = guest->have < EL_TCP_MAGIC_BYTES ? guest->have : EL_TCP_MAGIC_BYTES;
    if (got <= 0 || memcmp(guest->hello.magic, EL_TCP_HELLO_MAGIC, known) != 0)
        turn_away(m, i);
    else if (guest->have == sizeof guest->hello)
        admit(m, i);
}

/* The listener, the guests, then admitted ranks: these send nothing more, so an event there is their end. */
static int gather_polls(struct meeting *m)
{
    int n = 0;
    m->polls[n++] = (struct pollfd){.fd = m->listener, .events = POLLIN};
    for (int i = 0; i < m->n_guests; i++) m->polls[n++] = (struct pollfd){.fd = m->guests[i].socket, .events = POLLIN};
    for (int rank = 1; rank < m->rendezvous->size; rank++)
        m->polls[n++] = (struct pollfd){.fd = m->links[rank].sockets[EL_TCP_DATA], .events = POLLIN};
    return n;
}

static enum el_status hear_all(struct meeting *m)
{
    int64_t now_ns = el_clock_ns();
    int n_guests = m->n_guests; /* before dismissals; backwards, since the last guest fills a gap */
    bool comes = m->polls[0].revents != 0;
    for (int rank = 1; rank < m->rendezvous->size; rank++)
        if (m->polls[n_guests + rank].revents)
            return el_fail(EL_ERR_PEER, "bootstrap tcp: rank %d left before all had come", rank);
    for (int i = n_guests - 1; i >= 0; i--) {
        if (m->polls[1 + i].revents)
            listen_to(m, i);
        else if (now_ns - m->guests[i].since_ns > (int64_t)SILENCE_S * 1000000000)
            turn_away(m, i);
    }
    return comes ? take_connections(m) : EL_OK;
}

static enum el_status receive_all(struct meeting *m)
{
    const struct timespec tick = {.tv_nsec = TICK_NS};
    int64_t deadline_ns = el_tcp_deadline_ns(m->rendezvous);
    while (m->n_missing > 0) {
        if (el_clock_ns() > deadline_ns) return fail_late(m);
        int n = gather_polls(m);
        if (ppoll(m->polls, (nfds_t)n, &tick, NULL) >= 0)
            EL_TRY(hear_all(m));
        else if (errno != EINTR)
            return el_fail_errno("bootstrap tcp: rank 0 cannot wait for %d connections", n);
    }
    return EL_OK;
}

static enum el_status open_listener(const struct el_rendezvous *r, int *listener_p)
{
    int n_ports = r->n_ports > 1 ? r->n_ports : 1, number = 0;
    if (r->listener >= 0) {
        fcntl(r->listener, F_SETFD, FD_CLOEXEC);
        fcntl(r->listener, F_SETFL, fcntl(r->listener, F_GETFL) | O_NONBLOCK);
        *listener_p = r->listener;
        return EL_OK;
    }
    for (int i = 0; i < n_ports; i++)
        if ((number = el_tcp_listen(r->host, r->port + i, false, listener_p)) == 0) return EL_OK;
    return el_fail(EL_ERR_IO, "bootstrap tcp: rank 0 cannot listen at port %d for %s: %s%s", r->port, r->host,
                   strerror(number), number == EADDRINUSE ? ": give another MASTER_PORT" : "");
}

static enum el_status prepare(struct meeting *m)
{
    const struct el_rendezvous *r = m->rendezvous;
    m->n_missing = (r->size - 1) * EL_TCP_CHANNELS;
    m->polls = calloc((size_t)(1 + GUESTS_MAX + r->size), sizeof *m->polls);
    if (!m->polls) return el_fail(EL_ERR_HOST_MEMORY, "bootstrap tcp: no memory");
    return open_listener(r, &m->listener);
}

enum el_status el_tcp_host(const struct el_rendezvous *rendezvous, struct el_tcp_link *links)
{
    struct meeting m = {.rendezvous = rendezvous, .links = links, .listener = -1};
    enum el_status status = prepare(&m);
    if (status == EL_OK) status = receive_all(&m);
    answer_all(&m, status == EL_OK ? EL_TCP_WELCOME : EL_TCP_REFUSED, status == EL_OK ? "" : el_error_message());
    for (int i = 0; i < m.n_guests; i++) close(m.guests[i].socket);
    for (int rank = 1; status != EL_OK && rank < rendezvous->size; rank++) el_tcp_link_close(&links[rank]);
    if (m.listener >= 0) close(m.listener);
    free(m.polls);
    return status;
}
