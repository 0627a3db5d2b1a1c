/* What the recording of a step costs on asynchronous devices: the price of one timed event. */
#ifndef EL_DEVICE_EVENT_COST_H
#define EL_DEVICE_EVENT_COST_H

#include "runtime/device/device.h"

/* What a timed event costs the host and an idle stream, the least of several short loops; 0 on devices that are not
 * asynchronous. Timing: blocking, some 2 ms; nothing may run on the device. Errors: the device's. */
enum el_status el_device_event_cost(struct el_device *device, double *ns_p);

#endif
