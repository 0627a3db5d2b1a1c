/* What of an event is read, and as what it is counted. */
#include <string.h>

#include "profiles/kineto_internal.h"

static bool is_one_of(struct el_scan_text text, const char *const *words)
{
    while (*words && !el_scan_is(text, *words)) words++;
    return *words != NULL;
}

/* -1: the event is not counted. */
int el_kineto_class_on_device(struct el_scan_text cat, struct el_scan_text name)
{
    static const char *const kernels[] = {"kernel", "Kernel", NULL}, *const copies[] = {"gpu_memcpy", "gpu_memset",
                                                                                        "Memcpy", "Memset", NULL};
    if (is_one_of(cat, copies)) return el_scan_begins(name, "Memcpy PtoP") ? EL_KINETO_COMM : EL_KINETO_COPY;
    if (!is_one_of(cat, kernels)) return -1;
    if (el_scan_begins(name, "nccl") && memmem(name.at, name.n, "Kernel", 6)) return EL_KINETO_COMM;
    return el_scan_begins(name, "Memcpy") || el_scan_begins(name, "Memset") ? EL_KINETO_COPY : EL_KINETO_COMPUTE;
}

int el_kineto_class_on_host(struct el_scan_text cat, struct el_scan_text name)
{
    static const char *const movers[] = {"gloo:", "mpi:", "nccl:", "ucc:"};
    bool op = el_scan_is(cat, "cpu_op");
    if (!op && !el_scan_is(cat, "user_annotation")) return -1;
    for (size_t i = 0; i < sizeof movers / sizeof movers[0]; i++)
        if (el_scan_begins(name, movers[i])) return EL_KINETO_COMM;
    return !op || el_scan_begins(name, "c10d::") || el_scan_begins(name, EL_KINETO_ANNOUNCES) ? -1 : EL_KINETO_COMPUTE;
}

/* The event's own device, or the process that stands for it. */
int64_t el_kineto_event_device(const struct el_kineto_event *event)
{
    int64_t pid;
    if (event->device >= 0) return event->device;
    return el_scan_whole(event->pid, &pid) && pid >= 0 ? pid : 0;
}

/* false: the text is no object. */
bool el_kineto_event_fields(struct el_scan_text rest, struct el_kineto_event *event)
{
    struct el_scan_text key, value;
    int more;
    *event = (struct el_kineto_event){.correlation = -1, .device = -1, .external_id = -1};
    while ((more = el_scan_member(&rest, &key, &value)) > 0) {
        struct el_scan_text *to = el_scan_is(key, "ph")     ? &event->ph
                                  : el_scan_is(key, "cat")  ? &event->cat
                                  : el_scan_is(key, "name") ? &event->name
                                                            : NULL;
        if (to) *to = el_scan_string(value);
        if (el_scan_is(key, "ts")) event->ts = value;
        if (el_scan_is(key, "dur")) event->dur = value;
        if (el_scan_is(key, "pid")) event->pid = value;
        if (el_scan_is(key, "args")) event->args = value;
    }
    return more == 0;
}

/* `call`: where what the arguments say of a communicator goes; may be NULL. */
bool el_kineto_event_arguments(struct el_kineto_event *event, struct el_kineto_call *call)
{
    struct el_scan_text rest = event->args, key, value;
    int more = 0;
    if (rest.n == 0 || *rest.at != '{') return true;
    while ((more = el_scan_member(&rest, &key, &value)) > 0) {
        if (el_scan_is(key, "correlation")) el_scan_whole(value, &event->correlation);
        if (el_scan_is(key, "device")) el_scan_whole(value, &event->device);
        if (el_scan_is(key, "External id")) el_scan_whole(value, &event->external_id);
        if (call) el_kineto_call_argument(call, key, value);
    }
    return more == 0;
}
