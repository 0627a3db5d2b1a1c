/* One member's part of a repeat. Seconds become milliseconds. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"
#include "bench/verdict/verdict.h"

json_t *el_record_ms(const void *items, size_t stride, size_t offset, size_t n, int64_t zero_ns)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) {
        const int64_t *ns = (const void *)((const char *)items + i * stride + offset);
        json_array_append_new(array, json_real((double)(*ns - zero_ns) / 1e6));
    }
    return array;
}

static json_t *phase_name(int phase, const char *without)
{
    return json_string(phase == EL_PHASE_COUNT ? without : el_phase_name((enum el_phase)phase));
}

static bool occurs(const struct el_memory_timeline *timeline, int tag)
{
    for (int i = 0; i < timeline->n; i++)
        if (timeline->points[i].bytes[tag] != 0) return true;
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
    const struct el_timeline_box *boxes = timeline->boxes;
    const size_t n = (size_t)timeline->n_boxes;
    json_t *lane = json_array(), *phase = json_array(), *group = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(lane, json_string(boxes[i].lane == EL_LANE_COMM ? "comm" : "compute"));
        json_array_append_new(phase, phase_name(boxes[i].phase, "wait"));
        json_array_append_new(group, boxes[i].communicator ? json_string(boxes[i].communicator) : json_null());
    }
    return el_json_of(EL_KEY("lane", lane), EL_KEY("phase", phase), EL_KEY("group", group),
                      EL_KEY("from_ms", EL_RECORD_MS(struct el_timeline_box, boxes, span.begin_ns, n, 0)),
                      EL_KEY("to_ms", EL_RECORD_MS(struct el_timeline_box, boxes, span.end_ns, n, 0)));
}

/* Tags that never occur are left out. */
json_t *el_record_timeline(const struct el_memory_timeline *timeline)
{
    if (timeline == NULL || timeline->n == 0) return json_null();
    const struct el_memory_point *points = timeline->points, *peak = &points[timeline->peak];
    json_t *phases = json_array();
    for (int i = 0; i < timeline->n; i++) json_array_append_new(phases, phase_name(points[i].phase, "idle"));
    return el_json_of(EL_KEY("ms", EL_RECORD_MS(struct el_memory_point, points, at_ns, (size_t)timeline->n, 0)),
                      EL_KEY("phase", phases), EL_KEY("bytes", bytes_by_tag(timeline)),
                      EL_KEY("lanes", lanes_of(timeline)), EL_KEY("peak_ms", (double)peak->at_ns / 1e6),
                      EL_KEY("peak_phase", phase_name(peak->phase, "idle")),
                      EL_KEY("peak_label", el_json_filled(peak->label)));
}

json_t *el_record_tags(const size_t bytes[EL_TAG_COUNT])
{
    json_t *tags = json_object();
    for (int t = 0; t < EL_TAG_COUNT; t++)
        el_json_put(tags, el_tag_name((enum el_tag)t), json_integer((json_int_t)bytes[t]));
    return tags;
}

static json_t *memory_part(const struct el_member_account *account)
{
    const struct el_ledger *ledger = account->ledger;
    bool known = account->driver_bytes >= 0;
    int64_t library_bytes = 0;
    json_t *by_library = json_object();
    for (int i = 0; i < account->n_libraries; i++) {
        const struct el_library_memory *library = &account->libraries[i];
        el_json_put(by_library, library->name, json_integer(library->bytes));
        library_bytes += library->bytes;
    }
    int64_t unattributed_bytes = account->driver_bytes - (int64_t)ledger->peak_bytes - library_bytes;
    return el_json_of(EL_KEY("peak_bytes", ledger->peak_bytes),
                      EL_KEY("at_peak_by_tag", el_record_tags(ledger->at_peak_by_tag)),
                      EL_KEY("peak_by_tag", el_record_tags(ledger->peak_by_tag)),
                      EL_KEY("reserved_bytes", el_json_count(account->reserved_bytes)),
                      EL_KEY("driver_bytes", el_json_count(account->driver_bytes)),
                      EL_KEY("driver_reason", known ? NULL : account->driver_reason),
                      EL_KEY("unattributed_bytes", known ? json_integer(unattributed_bytes) : json_null()),
                      EL_KEY("library_bytes", by_library), EL_KEY("module_loading", account->module_loading),
                      EL_KEY("grown_bytes", known ? json_integer(account->grown_bytes) : json_null()),
                      EL_KEY("timeline", el_record_timeline(&account->timeline)));
}

