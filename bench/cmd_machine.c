/* `evenload machine`: arithmetic, memory, launches and products by size come from short training of an mlp in one
 * process, by op; attention from a gpt; links from `evenload comm` between two devices. One host cannot measure the
 * network. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/comm/wire.h"
#include "bench/commands.h"
#include "bench/job/worker.h"
#include "bench/machine/host.h"
#include "bench/stats/stats.h"
#include "bench/trial/machine.h"
#include "bench/trial/trial.h"

enum { OPS_MAX = 64, ARGUMENTS_MAX = 32, WIDTH = 1024, BATCH = 128, LEAST_BYTES = 8, MOST_BYTES = 16 << 20 };
enum { BATCH_MAX = 16384, TOKENS = 2048 };

static enum el_status train(const struct el_device_name *device, const char *dtype, const char *model,
                            json_t **repeat_p)
{
    char text[320], *words[ARGUMENTS_MAX] = {text}, *rest = text;
    int n = 0;
    snprintf(text, sizeof text,
             "run --mode single --data dummy --precision f64=%s --steps 3 --warmup 2 --min-time 0.1 --control none %s",
             dtype, model);
    while ((words[n] = strsep(&rest, " "))) n++;
    struct el_options options;
    struct el_trial_set set;
    struct el_job job = {.repeat = 0};
    el_options_defaults(EL_CMD_RUN, &options);
    EL_TRY(el_options_parse(EL_CMD_RUN, n, words, &options));
    options.devices[0] = *device;
    options.n_devices = 1;
    EL_TRY(el_trials_resolve(EL_CMD_RUN, &options, &set));
    job.trial = set.trials;
    job.dataset = set.dataset;
    enum el_status status = el_bootstrap_open("self", &job.bootstrap);
    if (status == EL_OK) status = el_job_measure(&job, repeat_p);
    el_bootstrap_close(job.bootstrap);
    el_trials_free(&set);
    return status;
}

/* All products are batch x width x width. */
static enum el_status train_mlp(const struct el_device_name *device, const char *dtype, int width, int batch,
                                json_t **repeat_p)
{
    char model[160];
    snprintf(model, sizeof model, "--model mlp --batch %d --features %d --hidden %d --classes %d", batch, width, width,
             width);
    return train(device, dtype, model, repeat_p);
}

/* Of bytes over time, or of time. NAN: none. */
static double median_of(const json_t *repeat, const char *label, const char *phase, bool bytes_per_s)
{
    double values[OPS_MAX];
    const json_t *ops = el_json_at(repeat, "members.0.ops");
    size_t n = 0;
    EL_EACH(op, ops) {
        double s = el_json_number(op, "median_ms") / el_json_number(op, "count") / 1e3;
        bool named = strncmp(el_json_text(op, "op", ""), label, strlen(label)) == 0;
        if (!named || (*phase && !el_json_is(op, "phase", phase)) || !(s > 0) || n == OPS_MAX) continue;
        values[n++] = bytes_per_s ? el_json_number(op, "bytes") / s : s;
    }
    return n ? el_stats_median(values, n) : NAN;
}

static enum el_status measure_device(const struct el_device_name *device, struct el_machine *machine)
{
    const double flops = 2.0 * BATCH * WIDTH * WIDTH, fewer = flops / 4; /* of a product, forward or backward */
    json_t *f32 = NULL, *f64 = NULL, *bf16 = NULL, *tiny = NULL;
    enum el_status status = train_mlp(device, "f32", WIDTH, BATCH, &f32);
    if (status == EL_OK) status = train_mlp(device, "f64", WIDTH / 2, BATCH, &f64);
    if (status == EL_OK) status = train_mlp(device, "f32 --precision bf16", WIDTH, BATCH, &bf16);
    if (status == EL_OK) status = train_mlp(device, "f32", 2, 2, &tiny);
    machine->f32_flops_per_s = flops / median_of(f32, "linear_", "", false);
    machine->f64_flops_per_s = fewer / median_of(f64, "linear_", "", false);
    machine->bf16_flops_per_s = flops / median_of(bf16, "linear_", "", false);
    machine->memory_bytes_per_s = median_of(f32, "out.weight", "optimizer", true);
    machine->host_link_bytes_per_s = median_of(f32, "inputs", "h2d", true) / 2; /* an op's bytes are read and written */
    machine->kernel_launch_ns = median_of(tiny, "linear_", "", false) * 1e9;
    machine->copy_launch_ns = median_of(tiny, "inputs", "h2d", false) * 1e9;
    machine->host_call_ns = median_of(tiny, "load", "data", false) * 1e9;
    json_decref(f32);
    json_decref(f64);
    json_decref(bf16);
    json_decref(tiny);
    return status;
}

