/* The heat map of links: who sends to whom. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/fleet/fleet.h"

enum { WIDTH_IN_BARS = 14, NAMED_MOST = 40 };

static enum el_status write_links(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    const json_t *links = json_object_get(document, "links"), *hosts = json_object_get(document, "hosts");
    size_t n = json_array_size(hosts);
    char title[EL_TITLE_BYTES];
    (void)figure;
    if (!json_array_size(links) || n < 2) return EL_OK;
    snprintf(title, sizeof title, "Links of %zu hosts%s", n,
             json_is_true(json_object_get(document, "simulated")) ? ", simulated" : "");
    el_data_about(file, &(struct el_data_about){title, NULL, (double)n, WIDTH_IN_BARS, NULL}, ", highest GB/s");
    double low, high;
    el_json_range(links, "gb_per_s", &low, &high);
    fprintf(file, "\t%g\n", high);
    el_data_block(file, "from, to, GB/s", "links");
    EL_EACH(link, links)
        fprintf(file, "%.0f\t%.0f\t%g\n", el_json_number(link, "from"), el_json_number(link, "to"), el_json_number(link, "gb_per_s"));
    fputs("\n\n", file);
    el_data_block(file, "place, name", "names");
    EL_EACH(host, hosts)
        fprintf(file, "%zu\t%s\n", host_at.i, n > NAMED_MOST && host_at.i % ((n + 15) / 16) ? "." : el_data_word(el_json_text(host, "name", "?")).text);
    fputs("\n\n", file);
    *any_p = true;
    return EL_OK;
}

const struct el_figure el_figure_fleet = {.name = "fleet", .write = write_links};
