/* --profile and --trace: tables by op and trace files. */
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/job/measurement.h"
#include "bench/trial/machine.h"
#include "bench/trial/trial.h"
#include "profiles/op_table.h"
#include "profiles/trace.h"

enum { CYCLES_MAX = 32 }; /* written as files */

static json_t *row_json(const struct el_op_row *row)
{
    static const char *const kinds[] = {[EL_ROW_STEP] = "step", [EL_ROW_PHASE] = "phase", [EL_ROW_OP] = "op"};
    return el_json_of(EL_KEY("name", row->name), EL_KEY("kind", kinds[row->kind]), EL_KEY("calls", row->calls),
                      EL_KEY("self_ms", (double)row->self_ns * 1e-6), EL_KEY("total_ms", (double)row->total_ns * 1e-6),
                      EL_KEY("memory_bytes", row->memory_bytes), EL_KEY("flops", row->flops),
                      EL_KEY("bytes", row->bytes));
}

/* ms per step, of the parts that took any time; limits where the machine's rates are known. */
static json_t *parts_json(const struct el_op_table *table)
{
    json_t *parts = json_array();
    for (int p = 0; p < EL_OP_PART_COUNT; p++) {
        const double ms = (double)table->parts[p].self_ns * 1e-6 / (double)table->n_steps,
                     limit_ms = table->parts[p].limit_ns * 1e-6 / (double)table->n_steps;
        if (ms > 0)
            json_array_append_new(parts,
                                  el_json_of(EL_KEY("part", el_op_part_name((enum el_op_part_kind)p)), EL_KEY("ms", ms),
                                             EL_KEY("limit_ms", limit_ms > 0 ? limit_ms : NAN)));
    }
    return parts;
}

static enum el_status add_table(const struct el_job_measurement *m, int i, const struct el_profile_schedule *schedule,
                                const struct el_machine *machine, json_t *tables)
{
    struct el_op_table table;
    json_t *rows = json_array();
    enum el_status status = el_op_table_make(el_job_recorder(m, i), m->open.first + i, schedule, machine, &table);
    if (status == EL_OK) {
        for (size_t r = 0; r < table.n; r++) json_array_append_new(rows, row_json(&table.rows[r]));
        json_array_append_new(tables,
                              json_pack("{s:s, s:i, s:I, s:o, s:O}", "device", el_device_name(m->open.devices[i]),
                                        "rank", el_layout_spot(&m->open.layout, m->open.first + i).worker, "steps",
                                        (json_int_t)table.n_steps, "parts", parts_json(&table), "rows", rows));
        el_op_table_free(&table);
    }
    json_decref(rows);
    return status;
}

enum { FILE_BYTES = EL_PATH_BYTES + 64 };

/* Named like torch's tensorboard_trace_handler does, for TensorBoard; negative: the folder. The first cycle's files are
 * in --trace's own folder, where tools look. */
static void name_file(const char *trace, int64_t cycle, int rank, char path[FILE_BYTES])
{
    char of_cycle[32] = "", of_rank[32] = "";
    if (cycle > 0) snprintf(of_cycle, sizeof of_cycle, "/cycle-%" PRId64, cycle + 1);
    if (rank >= 0) snprintf(of_rank, sizeof of_rank, "/rank-%d.pt.trace.json", rank);
    snprintf(path, FILE_BYTES, "%s%s%s", trace, of_cycle, of_rank);
}

static void remove_ranks(const char *trace, int64_t cycle, int first)
{
    char path[FILE_BYTES];
    do name_file(trace, cycle, first++, path);
    while (unlink(path) == 0);
}

static bool is_rank(const char *name)
{
    return fnmatch("rank-[0-9]*.pt.trace.json", name, 0) == 0;
}