static const struct type {
    const char *dtype, *given;
} types[] = {{"f32", "f32"}, {"bf16", "f32 --precision bf16"}};

/* At most a tenth of a second. The file has launches separately. */
static enum el_status measure_products(const struct el_device_name *device, const struct type *type,
                                       struct el_machine *machine)
{
    const double most_flops = 0.1 * el_machine_flops_per_s(machine, type->dtype);
    for (int width = 64; width <= 4096; width *= 4)
        for (int batch = width / 4; batch <= 16 * width; batch *= 8) {
            const double sides[] = {batch, width, width}, flops = 2.0 * batch * width * width;
            json_t *repeat = NULL;
            if (flops > most_flops || batch > BATCH_MAX) continue;
            EL_TRY(train_mlp(device, type->given, width, batch, &repeat));
            const double ns = 1e9 * median_of(repeat, "linear_", "", false) - machine->kernel_launch_ns;
            json_decref(repeat);
            if (ns > 0) el_machine_add_rate(machine, EL_RATE_PRODUCT, type->dtype, sides, 1e9 * flops / ns);
        }
    return EL_OK;
}

/* Forward and backward, with the FLOPs of pairs that see each other (kernels/ops.c). */
static enum el_status measure_attention(const struct el_device_name *device, const struct type *type,
                                        struct el_machine *machine)
{
    const int width = el_backend_facts(device->backend).on_host ? 128 : 256; /* a GPU needs more to be full */
    for (int seq = 256; seq <= 2048; seq *= 8)
        for (int head = 64; head <= 128; head *= 2) {
            const double sides[3] = {seq, head}, flops = 14.0 * TOKENS * width * (seq + 1) / 2;
            char model[160];
            json_t *repeat = NULL;
            snprintf(model, sizeof model, "--model gpt --layers 1 --vocab 64 --embed %d --heads %d --seq %d --batch %d",
                     width, width / head, seq, TOKENS / seq);
            EL_TRY(train(device, type->given, model, &repeat));
            const double s = median_of(repeat, "attention_forward", "", false) +
                             median_of(repeat, "attention_backward", "", false) - 2e-9 * machine->kernel_launch_ns;
            json_decref(repeat);
            if (s > 0) el_machine_add_rate(machine, EL_RATE_ATTENTION, type->dtype, sides, flops / s);
        }
    return EL_OK;
}

static enum el_status measure_sizes(const struct el_device_name *device, struct el_machine *machine)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        EL_TRY(measure_products(device, &types[i], machine));
        EL_TRY(measure_attention(device, &types[i], machine));
    }
    return EL_OK;
}

static enum el_status exchange(const struct el_device_name devices[2], json_t **document_p)
{
    struct el_options options;
    struct el_trial trial = {.n_devices = 2, .procs = 1};
    struct el_wire_plan plan;
    struct el_job job = {.trial = &trial};
    el_options_defaults(EL_CMD_COMM, &options);
    options.wire.min_bytes = LEAST_BYTES;
    options.wire.max_bytes = MOST_BYTES;
    options.wire.factor = 8;
    options.wire.check = 0;
    EL_TRY(el_wire_plan_make("sendrecv", &options.wire, 2, &plan));
    trial.timeout_s = options.timeout_s;
    trial.train = options.train;
    snprintf(trial.train.mode, sizeof trial.train.mode, "ddp");
    snprintf(trial.comm, sizeof trial.comm, "local");
    trial.train.n_devices = 2;
    trial.train.global_batch = 2;
    memcpy(trial.devices, devices, 2 * sizeof *devices);
    EL_TRY(el_bootstrap_open("self", &job.bootstrap));
    enum el_status status = el_wire_measure(&plan, &job, false, document_p);
    el_bootstrap_close(job.bootstrap);
    return status;
}

