/* Facts shared by all ranks at opening: hosts, cards. Collective. Errors: the bootstrap's. */
#pragma once

#include <stdbool.h>

#include "runtime/comm/bootstrap.h"

enum { EL_HOST_IDENTITY_BYTES = 256, EL_BOOT_NAME_BYTES = 128 };

/* Fills all[rank * bytes] on all ranks; longer texts are cut. */
enum el_status el_share_texts(struct el_bootstrap *bootstrap, const char *mine, size_t bytes, char *all);

/* Identifies this host's boot and the process's namespace ("pid", "time": namespaces(7)). False: the boot has no name,
 * and equal texts prove nothing. */
bool el_share_boot(const char *name_space, char name[EL_BOOT_NAME_BYTES]);

/* Equal in processes that share memory and a PID namespace. */
void el_share_host(char identity[EL_HOST_IDENTITY_BYTES]);

/* Whether all ranks share memory, a PID namespace and a network namespace (separate networks are meant to be used).
 * Collective. False if the bootstrap fails. */
bool el_comm_on_one_host(struct el_bootstrap *bootstrap);
