/* What comes to rank 0 over TCP: strangers at the meeting (all but the last part of the input), and what a rank that
 * was let in says in collectives (the last part). Parts are divided by the byte 0x1E. The real rank comes after the
 * strangers: they must not keep it out. Sockets are local ones: nothing of TCP itself is under attack. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/comm/tcp/meeting.h"
#include "tests/fuzz/fuzz.h"

enum { STRANGERS_MAX = 6, SOCKETS_MAX = STRANGERS_MAX + EL_TCP_CHANNELS, FAREWELL = 1 };

static struct el_rendezvous place = {.size = 2, .host = "127.0.0.1", .port = 29500, .token = "job", .patience_s = 0.5};

static int listen_here(struct sockaddr_un *address, socklen_t *length)
{
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *length = sizeof address->sun_family; /* the system chooses a name */
    bool good = bind(listener, (struct sockaddr *)address, *length) == 0 && listen(listener, SOCKETS_MAX) == 0;
    *length = sizeof *address;
    good = good && getsockname(listener, (struct sockaddr *)address, length) == 0;
    fuzz_expect(good, "the target can listen");
    return listener;
}

/* Connects, says so much, and says nothing more; it hears until the end. */
static int come(const struct sockaddr_un *address, socklen_t length, const void *hello, size_t n, const uint8_t *more,
                size_t n_more)
{
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fuzz_expect(connect(made, (const struct sockaddr *)address, length) == 0, "the target can connect");
    if (n) send(made, hello, n, MSG_NOSIGNAL);
    if (n_more) send(made, more, n_more, MSG_NOSIGNAL);
    shutdown(made, SHUT_WR);
    return made;
}

static int come_as_rank(const struct sockaddr_un *address, socklen_t length, enum el_tcp_channel channel,
                        const uint8_t *more, size_t n)
{
    const struct el_tcp_hello hello = {.magic = EL_TCP_HELLO_MAGIC,
                                       .version = EL_TCP_VERSION,
                                       .rank = 1,
                                       .size = 2,
                                       .channel = channel,
                                       .token = el_tcp_token(&place)};
    const uint32_t farewell[4] = {FAREWELL, 1};
    return come(address, length, &hello, sizeof hello, channel == EL_TCP_ALARM ? (const uint8_t *)farewell : more,
                channel == EL_TCP_ALARM ? sizeof farewell : n);
}

static void take_part(struct el_bootstrap *bootstrap)
{
    char **texts = NULL;
    for (int i = 0; i < 3; i++) {
        if (!fuzz_status(el_bootstrap_gather(bootstrap, "rank 0", &texts))) break;
        for (int rank = 0; rank < place.size; rank++) free(texts[rank]);
        free(texts);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sockaddr_un address;
    struct el_bootstrap *bootstrap = NULL;
    socklen_t length;
    int sockets[SOCKETS_MAX], n = 0;
    const uint8_t *end = data + size, *part;
    if (size > 1 << 16) return 0; /* it has to fit into a socket */
    place.listener = listen_here(&address, &length);
    while (n < STRANGERS_MAX && (part = memchr(data, 0x1E, (size_t)(end - data)))) {
        sockets[n++] = come(&address, length, data, (size_t)(part - data), NULL, 0);
        data = part + 1;
    }
    sockets[n++] = come_as_rank(&address, length, EL_TCP_ALARM, NULL, 0);
    sockets[n++] = come_as_rank(&address, length, EL_TCP_DATA, data, (size_t)(end - data));
    if (fuzz_status(el_bootstrap_open_tcp(&place, &bootstrap))) {
        take_part(bootstrap);
        el_bootstrap_close(bootstrap);
    }
    while (n > 0) close(sockets[--n]);
    return 0;
}
