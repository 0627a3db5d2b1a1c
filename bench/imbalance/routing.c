/* Where the tokens of a mixture of experts went: by rank, by expert, and a picture of experts and steps. */
#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/plot/data_file.h"
#include "bench/record/metrics.h"
#include "bench/report/report.h"

enum { EXPERTS_SHOWN = 16, COLUMNS_MAX = 256, LABELS_MAX = 12, NAMES_MAX = 32, WIDTH_IN_BARS = 16 };
static const double UNEVEN = 1.1; /* a smaller largest over mean is even */

static const json_t *routing_of(const json_t *device)
{
    const json_t *routing = json_object_get(device, "routing");
    return json_is_object(routing) ? routing : NULL;
}

static bool is_known(const json_t *devices)
{
    EL_EACH(device, devices)
        if (!routing_of(device)) return false;
    return json_array_size(devices) > 0;
}

static double at(const json_t *array, size_t i)
{
    return json_number_value(json_array_get(array, i));
}

static double sum_of(const json_t *array, size_t first, size_t n)
{
    double sum = 0;
    for (size_t i = first; i < first + n; i++) sum += at(array, i);
    return sum;
}

/* Ranks that share the experts. */
static size_t ranks_of(const json_t *devices)
{
    double most = 0;
    EL_EACH(device, devices) most = fmax(most, el_json_number(device, "layout.expert"));
    return (size_t)most + 1;
}

/* The experts on a device: [first, first + n). */
static size_t experts_of(const json_t *devices, const json_t *device, size_t *first_p)
{
    const size_t all = json_array_size(el_json_at(device, "routing.kept")), n = all / ranks_of(devices);
    *first_p = (size_t)el_json_number(device, "layout.expert") * n;
    return n;
}

double el_imbalance_rows(const json_t *devices, const json_t *device)
{
    double rows = 0;
    if (!routing_of(device)) return NAN;
    const bool shared = ranks_of(devices) > 1;
    size_t first;
    const size_t n = experts_of(devices, device, &first);
    EL_EACH(other, devices)
        if (other == device ||
            (shared && el_json_number(other, "layout.data_rank") == el_json_number(device, "layout.data_rank")))
            rows += sum_of(el_json_at(other, "routing.kept"), first, n);
    return rows / el_json_number(device, "routing.steps");
}

static json_t *ranks_json(const json_t *devices, double *most_p)
{
    json_t *ranks = json_array();
    double all = 0;
    const size_t n_devices = json_array_size(devices);
    EL_EACH(device, devices) all += el_imbalance_rows(devices, device);
    *most_p = 0;
    EL_EACH(device, devices) {
        size_t first;
        const size_t n = experts_of(devices, device, &first);
        const double rows = el_imbalance_rows(devices, device), over = rows / all * (double)n_devices;
        char experts[32];
        snprintf(experts, sizeof experts, "%zu to %zu", first, first + n - 1);
        *most_p = fmax(*most_p, over);
        json_array_append_new(ranks, el_json_of(EL_KEY("rank", el_json_text(device, "device", "?")),
                                                EL_KEY("experts", experts), EL_KEY("first", first), EL_KEY("n", n),
                                                EL_KEY("rows", rows), EL_KEY("pct", 100 * rows / all),
                                                EL_KEY("over_mean", over),
                                                EL_KEY("compute_ms", el_json_number(device, "compute_ms")),
                                                EL_KEY("wait_ms", el_json_number(device, el_at_device_comm_wait_ms)),
                                                EL_KEY("sent_bytes", el_json_number(device, "sent_bytes")),
                                                EL_KEY("peak_bytes", el_json_number(device, el_at_device_peak_bytes))));
    }
    return ranks;
}

