/* What a rank hears at any time, also while it computes: that another rank is gone, or ends the job. One thread a rank
 * sleeps at the alarm connections and uses no core otherwise.
 *
 * All alarms go through rank 0. A rank that ended without a farewell is gone, and so is one whose host has not answered
 * for 7 s: rank 0 tells the others, and every rank's data connections are shut, so that calls that wait there wake and
 * fail with the reason that is kept here.
 */
#ifndef EL_TCP_WATCH_H
#define EL_TCP_WATCH_H

#include <pthread.h>
#include <stdbool.h>

#include "runtime/comm/tcp/meeting.h"
#include "runtime/comm/tcp/socket.h"

struct pollfd;

struct el_tcp_watch {
    int rank, n_links, first; /* links[first..n_links): by rank on rank 0; elsewhere one, to rank 0 */
    struct el_tcp_link *links;
    int wake; /* an eventfd: the thread is to end */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t news;
    struct pollfd *polls; /* [n_links + 1] */
    bool *left;           /* [n_links] said farewell, or is gone */
    bool *answered;       /* [n_links] what was asked last */
    struct el_tcp_host {
        char address[EL_TCP_ADDRESS_BYTES];
    } * hosts; /* [n_links] where the other end is */
    bool failed;
    char reason[64 + EL_TCP_ADDRESS_BYTES]; /* of the failure */
};

enum el_status el_tcp_watch_start(struct el_tcp_watch *watch);
/* Says farewell to the others; nothing is an alarm any more. */
void el_tcp_watch_stop(struct el_tcp_watch *watch);
/* A data connection to `link` failed: EL_ERR_PEER with what the watch knows of it, or will know in a moment. */
enum el_status el_tcp_watch_explain(struct el_tcp_watch *watch, int link);
/* Contract: el_bootstrap_silent. The other ranks' threads answer by themselves: one that does not is stopped or gone.
 */
void el_tcp_watch_silent(struct el_tcp_watch *watch, char *text, size_t bytes);
/* Ends all ranks, this one too. Threads: any. */
void el_tcp_watch_end_job(struct el_tcp_watch *watch, int exit_status) __attribute__((noreturn));

#endif
