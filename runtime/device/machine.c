/* Times from a machine's rates; see machine.h. */
#include "runtime/device/machine.h"

#include <math.h>
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

/* Divides the rate first: round rates give round times. */
static double at_rate_ns(double amount, double rate_per_s)
{
    return amount / (rate_per_s / 1e9);
}

struct way {
    double latency_ns, bytes_per_s;
};

static struct way way_of(const struct el_machine *m, bool crosses)
{
    return crosses ? (struct way){m->network_latency_ns, m->network_bytes_per_s}
                   : (struct way){m->link_latency_ns, m->link_bytes_per_s};
}

/* Hosts that take part; a group's members have equidistant positions. */
static int hosts_of(const struct el_machine *m, const struct el_op_info *op, int position, int stride)
{
    const struct el_op_messages *messages = &op->messages;
    int apart = op->communicator && strcmp(op->communicator, "data") == 0 ? stride : 1;
    int first = position - apart * messages->rank, last = first + apart * (messages->size - 1);
    int partner = first + apart * messages->partner;
    if (m->devices_per_host == 0) return 1;
    if (op->link != EL_LINK_NONE) return partner / m->devices_per_host == position / m->devices_per_host ? 1 : 2;
    return last / m->devices_per_host - first / m->devices_per_host + 1;
}

static double comm_ns(const struct el_machine *m, const struct el_op_info *op, int position, int stride)
{
    const int n_hosts = hosts_of(m, op, position, stride), in_host = op->messages.size / n_hosts;
    struct way way = way_of(m, n_hosts > 1);
    if (n_hosts > 1 && op->link == EL_LINK_NONE && in_host > 1)
        way.bytes_per_s = fmax(way.bytes_per_s, fmin(way.bytes_per_s * in_host, m->link_bytes_per_s));
    const uint64_t own_bytes = op->sent_bytes + op->received_bytes, most_bytes = op->messages.most_bytes;
    double moved_bytes = (double)(most_bytes > own_bytes ? most_bytes : own_bytes) / 2; /* all end with the slowest */
    return m->collective_launch_ns + op->messages.rounds * way.latency_ns + at_rate_ns(moved_bytes, way.bytes_per_s);
}

double el_machine_held_share(const struct el_machine *m, const struct el_op_info *op, int position, int stride)
{
    if (!(m->multiprocessors > 0) || op->op_class != EL_CLASS_COMM || op->link != EL_LINK_NONE) return 0;
    const bool crosses = hosts_of(m, op, position, stride) > 1;
    return (crosses ? m->network_collective_multiprocessors : m->collective_multiprocessors) / m->multiprocessors;
}

