/* Marks for profilers that understand NVTX (nsys, ncu): ranges for each step, each phase of it and each collective, in
 * a domain "evenload" of our own, so that a profiler shows our words beside its own.
 *
 * They stand in the thread that issues the work: on GPUs a range covers the calls that enqueue, and the profiler knows
 * which kernels these became. Phases lie within steps, collectives ("all_reduce bucket 3") within phases.
 */
#pragma once

#include "runtime/base/probe.h"
#include "runtime/base/status.h"

/* Opens the module at first use, and makes the domain. With no profiler attached each range costs a branch in the
 * module; who wants not even that leaves it out (`el_probe.watch` NULL). The watch is for good, for any number of
 * programs and threads. Errors: EL_ERR_ABSENT (the module was not built). */
enum el_status el_nvtx_open(struct el_watch *watch_p);

/* The module's one symbol (profiles/nvtx/module.c; NVTX is headers alone, but not everyone's): fills the watch. false:
 * it was built without NVTX's headers. */
bool el_nvtx_module(struct el_watch *watch_p);
