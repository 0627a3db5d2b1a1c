/* Whether ranks share a host. */
#ifndef EL_COMM_CHOOSE_H
#define EL_COMM_CHOOSE_H

#include <stdbool.h>

#include "runtime/comm/bootstrap.h"

/* One boot and one process namespace: they can share memory and see each other's processes. Blocking. Collective.
 * False where the bootstrap fails, too. */
bool el_comm_on_one_host(struct el_bootstrap *bootstrap);

#endif
