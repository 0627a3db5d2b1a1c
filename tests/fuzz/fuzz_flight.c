/* Dumps of PyTorch's flight recorder of anyone's, pickles and JSON: the input as two ranks'. */
#include "bench/base/jvalue.h"
#include "bench/traces/flight.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct el_flight flight;
    json_t *document;
    el_flight_begin(&flight);
    bool read = true;
    for (int64_t rank = 0; rank < 2 && read; rank++) {
        const size_t part = rank ? size - size / 7 : size; /* the second is often cut, and then there is one */
        read = fuzz_status(el_flight_parse((const char *)data, part, "dump_0", rank, &flight)) || rank > 0;
    }
    if (read && fuzz_status(el_flight_document(&flight, &document))) {
        fuzz_expect(el_json_whole(document, "dumps") == (int64_t)flight.n_ranks, "each rank is told");
        FILE *out = fuzz_print_begin();
        el_flight_print(document, out);
        fuzz_print_end(out);
        json_decref(document);
    }
    el_flight_free(&flight);
    return 0;
}
