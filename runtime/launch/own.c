/* A loopback port, and torchrun's variables. */
#include "runtime/launch/own.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/launch/children.h"
#include "runtime/launch/launch.h"

enum { BACKLOG = 128 };

static int listen_at(const struct sockaddr *address, socklen_t length)
{
    int made = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0) return -1;
    /* Above the standard ones, which the child replaces. */
    int listener = fcntl(made, F_DUPFD_CLOEXEC, 3), number = errno;
    close(made);
    errno = number;
    if (listener >= 0 && bind(listener, address, length) == 0 && listen(listener, BACKLOG) == 0) return listener;
    number = errno;
    if (listener >= 0) close(listener);
    errno = number;
    return -1;
}

static enum el_status make_secret(char secret[EL_OWN_SECRET_BYTES])
{
    unsigned char bytes[(EL_OWN_SECRET_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return el_fail_errno("launch: no random numbers for the ranks' secret");
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
    return EL_OK;
}

enum el_status el_own_open(struct el_own_meeting *meeting_p)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t length = sizeof six;
    struct el_own_meeting meeting = {.host = "127.0.0.1"};
    EL_TRY(make_secret(meeting.secret));
    meeting.listener = listen_at((const struct sockaddr *)&four, sizeof four);
    if (meeting.listener < 0) {
        snprintf(meeting.host, sizeof meeting.host, "::1");
        meeting.listener = listen_at((const struct sockaddr *)&six, sizeof six);
    }
    if (meeting.listener < 0) return el_fail_errno("launch: no port of the loopback for the ranks to meet at");
    if (getsockname(meeting.listener, (struct sockaddr *)&six, &length) != 0) {
        el_own_close(&meeting);
        return el_fail_errno("launch: the port of the loopback");
    }
    meeting.port = ntohs(six.sin6_port); /* same offset for both families */
    *meeting_p = meeting;
    return EL_OK;
}

void el_own_close(struct el_own_meeting *meeting)
{
    if (meeting->listener >= 0) close(meeting->listener);
    meeting->listener = -1;
}

int el_own_variables(const struct el_own_meeting *meeting, int rank, int size, const char *numbered,
                     char variables[EL_OWN_VARIABLES][EL_OWN_VARIABLE_BYTES])
{
    const size_t bytes = EL_OWN_VARIABLE_BYTES;
    int n = 0;
    snprintf(variables[n++], bytes, "RANK=%d", rank);
    snprintf(variables[n++], bytes, "WORLD_SIZE=%d", size);
    snprintf(variables[n++], bytes, "LOCAL_RANK=%d", rank);
    snprintf(variables[n++], bytes, "LOCAL_WORLD_SIZE=%d", size);
    snprintf(variables[n++], bytes, "MASTER_ADDR=%s", meeting->host);
    snprintf(variables[n++], bytes, "MASTER_PORT=%d", meeting->port);
    snprintf(variables[n++], bytes, EL_LAUNCH_SECRET "=%s", meeting->secret);
    if (rank == 0) snprintf(variables[n++], bytes, EL_LAUNCH_LISTENER "=%d", meeting->listener);
    if (numbered) snprintf(variables[n++], bytes, "%s%d", numbered, rank);
    return n;
}
