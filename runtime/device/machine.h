/* The machine that simulated devices stand for: rates, from which an op's time is computed where none was measured.
 *
 *     struct el_machine machine = el_machine_default;
 *     el_machine_op_ns(&machine, &op, position, stride)
 *
 * An op takes its launch, and then its FLOPs, bytes and messages at the machine's rates, one after another.
 *
 * A matrix product (linear layer, convolution) of a type that `rates` has products of takes its launch and its FLOPs at
 * a rate between theirs, with its bytes in it: by its FLOPs and its width, 1 / (1/m + 1/n + 1/k), half the FLOPs for
 * each element that it reads or writes. Attention likewise, by sequence length and head size. In the plane of the two
 * logarithms, each cut to the range of the listed ones, a listed row weighs 1 / distance^4: it has its own rate where
 * it lies, and no rate is above the best one. Why these two: 27 of the 375 products that XLA measured on an H100
 * predict the other 348 with a median error of 6 % (9 of 10 within 26 %); by the smallest side and FLOPs 7 % (28 %), by
 * FLOPs alone 9 % (29 %), by m, n and k 13 % (55 %).
 *
 * Devices lie in hosts by position, so many in each. A message or copy from one host to another goes at the rates of
 * the network, which are one device's. So does a collective whose members lie in several hosts, but the g of them in
 * one host send by g ways to the network, at most at the links' rate: NCCL makes as many rings, and each leaves the
 * host at another device. All else goes at the rates of the links within a host.
 *
 * A collective's kernels hold some of a card's multiprocessors, also while they wait for other members; matrix products
 * and attention beside them have the rest (beside.c). What moves memory does not need all of them, and is as fast.
 *
 * Units: nanoseconds, bytes per second, FLOPs per second; a link's rate is one way. Ownership: a plain value. Errors:
 * none.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/probe.h"

enum { EL_MACHINE_NAME_BYTES = 64, EL_MACHINE_SOURCE_BYTES = 1000, EL_MACHINE_RATES_MAX = 96 };

enum el_machine_rate_kind { EL_RATE_PRODUCT, EL_RATE_ATTENTION, EL_RATE_KINDS };

struct el_machine_rate {
    enum el_machine_rate_kind kind;
    const char *dtype;   /* "bf16": for good */
    double sides[3];     /* m, n, k; or sequence length and head size */
    double at[2];        /* the logarithms that it lies at */
    double of_peak_rate; /* its rate over that of its type */
};

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
    /* Of a card, and those that a collective holds within a host and across hosts; 0: it holds none. */
    double multiprocessors, collective_multiprocessors, network_collective_multiprocessors;
    int n_rates;
    struct el_machine_rate rates[EL_MACHINE_RATES_MAX];
};

/* Round numbers of no machine: the default of simulated devices. */
extern const struct el_machine el_machine_default;

/* "f32", "f64", "bf16"; all else as f32. */
double el_machine_flops_per_s(const struct el_machine *machine, const char *dtype);
/* Adds a measured rate, in FLOPs per second; the type's own rate is known before. No room: it is left out. */
void el_machine_add_rate(struct el_machine *machine, enum el_machine_rate_kind kind, const char *dtype,
                         const double sides[3], double flops_per_s);
/* Whether products of this type have measured rates. */
bool el_machine_knows_products(const struct el_machine *machine, const char *dtype);
/* The part of a card that a collective takes from the products beside it; 0 of all other ops. As below. */
double el_machine_held_share(const struct el_machine *machine, const struct el_op_info *op, int position, int stride);
/* `position`: the device's in its job. `stride`: from one member of a group named "data" to the next. */
double el_machine_op_ns(const struct el_machine *machine, const struct el_op_info *op, int position, int stride);
