/* Lateness of each rank in each step, as a heat map. */
#include <inttypes.h>
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/traces/traces.h"

enum { LABELS_MAX = 12, RANK_LABELS_MAX = 16, ROWS_MAX = 128, COLUMNS_MAX = 256, WIDTH_IN_BARS = 14 };

bool el_traces_is(const json_t *document)
{
    return el_json_is(document, "kind", "trace-stats") && el_json_whole(document, "schema") == EL_TRACES_SCHEMA;
}

static size_t parts(size_t n, size_t most)
{
    return (n + most - 1) / most;
}

static void put_labels(const json_t *job, size_t ranks_each, size_t steps_each, FILE *file)
{
    const json_t *steps = el_json_at(job, "by_step.steps"), *ranks = json_object_get(job, "ranks");
    const size_t n_steps = json_array_size(steps), n_ranks = json_array_size(ranks);
    const size_t apart = steps_each * parts(parts(n_steps, steps_each), LABELS_MAX), rows = parts(n_ranks, ranks_each);
    const size_t beside = ranks_each * (rows > RANK_LABELS_MAX ? parts(rows, LABELS_MAX) : 1);
    el_data_block(file, "place, step", "steps");
    EL_EACH(step, steps)
        if (step_at.i % apart == 0)
            fprintf(file, "%zu\t%" JSON_INTEGER_FORMAT "\n", step_at.i / steps_each, json_integer_value(step));
    el_data_block(file, "place, rank", "ranks");
    EL_EACH(rank, ranks)
        if (rank_at.i % beside == 0)
            fprintf(file, "%zu\t%s\n", rank_at.i / ranks_each, el_data_label(el_json_text(rank, "rank", "?")).text);
}

/* The latest of a cell's ranks and steps. */
static double latest_ms(const json_t *late, size_t rank, size_t n_ranks, size_t step, size_t n_steps)
{
    double ms = 0;
    for (size_t r = rank; r < rank + n_ranks; r++)
        for (size_t s = step; s < step + n_steps; s++)
            ms = fmax(ms, json_number_value(json_array_get(json_array_get(late, r), s)));
    return ms;
}

static enum el_status write_lateness(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    (void)figure;
    const json_t *job = json_object_get(document, "job"), *late = el_json_at(job, "by_step.late_ms");
    const size_t n_ranks = json_array_size(late), n_steps = json_array_size(el_json_at(job, "by_step.steps"));
    const size_t ranks_each = parts(n_ranks, ROWS_MAX), steps_each = parts(n_steps, COLUMNS_MAX);
    char title[EL_TITLE_BYTES], foot[96] = "";
    if (n_ranks < 2 || n_steps < 1) return EL_OK;
    const size_t rows = parts(n_ranks, ranks_each), columns = parts(n_steps, steps_each);
    snprintf(title, sizeof title, "When each of %zu ranks comes late", n_ranks);
    if (ranks_each > 1 || steps_each > 1)
        snprintf(foot, sizeof foot, "A cell shows the latest of %zu rank%s in %zu step%s.", ranks_each,
                 ranks_each == 1 ? "" : "s", steps_each, steps_each == 1 ? "" : "s");
    el_data_about(file, &(struct el_data_about){title, NULL, (double)columns, WIDTH_IN_BARS, *foot ? foot : NULL},
                  ", ranks");
    fprintf(file, "\t%zu\n", rows);
    el_data_warning(file, NULL, NULL);
    put_labels(job, ranks_each, steps_each, file);
    el_data_block(file, "step's place, rank's place, ms after the mean of the others; early: 0", "late");
    for (size_t r = 0; r < rows; r++)
        for (size_t s = 0; s < columns; s++) {
            fprintf(file, "%zu\t%zu", s, r);
            el_data_number(file, latest_ms(late, r * ranks_each, ranks_each, s * steps_each, steps_each));
            fputc('\n', file);
        }
    *any_p = true;
    return EL_OK;
}
const struct el_figure el_figure_lateness = {.name = "lateness", .write = write_lateness};
