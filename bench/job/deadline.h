/* A time limit for a rank that no launcher of ours watches: a thread that sleeps until it has passed, and then ends the
 * process, whatever it waits for.
 *
 *     el_deadline_start(timeout_s, &deadline);
 *     el_deadline_set(deadline, timeout_s, expire, context);     the next part has its own limit
 *     el_deadline_stop(deadline);
 *
 * Threads: calls are made by one thread. Once the time has passed they do not return.
 */
#ifndef EL_BENCH_DEADLINE_H
#define EL_BENCH_DEADLINE_H

#include "runtime/base/status.h"

struct el_deadline;

/* Called in the deadline's thread while the other may stand anywhere; ends the process. */
typedef void (*el_deadline_expired)(void *context);

/* Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_deadline_start(double seconds, el_deadline_expired expired, void *context,
                                 struct el_deadline **deadline_p);
/* From now on. */
void el_deadline_set(struct el_deadline *deadline, double seconds, el_deadline_expired expired, void *context);
/* NULL is legal. */
void el_deadline_stop(struct el_deadline *deadline);

#endif
