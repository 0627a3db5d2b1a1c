/* A rank's file: its messages, and what depends on what. An op depends on the one before it on its stream and on those
 * of other streams that it waits for; the first ones of a step on the last ones of the step before. Some
 * feeders look at data_deps alone, so all of these stand there; those that are order and no more, the stream's and the
 * steps', stand in ctrl_deps too. */
#include "profiles/chakra/module.h"

#include <stdlib.h>
#include <string.h>

#include "profiles/chakra/node.h"
#include "profiles/recorder_internal.h"
#include "runtime/base/files.h"

enum { VARINT_BYTES = 10 };

struct writer {
    const struct el_trace_rank *rank;
    FILE *file;
    uint64_t *ends; /* of the step before: ops that none of it depends on */
    size_t n_ends;
    int64_t next_id;
    struct el_chakra_node node;
};

static enum el_status fail_memory(void)
{
    return el_fail(EL_ERR_HOST_MEMORY, "chakra: no memory for a step");
}

/* A message with its length in front. */
static enum el_status put(FILE *file, const ProtobufCMessage *message)
{
    size_t bytes = protobuf_c_message_get_packed_size(message), n = 0;
    uint8_t length[VARINT_BYTES], *packed = malloc(bytes + 1);
    if (!packed) return fail_memory();
    for (size_t left = bytes; n == 0 || left > 0; left >>= 7) length[n++] = (uint8_t)(left & 127) | (left > 127) << 7;
    protobuf_c_message_pack(message, packed);
    fwrite(length, 1, n, file);
    fwrite(packed, 1, bytes, file); /* whether it was written el_file_end sees */
    free(packed);
    return EL_OK;
}

static enum el_status put_metadata(const struct writer *w)
{
    const struct el_trace_rank *rank = w->rank;
    struct el_chakra_attributes attributes = {0};
    ChakraProtoMsg__GlobalMetadata metadata;
    chakra_proto_msg__global_metadata__init(&metadata);
    el_chakra_add_text(&attributes, "producer", "evenload");
    el_chakra_add_int64(&attributes, "rank", rank->rank);
    el_chakra_add_int64(&attributes, "world_size", rank->layout->n_workers);
    el_chakra_add_text(&attributes, "backend", rank->comm ? rank->comm : "none");
    el_chakra_add_bool(&attributes, "simulated", rank->recorder->simulated);
    metadata.version = (char *)"1.0.0";
    metadata.n_attr = attributes.n;
    metadata.attr = attributes.places;
    return put(w->file, &metadata.base);
}

/* ---- groups ---- */

static void print_numbers(struct el_chakra_text *text, const char *key, const int *numbers, int n)
{
    el_chakra_print(text, ", \"%s\": [", key);
    for (int i = 0; i < n; i++) el_chakra_print(text, "%s%d", i ? ", " : "", numbers[i]);
    el_chakra_print(text, "]");
}

static void print_group(const struct writer *w, const struct el_op_info *op, int number, struct el_chakra_text *text)
{
    int members[EL_MEMBERS_MAX], n = el_trace_group(w->rank->layout, op, members);
    bool local = el_trace_is_local(op);
    el_chakra_print(text, "%s{\"pg_name\": \"%d\", \"pg_desc\": \"%s\"", text->n > 3 ? ", " : "", number,
                    op->communicator ? op->communicator : "");
    print_numbers(text, "ranks", local ? &w->rank->rank : members, local ? 1 : n);
    if (local) print_numbers(text, "devices", members, n);
    el_chakra_print(text, "}");
}

/* Groups other than that of all ranks have to be told of: by the node that PyTorch's traces have for it. */
static enum el_status put_groups(struct writer *w, const struct el_step_event *step)
{
    struct el_chakra_node *node = &w->node;
    struct el_chakra_text *text = &node->shapes[0];
    uint64_t seen[(3 * EL_MEMBERS_MAX) / 64 + 1] = {0};
    bool told = false;
    text->n = 0;
    el_chakra_print(text, "['[");
    for (int i = 0; i < step->n_ops; i++) {
        int number = el_chakra_group(w->rank->layout, &step->ops[i]);
        if (step->ops[i].op_class != EL_CLASS_COMM || seen[number / 64] >> number % 64 & 1) continue;
        seen[number / 64] |= UINT64_C(1) << number % 64;
        told = told || number > 0;
        print_group(w, &step->ops[i], number, text);
    }
    el_chakra_print(text, "]']");
    if (!told) return EL_OK;
    chakra_proto_msg__node__init(&node->message);
    chakra_proto_msg__ioinfo__init(&node->inputs);
    node->attributes.n = 0;
    el_chakra_add_bool(&node->attributes, "is_cpu_op", true);
    node->inputs.values = text->text;
    node->message.id = (uint64_t)w->next_id++;
    node->message.name = (char *)"## process_group:init ##";
    node->message.type = CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE;
    node->message.inputs = &node->inputs;
    node->message.n_attr = node->attributes.n;
    node->message.attr = node->attributes.places;
    return put(w->file, &node->message.base);
}

