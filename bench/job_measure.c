/* One launch of one trial: recorder, training, each member's account, and on rank 0 the repeat's document. What
 * repeats come to is record.c's. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/job_collectives.h"
#include "bench/job_cost.h"
#include "bench/job_gather.h"
#include "bench/job_system.h"
#include "bench/jvalue.h"
#include "bench/record.h"
#include "bench/record_system.h"
#include "runtime/comm/comm.h"

/* What the system says of a member's memory; negative: it does not. */
struct reading {
    int64_t begin_bytes, end_bytes; /* of the measured steps */
    int64_t reserved_bytes;
    char reason[EL_ERROR_TEXT_BYTES];
};

struct measurement {
    const struct el_job *job;
    struct el_job_devices open;
    struct el_job_system *window;
    struct el_recorder *recorders[EL_MEMBERS_MAX]; /* one a member; one for all of a controller */
    int n_recorders;
    struct el_probe probes[EL_MEMBERS_MAX];
    struct el_train_result result;
    bool trained;
    struct reading readings[EL_MEMBERS_MAX];
    _Atomic int64_t resident_bytes; /* of this process, when its members' measured steps ended */
    struct el_job_recorders relation;
    json_t *collectives; /* rank 0 */
};

static struct el_recorder *recorder_of(const struct measurement *m, int member)
{
    return m->n_recorders == 0 ? NULL : m->recorders[m->n_recorders == 1 ? 0 : member];
}

static enum el_status open_recorders(struct measurement *m)
{
    bool one = el_mode_find(m->job->trial->train.mode)->controller;
    int wanted = !m->job->trial->record ? 0 : one ? 1 : m->open.n;
    for (; m->n_recorders < wanted; m->n_recorders++)
        EL_TRY(el_recorder_create(m->open.first + m->n_recorders, one ? m->open.n : 1, &m->recorders[m->n_recorders]));
    for (int i = 0; i < m->open.n && wanted; i++) m->probes[i] = el_recorder_probe(recorder_of(m, i));
    return EL_OK;
}

