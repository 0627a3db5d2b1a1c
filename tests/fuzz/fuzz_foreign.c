/* What other tools wrote of collectives: nccl-tests' text and JSON, NCCL Inspector's lines; as tables, costs, readings.
 */
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/comm/wire.h"
#include "bench/foreign/foreign.h"
#include "bench/regress/launches.h"
#include "tests/fuzz/fuzz.h"

/* Of those that are read each so many-th goes on, beginning with the first: reading is what is attacked. */
enum { GOES_ON = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned n_read;
    char *text = fuzz_text(data, size);
    json_t *document;
    struct el_costs *costs;
    struct el_readings readings;
    if (fuzz_status(el_foreign_parse(text, "all_reduce.txt", &document))) {
        fuzz_expect(el_json_number(document, "ranks") >= 1, "a measurement has ranks");
        if (n_read++ % GOES_ON) {
            json_decref(document);
            free(text);
            return 0;
        }
        el_wire_complete(document);
        FILE *out = fuzz_print_begin();
        el_wire_print(document, out);
        el_wire_csv(document, out);
        fuzz_print_end(out);
        json_decref(document);
        if (fuzz_status(el_costs_read(fuzz_file("all_reduce.txt", data, size), NULL, &costs))) free(costs);
        fuzz_status(el_readings_parse(text, &readings));
        el_readings_free(&readings);
    }
    free(text);
    return 0;
}