static struct el_device_summary told_by_spans(const struct el_member_account *account)
{
    struct el_device_summary s = {0};
    s.step_s = s.busy_s = s.compute_s = s.other_s = s.idle_s = s.loading_exposed_s = s.bubble_s = s.window_s = NAN;
    s.comm_total_s = s.comm_overlapped_s = s.comm_exposed_s = s.comm_cpu_s = NAN;
    s.sent_bytes = s.received_bytes = s.comm_bytes = s.flops = NAN;
    for (int p = 0; p < EL_PHASE_COUNT; p++) s.phase_s[p] = NAN;
    if (account->recorded) s = account->summary;
    if (!s.arrivals_known) s.wait_s = s.wait_exposed_s = NAN;
    if (!s.bubble_known) s.bubble_s = s.window_s = NAN;
    if (s.simulated) s.comm_cpu_s = NAN;
    return s;
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
    /* An op's span begins where the previous one ends, so waits for a late host are in the spans. */
    double busy = s->step_s > 0 ? 100 * s->busy_s / s->step_s : NAN;
    bool host_bound = 100 * s->queue_s > EL_VERDICT_HOST_BOUND_PCT * s->step_s;
    double ran = account->system ? el_system_ran_pct(account->system, account->cores, account->n_cores) : NAN;
    return el_json_of(EL_KEY("busy_pct", host_bound ? NAN : busy),
                      EL_KEY("busy_at_most_pct", s->queue_s > 0 ? busy : NAN), EL_KEY("cpu_pct", ran),
                      EL_KEY("system_pct", system),
                      EL_KEY("system_reason", isnan(system) ? system_reason(account) : NULL),
                      EL_KEY("source", account->recorded ? "spans of the compute stream" : NULL));
}

/* NULL: members differ along several axes. */
static const char *axis_of(const struct el_layout *layout, const char *group)
{
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++)
        if (!strcmp(group, el_axis_row(axis)->name)) return group;
    if (!strcmp(group, "local")) return el_axis_row(EL_AXIS_DATA)->name; /* a worker's devices (dp, spmg) */
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT && layout; axis++)
        if (el_layout_is_whole(layout, axis)) return el_axis_row(axis)->name;
    return NULL;
}

static json_t *groups_part(const struct el_layout *layout, const struct el_device_summary *s)
{
    json_t *groups = json_object();
    for (int g = 0; g < s->n_groups; g++) {
        const struct el_comm_figures *figures = &s->groups[g];
        double wait_ms = s->arrivals_known ? 1e3 * figures->wait_s : NAN;
        el_json_put(groups, figures->name,
                    el_json_of(EL_KEY("axis", axis_of(layout, figures->name)),
                               EL_KEY("total_ms", 1e3 * figures->total_s), EL_KEY("wait_ms", wait_ms),
                               EL_KEY("exposed_ms", 1e3 * figures->exposed_s),
                               EL_KEY("sent_bytes", el_json_rounded(figures->sent_bytes)),
                               EL_KEY("received_bytes", el_json_rounded(figures->received_bytes))));
    }
    return groups;
}

