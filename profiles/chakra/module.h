/* The module el_chakra.so, which alone needs protobuf-c. */
#ifndef EL_CHAKRA_MODULE_H
#define EL_CHAKRA_MODULE_H

#include "profiles/trace.h"

typedef enum el_status el_chakra_writer(const struct el_trace_rank *rank, int64_t cycle, const char *path);

/* The module's one symbol; profiles/chakra.h says what it does. */
el_chakra_writer el_chakra_module;

#endif
