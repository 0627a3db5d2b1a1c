/* A host barrier for a process's threads, before they start work that may block another: a thread that still allocates
 * may wait until no GPU is busy. */
#pragma once

#include "runtime/base/status.h"

struct el_meeting;

/* For `n` threads. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_meeting_create(int n, struct el_meeting **meeting_p);
/* No thread may wait there. NULL is legal. */
void el_meeting_destroy(struct el_meeting *meeting);
/* Waits until all have arrived; reusable. NULL: returns at once. Errors: EL_ERR_PEER, another has aborted it. */
enum el_status el_meeting_wait(struct el_meeting *meeting);
/* Present and later waiters fail. NULL is legal. */
void el_meeting_abort(struct el_meeting *meeting);
