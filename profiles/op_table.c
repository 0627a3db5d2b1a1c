/* Profile schedules, and sums by op, phase and step. */
#include "profiles/op_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "profiles/intervals.h"
#include "profiles/recorder_internal.h"
#include "runtime/device/device.h"

enum { NUMBER_MAX = 1000000 };

static int64_t *place_of(struct el_profile_schedule *schedule, const char *word)
{
    return !strcmp(word, "wait")         ? &schedule->wait
           : !strcmp(word, "warmup")     ? &schedule->warmup
           : !strcmp(word, "active")     ? &schedule->active
           : !strcmp(word, "repeat")     ? &schedule->repeat
           : !strcmp(word, "skip_first") ? &schedule->skip_first
                                         : NULL;
}

static enum el_status refuse(const char *text)
{
    return el_fail(EL_ERR_INVALID,
                   "--profile %.80s: must be like wait=1,warmup=1,active=2,repeat=1 (and skip_first=N), each a whole "
                   "number, active at least 1",
                   text);
}

enum el_status el_profile_schedule_read(const char *text, struct el_profile_schedule *schedule_p)
{
    struct el_profile_schedule schedule = {0};
    for (const char *at = text; *at || at == text;) {
        char word[11], digits[8];
        int n = 0;
        if (sscanf(at, "%10[a-z_]=%7[0-9]%n", word, digits, &n) != 2) return refuse(text);
        int64_t *place = place_of(&schedule, word);
        if (!place || (*place = atoll(digits)) > NUMBER_MAX) return refuse(text);
        at += n;
        if (*at && (*at++ != ',' || !*at)) return refuse(text);
    }
    if (schedule.active < 1) return refuse(text);
    *schedule_p = schedule;
    return EL_OK;
}

int64_t el_profile_cycle(const struct el_profile_schedule *schedule, int64_t step)
{
    int64_t length = schedule->wait + schedule->warmup + schedule->active;
    step -= schedule->skip_first;
    if (step < 0 || (schedule->repeat > 0 && step / length >= schedule->repeat)) return -1;
    return step % length < schedule->wait + schedule->warmup ? -1 : step / length;
}

int64_t el_profile_schedule_steps(const struct el_profile_schedule *schedule)
{
    int64_t cycles = schedule->repeat > 0 ? schedule->repeat : 1;
    return schedule->skip_first + cycles * (schedule->wait + schedule->warmup + schedule->active);
}

enum { ROW_OF_STEP = 0, ROW_OF_PHASE = 1, ROW_OF_OP = ROW_OF_PHASE + EL_PHASE_COUNT };

static const char *name_of(const struct el_op_info *op)
{
    if (op->kernel.name) return op->kernel.name;
    if (op->messages.verb) return op->messages.verb;
    return op->op_class == EL_CLASS_COPY ? "copy" : op->label;
}

