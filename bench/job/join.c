/* The one place where what a launcher says becomes a bootstrap: launch/ knows no communicators, and comm/ reads no
 * environment. */
#include "bench/job/join.h"

enum el_status el_join(const struct el_launch_place *place, double patience_s, struct el_bootstrap **bootstrap_p)
{
    if (!place->host) return el_bootstrap_open("mpi", bootstrap_p);
    const struct el_rendezvous rendezvous = {.rank = place->rank,
                                             .size = place->size,
                                             .host = place->host,
                                             .port = place->port,
                                             .n_ports = place->n_ports,
                                             .listener = place->listener,
                                             .token = place->token,
                                             .secret = place->secret,
                                             .patience_s = patience_s};
    return el_bootstrap_open_tcp(&rendezvous, bootstrap_p);
}

enum el_status el_join_environment(struct el_bootstrap **bootstrap_p)
{
    struct el_launch_place place;
    EL_TRY(el_launch_environment(el_launch_getenv, NULL, &place));
    return el_join(&place, 0, bootstrap_p);
}
