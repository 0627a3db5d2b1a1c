/* Our own launcher's part beside starting processes: where the ranks meet, and the variables that tell them, which are
 * torchrun's. The parent takes a free port and keeps it until rank 0 has inherited the socket: no other program can
 * come between. Nor can one join: it does not know the job's secret, random numbers that only the ranks are given. */
#pragma once

#include "runtime/base/status.h"

enum { EL_OWN_VARIABLES = 9, EL_OWN_VARIABLE_BYTES = 64, EL_OWN_SECRET_BYTES = 33 };

struct el_own_meeting {
    int listener; /* on this host's loopback; closed by el_own_close */
    char host[16];
    int port;
    char secret[EL_OWN_SECRET_BYTES];
};

enum el_status el_own_open(struct el_own_meeting *meeting_p);
void el_own_close(struct el_own_meeting *meeting);

/* "RANK=1", ... of one rank, all on this host; the listener's only for rank 0; `numbered` with the rank behind it, or
 * NULL. Returns how many. */
int el_own_variables(const struct el_own_meeting *meeting, int rank, int size, const char *numbered,
                     char variables[EL_OWN_VARIABLES][EL_OWN_VARIABLE_BYTES]);