/* The resident size of this process, or -1. */
static int64_t process_resident_bytes(void)
{
    long long pages = -1;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*d %lld", &pages) != 1) pages = -1;
    if (file) fclose(file);
    return pages < 0 ? -1 : (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static int64_t read_memory(struct measurement *m, int member)
{
    int64_t bytes = -1;
    if (el_device_resident(m->open.devices[member], &bytes) != EL_OK)
        snprintf(m->readings[member].reason, sizeof m->readings[member].reason, "%s", el_error_message());
    return bytes;
}

static void measure_begin(void *context, int member)
{
    struct measurement *m = context;
    struct el_recorder *recorder = recorder_of(m, member);
    m->readings[member].begin_bytes = read_memory(m, member);
    if (recorder) el_recorder_begin(recorder);
    el_job_system_begin(m->window);
}

static void measure_end(void *context, int member)
{
    struct measurement *m = context;
    el_job_system_end(m->window);
    m->readings[member].end_bytes = read_memory(m, member);
    m->readings[member].reserved_bytes = el_device_reserved(m->open.devices[member]);
    m->resident_bytes = process_resident_bytes();
    if (recorder_of(m, member)) el_recorder_segment(recorder_of(m, member), -1);
}

static int recorder_segment(enum el_segment segment)
{
    return segment == EL_SEGMENT_NONE ? -1 : (int)(segment - EL_SEGMENT_MEASURED);
}

static void begin_segment(void *context, int member, enum el_segment segment)
{
    struct el_recorder *recorder = recorder_of(context, member);
    if (recorder) el_recorder_segment(recorder, recorder_segment(segment));
}

static enum el_status train(struct measurement *m)
{
    const struct el_job *job = m->job;
    bool several = el_bootstrap_size(job->bootstrap) > 1;
    const char *kind = job->trial->comm;
    if (several && !strcmp(kind, "auto")) kind = el_comm_choose(job->bootstrap);
    struct el_train_place place = {.devices = m->open.devices,
                                   .n_devices = m->open.n,
                                   .bootstrap = job->bootstrap,
                                   .comm_kind = kind,
                                   .dataset = job->dataset};
    struct el_train_hooks hooks = {.probes = m->n_recorders ? m->probes : NULL,
                                   .context = m,
                                   .measure_begin = measure_begin,
                                   .measure_end = measure_end,
                                   .segment = begin_segment};
    EL_TRY(el_train(&job->trial->train, &place, &hooks, &m->result));
    m->trained = true;
    return EL_OK;
}

/* Trains between two looks at the clocks, and lets the recorders know when all members had arrived where. */
static enum el_status train_and_relate(struct measurement *m)
{
    struct el_bootstrap *bootstrap = m->job->bootstrap;
    m->relation.n = m->open.n;
    m->relation.first = m->open.first;
    for (int i = 0; i < m->open.n; i++) m->relation.recorders[i] = recorder_of(m, i);
    EL_TRY(el_clock_relate(bootstrap, &m->relation.begin));
    EL_TRY(el_bootstrap_agree(bootstrap, train(m)));
    EL_TRY(el_clock_relate(bootstrap, &m->relation.end));
    return el_job_relate_collectives(m->job, &m->relation, &m->collectives);
}

static enum el_status add_member(const struct measurement *m, int i, const char *host,
                                 const struct el_system_figures *system, json_t *members)
{
    const struct el_device *device = m->open.devices[i];
    struct el_device_summary summary, on, off;
    struct el_recorder *recorder = recorder_of(m, i);
    struct el_memory_timeline timeline = {0};
    struct el_op_figures *ops = NULL;
    size_t n_ops = 0;
    bool control = recorder && m->result.n_control_pairs > 0 && m->job->trial->train.control == EL_CONTROL_COMM;
    if (recorder) EL_TRY(el_recorder_summarize(recorder, m->open.first + i, EL_RECORDER_MEASURED, &summary));
    if (control) EL_TRY(el_recorder_summarize(recorder, m->open.first + i, recorder_segment(EL_SEGMENT_ON), &on));
    if (control) EL_TRY(el_recorder_summarize(recorder, m->open.first + i, recorder_segment(EL_SEGMENT_OFF), &off));
    if (recorder) EL_TRY(el_recorder_ops(recorder, m->open.first + i, &ops, &n_ops));
    if (recorder)
        EL_TRY(el_memory_timeline_make(recorder, m->open.first + i, m->result.ledgers[i].live_by_tag, &timeline));
    struct el_member_account account = {.device = el_device_name(device),
                                        .host = host,
                                        .rank = el_bootstrap_rank(m->job->bootstrap),
                                        .pid = getpid(),
                                        .ledger = &m->result.ledgers[i],
                                        .summary = recorder ? &summary : NULL,
                                        .timeline = recorder ? &timeline : NULL,
                                        .ops = ops,
                                        .n_ops = n_ops,
                                        .reserved_bytes = m->readings[i].reserved_bytes,
                                        .driver_bytes = m->readings[i].end_bytes,
                                        .grown_bytes = m->readings[i].end_bytes - m->readings[i].begin_bytes,
                                        .driver_reason = m->readings[i].reason,
                                        .time_sliced = m->open.time_sliced,
                                        .control_on = control ? &on : NULL,
                                        .control_off = control ? &off : NULL,
                                        .simulated = el_device_is_simulated(device),
                                        .memory_limit_bytes = (int64_t)el_device_memory_limit(device),
                                        .system = system};
    account.n_cores = el_device_cores(device, &account.cores);
    json_array_append_new(members, el_record_member(&account));
    el_memory_timeline_free(&timeline);
    free(ops);
    return EL_OK;
}

/* {"members": [...], "process": {...}, "system": {...}, "recorder_cost": {...}} of this rank. */
static enum el_status make_account(const struct measurement *m, json_t **account_p)
{
    char host[256] = "";
    int64_t bytes[EL_MEMBERS_MAX] = {0}, own = m->resident_bytes;
    json_t *members = json_array(), *cost = NULL;
    const struct el_system_figures *system = el_job_system_compare(m->window);
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < m->open.n; i++) {
        enum el_status status = add_member(m, i, host, system, members);
        if (status == EL_OK && i == 0) status = el_job_cost(m->recorders, m->n_recorders, &cost);
        if (status != EL_OK) {
            json_decref(cost);
            json_decref(members);
            return status;
        }
        bytes[m->open.first + i] = m->readings[i].end_bytes;
        own = own < 0 || m->readings[i].end_bytes < 0 ? -1 : own - m->readings[i].end_bytes;
    }
    json_t *process =
        el_record_process(getpid(), el_bootstrap_rank(m->job->bootstrap), bytes, m->job->trial->n_devices, own);
    *account_p = json_pack("{s:o, s:o, s:o, s:o}", "members", members, "process", process, "system",
                           el_job_system_account(m->window), "recorder_cost", cost);
    return *account_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for an account");
}

static json_t *accuracy(double value)
{
    return value < 0 ? json_null() : json_real(value);
}

static json_t *epochs_of(const struct el_train_result *result)
{
    json_t *epochs = json_array();
    for (int e = 0; e < result->n_epochs; e++) {
        const struct el_epoch_result *epoch = &result->epochs[e];
        json_array_append_new(epochs,
                              json_pack("{s:o, s:o, s:o, s:o}", "seconds", el_json_real(epoch->seconds), "train_loss",
                                        el_json_real(epoch->train_loss), "held_out_accuracy",
                                        accuracy(epoch->held_out_accuracy), "test_accuracy",
                                        e == result->best_epoch ? accuracy(result->test_accuracy) : json_null()));
    }
    return epochs;
}

static json_t *control_of(const struct measurement *m)
{
    static const char *const kinds[] = {[EL_CONTROL_COMM] = "comm", [EL_CONTROL_RECORD] = "record"};
    const struct el_train_result *result = &m->result;
    json_t *on = json_array(), *off = json_array();
    if (result->n_control_pairs == 0) return json_null();
    for (int p = 0; p < result->n_control_pairs; p++) {
        json_array_append_new(on, json_real(result->control_on_ns[p] / 1e6));
        json_array_append_new(off, json_real(result->control_off_ns[p] / 1e6));
    }
    return json_pack("{s:s, s:i, s:o, s:o}", "kind", kinds[m->job->trial->train.control], "steps",
                     result->control_steps, "on_ms", on, "off_ms", off);
}

static json_t *clock_of(const struct measurement *m)
{
    const struct el_clock_anchor *begin = &m->relation.begin, *end = &m->relation.end;
    int64_t error_ns = begin->error_ns > end->error_ns ? begin->error_ns : end->error_ns;
    return json_pack("{s:b, s:I}", "shared", begin->shared, "error_ns", (json_int_t)error_ns);
}

static void put_result(json_t *repeat, const struct measurement *m)
{
    const struct el_train_result *result = &m->result;
    json_t *shares = json_array(), *loss = json_array();
    for (int i = 0; i < m->job->trial->n_devices; i++)
        json_array_append_new(shares, json_integer(result->batch_per_device[i]));
    for (int64_t s = 0; s < result->n_warmup + result->n_steps; s++)
        json_array_append_new(loss, result->loss_valid ? el_json_real(result->loss[s]) : json_null());
    json_object_set_new(repeat, "simulated", json_boolean(result->simulated));
    json_object_set_new(repeat, "batch_per_device", shares);
    json_object_set_new(repeat, "flops_per_step", el_json_real(result->flops_per_step));
    json_object_set_new(repeat, "param_bytes", json_integer((json_int_t)result->param_bytes));
    json_object_set_new(repeat, "step_ms", el_record_ms(result->step_ns, (size_t)result->n_steps));
    json_object_set_new(repeat, "warmup_step_ms", el_record_ms(result->warmup_step_ns, (size_t)result->n_warmup));
    json_object_set_new(repeat, "loss", loss);
    bool looked = m->job->trial->train.min_time_s > 0 && m->job->trial->train.epochs == 0;
    json_object_set_new(repeat, "settled", looked ? json_boolean(result->settled) : json_null());
    json_object_set_new(repeat, "planted", el_json_string(*m->job->trial->inject ? m->job->trial->inject : NULL));
    json_object_set_new(repeat, "control", control_of(m));
    json_object_set_new(repeat, "clock", clock_of(m));
    json_object_set(repeat, "collectives", m->collectives);
    json_object_set_new(repeat, "epochs", epochs_of(result));
    json_object_set_new(repeat, "accuracy", accuracy(result->test_accuracy));
}

static void put_accounts(json_t *repeat, const json_t *accounts)
{
    json_t *members = json_array(), *processes = json_array(), *systems = json_array();
    for (size_t r = 0; r < json_array_size(accounts); r++) {
        const json_t *account = json_array_get(accounts, r);
        json_array_extend(members, json_object_get(account, "members"));
        json_array_append(processes, json_object_get(account, "process"));
        json_array_append(systems, json_object_get(account, "system"));
    }
    json_object_set_new(repeat, "members", members);
    json_object_set_new(repeat, "processes", processes);
    json_object_set_new(repeat, "recorder_cost", el_job_cost_of_ranks(accounts));
    json_object_set_new(repeat, "system", el_record_system_of_job(systems));
}

static json_t *make_repeat(const struct measurement *m, const json_t *accounts)
{
    const struct el_job *job = m->job;
    json_t *warnings = json_array();
    int64_t dropped = m->n_recorders ? el_recorder_dropped(m->recorders[0]) : 0;
    if (dropped) {
        json_array_append_new(warnings, json_sprintf("recorder full: the last %lld of %lld steps have no spans",
                                                     (long long)dropped, (long long)m->result.n_steps));
    }
    json_t *repeat =
        json_pack("{s:i, s:s, s:i, s:i, s:s, s:n, s:o}", "schema", EL_SCHEMA, "trial", job->trial->id, "repeat",
                  job->repeat, "order", job->order, "status", "ok", "reason", "warnings", warnings);
    put_result(repeat, m);
    put_accounts(repeat, accounts);
    json_object_set_new(repeat, "environment", el_environment());
    return repeat;
}

const char *el_job_status(enum el_status status)
{
    switch (status) {
    case EL_OK:
        return "ok";
    case EL_ERR_OOM:
        return "oom";
    case EL_ERR_ABSENT:
        return "absent";
    case EL_ERR_TIMEOUT:
        return "timeout";
    default:
        return "failed";
    }
}

static void close_measurement(struct measurement *m)
{
    for (int i = 0; i < m->n_recorders; i++) el_recorder_destroy(m->recorders[i]);
    el_job_close_devices(&m->open);
    el_job_system_close(m->window);
    if (m->trained) el_train_result_free(&m->result);
    json_decref(m->collectives);
}

static enum el_status open_measurement(struct measurement *m)
{
    EL_TRY(el_job_open_devices(m->job, &m->open));
    EL_TRY(el_job_system_open(&m->open, &m->window));
    return open_recorders(m);
}

enum el_status el_job_measure(const struct el_job *job, json_t **repeat_p)
{
    struct measurement *m = calloc(1, sizeof *m);
    if (!m) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a measurement");
    struct el_error error;
    json_t *account = NULL, *accounts = NULL;
    m->job = job;
    /* Nobody may wait in training for a rank that could not begin it. */
    enum el_status status = el_bootstrap_agree(job->bootstrap, open_measurement(m));
    if (status == EL_OK) status = train_and_relate(m);
    if (status == EL_OK) status = make_account(m, &account);
    enum el_status gathered = el_job_gather(job, status, account, &accounts, &error);
    *repeat_p = NULL;
    if (gathered != EL_OK)
        status = gathered;
    else if (accounts && error.status == EL_OK)
        *repeat_p = make_repeat(m, accounts);
    else if (accounts)
        *repeat_p =
            el_record_failed_repeat(job->trial, job->repeat, job->order, el_job_status(error.status), error.text);
    json_decref(accounts);
    close_measurement(m);
    free(m);
    if (gathered == EL_OK && error.status != EL_OK) return el_error_give(&error);
    return status;
}