const char *el_op_part_name(enum el_op_part_kind part)
{
    static const char *const names[] = {
#define EL_OP_PART_TEXT(name, text) [name] = (text),
        EL_OP_PART_LIST(EL_OP_PART_TEXT)
#undef EL_OP_PART_TEXT
    };
    return names[part];
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static enum el_op_part_kind part_of(const struct el_op_info *op)
{
    const char *kernel = op->kernel.name ? op->kernel.name : "";
    if (op->op_class == EL_CLASS_COMM) return EL_OP_PART_COMM;
    if (op->op_class == EL_CLASS_HOST) return EL_OP_PART_HOST;
    if (op->op_class == EL_CLASS_COPY || op->phase == EL_PHASE_REDUCE) return EL_OP_PART_COPIES;
    if (el_op_multiplies(kernel)) return EL_OP_PART_PRODUCTS;
    if (begins(kernel, "attention_")) return EL_OP_PART_ATTENTION;
    if (begins(kernel, "embedding_")) return EL_OP_PART_EMBEDDING;
    return op->phase == EL_PHASE_OPTIMIZER                                 ? EL_OP_PART_OPTIMIZER
           : op->phase == EL_PHASE_LOSS || begins(kernel, "cross_entropy") ? EL_OP_PART_LOSS
                                                                           : EL_OP_PART_ELEMENT_WISE;
}

static double limit_of(const struct el_op_info *op, const struct el_machine *machine)
{
    if (!machine || op->op_class != EL_CLASS_COMPUTE) return 0;
    return 1e9 * fmax(op->flops / el_machine_most_flops_per_s(machine, op->kernel.dtype),
                      op->bytes / machine->memory_bytes_per_s);
}

static struct el_op_row *row_of(struct el_op_table *table, const struct el_op_info *op)
{
    const char *name = name_of(op);
    for (size_t i = ROW_OF_OP; i < table->n; i++)
        if (!strcmp(table->rows[i].name, name)) return &table->rows[i];
    table->rows[table->n] = (struct el_op_row){.name = name, .kind = EL_ROW_OP};
    return &table->rows[table->n++];
}

static bool is_on(const struct el_op_info *op, int position, int stream)
{
    return op->device == position && op->stream == stream;
}

static void add_ops(struct el_op_table *table, const struct el_step_event *step, int position,
                    const struct el_machine *machine)
{
    for (int i = 0; i < step->n_ops; i++) {
        const struct el_op_info *op = &step->ops[i];
        if (op->device != position) continue;
        struct el_op_row *rows[] = {row_of(table, op), &table->rows[ROW_OF_PHASE + op->phase],
                                    &table->rows[ROW_OF_STEP]};
        int64_t took_ns = step->spans[i].end_ns - step->spans[i].begin_ns;
        rows[0]->calls++;
        rows[0]->total_ns += took_ns;
        rows[0]->self_ns += took_ns;
        rows[1]->self_ns -= took_ns; /* of its runs, added below */
        table->parts[part_of(op)].self_ns += took_ns;
        table->parts[part_of(op)].limit_ns += limit_of(op, machine);
        for (int k = 0; k < 3; k++) {
            rows[k]->flops += op->flops;
            rows[k]->bytes += op->bytes;
        }
    }
}

/* On other streams than compute each op is a run: gaps between them belong to no phase. */
static void add_runs(struct el_op_table *table, const struct el_step_event *step, int position, int stream,
                     struct el_intervals *all)
{
    struct el_span run = {0};
    int phase = -1;
    for (int i = 0; i <= step->n_ops; i++) {
        const struct el_op_info *op = i < step->n_ops ? &step->ops[i] : NULL;
        if (op && !is_on(op, position, stream)) continue;
        bool ends = !op || (int)op->phase != phase || stream != EL_STREAM_COMPUTE;
        if (phase >= 0 && ends) {
            struct el_op_row *row = &table->rows[ROW_OF_PHASE + phase];
            row->calls++;
            row->total_ns += run.end_ns - run.begin_ns;
            row->self_ns += run.end_ns - run.begin_ns;
            el_intervals_add(all, run);
        }
        if (!op) return;
        if (phase < 0 || ends) run.begin_ns = step->spans[i].begin_ns;
        run.end_ns = step->spans[i].end_ns;
        phase = (int)op->phase;
    }
}

/* On the compute stream, where marks lie. `step` -1: backwards. */
static const struct el_op_info *nearest(const struct el_step_event *event, int at, int step, int position)
{
    while (at >= 0 && at < event->n_ops && !is_on(&event->ops[at], position, EL_STREAM_COMPUTE)) at += step;
    return at >= 0 && at < event->n_ops ? &event->ops[at] : NULL;
}

static void add_memory(struct el_op_table *table, const struct el_step_event *step, int position)
{
    for (int m = 0; m < step->n_marks; m++) {
        const struct el_mark *mark = &step->marks[m];
        if (mark->device != position) continue;
        const struct el_op_info *op =
            mark->bytes > 0 ? nearest(step, mark->op, 1, position) : nearest(step, mark->op - 1, -1, position);
        if (!op) continue;
        row_of(table, op)->memory_bytes += mark->bytes;
        table->rows[ROW_OF_PHASE + op->phase].memory_bytes += mark->bytes;
        table->rows[ROW_OF_STEP].memory_bytes += mark->bytes;
    }
}

static bool add_step(struct el_op_table *table, const struct el_step_event *step, int position,
                     const struct el_machine *machine)
{
    struct el_intervals all = {0};
    struct el_op_row *whole = &table->rows[ROW_OF_STEP];
    add_ops(table, step, position, machine);
    for (int stream = 0; stream < EL_DEVICE_STREAMS_MAX; stream++) add_runs(table, step, position, stream, &all);
    add_memory(table, step, position);
    el_intervals_unite(&all);
    whole->calls++;
    whole->total_ns += step->whole.end_ns - step->whole.begin_ns;
    whole->self_ns += step->whole.end_ns - step->whole.begin_ns - el_intervals_measure(&all);
    bool enough = !all.failed;
    el_intervals_free(&all);
    table->n_steps++;
    return enough;
}

static void drop_empty(struct el_op_table *table)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->n; i++)
        if (table->rows[i].calls > 0) table->rows[kept++] = table->rows[i];
    table->n = kept;
}

static enum el_status fail_memory(struct el_op_table *table)
{
    el_op_table_free(table);
    return el_fail(EL_ERR_HOST_MEMORY, "profile: no memory for a table");
}

enum el_status el_op_table_make(const struct el_recorder *recorder, int position,
                                const struct el_profile_schedule *schedule, const struct el_machine *machine,
                                struct el_op_table *table_p)
{
    EL_TRY(el_recorder_check(recorder, position));
    struct el_op_table table = {.n = ROW_OF_OP};
    size_t most = ROW_OF_OP + 1;
    bool enough = true;
    for (int l = 0; l < recorder->n_lists; l++) most += (size_t)recorder->lists[l].n_ops;
    table.rows = calloc(most, sizeof *table.rows);
    if (!table.rows) return fail_memory(&table);
    table.rows[ROW_OF_STEP] = (struct el_op_row){.name = "ProfilerStep*", .kind = EL_ROW_STEP};
    for (int p = 0; p < EL_PHASE_COUNT; p++)
        table.rows[ROW_OF_PHASE + p] =
            (struct el_op_row){.name = el_phase_name((enum el_phase)p), .kind = EL_ROW_PHASE};
    for (size_t s = 0; s < el_recorder_step_count(recorder) && enough; s++) {
        struct el_step_event step = el_recorder_step(recorder, s);
        if (el_profile_cycle(schedule, (int64_t)s) >= 0) enough = add_step(&table, &step, position, machine);
    }
    if (!enough) return fail_memory(&table);
    for (size_t r = ROW_OF_STEP; r < ROW_OF_OP; r++) table.parts[EL_OP_PART_NONE].self_ns += table.rows[r].self_ns;
    drop_empty(&table);
    *table_p = table;
    return EL_OK;
}

void el_op_table_free(struct el_op_table *table)
{
    free(table->rows);
    *table = (struct el_op_table){0};
}
