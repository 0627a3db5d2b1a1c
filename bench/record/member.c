/* What a worker writes of one member: its ledger, its memory over a step, and what the recorder made of its spans.
 *
 * Here seconds become milliseconds. With --no-record all that spans would have told is null. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/record/system_load.h"
#include "bench/stats/stats.h"

enum { SPANS_KEPT = 24 };

static const char *phase_of(const struct el_memory_point *point)
{
    return point->phase == EL_PHASE_COUNT ? "idle" : el_phase_name((enum el_phase)point->phase);
}

static json_t *time_ms(const struct el_memory_point *point)
{
    return json_real((double)point->at_ns / 1e6);
}

static bool occurs(const struct el_memory_timeline *timeline, int tag)
{
    for (int i = 0; i < timeline->n; i++) {
        if (timeline->points[i].bytes[tag] != 0) return true;
    }
    return false;
}

static json_t *bytes_by_tag(const struct el_memory_timeline *timeline)
{
    json_t *tags = json_object();
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        if (!occurs(timeline, t)) continue;
        json_t *column = json_array();
        for (int i = 0; i < timeline->n; i++) json_array_append_new(column, json_integer(timeline->points[i].bytes[t]));
        el_json_put(tags, el_tag_name((enum el_tag)t), column);
    }
    return tags;
}

static json_t *lanes_of(const struct el_memory_timeline *timeline)
{
    json_t *lane = json_array(), *phase = json_array(), *from = json_array(), *to = json_array();
    for (int i = 0; i < timeline->n_boxes; i++) {
        const struct el_timeline_box *box = &timeline->boxes[i];
        json_array_append_new(lane, json_string(box->lane == EL_LANE_COMM ? "comm" : "compute"));
        json_array_append_new(
            phase, json_string(box->phase == EL_PHASE_COUNT ? "wait" : el_phase_name((enum el_phase)box->phase)));
        json_array_append_new(from, json_real((double)box->span.begin_ns / 1e6));
        json_array_append_new(to, json_real((double)box->span.end_ns / 1e6));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "lane", lane, "phase", phase, "from_ms", from, "to_ms", to);
}

/* A column a quantity, so that it stands on a few lines. Tags that never occur are left out: what is not listed is 0
 * throughout. */
json_t *el_record_timeline(const struct el_memory_timeline *timeline)
{
    if (timeline == NULL || timeline->n == 0) return json_null();
    const struct el_memory_point *peak = &timeline->points[timeline->peak];
    json_t *times = json_array(), *phases = json_array();
    for (int i = 0; i < timeline->n; i++) {
        json_array_append_new(times, time_ms(&timeline->points[i]));
        json_array_append_new(phases, json_string(phase_of(&timeline->points[i])));
    }
    json_t *record = json_object();
    el_json_put(record, "ms", times);
    el_json_put(record, "phase", phases);
    el_json_put(record, "bytes", bytes_by_tag(timeline));
    el_json_put(record, "lanes", lanes_of(timeline));
    el_json_put(record, "peak_ms", time_ms(peak));
    el_json_put(record, "peak_phase", json_string(phase_of(peak)));
    el_json_put_text(record, "peak_label", peak->label[0] == '\0' ? NULL : peak->label);
    return record;
}

json_t *el_record_tags(const size_t bytes[EL_TAG_COUNT])
{
    json_t *tags = json_object();
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        el_json_put(tags, el_tag_name((enum el_tag)t), json_integer((json_int_t)bytes[t]));
    }
    return tags;
}

static json_t *memory_part(const struct el_member_account *account)
{
    const struct el_ledger *ledger = account->ledger;
    bool known = account->driver_bytes >= 0;
    int64_t library_bytes = 0;
    json_t *memory = json_object(), *by_library = json_object();
    for (int i = 0; i < account->n_libraries; i++) {
        const struct el_library_memory *library = &account->libraries[i];
        el_json_put(by_library, library->name, json_integer(library->bytes));
        library_bytes += library->bytes;
    }
    el_json_put(memory, "peak_bytes", json_integer((json_int_t)ledger->peak_bytes));
    el_json_put(memory, "at_peak_by_tag", el_record_tags(ledger->at_peak_by_tag));
    el_json_put(memory, "peak_by_tag", el_record_tags(ledger->peak_by_tag));
    el_json_put(memory, "reserved_bytes", json_integer(account->reserved_bytes));
    el_json_put(memory, "driver_bytes", el_json_count(account->driver_bytes));
    el_json_put_text(memory, "driver_reason", known ? NULL : account->driver_reason);
    el_json_put(memory, "unattributed_bytes",
                known ? json_integer(account->driver_bytes - (int64_t)ledger->peak_bytes - library_bytes)
                      : json_null());
    el_json_put(memory, "library_bytes", by_library);
    el_json_put_text(memory, "module_loading", account->module_loading);
    el_json_put(memory, "grown_bytes", known ? json_integer(account->grown_bytes) : json_null());
    el_json_put(memory, "timeline", el_record_timeline(&account->timeline));
    return memory;
}

