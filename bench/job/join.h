/* A started process among the others of its job: the bootstrap that its launcher's variables ask for. */
#ifndef EL_BENCH_JOIN_H
#define EL_BENCH_JOIN_H

#include "runtime/comm/bootstrap.h"
#include "runtime/launch/launch.h"

/* `place`: of this process. `tcp` where it says where to meet, waiting `patience_s` at most (0: its default), else
 * `mpi`. Blocking. Collective. Errors: the bootstraps' own. */
enum el_status el_join(const struct el_launch_place *place, double patience_s, struct el_bootstrap **bootstrap_p);
/* With the place that the environment says. */
enum el_status el_join_environment(struct el_bootstrap **bootstrap_p);

#endif
