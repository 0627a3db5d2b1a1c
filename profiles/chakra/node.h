/* One op as Chakra's Node: node.c fills it, module.c writes it. */
#ifndef EL_CHAKRA_NODE_H
#define EL_CHAKRA_NODE_H

#include <et_def.pb-c.h>

#include "profiles/trace_internal.h"

typedef ChakraProtoMsg__Node el_chakra_message;

enum { EL_CHAKRA_ATTRIBUTES = 40, EL_CHAKRA_TEXT_BYTES = 1024 };

struct el_chakra_attributes {
    size_t n;
    ChakraProtoMsg__AttributeProto *places[EL_CHAKRA_ATTRIBUTES], rows[EL_CHAKRA_ATTRIBUTES];
};
/* Of the types that Chakra's feeder reads each of its attributes as. Names and texts are borrowed. */
void el_chakra_add_int32(struct el_chakra_attributes *list, const char *name, int32_t value);
void el_chakra_add_int64(struct el_chakra_attributes *list, const char *name, int64_t value);
void el_chakra_add_uint64(struct el_chakra_attributes *list, const char *name, uint64_t value);
void el_chakra_add_bool(struct el_chakra_attributes *list, const char *name, bool value);
void el_chakra_add_text(struct el_chakra_attributes *list, const char *name, const char *value); /* NULL: not added */

/* A text that grows to its room's end. */
struct el_chakra_text {
    char text[EL_CHAKRA_TEXT_BYTES];
    size_t n;
};
void el_chakra_print(struct el_chakra_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A message and what it points to. It points into itself: not to be copied. */
struct el_chakra_node {
    el_chakra_message message;
    struct el_chakra_attributes attributes;
    ChakraProtoMsg__IOInfo inputs, outputs;
    ChakraProtoMsg__BoolList dimensions;
    protobuf_c_boolean all[4];
    struct el_chakra_text shapes[2], types[2]; /* of inputs and outputs */
    char group[16];
};

/* All but what it depends on. `live_bytes`: what its device holds while it runs. */
void el_chakra_fill(const struct el_trace_rank *rank, const struct el_trace_op *op, int64_t live_bytes,
                    struct el_chakra_node *node);
/* The number of an op's group, the same in all ranks' files: 0 all ranks; then the copies of each stage; then the
 * devices of each rank. */
int el_chakra_group(const struct el_layout *layout, const struct el_op_info *op);

#endif