/* What its spans tell; NAN is what they do not, and with --no-record that is all. */
static struct el_device_summary told_by_spans(const struct el_member_account *account)
{
    struct el_device_summary s = {.step_s = NAN,
                                  .busy_s = NAN,
                                  .compute_s = NAN,
                                  .other_s = NAN,
                                  .idle_s = NAN,
                                  .loading_exposed_s = NAN,
                                  .bubble_s = NAN,
                                  .window_s = NAN,
                                  .comm_total_s = NAN,
                                  .comm_overlapped_s = NAN,
                                  .comm_exposed_s = NAN,
                                  .comm_cpu_s = NAN,
                                  .sent_bytes = NAN,
                                  .received_bytes = NAN,
                                  .comm_bytes = NAN};
    for (int p = 0; p < EL_PHASE_COUNT; p++) s.phase_s[p] = NAN;
    if (account->recorded) s = account->summary;
    if (!s.arrivals_known) s.wait_s = s.wait_exposed_s = NAN;
    if (!s.bubble_known) s.bubble_s = s.window_s = NAN;
    if (s.simulated) s.comm_cpu_s = NAN;
    return s;
}

static void put_ms(json_t *object, const char *key, double seconds)
{
    el_json_put_real(object, key, seconds * 1e3);
}

static void put_bytes(json_t *object, const char *key, double bytes)
{
    el_json_put(object, key, isnan(bytes) ? json_null() : json_integer((json_int_t)llround(bytes)));
}

static const char *system_reason(const struct el_member_account *account)
{
    if (account->gpu) return *account->gpu->reason ? account->gpu->reason : account->gpu->utilization_reason;
    if (account->system == NULL) return "not measured";
    if (*account->system->reason) return account->system->reason;
    return account->n_cores == 0 ? "the device is not bound to cores" : "not known of all its cores";
}

static json_t *utilization_part(const struct el_member_account *account, const struct el_device_summary *s)
{
    double system = account->system ? el_system_busy_pct(account->system, account->cores, account->n_cores) : NAN;
    if (account->gpu) system = account->gpu->utilization_pct;
    json_t *utilization = json_object();
    double busy = s->step_s > 0 ? 100 * s->busy_s / s->step_s : NAN;
    double ran = account->system ? el_system_ran_pct(account->system, account->cores, account->n_cores) : NAN;
    el_json_put_real(utilization, "busy_pct", busy);
    el_json_put_real(utilization, "cpu_pct", ran);
    el_json_put_real(utilization, "system_pct", system);
    el_json_put_text(utilization, "system_reason", isnan(system) ? system_reason(account) : NULL);
    el_json_put_text(utilization, "source", account->recorded ? "spans of the compute stream" : NULL);
    return utilization;
}

static json_t *groups_part(const struct el_device_summary *s)
{
    json_t *groups = json_object();
    for (int g = 0; g < s->n_groups; g++) {
        const struct el_comm_figures *figures = &s->groups[g];
        json_t *group = json_object();
        put_ms(group, "total_ms", figures->total_s);
        put_ms(group, "wait_ms", s->arrivals_known ? figures->wait_s : NAN);
        put_bytes(group, "sent_bytes", figures->sent_bytes);
        put_bytes(group, "received_bytes", figures->received_bytes);
        el_json_put(groups, figures->name, group);
    }
    return groups;
}

static json_t *comm_part(const struct el_device_summary *s, bool time_sliced)
{
    json_t *comm = json_object();
    put_bytes(comm, "bytes", s->comm_bytes);
    put_ms(comm, "total_ms", s->comm_total_s);
    put_ms(comm, "overlapped_ms", s->comm_overlapped_s);
    put_ms(comm, "exposed_ms", s->comm_exposed_s);
    put_ms(comm, "wait_ms", s->wait_s);
    put_ms(comm, "wait_exposed_ms", s->wait_exposed_s);
    put_ms(comm, "transfer_ms", el_stats_minus(s->comm_total_s, s->wait_s));
    put_ms(comm, "cpu_ms", s->comm_cpu_s);
    el_json_put(comm, "time_sliced", json_boolean(time_sliced));
    el_json_put(comm, "by_group", groups_part(s));
    return comm;
}

