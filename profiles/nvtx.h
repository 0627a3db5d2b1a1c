/* NVTX ranges for profilers (nsys, ncu) in the domain "evenload": steps, phases within them, collectives ("all_reduce
 * bucket 3") within phases. They are in the issuing thread; on GPUs a range covers the calls that enqueue, and the
 * profiler links their kernels. */
#pragma once

#include "runtime/base/probe.h"
#include "runtime/base/status.h"

/* Opens the module once. Without a profiler each range costs a branch; `el_probe.watch` NULL avoids that. The watch
 * stays valid, for any programs and threads. Errors: EL_ERR_ABSENT (module not built). */
enum el_status el_nvtx_open(struct el_watch *watch_p);

/* The module's only symbol (profiles/nvtx/module.c), because not everyone has NVTX's headers. false: built without
 * them. */
bool el_nvtx_module(struct el_watch *watch_p);
