/* Times of ops by a machine's rates; see machine.h. */
#include "runtime/device/machine.h"

#include <string.h>

const struct el_machine el_machine_default = {.name = "default",
                                              .source = "round numbers of no machine",
                                              .f32_flops_per_s = 1e12,
                                              .f64_flops_per_s = 1e12,
                                              .bf16_flops_per_s = 1e12,
                                              .memory_bytes_per_s = 500e9,
                                              .copy_bytes_per_s = 20e9,
                                              .host_link_bytes_per_s = 20e9,
                                              .link_bytes_per_s = 20e9,
                                              .kernel_launch_ns = 5000,
                                              .copy_launch_ns = 8000,
                                              .collective_launch_ns = 20000,
                                              .host_call_ns = 10000};

/* The rate is divided first: so round rates give round times. */
static double at_rate_ns(double amount, double rate_per_s)
{
    return amount / (rate_per_s / 1e9);
}

/* What bytes cross on their way to another device. */
struct way {
    double latency_ns, bytes_per_s;
};

static struct way way_of(const struct el_machine *m, bool crosses)
{
    return crosses ? (struct way){m->network_latency_ns, m->network_bytes_per_s}
                   : (struct way){m->link_latency_ns, m->link_bytes_per_s};
}

/* Whether the members of the op's group that take part in it lie in several hosts. A group's members have positions at
 * equal distances. */
static bool group_crosses(const struct el_machine *m, const struct el_op_info *op, int position, int stride)
{
    const struct el_op_messages *messages = &op->messages;
    int apart = op->communicator && strcmp(op->communicator, "data") == 0 ? stride : 1;
    int first = position - apart * messages->rank, last = first + apart * (messages->size - 1);
    int partner = first + apart * messages->partner;
    if (m->devices_per_host == 0) return false;
    if (op->link != EL_LINK_NONE) return partner / m->devices_per_host != position / m->devices_per_host;
    return first / m->devices_per_host != last / m->devices_per_host;
}

static double comm_ns(const struct el_machine *m, const struct el_op_info *op, int position, int stride)
{
    struct way way = way_of(m, group_crosses(m, op, position, stride));
    const uint64_t own_bytes = op->sent_bytes + op->received_bytes, most_bytes = op->messages.most_bytes;
    double moved_bytes = (double)(most_bytes > own_bytes ? most_bytes : own_bytes) / 2; /* all end with the slowest */
    return m->collective_launch_ns + op->messages.rounds * way.latency_ns + at_rate_ns(moved_bytes, way.bytes_per_s);
}

static double copy_ns(const struct el_machine *m, const struct el_op_info *op, int position)
{
    double moved_bytes = op->bytes / 2; /* they are read and written */
    bool crosses =
        op->peer >= 0 && m->devices_per_host > 0 && op->peer / m->devices_per_host != position / m->devices_per_host;
    struct way way = {0, m->copy_bytes_per_s};
    if (op->peer >= 0)
        way = way_of(m, crosses);
    else if (op->sent_bytes || op->received_bytes)
        way.bytes_per_s = m->host_link_bytes_per_s;
    return m->copy_launch_ns + way.latency_ns + at_rate_ns(moved_bytes, way.bytes_per_s);
}

double el_machine_flops_per_s(const struct el_machine *m, const char *dtype)
{
    if (!dtype) return m->f32_flops_per_s;
    return strcmp(dtype, "f64") == 0    ? m->f64_flops_per_s
           : strcmp(dtype, "bf16") == 0 ? m->bf16_flops_per_s
                                        : m->f32_flops_per_s;
}

double el_machine_op_ns(const struct el_machine *m, const struct el_op_info *op, int position, int stride)
{
    const double flops_per_s = el_machine_flops_per_s(m, op->kernel.dtype);
    switch (op->op_class) {
    case EL_CLASS_COMPUTE:
        return m->kernel_launch_ns + at_rate_ns(op->flops, flops_per_s) + at_rate_ns(op->bytes, m->memory_bytes_per_s);
    case EL_CLASS_COPY:
        return copy_ns(m, op, position);
    case EL_CLASS_COMM:
        return comm_ns(m, op, position, stride);
    case EL_CLASS_HOST:
        return m->host_call_ns;
    }
    return 0;
}