/* `choices` of all steps, over all devices. */
static json_t *experts_json(const json_t *devices, double steps, double *most_p, double *dropped_p)
{
    const json_t *first = json_array_get(devices, 0);
    const size_t n = json_array_size(el_json_at(first, "routing.choices")), own = n / ranks_of(devices);
    json_t *experts = json_array();
    double all = 0, all_kept = 0;
    EL_EACH(device, devices) {
        all += sum_of(el_json_at(device, "routing.choices"), 0, n);
        all_kept += sum_of(el_json_at(device, "routing.kept"), 0, n);
    }
    *most_p = 0, *dropped_p = 100 * (1 - all_kept / all);
    for (size_t e = 0; e < n; e++) {
        double choices = 0, kept = 0;
        EL_EACH(device, devices) {
            choices += at(el_json_at(device, "routing.choices"), e);
            kept += at(el_json_at(device, "routing.kept"), e);
        }
        *most_p = fmax(*most_p, choices / all * (double)n);
        json_array_append_new(
            experts, el_json_of(EL_KEY("expert", e), EL_KEY("expert_rank", e / own), EL_KEY("choices", choices / steps),
                                EL_KEY("pct", 100 * choices / all), EL_KEY("over_mean", choices / all * (double)n),
                                EL_KEY("dropped_pct", choices > 0 ? 100 * (1 - kept / choices) : 0)));
    }
    return experts;
}

static void tell(const json_t *ranks, const json_t *experts, double dropped, char text[EL_SENTENCE_BYTES])
{
    char pct[EL_FIGURE_BYTES], over[EL_FIGURE_BYTES];
    const json_t *rank = json_array_get(ranks, 0), *expert = json_array_get(experts, 0);
    EL_EACH(other, ranks)
        if (el_json_number(other, "rows") > el_json_number(rank, "rows")) rank = other;
    EL_EACH(other, experts)
        if (el_json_number(other, "choices") > el_json_number(expert, "choices")) expert = other;
    const bool even = el_json_number(rank, "over_mean") < UNEVEN;
    *text = 0;
    if (even)
        el_text_append(text, EL_SENTENCE_BYTES, "every rank computes about as many tokens");
    else
        el_text_append(text, EL_SENTENCE_BYTES, "%s gets %s %% of the tokens, %s times its even share",
                       el_json_text(rank, "rank", "?"), el_text_figure(el_json_number(rank, "pct"), pct),
                       el_text_figure(el_json_number(rank, "over_mean"), over));
    el_text_append(text, EL_SENTENCE_BYTES, "; expert %lld alone %s %% (%s times)",
                   (long long)el_json_whole(expert, "expert"), el_text_figure(el_json_number(expert, "pct"), pct),
                   el_text_figure(el_json_number(expert, "over_mean"), over));
    if (dropped > 0)
        el_text_append(text, EL_SENTENCE_BYTES, "; %s %% of the choices are dropped (--model capacity)",
                       el_text_figure(dropped, pct));
}

json_t *el_imbalance_routing(const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    char sentence[EL_SENTENCE_BYTES];
    double most_rank, most_expert, dropped;
    if (!is_known(devices)) return json_null();
    const double steps = el_json_number(devices, "0.routing.steps");
    json_t *ranks = ranks_json(devices, &most_rank), *experts = experts_json(devices, steps, &most_expert, &dropped);
    tell(ranks, experts, dropped, sentence);
    return el_json_of(EL_KEY("layers", el_json_whole(devices, "0.routing.layers")), EL_KEY("steps", steps),
                      EL_KEY("rank_max_over_mean", most_rank), EL_KEY("expert_max_over_mean", most_expert),
                      EL_KEY("dropped_pct", dropped), EL_KEY("ranks", ranks), EL_KEY("experts", experts),
                      EL_KEY("sentence", sentence));
}

static const struct el_column rank_columns[] = EL_COLUMNS(
    EL_TEXT("rank", -10, "rank"), EL_TEXT("experts", -12, "experts"), EL_FIGURE("rows a step", 12, "rows"),
    EL_FIGURE("%", 7, "pct"), EL_FIGURE("of its share", 14, "over_mean"), EL_FIGURE("compute ms", 12, "compute_ms"),
    EL_FIGURE("wait ms", 10, "wait_ms"), EL_MIB("sent MiB", 10, "sent_bytes"), EL_MIB("peak MiB", 10, "peak_bytes"));
