/* What an op is to Chakra: its type, its times, and the attributes that feeders ask for (is_cpu_op, num_ops,
 * tensor_size, comm_type, comm_size, comm_src, comm_dst, comm_tag, pg_name, involved_dim) before those that only we
 * have. */
#include "profiles/chakra/node.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "kernels/kernels.h"

#define NODE(type) CHAKRA_PROTO_MSG__NODE_TYPE__##type
#define VERB(type) CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__##type

/* ---- attributes ---- */

static ChakraProtoMsg__AttributeProto *add(struct el_chakra_attributes *list, const char *name,
                                           ChakraProtoMsg__AttributeProto__ValueCase value_case)
{
    if (list->n == EL_CHAKRA_ATTRIBUTES) list->n--; /* no op has so many */
    ChakraProtoMsg__AttributeProto *row = &list->rows[list->n];
    chakra_proto_msg__attribute_proto__init(row);
    row->name = (char *)name;
    row->value_case = value_case;
    list->places[list->n++] = row;
    return row;
}

void el_chakra_add_int32(struct el_chakra_attributes *list, const char *name, int32_t value)
{
    add(list, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT32_VAL)->int32_val = value;
}

void el_chakra_add_int64(struct el_chakra_attributes *list, const char *name, int64_t value)
{
    add(list, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL)->int64_val = value;
}

void el_chakra_add_uint64(struct el_chakra_attributes *list, const char *name, uint64_t value)
{
    add(list, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT64_VAL)->uint64_val = value;
}

void el_chakra_add_bool(struct el_chakra_attributes *list, const char *name, bool value)
{
    add(list, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL)->bool_val = value;
}

void el_chakra_add_text(struct el_chakra_attributes *list, const char *name, const char *value)
{
    if (value) add(list, name, CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL)->string_val = (char *)value;
}

void el_chakra_print(struct el_chakra_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text->text + text->n, sizeof text->text - text->n, format, arguments);
    va_end(arguments);
    if (written > 0) text->n += (size_t)written;
    if (text->n >= sizeof text->text) text->n = sizeof text->text - 1;
}

/* ---- communication ---- */

static int verb_type(const char *verb)
{
    static const struct {
        const char *name;
        int type;
    } verbs[] = {{"all_reduce", VERB(ALL_REDUCE)}, {"reduce", VERB(REDUCE)},
                 {"all_gather", VERB(ALL_GATHER)}, {"gather", VERB(GATHER)},
                 {"scatter", VERB(SCATTER)},       {"broadcast", VERB(BROADCAST)},
                 {"all_to_all", VERB(ALL_TO_ALL)}, {"reduce_scatter", VERB(REDUCE_SCATTER)},
                 {"barrier", VERB(BARRIER)}};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (!strcmp(verb, verbs[i].name)) return verbs[i].type;
    return -1;
}

int el_chakra_group(const struct el_layout *layout, const struct el_op_info *op)
{
    const struct el_spot *spot = &layout->devices[op->device];
    if (el_trace_is_local(op)) return 1 + layout->n[EL_AXIS_STAGE] + spot->worker;
    return op->messages.size == layout->n_workers ? 0 : 1 + spot->at[EL_AXIS_STAGE];
}

/* As in_msg_size is in PyTorch's traces: what a rank gives; of a broadcast or a scatter what the root gives. */
static int64_t comm_size(const struct el_op_info *op)
{
    const struct el_op_messages *m = &op->messages;
    for (int dtype = 0; m->given && m->dtype && dtype < EL_DTYPE_COUNT; dtype++)
        if (!strcmp(m->dtype, el_dtype_name(dtype))) return (int64_t)(m->given * el_dtype_bytes(dtype));
    return (int64_t)op->bytes;
}

