/* The rendezvous of our own ranks. The parent holds the port until rank 0 has inherited the socket, and a random
 * secret keeps other programs out. */
#pragma once

#include "runtime/base/status.h"

enum { EL_OWN_VARIABLES = 9, EL_OWN_VARIABLE_BYTES = 64, EL_OWN_SECRET_BYTES = 33 };

struct el_own_meeting {
    int listener; /* on the loopback */
    char host[16];
    int port;
    char secret[EL_OWN_SECRET_BYTES];
};

enum el_status el_own_open(struct el_own_meeting *meeting_p);
void el_own_close(struct el_own_meeting *meeting);

/* One rank's variables; the listener only for rank 0; `numbered` may be NULL. Returns their number. */
int el_own_variables(const struct el_own_meeting *meeting, int rank, int size, const char *numbered,
                     char variables[EL_OWN_VARIABLES][EL_OWN_VARIABLE_BYTES]);