/* What a box is called: as in PyTorch's tables of schedules, or by its phase. */
static json_t *box_name(const struct el_lane_box *box)
{
    if (box->link != EL_LINK_NONE) return json_string(box->link == EL_LINK_SEND ? "send" : "receive");
    if (!box->piece.kind) return json_string(el_phase_name(box->phase));
    return json_stringn(&box->piece.kind, 1);
}

/* What a stage did in one step; null where it has no boxes. */
static json_t *lane_part(const struct el_lane *lane)
{
    json_t *what = json_array(), *part = json_array(), *micro = json_array(), *from = json_array(), *to = json_array();
    for (size_t i = 0; i < lane->n; i++) {
        const struct el_lane_box *box = &lane->boxes[i];
        bool boxed = box->piece.kind != 0;
        json_array_append_new(what, box_name(box));
        json_array_append_new(part, boxed ? json_integer(box->piece.part) : json_null());
        json_array_append_new(micro, boxed ? json_integer(box->piece.micro) : json_null());
        json_array_append_new(from, json_real((double)box->span.begin_ns / 1e6));
        json_array_append_new(to, json_real((double)box->span.end_ns / 1e6));
    }
    json_t *record = json_pack("{s:f, s:o, s:o, s:o, s:o, s:o}", "window_ms", (double)lane->window_ns / 1e6, "what",
                               what, "part", part, "micro", micro, "from_ms", from, "to_ms", to);
    if (lane->boxes) return record;
    json_decref(record);
    return json_null();
}

static json_t *block_part(const struct el_device_summary *s)
{
    json_t *block = json_object();
    put_ms(block, "step_ms", s->step_s);
    put_ms(block, "compute_ms", s->compute_s);
    put_ms(block, "exposed_ms", s->comm_exposed_s);
    put_ms(block, "other_ms", s->other_s);
    put_ms(block, "idle_ms", s->idle_s);
    return block;
}

static json_t *ops_part(const struct el_member_account *account)
{
    json_t *ops = json_array();
    for (size_t i = 0; i < account->n_ops; i++) {
        const struct el_op_figures *op = &account->ops[i];
        json_array_append_new(ops,
                              json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "op", op->label, "phase",
                                        el_phase_name(op->phase), "count", el_json_real(op->count), "bytes",
                                        el_json_real(op->bytes), "ms", el_json_real(op->mean_s * 1e3), "median_ms",
                                        el_json_real(op->median_s * 1e3), "implementation", el_json_string(op->how)));
    }
    return ops;
}

static json_t *layout_part(const struct el_member_account *account)
{
    const struct el_spot *spot = account->spot;
    json_t *nodes = json_array();
    for (int n = 0; account->part && n < account->part->n_nodes; n++)
        json_array_append_new(nodes, json_string(account->part->nodes[n].name));
    if (spot)
        return json_pack("{s:i, s:i, s:i, s:o}", "data_rank", spot->data_rank, "stage", spot->stage, "shard",
                         spot->shard, "nodes", nodes);
    json_decref(nodes);
    return json_null();
}

static void put_each_ms(json_t *object, const char *key, int64_t sum_ns, int64_t n)
{
    el_json_put_real(object, key, (double)sum_ns / (double)n / 1e6);
}

/* When the last batches were made, asked for and there; from the first one's begin. */
static json_t *load_spans(const struct el_load_account *account)
{
    json_t *worker = json_array(), *from = json_array(), *to = json_array(), *asked = json_array(), *got = json_array();
    const int first = account->n_spans > SPANS_KEPT ? account->n_spans - SPANS_KEPT : 0;
    const int64_t zero_ns = account->spans[first].begin_ns;
    for (int i = first; i < account->n_spans; i++) {
        const struct el_load_span *span = &account->spans[i];
        json_array_append_new(worker, span->worker < 0 ? json_null() : json_integer(span->worker));
        json_array_append_new(from, json_real((double)(span->begin_ns - zero_ns) / 1e6));
        json_array_append_new(to, json_real((double)(span->end_ns - zero_ns) / 1e6));
        json_array_append_new(asked, json_real((double)(span->asked_ns - zero_ns) / 1e6));
        json_array_append_new(got, json_real((double)(span->got_ns - zero_ns) / 1e6));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "worker", worker, "from_ms", from, "to_ms", to, "asked_ms", asked,
                     "got_ms", got);
}