static const struct el_column expert_columns[] =
    EL_COLUMNS(EL_COUNT("expert", 10, "expert"), EL_COUNT("on rank", 10, "expert_rank"),
               EL_FIGURE("choices a step", 16, "choices"), EL_FIGURE("%", 7, "pct"),
               EL_FIGURE("of its share", 14, "over_mean"), EL_FIGURE("dropped %", 12, "dropped_pct"));

static int by_choices(const void *a, const void *b)
{
    const double x = el_json_number(*(const json_t *const *)a, "choices"),
                 y = el_json_number(*(const json_t *const *)b, "choices");
    return (x < y) - (x > y);
}

/* The most chosen ones. */
static void put_experts(const json_t *experts, FILE *out)
{
    const struct el_table table = {.columns = expert_columns, .out = out};
    const size_t n = json_array_size(experts), shown = n > EXPERTS_SHOWN ? EXPERTS_SHOWN : n;
    const json_t **rows = calloc(n + 1, sizeof *rows);
    if (!rows) return;
    EL_EACH(expert, experts) rows[expert_at.i] = expert;
    if (n > EXPERTS_SHOWN) qsort(rows, n, sizeof *rows, by_choices);
    el_table_heads(&table, EL_TABLE_BOLD);
    for (size_t i = 0; i < shown; i++) el_table_row(&table, EL_TABLE_PLAIN, rows[i]);
    if (shown < n) fprintf(out, "  ... %zu more, chosen less\n", n - shown);
    free(rows);
}

void el_imbalance_put_routing(const json_t *trials, FILE *out)
{
    const struct el_table table = {.columns = rank_columns, .out = out};
    bool any = false;
    EL_EACH(trial, trials) {
        const json_t *routing = json_object_get(trial, "routing");
        char mode[EL_CELL_BYTES];
        if (!json_is_object(routing)) continue;
        el_table_mode(trial, mode, sizeof mode);
        const char *placement = el_json_text(trial, "config.model_sizes.placement", "");
        fprintf(out, "\nTokens of %s, batch %.0f: routing %s%s%s, top %lld of %zu experts, in %lld layers\n", mode,
                el_json_number(trial, "global_batch"), el_json_text(trial, "config.model_sizes.routing", "?"),
                *placement ? ",placement=" : "", placement, (long long)el_json_whole(trial, "config.model_sizes.top-k"),
                json_array_size(json_object_get(routing, "experts")), (long long)el_json_whole(routing, "layers"));
        el_table_heads(&table, EL_TABLE_BOLD);
        EL_EACH(rank, json_object_get(routing, "ranks")) el_table_row(&table, EL_TABLE_PLAIN, rank);
        if (!any) put_experts(json_object_get(routing, "experts"), out);
        any = true;
    }
    if (any) fputc('\n', out);
    if (any)
        el_text_say("", "", out,
                    "rows: a token's copies, one for each expert that it goes to, over all layers. of its share: times "
                    "what it would be if all were even.");
}

/* ---- the picture ---- */

static size_t parts(size_t n, size_t most)
{
    return (n + most - 1) / most;
}

/* A trial whose ranks share the experts, else the first one with routing of all its devices. */
static const json_t *shown_trial(const json_t *trials)
{
    const json_t *shown = NULL;
    EL_EACH(trial, trials) {
        const json_t *devices = json_object_get(trial, "per_device");
        if (!is_known(devices)) continue;
        if (ranks_of(devices) > 1) return trial;
        if (!shown) shown = trial;
    }
    return shown;
}

