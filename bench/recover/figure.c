/* Steps against time, with each loss of a rank. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/plot/plot.h"
#include "bench/recover/recover.h"

static double first_step_s(const json_t *events)
{
    EL_EACH(event, events)
        if (el_json_is(event, "event", "step")) return el_json_number(event, "s");
    return NAN;
}

static void put_about(const json_t *document, double last_s, FILE *file)
{
    char title[EL_TITLE_BYTES], foot[EL_TITLE_BYTES];
    static const struct el_data_names none = {"", ""};
    snprintf(title, sizeof title, "%s, %s on %.0f devices: a rank is lost", el_json_text(document, "model", "?"),
             el_json_text(document, "mode", "?"), el_json_number(document, "devices"));
    snprintf(foot, sizeof foot, "Goodput: %.3g %% of the time. A checkpoint every %.0f steps.",
             100 * el_json_number(document, "goodput"), el_json_number(document, "checkpoints.every"));
    el_data_about(file, &(struct el_data_about){title, &none, last_s, 12, foot}, "");
    fputc('\n', file);
}

/* Above the steps done then. */
static void put_parts(const json_t *falls, double begin_s, double steps, FILE *file)
{
    static const char *const parts[][2] = {
        {"detect", "detect_s"}, {"restart", "restart_s"}, {"load", "load_s"}, {"catch_up", "catch_up_s"}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        el_data_block(file, "from s, to s, low, high", "%s", parts[i][0]);
        fputs("0\t0\t0\t0\n", file); /* a block is never empty */
        EL_EACH(fall, falls) {
            double from = el_json_number(fall, "s") - begin_s, low = el_json_number(fall, "step") + 0.03 * steps;
            for (size_t before = 0; before < i; before++) from += el_json_number(fall, parts[before][1]);
            double to = from + el_json_number(fall, parts[i][1]);
            if (!isnan(to)) fprintf(file, "%.6g\t%.6g\t%g\t%g\n", from, to, low, low + 0.05 * steps);
        }
    }
}

static enum el_status write(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    const json_t *events = json_object_get(document, "events");
    const double begin = first_step_s(events), step_s = el_json_number(document, "step_ms") / 1e3,
                 steps = el_json_number(document, "steps");
    double last = 0;
    int attempt = 0;
    (void)figure;
    *any_p = !isnan(begin);
    if (!*any_p) return EL_OK;
    EL_EACH(event, events) last = fmax(last, el_json_number(event, "s") - begin);
    put_about(document, last, file);
    EL_EACH(event, events) {
        if (el_json_is(event, "event", "start")) el_data_block(file, "seconds, steps done", "attempt%d", attempt++);
        if (el_json_is(event, "event", "step"))
            fprintf(file, "%.6g\t%.0f\n", el_json_number(event, "s") - begin, el_json_number(event, "step"));
    }
    el_data_block(file, "seconds, steps done, what happened", "falls");
    EL_EACH(fall, json_object_get(document, "falls"))
        fprintf(file, "%.6g\t%.0f\t%s\n", el_json_number(fall, "s") - begin, el_json_number(fall, "step"),
                el_json_is(fall, "kind", "kill") ? "killed" : "stopped");
    put_parts(json_object_get(document, "falls"), begin, steps, file);
    el_data_block(file, "seconds, steps done", "undisturbed");
    fprintf(file, "0\t0\n%.6g\t%.0f\n", steps * step_s, steps);
    el_data_block(file, "attempts", "counts");
    fprintf(file, "%d\n", attempt);
    return EL_OK;
}

const struct el_figure el_figure_recover = {.name = "recover", .write = write, .optional = true};
