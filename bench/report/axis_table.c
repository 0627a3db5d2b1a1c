/* Communication along each axis: of a trial's slowest device, what it sends in a step, and how long. From the record.
 *
 * An axis is a group's; where the members of a group differ along several, messages of a pipeline are between stages,
 * and all else is called after the group. Copies between devices are in no group. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/report/report.h"

const char *el_report_axis(const char *group, const json_t *figures)
{
    return el_json_text(figures, "axis", !strcmp(group, "pipeline") ? "stage" : group);
}

/* `what` of an axis grows by `figures`' own. */
static void add(json_t *row, const json_t *figures, const char *from, const char *what)
{
    double sum = el_json_number(row, what), more = el_json_number(figures, from);
    el_json_put_real(row, what, isnan(sum) ? more : sum + more);
}

json_t *el_report_axes_of(const json_t *trial)
{
    int64_t slowest = el_json_whole(trial, "slowest_member");
    const json_t *device = json_array_get(json_object_get(trial, "per_device"), slowest < 0 ? 0 : (size_t)slowest);
    const json_t *comm = json_object_get(device, "comm");
    json_t *axes = json_object();
    double bytes = el_json_number(comm, "bytes"), total = el_json_number(comm, "total_ms"),
           exposed = el_json_number(comm, "exposed_ms");
    EL_EACH_KEY(group, figures, json_object_get(comm, "by_group")) {
        const char *axis = el_report_axis(group, figures);
        if (!json_object_get(axes, axis)) el_json_put(axes, axis, json_object());
        json_t *row = json_object_get(axes, axis);
        add(row, figures, "sent_bytes", "sent_bytes");
        add(row, figures, "total_ms", "total_ms");
        add(row, figures, "wait_ms", "wait_ms");
        add(row, figures, "exposed_ms", "exposed_ms");
        bytes -= el_json_number(figures, "sent_bytes");
        total -= el_json_number(figures, "total_ms");
        exposed -= el_json_number(figures, "exposed_ms");
    }
    if (bytes >= 1)
        el_json_put(axes, "copies",
                    el_json_of(EL_KEY("sent_bytes", el_json_rounded(bytes)), EL_KEY("total_ms", total),
                               EL_KEY("wait_ms", (double)NAN), EL_KEY("exposed_ms", exposed)));
    return axes;
}

bool el_report_is_cut(const json_t *axes)
{
    EL_EACH_KEY(axis, figures, axes)
        if (json_is_object(figures) && (!strcmp(axis, "tensor") || !strcmp(axis, "stage"))) return true;
    return false;
}

json_t *el_report_axis_rows(const json_t *trials)
{
    json_t *rows = json_array();
    bool any_cut = false;
    EL_EACH(trial, trials) {
        char mode[64], batch[EL_CELL_BYTES];
        json_t *axes = el_report_axes_of(trial);
        el_table_mode(trial, mode, sizeof mode);
        el_table_batch(trial, NULL, batch);
        any_cut = any_cut || el_report_is_cut(axes);
        EL_EACH_KEY(axis, figures, axes) {
            double total_ms = el_json_number(figures, "total_ms"), exposed_ms = el_json_number(figures, "exposed_ms");
            json_t *row = json_copy(figures);
            el_json_put_all(
                row, EL_KEY("mode", mode), EL_KEY("devices", el_json_number(trial, "devices")), EL_KEY("batch", batch),
                EL_KEY("axis", axis),
                EL_KEY("hidden_pct", total_ms > 0 ? 1e-3 * round(1e5 * (1 - exposed_ms / total_ms)) : (double)NAN));
            json_array_append_new(rows, row);
        }
        json_decref(axes);
    }
    if (!any_cut) json_array_clear(rows);
    return rows;
}

const struct el_column el_report_axis_columns[] = {EL_TEXT("mode", -9, "mode"),
                                                   EL_TEXT("global batch", -14, "batch"),
                                                   EL_COUNT("dev.", 4, "devices"),
                                                   {.head = "axis", .gap = 2, .width = -8, .path = "axis"},
                                                   EL_MIB("sent MiB", 9, "sent_bytes"),
                                                   EL_FIGURE("total", 8, "total_ms"),
                                                   EL_FIGURE("wait", 8, "wait_ms"),
                                                   EL_FIGURE("exposed", 9, "exposed_ms"),
                                                   EL_FIGURE("hidden %", 10, "hidden_pct"),
                                                   EL_NO_MORE};

void el_report_axis_list(json_t *rows, FILE *out)
{
    const struct el_table table = {.columns = el_report_axis_columns, .out = out};
    el_table_list(&table,
                  "\nCommunication by axis, ms per step of the slowest device; exposed: not hidden, with the wait\n",
                  rows);
}

void el_report_axes(const json_t *run, FILE *out)
{
    el_report_axis_list(el_report_axis_rows(json_object_get(run, "trials")), out);
}