/* ASTRA-sim's word for which dimensions of its network take part: all, of as many as it has at most. */
static void add_dimensions(struct el_chakra_node *node)
{
    chakra_proto_msg__bool_list__init(&node->dimensions);
    for (size_t i = 0; i < sizeof node->all / sizeof node->all[0]; i++) node->all[i] = true;
    node->dimensions.n_values = sizeof node->all / sizeof node->all[0];
    node->dimensions.values = node->all;
    add(&node->attributes, "involved_dim", CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_LIST)->bool_list =
        &node->dimensions;
}

static void add_message(const struct el_trace_rank *rank, const struct el_op_info *op, struct el_chakra_node *node)
{
    bool sends = op->link == EL_LINK_SEND;
    int members[EL_MEMBERS_MAX], n = el_trace_group(rank->layout, op, members), partner = op->messages.partner;
    int other = partner >= 0 && partner < n ? members[partner] : partner;
    node->message.type = sends ? NODE(COMM_SEND_NODE) : NODE(COMM_RECV_NODE);
    el_chakra_add_int32(&node->attributes, "comm_src", sends ? rank->rank : other);
    el_chakra_add_int32(&node->attributes, "comm_dst", sends ? other : rank->rank);
    el_chakra_add_int32(&node->attributes, "comm_tag", op->messages.tag);
}

static void add_collective(const struct el_op_info *op, int type, struct el_chakra_node *node)
{
    node->message.type = NODE(COMM_COLL_NODE);
    el_chakra_add_int64(&node->attributes, "comm_type", type);
    add_dimensions(node);
    if (op->messages.partner >= 0) el_chakra_add_int32(&node->attributes, "comm_root", op->messages.partner);
}

static void add_communication(const struct el_trace_rank *rank, const struct el_trace_op *op,
                              struct el_chakra_node *node)
{
    const struct el_op_info *info = op->info;
    int type = verb_type(info->messages.verb);
    if (info->link == EL_LINK_NONE && type < 0) return; /* none of Chakra's: it stays work of its stream */
    if (info->link == EL_LINK_NONE)
        add_collective(info, type, node);
    else
        add_message(rank, info, node);
    snprintf(node->group, sizeof node->group, "%d", el_chakra_group(rank->layout, info));
    el_chakra_add_int64(&node->attributes, "comm_size", comm_size(info));
    el_chakra_add_text(&node->attributes, "pg_name", node->group);
    el_chakra_add_text(&node->attributes, "pg_desc", info->communicator);
    el_chakra_add_text(&node->attributes, "dtype", info->messages.dtype);
    el_chakra_add_int64(&node->attributes, "group_size", info->messages.size);
    el_chakra_add_text(&node->attributes, "algorithm", info->messages.algorithm);
    if (info->link != EL_LINK_RECEIVE) /* whose time begins when the message was sent */
        el_chakra_add_int64(&node->attributes, "wait_ns", op->arrived_ns - op->span.begin_ns);
}

/* ---- computation ---- */

static const char *torch_type(const char *dtype)
{
    return !strcmp(dtype, "f32")   ? "float"
           : !strcmp(dtype, "f64") ? "double"
           : !strcmp(dtype, "i32") ? "int"
                                   : "unsigned char";
}

/* Shapes and types as PyTorch's execution traces write them. */
static void fill_operands(const struct el_op_info *op, bool written, struct el_chakra_text *shapes,
                          struct el_chakra_text *types, ChakraProtoMsg__IOInfo *info)
{
    struct el_op_operand operands[EL_ARGS_POINTERS];
    int n = op->kernel.name ? el_op_operands(op->kernel.name, op->kernel.dtype, op->kernel.d, operands) : 0;
    const char *comma = "";
    chakra_proto_msg__ioinfo__init(info);
    shapes->n = types->n = 0;
    el_chakra_print(shapes, "[");
    el_chakra_print(types, "[");
    for (int i = 0; i < n; i++) {
        if (operands[i].written != written || !(op->kernel.operands >> i & 1)) continue;
        el_chakra_print(shapes, "%s[", comma);
        for (int k = 0; k < operands[i].n; k++) el_chakra_print(shapes, "%s%" PRId64, k ? ", " : "", operands[i].d[k]);
        el_chakra_print(shapes, "]");
        el_chakra_print(types, "%s'Tensor(%s)'", comma, torch_type(operands[i].dtype));
        comma = ", ";
    }
    el_chakra_print(shapes, "]");
    el_chakra_print(types, "]");
    info->values = (char *)"[]";
    info->shapes = shapes->text;
    info->types = types->text;
}

