/* The heat map of links: who sends to whom, among hosts, or among the devices of one. */
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/fleet/fleet.h"

enum { WIDTH_IN_BARS = 14, NAMED_MOST = 40, NAMES_MOST = 16 };

static void put_names(FILE *file, const json_t *rows)
{
    size_t n = json_array_size(rows);
    el_data_block(file, "place, name", "names");
    EL_EACH(row, rows) {
        bool named = n <= NAMED_MOST || row_at.i % ((n + NAMES_MOST - 1) / NAMES_MOST) == 0;
        fprintf(file, "%zu\t%s\n", row_at.i, named ? el_data_word(el_json_text(row, "name", "?")).text : ".");
    }
}

static enum el_status write_links(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    const json_t *hosts = json_object_get(document, "hosts");
    bool devices = json_array_size(hosts) == 1;
    const json_t *rows = devices ? json_object_get(json_array_get(hosts, 0), "devices") : hosts;
    const json_t *links = json_object_get(document, devices ? "within" : "links");
    size_t n = json_array_size(rows);
    char title[EL_TITLE_BYTES];
    double low, high;
    (void)figure;
    if (!json_array_size(links) || n < 2) return EL_OK;
    snprintf(title, sizeof title, "Links of %zu %s%s", n, devices ? "devices" : "hosts",
             json_is_true(json_object_get(document, "simulated")) ? ", simulated" : "");
    el_json_range(links, "gb_per_s", &low, &high);
    el_data_about(file, &(struct el_data_about){title, NULL, (double)n, WIDTH_IN_BARS, NULL}, ", highest GB/s");
    fprintf(file, "\t%g\n", high);
    el_data_block(file, "from, to, GB/s", "links");
    EL_EACH(link, links)
        fprintf(file, "%.0f\t%.0f\t%g\n", el_json_number(link, "from"), el_json_number(link, "to"),
                el_json_number(link, "gb_per_s"));
    put_names(file, rows);
    *any_p = true;
    return EL_OK;
}

const struct el_figure el_figure_fleet = {.name = "fleet", .write = write_links};
