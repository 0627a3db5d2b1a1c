/* Training whole epochs: how long one takes, and what accuracy was reached after how many seconds, a row a trial. */
#include <math.h>
#include <stdint.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/report/report.h"
#include "bench/report/row_names.h"

static const struct el_column columns[] = {EL_SHOWN("mode", -9, el_report_mode),
                                           EL_SHOWN("global batch", -14, el_table_batch),
                                           EL_COUNT("epochs", 7, "reached.epochs"),
                                           EL_FIGURE("s per epoch", 13, "reached.epoch_s"),
                                           EL_PERCENT("held-out %", 12, "reached.best_pct"),
                                           EL_FIGURE("after s", 9, "reached.after_s"),
                                           EL_PERCENT("test %", 8, "reached.test_pct"),
                                           EL_NO_MORE};

/* The best epoch by held-out accuracy, and the training until its end. */
static json_t *reached(const json_t *trial)
{
    const json_t *epochs = json_object_get(trial, "epochs");
    double seconds = 0, best = NAN, after = NAN;
    size_t n = json_array_size(epochs);
    EL_EACH(epoch, epochs) {
        double accuracy = el_json_number(epoch, "held_out_accuracy");
        seconds += el_json_number(epoch, "seconds");
        if (!(accuracy > best) && !isnan(best)) continue;
        best = accuracy;
        after = seconds;
    }
    return json_pack("{s:i, s:o, s:o, s:o, s:o}", "epochs", (int)n, "epoch_s", el_json_real(seconds / (double)n),
                     "best_pct", el_json_real(100 * best), "after_s", el_json_real(after), "test_pct",
                     el_json_real(100 * el_json_number(trial, "accuracy")));
}

void el_report_epochs(const json_t *run, FILE *out, bool colour)
{
    const json_t *trials = json_object_get(run, "trials");
    const struct el_table table = {.columns = columns, .out = out, .colour = colour};
    bool begun = false;
    EL_EACH(trial, trials) {
        if (json_array_size(json_object_get(trial, "epochs")) == 0) continue;
        if (!begun)
            fputs("\nAccuracy in the first launch: best epoch by held-out samples, and the training until its end\n",
                  out);
        if (!begun) el_table_heads(&table, EL_TABLE_BOLD);
        begun = true;
        json_t *row = json_copy((json_t *)(uintptr_t)trial);
        json_object_set_new(row, "reached", reached(trial));
        el_table_row(&table, EL_TABLE_PLAIN, row);
        json_decref(row);
    }
}
