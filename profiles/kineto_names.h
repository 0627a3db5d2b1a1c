/* What the names in a trace say: an event's class, a collective's verb, an element's size. Input is untrusted. Threads:
 * any. */
#pragma once

#include "profiles/json_scan.h"
#include "profiles/kineto.h"

#define EL_KINETO_ANNOUNCES "record_param_comms"

/* Beside enum el_kineto_class: an event that is no work, and one whose own time is none. */
enum { EL_KINETO_NO_WORK = -1, EL_KINETO_CONTAINER = -2 };

/* `named`: its arguments say which collective it is. */
int el_kineto_on_device(struct el_scan_text cat, struct el_scan_text name, bool named);
int el_kineto_on_host(struct el_scan_text cat, struct el_scan_text name);
/* Counted as computation, though its name is like a collective's: of no library that is known. */
bool el_kineto_doubtful(struct el_scan_text name);

/* "_allgather_base", "gloo:all_gather", "ncclDevKernel_AllGather_RING_LL". EL_COMM_VERB_COUNT: unknown. */
enum el_comm_verb el_kineto_verb(struct el_scan_text name);
/* Of PyTorch ("Float") and its gloo events ("float"); 0: unknown. */
double el_kineto_type_bytes(struct el_scan_text type);