/* ---- steps ---- */

static int before_on_stream(const struct el_step_event *step, int at)
{
    int i = at - 1;
    while (i >= 0 && (step->ops[i].device != step->ops[at].device || step->ops[i].stream != step->ops[at].stream)) i--;
    return i;
}

/* `deps` has room for all of an op's; what others depend on is marked. */
static void set_dependencies(struct writer *w, const struct el_step_event *step, const struct el_trace_op *ops, int at,
                             uint64_t *deps, bool *awaited)
{
    el_chakra_message *message = &w->node.message;
    int before = before_on_stream(step, at);
    size_t n = 0;
    if (before >= 0) {
        deps[n++] = (uint64_t)ops[before].id;
        awaited[before] = true;
    }
    message->n_ctrl_deps = n;
    message->ctrl_deps = deps;
    for (int i = 0; i < step->ops[at].n_waits; i++) {
        int from = step->waits[step->ops[at].first_wait + i];
        deps[n++] = (uint64_t)ops[from].id;
        awaited[from] = true;
    }
    message->n_data_deps = n;
    message->data_deps = deps;
    if (n > 0) return;
    message->n_ctrl_deps = message->n_data_deps = w->n_ends;
    message->ctrl_deps = message->data_deps = w->ends;
}

/* What the op's device holds: marks before it in `mark` are counted. */
static void count_marks(const struct el_step_event *step, int at, int *mark, int64_t *live)
{
    for (; *mark < step->n_marks && step->marks[*mark].op <= at; ++*mark)
        live[step->marks[*mark].device] += step->marks[*mark].bytes;
}

static enum el_status put_ops(struct writer *w, const struct el_step_event *step, const struct el_trace_op *ops,
                              uint64_t *deps, bool *awaited)
{
    int64_t live[EL_MEMBERS_MAX] = {0};
    int mark = 0, first, n_devices = el_layout_of_worker(w->rank->layout, w->rank->rank, &first);
    for (int d = 0; d < n_devices; d++)
        for (int tag = 0; tag < EL_TAG_COUNT; tag++) live[first + d] += (int64_t)w->rank->devices[d].resident[tag];
    for (int i = 0; i < step->n_ops; i++) {
        count_marks(step, i, &mark, live);
        el_chakra_fill(w->rank, &ops[i], live[ops[i].info->device], &w->node);
        set_dependencies(w, step, ops, i, deps, awaited);
        EL_TRY(put(w->file, &w->node.message.base));
    }
    w->n_ends = 0;
    for (int i = 0; i < step->n_ops; i++)
        if (!awaited[i]) w->ends[w->n_ends++] = (uint64_t)ops[i].id;
    return EL_OK;
}

static enum el_status put_step(struct writer *w, size_t number)
{
    struct el_step_event step = el_recorder_step(w->rank->recorder, number);
    size_t n = (size_t)step.n_ops + 1;
    struct el_trace_op *ops = el_trace_ops(w->rank, number, &step, w->next_id);
    uint64_t *deps = calloc((size_t)step.n_waits + 1, sizeof *deps);
    uint64_t *ends = realloc(w->ends, (w->n_ends > n ? w->n_ends : n) * sizeof *ends);
    bool *awaited = calloc(n, sizeof *awaited);
    if (ends) w->ends = ends;
    enum el_status status = ops && deps && ends && awaited ? put_ops(w, &step, ops, deps, awaited) : fail_memory();
    w->next_id += step.n_ops;
    free(ops);
    free(deps);
    free(awaited);
    return status;
}

static enum el_status put_cycle(struct writer *w, int64_t cycle)
{
    bool begun = false;
    EL_TRY(put_metadata(w));
    for (size_t s = 0; s < el_recorder_step_count(w->rank->recorder); s++) {
        if (el_profile_cycle(&w->rank->schedule, (int64_t)s) != cycle) continue;
        struct el_step_event step = el_recorder_step(w->rank->recorder, s);
        if (!begun) EL_TRY(put_groups(w, &step));
        EL_TRY(put_step(w, s));
        begun = true;
    }
    return EL_OK;
}

enum el_status el_chakra_module(const struct el_trace_rank *rank, int64_t cycle, const char *path)
{
    struct writer *w = calloc(1, sizeof *w);
    char temporary[EL_PATH_BYTES + 64];
    if (!w) return fail_memory();
    w->rank = rank;
    w->next_id = 1;
    w->file = el_file_begin(path, temporary, sizeof temporary);
    enum el_status status = w->file ? put_cycle(w, cycle) : el_fail_errno("%s", path);
    if (status == EL_OK)
        status = el_file_end(w->file, temporary, path);
    else if (w->file)
        el_file_drop(w->file, temporary);
    free(w->ends);
    free(w);
    return status;
}