static void add_work(const struct el_op_info *op, struct el_chakra_node *node)
{
    /* Both also where there are none: feeders stop at a node without. What only moves bytes has one FLOP: a simulator's
     * roofline, which divides by it, gives bytes / bandwidth so, and at 0 it never ends. */
    bool moves = op->flops < 1 && op->bytes > 0;
    el_chakra_add_int64(&node->attributes, "num_ops", moves ? 1 : (int64_t)op->flops);
    el_chakra_add_uint64(&node->attributes, "tensor_size", (uint64_t)op->bytes);
    if (!op->kernel.name) return;
    fill_operands(op, false, &node->shapes[0], &node->types[0], &node->inputs);
    fill_operands(op, true, &node->shapes[1], &node->types[1], &node->outputs);
    node->message.inputs = &node->inputs;
    node->message.outputs = &node->outputs;
}

/* ---- nodes ---- */

static void set_times(const struct el_trace_rank *rank, const struct el_trace_op *op, struct el_chakra_node *node)
{
    int64_t begin_ns = op->info->link == EL_LINK_RECEIVE ? op->arrived_ns : op->span.begin_ns;
    int64_t at_ns = el_trace_common_ns(rank, op->step, begin_ns);
    int64_t took_ns = el_trace_common_ns(rank, op->step, op->span.end_ns) - at_ns;
    node->message.start_time_micros = (uint64_t)at_ns / 1000;
    node->message.duration_micros = ((uint64_t)took_ns + 500) / 1000;
    el_chakra_add_uint64(&node->attributes, "start_time_ns", (uint64_t)at_ns);
    el_chakra_add_uint64(&node->attributes, "duration_ns", (uint64_t)took_ns);
}

void el_chakra_fill(const struct el_trace_rank *rank, const struct el_trace_op *op, int64_t live_bytes,
                    struct el_chakra_node *node)
{
    const struct el_op_info *info = op->info;
    int first;
    el_layout_of_worker(rank->layout, rank->rank, &first);
    chakra_proto_msg__node__init(&node->message);
    node->attributes.n = 0;
    node->message.id = (uint64_t)op->id;
    node->message.name = (char *)info->label;
    node->message.type = NODE(COMP_NODE);
    el_chakra_add_bool(&node->attributes, "is_cpu_op", info->op_class == EL_CLASS_HOST);
    if (info->op_class == EL_CLASS_COMM && info->messages.verb)
        add_communication(rank, op, node);
    else
        add_work(info, node);
    set_times(rank, op, node);
    el_chakra_add_int64(&node->attributes, "step", op->step);
    el_chakra_add_text(&node->attributes, "phase", el_phase_name(info->phase));
    el_chakra_add_text(&node->attributes, "device", rank->devices[info->device - first].name);
    el_chakra_add_int64(&node->attributes, "stream", info->stream);
    el_chakra_add_int64(&node->attributes, "live_bytes", live_bytes);
    if (info->sent_bytes) el_chakra_add_uint64(&node->attributes, "sent_bytes", info->sent_bytes);
    if (info->received_bytes) el_chakra_add_uint64(&node->attributes, "received_bytes", info->received_bytes);
    el_chakra_add_text(&node->attributes, "implementation", info->how);
    node->message.n_attr = node->attributes.n;
    node->message.attr = node->attributes.places;
}
