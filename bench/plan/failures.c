/* What failures of devices leave of a row's throughput: a record of `recover` says what a checkpoint takes and what
 * comes between a failure and the next step, the row how much there is to write and to read. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/plan/plan.h"
#include "bench/stats/stats.h"

#define SAY(out, ...) el_text_say("", "  ", EL_REPORT_COLUMNS, out, __VA_ARGS__)

/* ---- what the record says ---- */

/* From the job's first start to its first step: nothing was read then. */
static double first_start_s(const json_t *events)
{
    double start = NAN;
    EL_EACH(event, events) {
        if (el_json_is(event, "event", "start") && isnan(start)) start = el_json_number(event, "s");
        if (el_json_is(event, "event", "step")) return el_json_number(event, "s") - start;
    }
    return NAN;
}

enum el_status el_plan_failures_read(const json_t *record, double device_mtbf_s, struct el_plan_failures *failures_p)
{
    const json_t *falls = json_object_get(record, "falls"), *last = json_array_get(falls, json_array_size(falls) - 1);
    const double first_s = first_start_s(json_object_get(record, "events")),
                 cost_s = el_json_number(record, "cost_ms") / 1e3,
                 every_s = el_json_number(record, "checkpoints.every") * el_json_number(record, "step_ms") / 1e3;
    *failures_p = (struct el_plan_failures){
        .device_mtbf_s = device_mtbf_s,
        .bytes = el_json_number(record, "checkpoints.copy_bytes"),
        .cost_s = cost_s,
        .cost_high_s = fmax(cost_s, every_s * el_json_number(record, "cost_pct_ci95.1") / 100),
        .write_s = el_json_number(record, "checkpoints.write_ms") / 1e3,
        .start_s = el_json_number(last, "detect_s") + el_json_number(last, "restart_s") + first_s,
        .job_bytes = el_json_number(record, "checkpoints.job_bytes"),
        .read_s = el_json_number(last, "load_s") - first_s};
    const struct el_plan_failures *f = failures_p;
    const struct {
        const char *what;
        double value;
    } needed[] = {
        {"what a checkpoint takes from training (cost_ms)", f->cost_s},
        {"the time to write one (checkpoints.write_ms)", f->write_s},
        {"the size of a checkpoint (checkpoints.copy_bytes)", f->bytes},
        {"the size of all files of a checkpoint (checkpoints.job_bytes)", f->job_bytes},
        {"the time from a failure to a start (falls, events)", f->start_s},
        {"a time to read a checkpoint, which must be over that of a start without one (falls.load_s)", f->read_s}};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!(needed[i].value > 0))
            return el_fail(EL_ERR_INVALID,
                           "--recover: its record does not have %s: run 'evenload recover' again, with a larger model",
                           needed[i].what);
    return EL_OK;
}

json_t *el_plan_failures_json(const struct el_plan_failures *failures)
{
    return el_json_of(EL_KEY("device_mtbf_s", failures->device_mtbf_s), EL_KEY("bytes", failures->bytes),
                      EL_KEY("cost_s", failures->cost_s), EL_KEY("cost_high_s", failures->cost_high_s),
                      EL_KEY("write_s", failures->write_s), EL_KEY("start_s", failures->start_s),
                      EL_KEY("job_bytes", failures->job_bytes), EL_KEY("read_s", failures->read_s));
}

/* ---- rows ---- */

/* A job's checkpoints and failures. */
struct losses {
    double cost_s, write_s, recovery_s, mtbf_s, step_s;
};

/* Whole steps, at least one, and no fewer than it takes to write the checkpoint before. */
static double steps_between(const struct losses *l)
{
    const double interval_s = el_stats_checkpoint_interval(l->cost_s, l->mtbf_s);
    return fmax(fmax(1, round(interval_s / l->step_s)), ceil(l->write_s / l->step_s));
}

static double goodput_of(const struct losses *l)
{
    return el_stats_goodput(steps_between(l) * l->step_s, l->cost_s, l->recovery_s, l->mtbf_s);
}

