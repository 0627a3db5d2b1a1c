/* Sockets over getaddrinfo, poll and the non-blocking calls. */
#include "runtime/comm/tcp/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"

/* A host that vanishes silently is noticed after KEEP_IDLE_S + KEEP_COUNT * KEEP_EVERY_S seconds of silence, or when
 * data is unacknowledged for UNHEARD_MS. */
enum { BACKLOG = 128, KEEP_IDLE_S = 3, KEEP_EVERY_S = 1, KEEP_COUNT = 4, UNHEARD_MS = 7000, CONNECT_US = 3000000 };

static void set(int socket, int level, int name, int value)
{
    setsockopt(socket, level, name, &value, sizeof value);
}

static void tune(int socket)
{
    set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S);
    set(socket, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
}

void el_tcp_expect_answers(int socket)
{
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, UNHEARD_MS);
}

static int wait_for(int socket, short events, int64_t deadline_ns)
{
    for (;;) {
        struct pollfd one = {.fd = socket, .events = events};
        int64_t left_ns = deadline_ns < 0 ? -1 : deadline_ns - el_clock_ns();
        struct timespec patience = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
        if (deadline_ns >= 0 && left_ns <= 0) patience = (struct timespec){0};
        int n = ppoll(&one, 1, deadline_ns < 0 ? NULL : &patience, NULL);
        if (n > 0) return 0;
        if (n == 0) return ETIMEDOUT;
        if (errno != EINTR) return errno;
    }
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static int listen_at(const struct sockaddr *address, socklen_t length, int *listener_p)
{
    int listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0) return errno;
    set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
    if (address->sa_family == AF_INET6) set(listener, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind(listener, address, length) != 0 || listen(listener, BACKLOG) != 0) {
        int number = errno;
        close(listener);
        return number;
    }
    *listener_p = listener;
    return 0;
}

static int listen_everywhere(int port, int *listener_p)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int number = listen_at((const struct sockaddr *)&six, sizeof six, listener_p);
    if (number != EAFNOSUPPORT && number != EADDRNOTAVAIL) return number;
    return listen_at((const struct sockaddr *)&four, sizeof four, listener_p);
}

/* Only a loopback name excludes other hosts. */
static bool names_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

int el_tcp_listen(const char *host, int port, bool exact, int *listener_p)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    char service[16];
    if (!exact && !names_loopback(host)) return listen_everywhere(port, listener_p);
    snprintf(service, sizeof service, "%d", port);
    if (getaddrinfo(host, service, &hints, &found) != 0) return EADDRNOTAVAIL;
    int number = EADDRNOTAVAIL;
    for (const struct addrinfo *at = found; at && number != 0 && number != EADDRINUSE; at = at->ai_next)
        if (exact || is_loopback(at->ai_addr)) number = listen_at(at->ai_addr, at->ai_addrlen, listener_p);
    freeaddrinfo(found);
    return number;
}

int el_tcp_port(int socket)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getsockname(socket, (struct sockaddr *)&address, &length) != 0) return 0;
    if (address.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&address)->sin_port);
    return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
}

int el_tcp_accept(int listener, int64_t deadline_ns, int *socket_p)
{
    for (;;) {
        int number = wait_for(listener, POLLIN, deadline_ns);
        if (number != 0) return number;
        int accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (accepted < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) continue;
        if (accepted < 0) return errno;
        tune(accepted);
        *socket_p = accepted;
        return 0;
    }
}

/* The kernel may give a connecting socket the very port that it connects to, if nobody listens there. */
static bool meets_itself(int socket)
{
    struct sockaddr_storage mine = {0}, other = {0};
    socklen_t length = sizeof mine, other_length = sizeof other;
    return getsockname(socket, (struct sockaddr *)&mine, &length) == 0 &&
           getpeername(socket, (struct sockaddr *)&other, &other_length) == 0 && length == other_length &&
           memcmp(&mine, &other, length) == 0;
}

static int connect_to(const struct addrinfo *address, int64_t deadline_ns, int *socket_p)
{
    int made = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), number = 0;
    socklen_t length = sizeof number;
    if (made < 0) return errno;
    if (connect(made, address->ai_addr, address->ai_addrlen) != 0) number = errno;
    if (number == EINPROGRESS) {
        number = wait_for(made, POLLOUT, deadline_ns);
        if (number == 0) getsockopt(made, SOL_SOCKET, SO_ERROR, &number, &length);
    }
    if (number == 0 && meets_itself(made)) number = ECONNREFUSED;
    if (number == 0 && fcntl(made, F_SETFL, 0) != 0) number = errno;
    if (number != 0) {
        close(made);
        return number;
    }
    tune(made);
    *socket_p = made;
    return 0;
}

bool el_tcp_connect(const char *host, int port, int64_t deadline_ns, int *socket_p, char why[EL_TCP_WHY_BYTES],
                    bool *hopeless_p)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char service[16];
    int64_t patience_ns = el_clock_ns() + (int64_t)CONNECT_US * 1000;
    snprintf(service, sizeof service, "%d", port);
    int number = getaddrinfo(host, service, &hints, &found);
    *hopeless_p = number != 0 && number != EAI_AGAIN;
    if (number != 0) {
        snprintf(why, EL_TCP_WHY_BYTES, "%s", gai_strerror(number));
        return false;
    }
    number = EADDRNOTAVAIL;
    for (const struct addrinfo *at = found; at && number != 0; at = at->ai_next)
        number = connect_to(at, deadline_ns >= 0 && deadline_ns < patience_ns ? deadline_ns : patience_ns, socket_p);
    freeaddrinfo(found);
    if (number != 0) snprintf(why, EL_TCP_WHY_BYTES, "%s", strerror(number));
    return number == 0;
}

int el_tcp_read(int socket, void *data, size_t bytes, int64_t deadline_ns)
{
    for (size_t at = 0; at < bytes;) {
        int number = wait_for(socket, POLLIN, deadline_ns);
        if (number != 0) return number;
        ssize_t got = recv(socket, (char *)data + at, bytes - at, MSG_DONTWAIT);
        if (got == 0) return ECONNRESET;
        if (got < 0 && errno != EAGAIN && errno != EINTR) return errno;
        if (got > 0) at += (size_t)got;
    }
    return 0;
}

int el_tcp_write(int socket, const void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t put = send(socket, (const char *)data + at, bytes - at, MSG_NOSIGNAL);
        if (put < 0 && errno != EINTR) return errno;
        if (put > 0) at += (size_t)put;
    }
    return 0;
}

void el_tcp_address(int socket, bool other_side, char text[EL_TCP_ADDRESS_BYTES])
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    snprintf(text, EL_TCP_ADDRESS_BYTES, "?");
    int number = other_side ? getpeername(socket, (struct sockaddr *)&address, &length)
                            : getsockname(socket, (struct sockaddr *)&address, &length);
    if (number != 0) return;
    if (getnameinfo((struct sockaddr *)&address, length, text, EL_TCP_ADDRESS_BYTES, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(text, EL_TCP_ADDRESS_BYTES, "?");
    if (strncmp(text, "::ffff:", 7) == 0 && strchr(text, '.')) memmove(text, text + 7, strlen(text + 7) + 1);
}