static json_t *comm_part(const struct el_layout *layout, const struct el_device_summary *s, bool time_sliced)
{
    return el_json_of(
        EL_KEY("bytes", el_json_rounded(s->comm_bytes)), EL_KEY("total_ms", 1e3 * s->comm_total_s),
        EL_KEY("overlapped_ms", 1e3 * s->comm_overlapped_s), EL_KEY("exposed_ms", 1e3 * s->comm_exposed_s),
        EL_KEY("wait_ms", 1e3 * s->wait_s), EL_KEY("wait_exposed_ms", 1e3 * s->wait_exposed_s),
        EL_KEY("transfer_ms", 1e3 * el_stats_minus(s->comm_total_s, s->wait_s)), EL_KEY("cpu_ms", 1e3 * s->comm_cpu_s),
        EL_KEY("time_sliced", time_sliced), EL_KEY("by_group", groups_part(layout, s)));
}

static json_t *box_name(const struct el_lane_box *box)
{
    if (box->link != EL_LINK_NONE) return json_string(box->link == EL_LINK_SEND ? "send" : "receive");
    if (!box->piece.kind) return json_string(el_phase_name(box->phase));
    return json_stringn(&box->piece.kind, 1);
}

static json_t *lane_part(const struct el_lane *lane)
{
    if (!lane->boxes) return json_null();
    json_t *what = json_array(), *part = json_array(), *micro = json_array();
    for (size_t i = 0; i < lane->n; i++) {
        const struct el_lane_box *box = &lane->boxes[i];
        bool boxed = box->piece.kind != 0;
        json_array_append_new(what, box_name(box));
        json_array_append_new(part, boxed ? json_integer(box->piece.part) : json_null());
        json_array_append_new(micro, boxed ? json_integer(box->piece.micro) : json_null());
    }
    return el_json_of(EL_KEY("window_ms", (double)lane->window_ns / 1e6), EL_KEY("what", what), EL_KEY("part", part),
                      EL_KEY("micro", micro),
                      EL_KEY("from_ms", EL_RECORD_MS(struct el_lane_box, lane->boxes, span.begin_ns, lane->n, 0)),
                      EL_KEY("to_ms", EL_RECORD_MS(struct el_lane_box, lane->boxes, span.end_ns, lane->n, 0)));
}

static json_t *block_part(const struct el_device_summary *s)
{
    return el_json_of(EL_KEY("step_ms", 1e3 * s->step_s), EL_KEY("compute_ms", 1e3 * s->compute_s),
                      EL_KEY("exposed_ms", 1e3 * s->comm_exposed_s), EL_KEY("other_ms", 1e3 * s->other_s),
                      EL_KEY("idle_ms", 1e3 * s->idle_s));
}

static json_t *ops_part(const struct el_member_account *account)
{
    json_t *ops = json_array();
    for (size_t i = 0; i < account->n_ops; i++) {
        const struct el_op_figures *op = &account->ops[i];
        json_array_append_new(ops, el_json_of(EL_KEY("op", op->label), EL_KEY("phase", el_phase_name(op->phase)),
                                              EL_KEY("count", op->count), EL_KEY("bytes", op->bytes),
                                              EL_KEY("ms", op->mean_s * 1e3), EL_KEY("median_ms", op->median_s * 1e3),
                                              EL_KEY("implementation", op->how)));
    }
    return ops;
}

static json_t *layout_part(const struct el_member_account *account)
{
    const struct el_spot *spot = &account->spot;
    if (!account->layout) return json_null();
    json_t *nodes = json_array();
    for (int n = 0; account->part && n < account->part->n_nodes; n++)
        json_array_append_new(nodes, json_string(account->part->nodes[n].name));
    return el_json_of(EL_KEY("data_rank", spot->at[EL_AXIS_DATA]), EL_KEY("stage", spot->at[EL_AXIS_STAGE]),
                      EL_KEY("tensor", spot->at[EL_AXIS_TENSOR]), EL_KEY("shard", spot->at[EL_AXIS_SHARD]),
                      EL_KEY("expert", spot->at[EL_AXIS_EXPERT]), EL_KEY("nodes", nodes));
}