/* What a batch cost, stage by stage; null where the member loads none. */
static json_t *loading_part(const struct el_load_account *account, double exposed_s)
{
    if (!account || account->times.batches == 0) return json_null();
    const struct el_load_times *times = &account->times;
    const int64_t n = times->batches;
    json_t *loading = json_object();
    el_json_put_real(loading, "samples", (double)times->samples / (double)n);
    el_json_put_real(loading, "reads", (double)times->reads / (double)n);
    el_json_put_real(loading, "read_bytes", (double)times->read_bytes / (double)n);
    put_each_ms(loading, "read_ms", times->read_ns, n);
    put_each_ms(loading, "decode_ms", times->decode_ns, n);
    put_each_ms(loading, "collate_ms", times->collate_ns, n);
    put_each_ms(loading, "wait_ms", times->wait_ns, n);
    put_each_ms(loading, "take_ms", times->take_ns, n);
    put_ms(loading, "exposed_ms", exposed_s);
    el_json_put(loading, "queue_bytes", json_integer(account->queue_bytes));
    el_json_put(loading, "spans", load_spans(account));
    return loading;
}

json_t *el_record_member(const struct el_member_account *account)
{
    const struct el_device_summary s = told_by_spans(account);
    json_t *member = json_object(), *phases = json_object();
    for (int p = 0; p < EL_PHASE_COUNT; p++) put_ms(phases, el_phase_name((enum el_phase)p), s.phase_s[p]);
    el_json_put_text(member, "device", account->device);
    el_json_put_text(member, "host", account->host);
    el_json_put(member, "rank", json_integer(account->rank));
    el_json_put(member, "pid", json_integer(account->pid));
    el_json_put(member, "layout", layout_part(account));
    const struct el_device_identity *identity = account->identity;
    el_json_put_text(member, "uuid", identity && *identity->uuid ? identity->uuid : NULL);
    el_json_put_text(member, "model", identity && *identity->model ? identity->model : NULL);
    el_json_put(member, "simulated", json_boolean(account->simulated));
    el_json_put(member, "memory", memory_part(account));
    el_json_put(member, "utilization", utilization_part(account, &s));
    el_json_put(member, "gpu", el_record_gpu(account->gpu));
    el_json_put(member, "busy_ms", phases);
    el_json_put(member, "loading", loading_part(account->loading, s.loading_exposed_s));
    put_ms(member, "compute_ms", s.compute_s);
    put_ms(member, "other_ms", s.other_s);
    put_ms(member, "idle_ms", s.idle_s);
    put_ms(member, "bubble_ms", s.bubble_s);
    put_ms(member, "window_ms", s.window_s);
    el_json_put(member, "activation_sets", el_json_count(account->in_flight > 0 ? account->in_flight : -1));
    el_json_put(member, "lane", lane_part(&account->lane));
    put_ms(member, "step_ms", s.step_s);
    put_ms(member, "queue_ms", s.queue_s > 0 ? s.queue_s : NAN);
    el_json_put(member, "comm", comm_part(&s, account->time_sliced));
    put_bytes(member, "sent_bytes", s.sent_bytes);
    put_bytes(member, "received_bytes", s.received_bytes);
    el_json_put(member, "cores", el_record_cores("", account->cores, account->n_cores));
    el_json_put(member, "memory_limit_bytes",
                el_json_count(account->memory_limit_bytes ? account->memory_limit_bytes : -1));
    el_json_put(member, "control",
                account->controlled
                    ? json_pack("{s:o, s:o}", "on", block_part(&account->on), "off", block_part(&account->off))
                    : json_null());
    el_json_put(member, "ops", ops_part(account));
    return member;
}

json_t *el_record_process(long pid, int rank, const int64_t *per_device_bytes, int n_devices, int64_t process_bytes)
{
    json_t *process = json_object(), *bytes = json_array();
    for (int i = 0; i < n_devices; i++) json_array_append_new(bytes, el_json_count(per_device_bytes[i]));
    el_json_put(process, "pid", json_integer(pid));
    el_json_put(process, "rank", json_integer(rank));
    el_json_put(process, "per_device_bytes", bytes);
    el_json_put(process, "process_bytes", el_json_count(process_bytes));
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
    el_json_put(document, "schema", json_integer(EL_SCHEMA));
    el_json_put_text(document, "trial", trial->id);
    el_json_put(document, "repeat", json_integer(repeat));
    el_json_put(document, "order", json_integer(order));
    el_json_put_text(document, "status", status);
    el_json_put_text(document, "reason", reason);
    return document;
}