static void put_labels(size_t experts, size_t columns, double steps_each, FILE *file)
{
    const size_t apart = parts(columns, LABELS_MAX), beside = parts(experts, NAMES_MAX);
    el_data_block(file, "place, step", "steps");
    for (size_t s = 0; s < columns; s += apart) fprintf(file, "%zu\t%.0f\n", s, (double)s * steps_each);
    el_data_block(file, "place, expert", "experts");
    for (size_t e = 0; e < experts; e += beside) fprintf(file, "%zu\t%zu\n", e, e);
}

static void put_cells(const json_t *devices, size_t experts, size_t columns, size_t each, FILE *file)
{
    el_data_block(file, "step's place, expert, times its even share", "choices");
    for (size_t s = 0; s < columns; s++) {
        double all = 0, *sums = calloc(experts, sizeof *sums);
        if (!sums) return;
        EL_EACH(device, devices)
            for (size_t row = s * each; row < (s + 1) * each; row++)
                for (size_t e = 0; e < experts; e++)
                    sums[e] += at(json_array_get(el_json_at(device, "routing.by_step"), row), e);
        for (size_t e = 0; e < experts; e++) all += sums[e];
        for (size_t e = 0; e < experts && all > 0; e++)
            fprintf(file, "%zu\t%zu\t%.4g\n", s, e, sums[e] / all * (double)experts);
        free(sums);
    }
}

/* Ranks of the first copy. */
static void put_ranks(const json_t *routing, const json_t *devices, FILE *file)
{
    el_data_block(file, "share, middle, 0, share, first expert, last, name, words", "ranks");
    EL_EACH(rank, json_object_get(routing, "ranks")) {
        const double first = el_json_number(rank, "first"), n = el_json_number(rank, "n");
        char pct[EL_FIGURE_BYTES];
        if (el_json_number(json_array_get(devices, rank_at.i), "layout.data_rank") != 0) continue;
        fprintf(file, "%.4g\t%g\t0\t%.4g\t%g\t%g\t%s\t%s %%\n", el_json_number(rank, "pct"), first + (n - 1) / 2,
                el_json_number(rank, "pct"), first - 0.45, first + n - 0.55,
                el_data_label(el_json_text(rank, "rank", "?")).text, el_text_figure(el_json_number(rank, "pct"), pct));
    }
}

static enum el_status write_routing(const struct el_figure *figure, const json_t *run, FILE *file, bool *any_p)
{
    (void)figure;
    const json_t *trial = shown_trial(json_object_get(run, "trials"));
    const json_t *devices = json_object_get(trial, "per_device");
    if (!trial) return EL_OK;
    json_t *routing = el_imbalance_routing(trial);
    const size_t experts = json_array_size(json_object_get(routing, "experts"));
    const size_t rows = json_array_size(el_json_at(devices, "0.routing.by_step"));
    const size_t each = parts(rows, COLUMNS_MAX), columns = parts(rows, each ? each : 1);
    const double steps_each = el_json_number(devices, "0.routing.steps_a_row") * (double)each;
    char title[EL_TITLE_BYTES], mode[EL_CELL_BYTES], foot[96] = "";
    el_table_mode(trial, mode, sizeof mode);
    snprintf(title, sizeof title, "Where tokens go: %.60s, batch %.0f, routing %.40s", mode,
             el_json_number(trial, "global_batch"), el_json_text(trial, "config.model_sizes.routing", "?"));
    if (steps_each > 1) snprintf(foot, sizeof foot, "A cell is %.0f steps.", steps_each);
    if (columns > 0) {
        el_data_about(file, &(struct el_data_about){title, NULL, (double)columns, WIDTH_IN_BARS, *foot ? foot : NULL},
                      ", experts");
        fprintf(file, "\t%zu\n", experts);
        el_data_warning(file, NULL, NULL);
        put_labels(experts, columns, steps_each, file);
        put_cells(devices, experts, columns, each, file);
        put_ranks(routing, devices, file);
    }
    *any_p = columns > 0;
    json_decref(routing);
    return EL_OK;
}

const struct el_figure el_figure_routing = {.name = "routing", .write = write_routing, .optional = true};
