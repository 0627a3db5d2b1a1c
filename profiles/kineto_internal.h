/* What the files that read traces share: kineto.c reads events and counts them, kineto_event.c says as what,
 * kineto_call.c what they are for a communicator. Nobody else includes it. */
#pragma once

#include "profiles/json_scan.h"
#include "profiles/kineto.h"

#define EL_KINETO_ANNOUNCES "record_param_comms"

/* What is read of an event. */
struct el_kineto_event {
    struct el_scan_text ph, cat, name, ts, dur, pid, args;
    int64_t correlation, device, external_id; /* of its arguments; -1: none */
};

/* Of a device's, or of a host's event: -1: it is not counted. */
int el_kineto_class_on_device(struct el_scan_text cat, struct el_scan_text name);
int el_kineto_class_on_host(struct el_scan_text cat, struct el_scan_text name);
int64_t el_kineto_event_device(const struct el_kineto_event *event);
/* false: the text, or the arguments, are no object. */
bool el_kineto_event_fields(struct el_scan_text text, struct el_kineto_event *event);
bool el_kineto_event_arguments(struct el_kineto_event *event, struct el_kineto_call *call);

struct el_kineto_call el_kineto_call_none(void);
/* One argument of the call's event, or of what announces it. */
void el_kineto_call_argument(struct el_kineto_call *call, struct el_scan_text key, struct el_scan_text value);
/* The verb, where no argument has said it. */
void el_kineto_call_name(struct el_kineto_call *call, struct el_scan_text name);

/* Steps in order, each once. */
void el_kineto_steps_finish(struct el_kineto_trace *trace);
/* Calls in order of their begin, each with its step; those that do not say what they are from what announced them. Of a
 * trace with devices only theirs are kept. */
void el_kineto_calls_finish(struct el_kineto_trace *trace, struct el_kineto_call *announced, size_t n);
