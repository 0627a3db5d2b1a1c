/* The choice of devices where nobody made one. Two CPU devices show every mode at work on any machine. */
#include "bench/devices.h"

#include <stdio.h>
#include <string.h>

#include "runtime/device/device.h"
#include "runtime/parallel/train.h"

enum { CPU_DEVICES = 2 };

int el_devices_default(struct el_device_name *devices)
{
    int gpus = el_device_gpus(), n = gpus > EL_MEMBERS_MAX ? EL_MEMBERS_MAX : gpus ? gpus : CPU_DEVICES;
    for (int i = 0; i < n; i++) {
        devices[i] = (struct el_device_name){.index = i};
        snprintf(devices[i].backend, sizeof devices[i].backend, "%s", gpus ? "cuda" : "cpu");
    }
    return n;
}

enum el_status el_devices_check(const struct el_device_name *devices, int n_devices)
{
    int n = 0;
    if (n_devices == 0) return EL_OK;
    EL_TRY(el_device_count(devices[0].backend, &n));
    if (strcmp(devices[0].backend, "cuda")) return EL_OK; /* the others have as many as one likes */
    for (int i = 0; i < n_devices; i++) {
        if (devices[i].index < n) continue;
        return el_fail(
            EL_ERR_ABSENT,
            "--devices: there is no cuda:%d: this process sees %d GPU%s, counted from cuda:0 in the order of "
            "CUDA_VISIBLE_DEVICES; cuda:0,cuda:0 puts two devices on one",
            devices[i].index, n, n == 1 ? "" : "s");
    }
    return EL_OK;
}
