/* What a rank did in the steps of a profile as an execution trace of MLCommons Chakra: protobuf messages that
 * simulators (ASTRA-sim) and Chakra's own tools read. docs/traces.md says what stands in it.
 *
 *     EL_TRY(el_chakra_check());                  before training: whether it can be written here
 *     el_chakra_write(&rank, cycle, path);        offline, after training
 *
 * Each message has its length in front, as a varint: GlobalMetadata, then a Node an op, in the order of issue; so what
 * a node depends on stands before it. The messages are profiles/chakra/et_def.proto's; that file's code and protobuf-c
 * live in a module.
 *
 * Timing: blocking; the file is there whole or not at all. Threads: that of the recorder, when training has ended.
 */
#ifndef EL_CHAKRA_H
#define EL_CHAKRA_H

#include "profiles/trace.h"

/* Errors: EL_ERR_ABSENT with what to install. */
enum el_status el_chakra_check(void);
/* The steps of one cycle. Errors: EL_ERR_ABSENT, EL_ERR_IO, EL_ERR_HOST_MEMORY. */
enum el_status el_chakra_write(const struct el_trace_rank *rank, int64_t cycle, const char *path);

#endif
