/* Ranks as processes made by fork, that meet over TCP at a port of this host: no launcher, no MPI. */
#pragma once

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/comm/bootstrap.h"
#include "runtime/comm/tcp/socket.h"

enum { TCP_PROCESSES_MAX = 7 };

/* A rank's part: opens the bootstrap at `place`, and returns the process's exit status. */
typedef int (*tcp_play)(const struct el_rendezvous *place, const void *context);

/* The wait statuses of all ranks, when all have ended. */
static void tcp_processes(int size, tcp_play play, const void *context, int *wait_statuses)
{
    pid_t pids[TCP_PROCESSES_MAX];
    int listener;
    assert_int_equal(el_tcp_listen("127.0.0.1", 0, false, &listener), 0);
    struct el_rendezvous place = {.size = size, .host = "127.0.0.1", .port = el_tcp_port(listener), .listener = -1};
    for (int rank = 0; rank < size; rank++) {
        pids[rank] = fork();
        if (pids[rank]) continue;
        alarm(600); /* as star_ranks */
        place.rank = rank;
        if (rank == 0)
            place.listener = listener;
        else
            close(listener);
        _exit(play(&place, context));
    }
    close(listener);
    for (int rank = 0; rank < size; rank++) waitpid(pids[rank], &wait_statuses[rank], 0);
}
