/* The rates of a simulated machine, for ops without measurements.
 *
 *     struct el_machine machine = el_machine_default;
 *     el_machine_op_ns(&machine, &op, position, stride)
 *
 * An op takes its launch, then FLOPs, bytes and messages at the machine's rates, one after another.
 *
 * A matrix product (linear, convolution) whose type is in `rates` takes its launch and its FLOPs at an interpolated
 * rate, memory included, by FLOPs and width 1 / (1/m + 1/n + 1/k); attention by sequence length and head size. In the
 * plane of the logarithms, clamped to the listed range, a row weighs 1 / distance^4. From 27 of 375 products that XLA
 * measured on an H100, the other 348 have a median error of 6 % (9 of 10 within 26 %); by smallest side and FLOPs 7 %
 * (28 %), by FLOPs alone 9 % (29 %), by m, n and k 13 % (55 %).
 *
 * Positions fill hosts in order. Messages and copies between hosts go at one device's network rate. A collective
 * across hosts uses g network ways for its g members per host, at most at the links' rate, as NCCL's rings leave the
 * host at different devices. All else uses the links within a host.
 *
 * A collective holds some of a card's multiprocessors, also while it waits; products and attention beside it have the
 * rest (beside.c). Units: nanoseconds, bytes per second, FLOPs per second; link rates are one-way. */
#pragma once

#include <stdbool.h>

#include "runtime/base/probe.h"

enum { EL_MACHINE_NAME_BYTES = 64, EL_MACHINE_SOURCE_BYTES = 1000, EL_MACHINE_RATES_MAX = 96 };

enum el_machine_rate_kind { EL_RATE_PRODUCT, EL_RATE_ATTENTION, EL_RATE_KINDS };

struct el_machine_rate {
    enum el_machine_rate_kind kind;
    const char *dtype;   /* "bf16"; static */
    double sides[3];     /* m, n, k; or sequence length and head size */
    double at[2];        /* their logarithms */
    double of_peak_rate; /* relative to its type's rate */
};

struct el_machine {
    char name[EL_MACHINE_NAME_BYTES], source[EL_MACHINE_SOURCE_BYTES];
    double f32_flops_per_s, f64_flops_per_s, bf16_flops_per_s;
    double memory_bytes_per_s; /* for kernels */
    double copy_bytes_per_s;   /* copies within a device, in bytes copied */
    double host_link_bytes_per_s;
    double link_bytes_per_s;
    double network_bytes_per_s;
    double link_latency_ns, network_latency_ns; /* of each message, and each copy */
    double kernel_launch_ns, copy_launch_ns, collective_launch_ns, host_call_ns;
    int devices_per_host; /* 0: one host, no network */
    /* Of a card, and held by a collective within and across hosts; 0: none. */
    double multiprocessors, collective_multiprocessors, network_collective_multiprocessors;
    int n_rates;
    struct el_machine_rate rates[EL_MACHINE_RATES_MAX];
};

extern const struct el_machine el_machine_default;

/* "f32", "f64", "bf16"; else f32's. */
double el_machine_flops_per_s(const struct el_machine *machine, const char *dtype);
/* Of the fastest product that was measured. */
double el_machine_most_flops_per_s(const struct el_machine *machine, const char *dtype);
/* Adds a measured rate in FLOPs per second; needs the type's own. Dropped if there is no room. */
void el_machine_add_rate(struct el_machine *machine, enum el_machine_rate_kind kind, const char *dtype,
                         const double sides[3], double flops_per_s);
bool el_machine_knows_products(const struct el_machine *machine, const char *dtype);
/* Share of a card that a collective takes from products; 0 for other ops. Arguments as below. */
double el_machine_held_share(const struct el_machine *machine, const struct el_op_info *op, int position, int stride);
/* `position`: the device's in its job. `stride`: positions between members of a group named "data". */
double el_machine_op_ns(const struct el_machine *machine, const struct el_op_info *op, int position, int stride);
