/* What a worker writes of one member: its ledger and what the recorder made of its spans, as JSON.
 *
 * Here seconds become milliseconds. With --no-record all that spans would have told is null. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/record/system.h"

static json_t *by_tag(const size_t bytes[EL_TAG_COUNT])
{
    json_t *tags = json_object();
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        json_object_set_new(tags, el_tag_name((enum el_tag)t), json_integer((json_int_t)bytes[t]));
    }
    return tags;
}

static json_t *libraries(const struct el_member_account *account, int64_t *sum_p)
{
    json_t *libraries = json_object();
    *sum_p = 0;
    for (int i = 0; i < account->n_libraries; i++) {
        const struct el_library_memory *library = &account->libraries[i];
        json_object_set_new(libraries, library->name, json_integer(library->bytes));
        *sum_p += library->bytes;
    }
    return libraries;
}

static json_t *memory(const struct el_member_account *account)
{
    const struct el_ledger *ledger = account->ledger;
    bool known = account->driver_bytes >= 0;
    int64_t library_bytes;
    json_t *by_library = libraries(account, &library_bytes);
    json_t *memory = json_object();
    json_object_set_new(memory, "peak_bytes", json_integer((json_int_t)ledger->peak_bytes));
    json_object_set_new(memory, "at_peak_by_tag", by_tag(ledger->at_peak_by_tag));
    json_object_set_new(memory, "peak_by_tag", by_tag(ledger->peak_by_tag));
    json_object_set_new(memory, "reserved_bytes", json_integer(account->reserved_bytes));
    json_object_set_new(memory, "driver_bytes", el_json_count(account->driver_bytes));
    json_object_set_new(memory, "driver_reason", el_json_string(known ? NULL : account->driver_reason));
    json_object_set_new(memory, "unattributed_bytes",
                        known ? json_integer(account->driver_bytes - (int64_t)ledger->peak_bytes - library_bytes)
                              : json_null());
    json_object_set_new(memory, "library_bytes", by_library);
    json_object_set_new(memory, "module_loading", el_json_string(account->module_loading));
    json_object_set_new(memory, "grown_bytes", known ? json_integer(account->grown_bytes) : json_null());
    json_object_set_new(memory, "timeline", el_record_timeline(account->timeline));
    return memory;
}

static double ms(const struct el_device_summary *summary, double seconds)
{
    return summary == NULL ? NAN : seconds * 1e3;
}

static const char *system_reason(const struct el_member_account *account)
{
    if (account->gpu) return *account->gpu->reason ? account->gpu->reason : account->gpu->utilization_reason;
    if (account->system == NULL) return "not measured";
    if (*account->system->reason) return account->system->reason;
    return account->n_cores == 0 ? "the device is not bound to cores" : "not known of all its cores";
}

static json_t *utilization(const struct el_member_account *account)
{
    const struct el_device_summary *s = account->summary;
    double system = account->system ? el_system_busy_pct(account->system, account->cores, account->n_cores) : NAN;
    if (account->gpu) system = account->gpu->utilization_pct;
    json_t *utilization = json_object();
    double busy = s == NULL || !(s->step_s > 0) ? NAN : 100 * s->busy_s / s->step_s;
    double ran = account->system ? el_system_ran_pct(account->system, account->cores, account->n_cores) : NAN;
    json_object_set_new(utilization, "busy_pct", el_json_real(busy));
    json_object_set_new(utilization, "cpu_pct", el_json_real(ran));
    json_object_set_new(utilization, "system_pct", el_json_real(system));
    json_object_set_new(utilization, "system_reason", el_json_string(isnan(system) ? system_reason(account) : NULL));
    json_object_set_new(utilization, "source", el_json_string(s == NULL ? NULL : "spans of the compute stream"));
    return utilization;
}

static json_t *busy(const struct el_device_summary *s)
{
    json_t *phases = json_object();
    for (int p = 0; p < EL_PHASE_COUNT; p++) {
        json_t *value = el_json_real(s == NULL ? NAN : s->phase_s[p] * 1e3);
        json_object_set_new(phases, el_phase_name((enum el_phase)p), value);
    }
    return phases;
}

static json_t *whole_bytes(const struct el_device_summary *s, double bytes)
{
    return s == NULL ? json_null() : json_integer((json_int_t)llround(bytes));
}

/* Seconds to milliseconds, null where waits and transfers could not be separated. */
static json_t *split(const struct el_device_summary *s, double seconds)
{
    return el_json_real(s != NULL && s->arrivals_known ? seconds * 1e3 : NAN);
}

