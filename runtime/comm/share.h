/* Small facts that every rank of a job tells all others, once, while something is opened: who is on which host, which
 * card is whose. Collective, each. Errors: the bootstrap's. */
#pragma once

#include <stdbool.h>

#include "runtime/comm/bootstrap.h"

enum { EL_HOST_IDENTITY_BYTES = 256, EL_BOOT_NAME_BYTES = 128 };

/* Every rank gives a text of less than `bytes` (a longer one is cut); all get all of them: all[rank * bytes], room for
 * `bytes` a rank. */
enum el_status el_share_texts(struct el_bootstrap *bootstrap, const char *mine, size_t bytes, char *all);

/* Names the boot of this host and the namespace of one kind ("pid", "time": namespaces(7)) that this process is in, for
 * comparing. Returns whether the boot has a name: without one, equal texts prove nothing. Local. */
bool el_share_boot(const char *name_space, char name[EL_BOOT_NAME_BYTES]);

/* The same text in processes that share memory and see each other's process numbers, another one elsewhere. Local. */
void el_share_host(char identity[EL_HOST_IDENTITY_BYTES]);

/* Whether all ranks share memory and see each other's processes, and are in one network: whoever gave them networks of
 * their own wants them used. Blocking. Collective. False where the bootstrap fails,
 * too. */
bool el_comm_on_one_host(struct el_bootstrap *bootstrap);
