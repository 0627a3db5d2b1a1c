/* The training loop of a trace's host: el_kineto_trace.phases. Threads: any. */
#pragma once

#include "profiles/kineto.h"

/* enum el_kineto_phase; -1: no event of one. Backward's are the graph's nodes. */
int el_kineto_phase(struct el_scan_text cat, struct el_scan_text name);
/* Unites the phases, and the nodes of a backward pass; its steps are finished. False: no memory. */
bool el_kineto_phases_finish(struct el_kineto_trace *trace);
