/* Ranks made by fork, over a bootstrap of sockets between rank 0 and each other rank that exists only in tests: no MPI,
 * no ports. */
#pragma once

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/comm/bootstrap_ops.h"

enum { RANKS_MAX = 4, STAR_RANKS_MAX = 7, STAR_TEXT_BYTES = 1024 };

struct star {
    struct el_bootstrap base;
    int ends[STAR_RANKS_MAX][2]; /* [rank]: rank 0's end, the rank's end */
};

static enum el_status star_gather(struct el_bootstrap *bootstrap, const char *text, char **texts)
{
    struct star *star = (struct star *)bootstrap;
    char buffer[STAR_TEXT_BYTES] = "";
    snprintf(buffer, sizeof buffer, "%s", text);
    if (bootstrap->rank != 0)
        return write(star->ends[bootstrap->rank][1], buffer, sizeof buffer) == sizeof buffer
                   ? EL_OK
                   : el_fail_errno("gather: rank %d", bootstrap->rank);
    texts[0] = strdup(text);
    for (int i = 1; i < bootstrap->size; i++) {
        if (recv(star->ends[i][0], buffer, sizeof buffer, MSG_WAITALL) != sizeof buffer)
            return el_fail(EL_ERR_PEER, "gather: rank %d is gone", i);
        texts[i] = strdup(buffer);
    }
    return EL_OK;
}

static enum el_status star_broadcast(struct el_bootstrap *bootstrap, void *data, size_t bytes)
{
    struct star *star = (struct star *)bootstrap;
    for (int i = 1; bootstrap->rank == 0 && i < bootstrap->size; i++)
        if (write(star->ends[i][0], data, bytes) != (ssize_t)bytes) return el_fail_errno("broadcast: rank %d", i);
    if (bootstrap->rank != 0 && recv(star->ends[bootstrap->rank][1], data, bytes, MSG_WAITALL) != (ssize_t)bytes)
        return el_fail(EL_ERR_PEER, "broadcast: rank 0 is gone");
    return EL_OK;
}

static void star_close(struct el_bootstrap *bootstrap)
{
    (void)bootstrap;
}

static const struct el_bootstrap_ops star_ops = {
    .kind = "star", .gather = star_gather, .broadcast = star_broadcast, .close = star_close};

/* Forks `size` ranks, each of which plays its part and ends with what that returned; returns how many failed. */
static int star_ranks(int size, int (*play)(struct star *star, void *context), void *context)
{
    struct star star = {.base = {.ops = &star_ops, .size = size}};
    pid_t pids[STAR_RANKS_MAX];
    int n_failed = 0, wait_status;
    for (int i = 0; i < size; i++) assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, star.ends[i]), 0);
    for (int rank = 0; rank < size; rank++) {
        pids[rank] = fork();
        if (pids[rank]) continue;
        alarm(600); /* what hangs ends: the runner's limits are shorter, a busy machine's tests are not */
        star.base.rank = rank;
        _exit(play(&star, context));
    }
    for (int rank = 0; rank < size; rank++) {
        waitpid(pids[rank], &wait_status, 0);
        if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0) n_failed++;
        close(star.ends[rank][0]);
        close(star.ends[rank][1]);
    }
    return n_failed;
}
