/* A record of `evenload comm`, as a stranger may send it: comm.json into costs, the tables, the CSV and the plots'
 * data. */
#include <stdlib.h>

#include "bench/comm/wire.h"
#include "bench/plot/plot.h"
#include "bench/trial/costs.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char plots[512];
    struct el_costs *costs;
    json_t *document;
    bool drawn;
    const char *path = fuzz_file("comm.json", data, size);
    if (fuzz_status(el_costs_read(fuzz_folder(), NULL, &costs))) free(costs);
    if (!fuzz_status(el_wire_read(path, &document))) return 0;
    FILE *out = fuzz_print_begin();
    el_wire_print(document, out);
    el_wire_csv(document, out);
    char list[1024];
    json_t *two = NULL;
    snprintf(list, sizeof list, "%s,%s", path, path);
    if (fuzz_status(el_wire_two(list, &two))) el_wire_print_two(two, out);
    json_decref(two);
    fuzz_print_end(out);
    snprintf(plots, sizeof plots, "%s/plots", fuzz_folder());
    fuzz_status(el_data_save(&el_figure_wire, document, plots, &drawn));
    json_decref(document);
    return 0;
}
