/* Held-out accuracy after each epoch against seconds of training: a line per trial. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/plot/plot.h"

enum { WIDTH_BARS = 10 };
static const double MARGIN = 1.12; /* room for the batch at a line's end */

static bool has_accuracy(const json_t *trial)
{
    return !isnan(el_json_number(trial, "epochs.0.held_out_accuracy"));
}

/* `file` NULL: only returns the last one. */
static void put_points(const json_t *trial, FILE *file, double *seconds_p, double *accuracy_p)
{
    const json_t *epochs = json_object_get(trial, "epochs");
    *seconds_p = 0;
    EL_EACH(epoch, epochs) {
        *seconds_p += el_json_number(epoch, "seconds");
        *accuracy_p = 100 * el_json_number(epoch, "held_out_accuracy");
        if (file) fprintf(file, "%.6g\t%.6g\n", *seconds_p, *accuracy_p);
    }
}

static void put_about(const json_t *trials, const struct el_data_names *modes, FILE *file)
{
    char title[EL_TITLE_BYTES];
    double longest = 0, seconds, accuracy;
    EL_EACH(trial, trials) {
        put_points(trial, NULL, &seconds, &accuracy);
        longest = fmax(longest, seconds);
    }
    el_data_title(trials, title);
    el_data_about(file, &(struct el_data_about){title, modes, longest * MARGIN, WIDTH_BARS, NULL}, ", lines");
    fprintf(file, "\t%zu\n", json_array_size(trials));
    el_data_warning(file, trials, NULL);
    el_data_looks(file, modes);
}

static enum el_status write(const struct el_figure *figure, const json_t *run, FILE *file, bool *any_p)
{
    (void)figure;
    const json_t *trials = json_object_get(run, "trials");
    struct el_data_names modes = {"", ""};
    double seconds = 0, accuracy = 0;
    EL_EACH(trial, trials)
        if (has_accuracy(trial)) el_data_add_name(modes.present, el_json_text(trial, "mode", "?"));
    *any_p = *modes.present;
    if (!*any_p) return EL_OK;
    put_about(trials, &modes, file);
    EL_EACH(trial, trials) {
        if (!has_accuracy(trial)) continue;
        el_data_block(file, "seconds of training, accuracy on held-out samples in %", "line%zu", trial_at.i);
        put_points(trial, file, &seconds, &accuracy);
    }
    el_data_block(file, "end of a line: seconds, accuracy in %, mode, its block, global batch, whether it has a mark",
                  "ends");
    EL_EACH(trial, trials) {
        if (!has_accuracy(trial)) continue;
        put_points(trial, NULL, &seconds, &accuracy);
        fprintf(file, "%.6g\t%.6g\t%s\tline%zu\t%.0f\t%d\n", seconds, accuracy,
                el_data_word(el_json_text(trial, "mode", "?")).text, trial_at.i, el_json_number(trial, "global_batch"),
                el_data_has_mark(trial));
    }
    return EL_OK;
}

const struct el_figure el_figure_accuracy = {.name = "accuracy", .write = write, .optional = true};