/* Tools take all files of a folder for one job's. */
static void remove_older(const char *trace, int n_ranks, int64_t n_cycles)
{
    char folder[FILE_BYTES];
    for (int64_t cycle = 0; cycle < n_cycles; cycle++) remove_ranks(trace, cycle, n_ranks);
    do name_file(trace, n_cycles++, -1, folder);
    while (el_folder_remove(folder, is_rank));
}

static enum el_status write_rank(const struct el_job_measurement *m, int first,
                                 const struct el_profile_schedule *schedule, const int64_t *shifts_ns)
{
    struct el_trace_device devices[EL_SIMULATED_MAX];
    int n = 0;
    for (int i = first; i < m->open.n && el_job_recorder(m, i) == el_job_recorder(m, first); i++)
        devices[n++] = (struct el_trace_device){el_device_name(m->open.devices[i]), m->result.ledgers[i].live_by_tag};
    const struct el_trace_rank rank = {.rank = el_layout_spot(&m->open.layout, m->open.first + first).worker,
                                       .layout = &m->open.layout,
                                       .recorder = el_job_recorder(m, first),
                                       .devices = devices,
                                       .comm = m->result.comm,
                                       .begin = m->begin,
                                       .end = m->end,
                                       .schedule = *schedule,
                                       .shifts_ns = shifts_ns};
    const char *trace = m->job->trial->trace;
    int64_t n_cycles = el_trace_cycles(&rank);
    if (n_cycles > CYCLES_MAX) n_cycles = CYCLES_MAX;
    if (!*trace || n_cycles == 0) return EL_OK;
    for (int64_t cycle = 0; cycle < n_cycles; cycle++) {
        char folder[FILE_BYTES], path[FILE_BYTES];
        name_file(trace, cycle, -1, folder);
        name_file(trace, cycle, rank.rank, path);
        EL_TRY(el_folder_make(folder, "give another --trace"));
        EL_TRY(el_trace_write(&rank, cycle, path));
    }
    if (rank.rank == 0) remove_older(trace, m->open.layout.n_workers, n_cycles);
    return EL_OK;
}

static json_t *steps_json(const struct el_job_measurement *m, const struct el_profile_schedule *schedule)
{
    json_t *steps = json_array();
    for (size_t s = 0; s < el_recorder_step_count(m->recorders[0]); s++)
        if (el_profile_cycle(schedule, (int64_t)s) >= 0) json_array_append_new(steps, json_integer((json_int_t)s));
    return steps;
}

enum el_status el_job_profile(const struct el_job_measurement *m, json_t **profile_p)
{
    const struct el_trial *trial = m->job->trial;
    struct el_profile_schedule schedule;
    *profile_p = json_null();
    if (!m->n_recorders || m->job->repeat > 0 || !el_trial_profile(trial, &schedule)) return EL_OK;
    struct el_machine machine;
    const bool known = *trial->machine && !el_trial_backend(trial).simulated;
    if (known) EL_TRY(el_machine_read(trial->machine, &machine));
    json_t *tables = json_array();
    int64_t *shifts_ns = el_trace_shifts(m->recorders, m->n_recorders);
    enum el_status status = EL_OK;
    for (int i = 0; i < m->open.n && status == EL_OK; i++) {
        status = add_table(m, i, &schedule, known ? &machine : NULL, tables);
        bool first = i == 0 || el_job_recorder(m, i) != el_job_recorder(m, i - 1);
        if (status == EL_OK && first) status = write_rank(m, i, &schedule, shifts_ns);
    }
    if (status == EL_OK)
        *profile_p = el_json_of(
            EL_KEY("schedule", el_json_of(EL_KEY("wait", schedule.wait), EL_KEY("warmup", schedule.warmup),
                                          EL_KEY("active", schedule.active), EL_KEY("repeat", schedule.repeat),
                                          EL_KEY("skip_first", schedule.skip_first))),
            EL_KEY("steps", steps_json(m, &schedule)), EL_KEY("trace", el_json_filled(trial->trace)),
            EL_KEY("devices", json_incref(tables)));
    json_decref(tables);
    free(shifts_ns);
    return status;
}