static double copy_ns(const struct el_machine *m, const struct el_op_info *op, int position)
{
    double moved_bytes = op->bytes / 2; /* read and written */
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

/* Interns the type's name, for fast comparison. */
static const char *one_name(const char *dtype)
{
    static const char *const names[] = {"f64", "bf16"};
    for (int i = 0; i < 2 && dtype; i++)
        if (strcmp(names[i], dtype) == 0) return names[i];
    return "f32";
}

static bool is_rate_of(const struct el_machine_rate *rate, enum el_machine_rate_kind kind, const char *name)
{
    return rate->kind == kind && rate->dtype == name;
}

void el_machine_add_rate(struct el_machine *m, enum el_machine_rate_kind kind, const char *dtype, const double sides[3],
                         double flops_per_s)
{
    if (m->n_rates == EL_MACHINE_RATES_MAX) return;
    struct el_machine_rate *rate = &m->rates[m->n_rates++];
    *rate = (struct el_machine_rate){
        .kind = kind, .dtype = one_name(dtype), .of_peak_rate = flops_per_s / el_machine_flops_per_s(m, dtype)};
    memcpy(rate->sides, sides, sizeof rate->sides);
    rate->at[0] = log(kind == EL_RATE_PRODUCT ? 2 * sides[0] * sides[1] * sides[2] : sides[0]);
    rate->at[1] = log(kind == EL_RATE_PRODUCT ? 1 / (1 / sides[0] + 1 / sides[1] + 1 / sides[2]) : sides[1]);
}

double el_machine_most_flops_per_s(const struct el_machine *m, const char *dtype)
{
    double share = 1;
    for (int i = 0; i < m->n_rates; i++)
        if (is_rate_of(&m->rates[i], EL_RATE_PRODUCT, one_name(dtype))) share = fmax(share, m->rates[i].of_peak_rate);
    return share * el_machine_flops_per_s(m, dtype);
}

bool el_machine_knows_products(const struct el_machine *m, const char *dtype)
{
    for (int i = 0; i < m->n_rates; i++)
        if (is_rate_of(&m->rates[i], EL_RATE_PRODUCT, one_name(dtype))) return true;
    return false;
}

/* Interpolated rate relative to the type's; 0: none. */
static double share_between(const struct el_machine *m, enum el_machine_rate_kind kind, const char *dtype, double at[2])
{
    const char *name = one_name(dtype);
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY}, sum = 0, weights = 0;
    for (int i = 0; i < m->n_rates; i++)
        for (int axis = 0; axis < 2 && is_rate_of(&m->rates[i], kind, name); axis++) {
            low[axis] = fmin(low[axis], m->rates[i].at[axis]);
            high[axis] = fmax(high[axis], m->rates[i].at[axis]);
        }
    for (int axis = 0; axis < 2; axis++) at[axis] = fmin(fmax(at[axis], low[axis]), high[axis]);
    for (int i = 0; i < m->n_rates; i++) {
        const struct el_machine_rate *rate = &m->rates[i];
        if (!is_rate_of(rate, kind, name)) continue;
        double x = at[0] - rate->at[0], y = at[1] - rate->at[1], squared = fmax(x * x + y * y, 1e-12);
        const double weight = 1 / (squared * squared);
        sum += rate->of_peak_rate * weight;
        weights += weight;
    }
    return weights > 0 ? sum / weights : 0;
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* 0: unknown. */
static double measured_share(const struct el_machine *m, const struct el_op_info *op)
{
    const struct el_op_kernel *kernel = &op->kernel;
    if (m->n_rates == 0 || !kernel->name || !(op->flops > 0)) return 0;
    if (begins(kernel->name, "attention_"))
        return share_between(m, EL_RATE_ATTENTION, kernel->dtype,
                             (double[2]){log((double)kernel->d[1]), log((double)kernel->d[3])});
    if (!begins(kernel->name, "linear_") && !begins(kernel->name, "conv")) return 0;
    double element_bytes = strcmp(kernel->dtype, "f64") == 0 ? 8 : strcmp(kernel->dtype, "bf16") == 0 ? 2 : 4;
    double width = op->flops / 2 * element_bytes / op->bytes;
    return share_between(m, EL_RATE_PRODUCT, kernel->dtype, (double[2]){log(op->flops), log(width)});
}

static double compute_ns(const struct el_machine *m, const struct el_op_info *op)
{
    const double flops_per_s = el_machine_flops_per_s(m, op->kernel.dtype), share = measured_share(m, op);
    if (share > 0) return m->kernel_launch_ns + at_rate_ns(op->flops, flops_per_s * share);
    return m->kernel_launch_ns + at_rate_ns(op->flops, flops_per_s) + at_rate_ns(op->bytes, m->memory_bytes_per_s);
}

double el_machine_op_ns(const struct el_machine *m, const struct el_op_info *op, int position, int stride)
{
    switch (op->op_class) {
    case EL_CLASS_COMPUTE:
        return compute_ns(m, op);
    case EL_CLASS_COPY:
        return copy_ns(m, op, position);
    case EL_CLASS_COMM:
        return comm_ns(m, op, position, stride);
    case EL_CLASS_HOST:
        return m->host_call_ns;
    }
    return 0;
}