static double each_ms(int64_t sum_ns, int64_t n)
{
    return (double)sum_ns / (double)n / 1e6;
}

/* Negative: loaded none, or too old. */
static int64_t length_of(const struct el_load_account *account, uint64_t step)
{
    for (int i = 0; account && i < account->n_lengths; i++)
        if (account->lengths[i].step == step) return account->lengths[i].length;
    return -1;
}

static json_t *steps_part(const struct el_member_account *account)
{
    if (!account->by_step) return json_null();
    json_t *step = json_array(), *length = json_array(), *compute = json_array();
    const size_t n = el_recorder_step_count(account->by_step);
    for (size_t i = n > EL_LOAD_LENGTHS ? n - EL_LOAD_LENGTHS : 0; i < n; i++) {
        uint64_t number;
        int64_t ns = el_recorder_computed_ns(account->by_step, account->position, i, &number);
        json_array_append_new(compute, json_real((double)ns / 1e6));
        json_array_append_new(step, json_integer((json_int_t)number));
        json_array_append_new(length, el_json_count(length_of(account->loading, number)));
    }
    return el_json_of(EL_KEY("step", step), EL_KEY("length", length), EL_KEY("compute_ms", compute));
}

static json_t *lengths_part(const struct el_load_times *times)
{
    const double rows = (double)times->samples, places = (double)times->places, words = (double)times->words;
    if (times->places == 0) return json_null();
    return el_json_of(EL_KEY("mean", places / rows), EL_KEY("max", times->longest), EL_KEY("words", words / rows),
                      EL_KEY("padding_pct", 100 * (1 - words / places)));
}

static json_t *loading_part(const struct el_load_account *account, double exposed_s)
{
    if (!account || account->times.batches == 0) return json_null();
    const struct el_load_times *times = &account->times;
    const int64_t n = times->batches;
    return el_json_of(
        EL_KEY("samples", (double)times->samples / (double)n), EL_KEY("reads", (double)times->reads / (double)n),
        EL_KEY("read_bytes", (double)times->read_bytes / (double)n), EL_KEY("read_ms", each_ms(times->read_ns, n)),
        EL_KEY("decode_ms", each_ms(times->decode_ns, n)), EL_KEY("collate_ms", each_ms(times->collate_ns, n)),
        EL_KEY("wait_ms", each_ms(times->wait_ns, n)), EL_KEY("take_ms", each_ms(times->take_ns, n)),
        EL_KEY("exposed_ms", 1e3 * exposed_s), EL_KEY("queue_bytes", account->queue_bytes),
        EL_KEY("length", lengths_part(times)));
}

