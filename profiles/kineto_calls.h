/* Calls of a communicator in a trace: what an event and its arguments say of one (profiles/kineto.c). Input is
 * untrusted. Threads: any. */
#pragma once

#include "profiles/json_scan.h"
#include "profiles/kineto.h"

struct el_kineto_call el_kineto_call_none(void);
void el_kineto_call_argument(struct el_kineto_call *call, struct el_scan_text key, struct el_scan_text value);
/* Its verb, if no argument has said it. */
void el_kineto_call_name(struct el_kineto_call *call, struct el_scan_text name);
/* In order, each with its step and what record_param_comms announced; a trace with devices keeps only theirs. Sorts
 * `announced`. */
void el_kineto_calls_finish(struct el_kineto_trace *trace, struct el_kineto_call *announced, size_t n_announced);