static json_t *comm(const struct el_member_account *account)
{
    const struct el_device_summary *s = account->summary;
    json_t *comm = json_object();
    json_object_set_new(comm, "bytes", whole_bytes(s, s == NULL ? 0 : s->comm_bytes));
    json_object_set_new(comm, "total_ms", el_json_real(ms(s, s == NULL ? 0 : s->comm_total_s)));
    json_object_set_new(comm, "overlapped_ms", el_json_real(ms(s, s == NULL ? 0 : s->comm_overlapped_s)));
    json_object_set_new(comm, "exposed_ms", el_json_real(ms(s, s == NULL ? 0 : s->comm_exposed_s)));
    json_object_set_new(comm, "wait_ms", split(s, s == NULL ? 0 : s->wait_s));
    json_object_set_new(comm, "wait_exposed_ms", split(s, s == NULL ? 0 : s->wait_exposed_s));
    json_object_set_new(comm, "transfer_ms", split(s, s == NULL ? 0 : s->comm_total_s - s->wait_s));
    json_object_set_new(comm, "cpu_ms", el_json_real(s == NULL || s->simulated ? NAN : s->comm_cpu_s * 1e3));
    json_object_set_new(comm, "time_sliced", json_boolean(account->time_sliced));
    return comm;
}

static json_t *block(const struct el_device_summary *s)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "step_ms", el_json_real(s->step_s * 1e3), "compute_ms",
                     el_json_real(s->compute_s * 1e3), "exposed_ms", el_json_real(s->comm_exposed_s * 1e3), "other_ms",
                     el_json_real(s->other_s * 1e3), "idle_ms", el_json_real(s->idle_s * 1e3));
}

static json_t *control(const struct el_member_account *account)
{
    if (account->control_on == NULL || account->control_off == NULL) return json_null();
    return json_pack("{s:o, s:o}", "on", block(account->control_on), "off", block(account->control_off));
}

static json_t *ops(const struct el_member_account *account)
{
    json_t *ops = json_array();
    for (size_t i = 0; i < account->n_ops; i++) {
        const struct el_op_figures *op = &account->ops[i];
        json_array_append_new(
            ops, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "op", op->label, "phase", el_phase_name(op->phase),
                           "count", el_json_real(op->count), "ms", el_json_real(op->mean_s * 1e3), "median_ms",
                           el_json_real(op->median_s * 1e3), "implementation", el_json_string(op->how)));
    }
    return ops;
}

json_t *el_record_member(const struct el_member_account *account)
{
    const struct el_device_summary *s = account->summary;
    json_t *member = json_object();
    json_object_set_new(member, "device", el_json_string(account->device));
    json_object_set_new(member, "host", el_json_string(account->host));
    json_object_set_new(member, "rank", json_integer(account->rank));
    json_object_set_new(member, "pid", json_integer(account->pid));
    const struct el_device_identity *identity = account->identity;
    json_object_set_new(member, "uuid", el_json_string(identity && *identity->uuid ? identity->uuid : NULL));
    json_object_set_new(member, "model", el_json_string(identity && *identity->model ? identity->model : NULL));
    json_object_set_new(member, "simulated", json_boolean(account->simulated));
    json_object_set_new(member, "memory", memory(account));
    json_object_set_new(member, "utilization", utilization(account));
    json_object_set_new(member, "gpu", el_record_gpu(account->gpu));
    json_object_set_new(member, "busy_ms", busy(s));
    json_object_set_new(member, "idle_ms", el_json_real(ms(s, s == NULL ? 0 : s->idle_s)));
    json_object_set_new(member, "step_ms", el_json_real(ms(s, s == NULL ? 0 : s->step_s)));
    json_object_set_new(member, "queue_ms", el_json_real(s != NULL && s->queue_s > 0 ? s->queue_s * 1e3 : NAN));
    json_object_set_new(member, "comm", comm(account));
    json_object_set_new(member, "sent_bytes", whole_bytes(s, s == NULL ? 0 : s->sent_bytes));
    json_object_set_new(member, "received_bytes", whole_bytes(s, s == NULL ? 0 : s->received_bytes));
    json_object_set_new(member, "cores", el_record_cores("", account->cores, account->n_cores));
    json_object_set_new(member, "memory_limit_bytes",
                        el_json_count(account->memory_limit_bytes ? account->memory_limit_bytes : -1));
    json_object_set_new(member, "control", control(account));
    json_object_set_new(member, "ops", ops(account));
    return member;
}

json_t *el_record_process(long pid, int rank, const int64_t *per_device_bytes, int n_devices, int64_t process_bytes)
{
    json_t *process = json_object(), *bytes = json_array();
    for (int i = 0; i < n_devices; i++) json_array_append_new(bytes, el_json_count(per_device_bytes[i]));
    json_object_set_new(process, "pid", json_integer(pid));
    json_object_set_new(process, "rank", json_integer(rank));
    json_object_set_new(process, "per_device_bytes", bytes);
    json_object_set_new(process, "process_bytes", el_json_count(process_bytes));
    return process;
}

json_t *el_record_ms(const int64_t *ns, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(array, json_real((double)ns[i] / 1e6));
    return array;
}

json_t *el_record_failed_repeat(const struct el_trial *trial, int repeat, int order, const char *status,
                                const char *reason)
{
    json_t *document = json_object();
    json_object_set_new(document, "schema", json_integer(EL_SCHEMA));
    json_object_set_new(document, "trial", el_json_string(trial->id));
    json_object_set_new(document, "repeat", json_integer(repeat));
    json_object_set_new(document, "order", json_integer(order));
    json_object_set_new(document, "status", el_json_string(status));
    json_object_set_new(document, "reason", el_json_string(reason));
    return document;
}