void el_plan_failures_add(const struct el_plan_failures *failures, json_t *row)
{
    const double size = el_json_number(row, "checkpoint_bytes") / failures->bytes,
                 all = el_json_number(row, "state_bytes") / failures->job_bytes;
    struct losses l = {.cost_s = failures->cost_s * size,
                       .write_s = failures->write_s * size,
                       .recovery_s = failures->start_s + failures->read_s * all,
                       .mtbf_s = failures->device_mtbf_s / el_json_number(row, "devices"),
                       .step_s = el_json_number(row, "step_ms") / 1e3};
    const double steps = steps_between(&l), goodput = goodput_of(&l);
    if (isnan(l.step_s)) return;
    el_json_put_all(row, EL_KEY("mtbf_s", l.mtbf_s), EL_KEY("checkpoint_s", l.cost_s), EL_KEY("interval_steps", steps),
                    EL_KEY("interval_s", steps * l.step_s), EL_KEY("recovery_s", l.recovery_s),
                    EL_KEY("goodput_pct", 100 * goodput),
                    EL_KEY("counted_samples_per_s", goodput * el_json_number(row, "samples_per_s")),
                    EL_KEY("counted_tokens_per_s", goodput * el_json_number(row, "tokens_per_s")));
    l.cost_s = failures->cost_high_s * size;
    el_json_put_real(row, "goodput_pct_low", 100 * goodput_of(&l));
}

/* ---- for people ---- */

static void show_lost(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    el_text_figure(100 - el_json_number(row, "goodput_pct"), text);
}

static void show_most_lost(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    el_text_figure(100 - el_json_number(row, "goodput_pct_low"), text);
}

#define UP_TO_LOST                                                                                                     \
    EL_COUNT("devices", 7, "devices"), {.head = "mode", .gap = 1, .width = -8, .kind = EL_CELL_TEXT, .path = "mode"},  \
        EL_TIME("failure every", 13, "mtbf_s"),                                                                        \
        {.head = "GiB written",                                                                                        \
         .width = 11,                                                                                                  \
         .kind = EL_CELL_FIGURE,                                                                                       \
         .path = "checkpoint_bytes",                                                                                   \
         .scale = 1.0 / (1 << 30)},                                                                                    \
        EL_TIME("takes", 8, "checkpoint_s"), EL_TIME("every", 9, "interval_s"),                                        \
        EL_COUNT("steps", 8, "interval_steps"), EL_SHOWN("lost %", 7, show_lost), EL_SHOWN("up to", 6, show_most_lost)
#define MESH                                                                                                           \
    {                                                                                                                  \
        .head = "mesh", .gap = 2, .width = -1, .kind = EL_CELL_TEXT, .path = "mesh"                                    \
    }
static const struct el_column of_tokens[] = {UP_TO_LOST, EL_FIGURE("tokens/s left", 14, "counted_tokens_per_s"), MESH,
                                             EL_NO_MORE},
                              of_samples[] = {UP_TO_LOST, EL_FIGURE("samples/s left", 15, "counted_samples_per_s"),
                                              MESH, EL_NO_MORE};

void el_plan_print_failures(const json_t *document, size_t n_rows, FILE *out, bool colour)
{
    const bool tokens = el_json_number(document, "rows.0.counted_tokens_per_s") > 0;
    const struct el_table table = {
        .columns = tokens ? of_tokens : of_samples, .context = document, .out = out, .colour = colour};
    const json_t *rows = json_object_get(document, "rows"), *failures = json_object_get(document, "failures");
    char every[EL_FIGURE_BYTES], recovery[EL_FIGURE_BYTES], size[EL_FIGURE_BYTES];
    size_t n = 0;
    if (!json_is_object(failures) || !el_json_at(document, "rows.0.goodput_pct")) return;
    fputc('\n', out);
    SAY(out,
        "Goodput, if a device fails once in %s and a recovery takes %s. A checkpoint takes from training as much as "
        "was "
        "measured with %s MB per worker, in proportion to its bytes",
        el_text_time(el_json_number(failures, "device_mtbf_s"), every),
        el_text_time(el_json_number(document, "rows.0.recovery_s"), recovery),
        el_text_figure(el_json_number(failures, "bytes") / 1e6, size));
    fputc('\n', out);
    EL_EACH(row, rows) {
        if (n == n_rows || !json_object_get(row, "goodput_pct")) break;
        if (n++ == 0) el_table_heads(&table, EL_TABLE_BOLD);
        if (n > 1 && !el_data_seen(rows, row_at.i, "devices")) fputc('\n', out);
        el_table_row(&table, EL_TABLE_PLAIN, row);
    }
}
