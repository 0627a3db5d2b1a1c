/* The machine that simulated devices stand for: rates, from which an op's time is computed where none was measured.
 *
 *     struct el_machine machine = el_machine_default;
 *     el_machine_op_ns(&machine, &op, position, stride)
 *
 * An op takes its launch, and then its FLOPs, bytes and messages at the machine's rates, one after another. Devices
 * lie in hosts by position, so many in each. A collective whose members lie in several hosts, and a message or copy
 * from one host to another, goes at the rates of the network; all else at those of the links within a host.
 *
 * Units: nanoseconds, bytes a second, FLOPs a second; a link's rate is one way. Ownership: a plain value. Errors: none.
 */
#pragma once

#include "runtime/base/probe.h"

enum { EL_MACHINE_NAME_BYTES = 64, EL_MACHINE_SOURCE_BYTES = 400 };

struct el_machine {
    char name[EL_MACHINE_NAME_BYTES], source[EL_MACHINE_SOURCE_BYTES];
    double f32_flops_per_s, f64_flops_per_s, bf16_flops_per_s;
    double memory_bytes_per_s;                  /* what kernels read and write */
    double copy_bytes_per_s;                    /* copies within a device's memory: bytes that are copied */
    double host_link_bytes_per_s;               /* between a device and its host */
    double link_bytes_per_s;                    /* between two devices of a host */
    double network_bytes_per_s;                 /* between hosts */
    double link_latency_ns, network_latency_ns; /* of each message of a collective, and of each message and copy */
    double kernel_launch_ns, copy_launch_ns, collective_launch_ns, host_call_ns;
    int devices_per_host; /* 0: all are in one host, and there is no network */
};

/* Round numbers of no machine: the default of simulated devices. */
extern const struct el_machine el_machine_default;

/* "f32", "f64", "bf16"; all else as f32. */
double el_machine_flops_per_s(const struct el_machine *machine, const char *dtype);
/* `position`: the device's in its job. `stride`: from one member of a group named "data" to the next. */
double el_machine_op_ns(const struct el_machine *machine, const struct el_op_info *op, int position, int stride);
