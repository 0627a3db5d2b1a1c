/* Watches on several hosts of one job, of which the first one writes the record of all.
 *
 *     el_hosts_read("2", &hosts);             two; which one this is, the launcher's variables say
 *     el_hosts_meet(dir, &hosts);             they find one another by a file in that folder
 *     el_watch_run(watch, wait_all);
 *     el_hosts_join(&hosts, document);        the first one's document becomes that of all
 *     el_hosts_end(&hosts);
 *
 * Times of hooks are each host's; `clocks` relates them to the first one's, by exchange at both ends. Threads: one. */
#pragma once

#include <jansson.h>

#include "bench/training/training.h"
#include "runtime/comm/bootstrap.h"

struct el_hosts {
    int place, n; /* n 1: there is one, and the rest is empty */
    struct el_bootstrap *bootstrap;
    struct el_hook_clocks *clocks; /* [n], of the first host; others have none */
};

/* "N", or "I/N": this is number I, from 0. Errors: EL_ERR_INVALID. */
enum el_status el_hosts_read(const char *text, struct el_hosts *hosts_p);
/* Blocks until all have come. Errors: EL_ERR_IO (the folder, the network), EL_ERR_TIMEOUT. */
enum el_status el_hosts_meet(const char *dir, struct el_hosts *hosts);
/* Blocks until all watches have ended. Errors: EL_ERR_PEER (one is gone); `document` is this host's then. */
enum el_status el_hosts_join(struct el_hosts *hosts, json_t *document);
void el_hosts_end(struct el_hosts *hosts);
