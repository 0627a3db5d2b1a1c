/* A place where the threads of a process wait for one another on the host, before they start what may hold one of them
 * for another: a thread that still asks for memory may have to wait until nothing runs on any card. */
#pragma once

#include "runtime/base/status.h"

struct el_meeting;

/* Of `n` threads. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_meeting_create(int n, struct el_meeting **meeting_p);
/* Nobody waits there. NULL is legal. */
void el_meeting_destroy(struct el_meeting *meeting);
/* Waits until all have come, as often as they do. NULL: there is nobody to wait for. Errors: EL_ERR_PEER, another has
 * aborted it. */
enum el_status el_meeting_wait(struct el_meeting *meeting);
/* Who waits there, now or later, fails. NULL is legal. */
void el_meeting_abort(struct el_meeting *meeting);
