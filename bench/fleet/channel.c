/* Messages between the conductor and its agents. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/fleet/fleet.h"
#include "runtime/comm/tcp/socket.h"

enum { PIECE = 1 << 16, MESSAGE_MAX = 64 << 20 };

void el_fleet_channel_close(struct el_fleet_channel *channel)
{
    if (channel->socket >= 0) close(channel->socket);
    free(channel->text);
    *channel = (struct el_fleet_channel){.socket = -1};
}

bool el_fleet_send(struct el_fleet_channel *channel, const json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);
    if (!text || channel->socket < 0) return free(text), false;
    size_t n = strlen(text);
    text[n] = '\n';
    bool sent = el_tcp_write(channel->socket, text, n + 1) == 0;
    free(text);
    return sent;
}

bool el_fleet_hear(struct el_fleet_channel *channel)
{
    for (;;) {
        if (channel->room < channel->n + PIECE) {
            size_t room = 2 * channel->room + PIECE;
            char *text = room > MESSAGE_MAX ? NULL : realloc(channel->text, room);
            if (!text) return false;
            channel->text = text;
            channel->room = room;
        }
        ssize_t got = recv(channel->socket, channel->text + channel->n, PIECE, MSG_DONTWAIT);
        if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        if (got == 0) return false;
        channel->n += (size_t)got;
    }
}

json_t *el_fleet_take(struct el_fleet_channel *channel)
{
    char *end = channel->n ? memchr(channel->text, '\n', channel->n) : NULL;
    if (!end) return NULL;
    size_t length = (size_t)(end - channel->text);
    json_t *message = json_loadb(channel->text, length, 0, NULL);
    channel->n -= length + 1;
    memmove(channel->text, end + 1, channel->n);
    return message ? message : json_object();
}
