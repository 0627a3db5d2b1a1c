/* The module el_nvtx.so: NVTX is headers alone, but not everyone's; the program itself is built without them. */
#ifndef EL_NVTX_MODULE_H
#define EL_NVTX_MODULE_H

#include "runtime/base/probe.h"

/* The module's one symbol: fills the watch. false: it was built without NVTX's headers. */
bool el_nvtx_module(struct el_watch *watch_p);

#endif
