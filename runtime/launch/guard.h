/* A process that outlives this one for a moment: when this one is gone, however it ended, it kills all that carry a
 * token in their environment, and removes a folder. What this process starts by PR_SET_PDEATHSIG dies with it by
 * itself, but not the children of that.
 *
 *     el_guard_start("EL_SHELL_TOKEN=17-4711.", "", &guard);     before what it guards is started with that variable
 *     el_guard_stop(&guard);                                     nothing is killed, nothing removed
 */
#ifndef EL_LAUNCH_GUARD_H
#define EL_LAUNCH_GUARD_H

#include <sys/types.h>

#include "runtime/base/status.h"

struct el_guard {
    pid_t pid;
    int life; /* a pipe's end that only this process has: it closes when this process ends */
};

/* `folder`: with all that is in it; "": none. Errors: EL_ERR_IO. */
enum el_status el_guard_start(const char *token, const char *folder, struct el_guard *guard_p);
/* A guard of zeros is legal. */
void el_guard_stop(struct el_guard *guard);

#endif