/* Cold if measured, as in a step. A message's latency here includes the collective's launch. */
static enum el_status measure_links(const struct el_device_name devices[2], struct el_machine *machine)
{
    json_t *document = NULL;
    EL_TRY(exchange(devices, &document));
    const json_t *copies = json_object_get(document, "copy"), *fit = el_json_at(document, "curves.0.fit");
    const json_t *copy = json_array_get(copies, json_array_size(copies) - 1);
    double cold_gb = el_json_number(copy, "cold.gb_per_s"), cold_link_gb = el_json_number(fit, "cold.gb_per_s");
    machine->copy_bytes_per_s = 1e9 * (cold_gb > 0 ? cold_gb : el_json_number(copy, "gb_per_s"));
    machine->link_bytes_per_s = 1e9 * (cold_link_gb > 0 ? cold_link_gb : el_json_number(fit, "in_place.gb_per_s"));
    machine->link_latency_ns = 1e3 * el_json_number(fit, "in_place.latency_us");
    machine->collective_launch_ns = 0;
    json_decref(document);
    return EL_OK;
}

static void name_machine(const struct el_device_name devices[2], struct el_machine *machine)
{
    json_t *environment = el_environment();
    snprintf(machine->name, sizeof machine->name, "%.60s", el_json_text(environment, "hostname", "this machine"));
    snprintf(machine->source, sizeof machine->source,
             "measured by 'evenload machine' on %s:%d and %s:%d of %.100s, %.40s: products of %d x %d by %d (f64: %d "
             "by %d), an optimizer's pass, exchanges of up to 16 MiB in one process; the launch of a collective is in "
             "the links' latency",
             devices[0].backend, devices[0].index, devices[1].backend, devices[1].index,
             el_json_text(environment, "cpu_model", "an unknown processor"), el_json_text(environment, "time_utc", "?"),
             BATCH, WIDTH, WIDTH, WIDTH / 2, WIDTH / 2);
    json_decref(environment);
}

static enum el_status check_measured(const struct el_machine *m)
{
    const double rates[] = {m->f32_flops_per_s,  m->f64_flops_per_s,       m->bf16_flops_per_s, m->memory_bytes_per_s,
                            m->copy_bytes_per_s, m->host_link_bytes_per_s, m->link_bytes_per_s};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        if (!(rates[i] > 0 && isfinite(rates[i])))
            return el_fail(EL_ERR_INTERNAL, "machine: a rate could not be measured: try again on a quiet machine");
    return EL_OK;
}

static enum el_status choose_devices(const struct el_options *options, struct el_device_name devices[2])
{
    struct el_device_name list[EL_MEMBERS_MAX];
    int n = options->n_devices;
    memcpy(list, options->devices, sizeof list);
    if (n == 0) EL_TRY(el_devices_default(list, &n));
    if (n < 2) return el_fail(EL_ERR_INVALID, "machine: links need two devices: give --devices 2");
    if (!el_backend_facts(list[0].backend).computes)
        return el_fail(EL_ERR_INVALID, "machine: %s devices do no work that could be timed: give cpu or cuda devices",
                       list[0].backend);
    memcpy(devices, list, 2 * sizeof *list);
    return el_devices_check(devices, 2);
}

enum el_status el_cmd_machine(struct el_options *options, int *exit_status_p)
{
    struct el_device_name devices[2];
    struct el_machine machine = {.devices_per_host = 0};
    (void)exit_status_p;
    EL_TRY(choose_devices(options, devices));
    el_cores_say_busy(INFINITY, false);
    EL_TRY(measure_device(&devices[0], &machine));
    EL_TRY(measure_links(devices, &machine));
    EL_TRY(check_measured(&machine));
    EL_TRY(measure_sizes(&devices[0], &machine));
    name_machine(devices, &machine);
    json_t *document = el_machine_json(&machine);
    enum el_status status = *options->out ? el_write_json(document, options->out) : el_print_json(document, stdout);
    json_decref(document);
    if (status != EL_OK || !*options->out) return status;
    el_text_line(stdout, "%s", options->out);
    fputc('\n', stdout);
    el_text_line(stdout, "Next: %s compare --devices sim:8 --machine %s", el_program_word(), options->out);
    return EL_OK;
}