/* Choices in groups of so many steps, so that a long run's record stays short. */
static json_t *choices_by_step(const struct el_routed *routed, int64_t group)
{
    json_t *rows = json_array();
    for (int64_t step = 0; step < routed->n_steps; step += group) {
        json_t *row = json_array();
        for (int64_t e = 0; e < routed->experts; e++) {
            int64_t sum = 0;
            for (int64_t s = step; s < step + group && s < routed->n_steps; s++)
                sum += routed->counts[s * 2 * routed->experts + e];
            json_array_append_new(row, json_integer(sum));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *routing_part(const struct el_routed *routed)
{
    enum { ROWS = 256, NUMBERS = 16384 };
    if (!routed || routed->n_steps == 0) return json_null();
    json_t *sums[2] = {json_array(), json_array()};
    const int64_t each = 2 * routed->experts, room = NUMBERS / routed->experts, most = room < ROWS ? room : ROWS;
    const int64_t group = (routed->n_steps + most - 1) / most;
    for (int64_t i = 0; i < each; i++) {
        int64_t sum = 0;
        for (int64_t s = 0; s < routed->n_steps; s++) sum += routed->counts[s * each + i];
        json_array_append_new(sums[i >= routed->experts], json_integer(sum));
    }
    return el_json_of(EL_KEY("layers", routed->layers), EL_KEY("steps", routed->n_steps), EL_KEY("choices", sums[0]),
                      EL_KEY("kept", sums[1]), EL_KEY("steps_a_row", group),
                      EL_KEY("by_step", choices_by_step(routed, group)));
}

json_t *el_record_member(const struct el_member_account *account)
{
    const struct el_device_summary s = told_by_spans(account);
    const struct el_device_identity *identity = account->identity;
    json_t *member = json_object(), *phases = json_object(), *control = json_null();
    if (account->controlled)
        control = json_pack("{s:o, s:o}", "on", block_part(&account->on), "off", block_part(&account->off));
    for (int p = 0; p < EL_PHASE_COUNT; p++)
        el_json_put_real(phases, el_phase_name((enum el_phase)p), 1e3 * s.phase_s[p]);
    el_json_put_all(member, EL_KEY("device", account->device), EL_KEY("host", account->host),
                    EL_KEY("rank", account->rank), EL_KEY("pid", account->pid), EL_KEY("layout", layout_part(account)),
                    EL_KEY("uuid", identity ? el_json_filled(identity->uuid) : json_null()),
                    EL_KEY("model", identity ? el_json_filled(identity->model) : json_null()),
                    EL_KEY("simulated", account->simulated));
    el_json_put_all(member, EL_KEY("memory", memory_part(account)),
                    EL_KEY("utilization", utilization_part(account, &s)), EL_KEY("gpu", el_record_gpu(account->gpu)),
                    EL_KEY("busy_ms", phases), EL_KEY("loading", loading_part(account->loading, s.loading_exposed_s)),
                    EL_KEY("routing", routing_part(account->routed)), EL_KEY("steps", steps_part(account)),
                    EL_KEY("compute_ms", 1e3 * s.compute_s), EL_KEY("other_ms", 1e3 * s.other_s),
                    EL_KEY("idle_ms", 1e3 * s.idle_s), EL_KEY("bubble_ms", 1e3 * s.bubble_s),
                    EL_KEY("window_ms", 1e3 * s.window_s),
                    EL_KEY("activation_sets", el_json_count(account->in_flight > 0 ? account->in_flight : -1)),
                    EL_KEY("lane", lane_part(&account->lane)), EL_KEY("step_ms", 1e3 * s.step_s),
                    EL_KEY("queue_ms", 1e3 * (s.queue_s > 0 ? s.queue_s : NAN)));
    el_json_put_all(
        member, EL_KEY("comm", comm_part(account->layout, &s, account->time_sliced)),
        EL_KEY("sent_bytes", el_json_rounded(s.sent_bytes)),
        EL_KEY("received_bytes", el_json_rounded(s.received_bytes)), EL_KEY("flops", s.flops),
        EL_KEY("cores", el_record_cores("", account->cores, account->n_cores)),
        EL_KEY("memory_limit_bytes", el_json_count(account->memory_limit_bytes ? account->memory_limit_bytes : -1)),
        EL_KEY("control", control), EL_KEY("ops", ops_part(account)));
    return member;
}

json_t *el_record_process(long pid, int rank, const int64_t *per_device_bytes, int n_devices, int64_t process_bytes)
{
    json_t *bytes = json_array();
    for (int i = 0; i < n_devices; i++) json_array_append_new(bytes, el_json_count(per_device_bytes[i]));
    return el_json_of(EL_KEY("pid", pid), EL_KEY("rank", rank), EL_KEY("per_device_bytes", bytes),
                      EL_KEY("process_bytes", el_json_count(process_bytes)));
}

json_t *el_record_failed_repeat(const struct el_trial *trial, int repeat, int order, const char *status,
                                const char *reason)
{
    return el_json_of(EL_KEY("schema", EL_SCHEMA), EL_KEY("trial", trial->id), EL_KEY("repeat", repeat),
                      EL_KEY("order", order), EL_KEY("status", status), EL_KEY("reason", reason));
}
