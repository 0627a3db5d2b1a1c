/* The heat map of links: who sends to whom, among hosts, or among the devices of one. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/fleet/fleet.h"

enum { WIDTH_IN_BARS = 14, NAMED_MOST = 40, NAMES_MOST = 16, CELLS_MOST = 128 };

static void put_names(FILE *file, const json_t *rows)
{
    size_t n = json_array_size(rows);
    el_data_block(file, "place, name", "names");
    EL_EACH(row, rows) {
        bool named = n <= NAMED_MOST || row_at.i % ((n + NAMES_MOST - 1) / NAMES_MOST) == 0;
        fprintf(file, "%zu\t%s\n", row_at.i, named ? el_data_word(el_json_text(row, "name", "?")).text : ".");
    }
}

/* Of many hosts a cell is the slowest link between some neighbours: rates[(from / block) * CELLS_MOST + to / block]. */
static void gather(const json_t *links, size_t block, double *rates)
{
    for (size_t i = 0; i < (size_t)CELLS_MOST * CELLS_MOST; i++) rates[i] = NAN;
    EL_EACH(link, links) {
        size_t from = (size_t)el_json_whole(link, "from") / block, to = (size_t)el_json_whole(link, "to") / block;
        if (from < CELLS_MOST && to < CELLS_MOST)
            rates[from * CELLS_MOST + to] = fmin(rates[from * CELLS_MOST + to], el_json_number(link, "gb_per_s"));
    }
}

static void put_cells(FILE *file, const double *rates, size_t block)
{
    el_data_block(file, "from, to, GB/s", "links");
    for (size_t i = 0; i < (size_t)CELLS_MOST * CELLS_MOST; i++) {
        size_t row = i / CELLS_MOST * block, column = i % CELLS_MOST * block;
        double half = 0.5 * (double)(block - 1), from = (double)row + half, to = (double)column + half;
        if (!isnan(rates[i])) fprintf(file, "%g\t%g\t%g\n", from, to, rates[i]);
    }
}

static enum el_status write_links(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    static double rates[CELLS_MOST * CELLS_MOST];
    const json_t *hosts = json_object_get(document, "hosts");
    bool devices = json_array_size(hosts) == 1;
    const json_t *rows = devices ? json_object_get(json_array_get(hosts, 0), "devices") : hosts;
    const json_t *links = json_object_get(document, devices ? "within" : "links");
    size_t n = json_array_size(rows), block = (n + CELLS_MOST - 1) / CELLS_MOST;
    char title[EL_TITLE_BYTES];
    (void)figure;
    if (!json_array_size(links) || n < 2) return EL_OK;
    snprintf(title, sizeof title, "Links of %zu %s%s", n, devices ? "devices" : "hosts",
             json_is_true(json_object_get(document, "simulated")) ? ", simulated" : "");
    if (block > 1) el_text_append(title, sizeof title, "; a cell: the slowest link of %zu x %zu hosts", block, block);
    el_data_about(file, &(struct el_data_about){title, NULL, (double)n, WIDTH_IN_BARS, NULL},
                  ", highest GB/s, half a cell");
    fprintf(file, "\t%g\t%g\n", el_json_highest(links, "gb_per_s"), 0.5 * (double)block);
    gather(links, block, rates);
    put_cells(file, rates, block);
    put_names(file, rows);
    *any_p = true;
    return EL_OK;
}

const struct el_figure el_figure_fleet = {.name = "fleet", .write = write_links};
