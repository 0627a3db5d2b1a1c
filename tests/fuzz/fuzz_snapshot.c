/* A memory snapshot of anyone's, and the figures made of it. */
#include "bench/base/jvalue.h"
#include "bench/imbalance/snapshots.h"
#include "profiles/snapshot.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct el_snapshot snapshot;
    if (!fuzz_status(el_snapshot_read(data, size, "snapshot", &snapshot))) return 0;
    for (size_t i = 0; i < snapshot.n; i++) {
        const struct el_snapshot_device *device = &snapshot.devices[i];
        int64_t sum = 0;
        for (int c = 0; c < EL_SNAPSHOT_N_CAUSES; c++) sum += device->at_peak[c];
        fuzz_expect(sum == device->peak_bytes, "causes add up to the peak");
        fuzz_expect(device->n_places <= EL_SNAPSHOT_PLACES_MAX, "places have room");
    }
    el_snapshot_free(&snapshot);
    json_t *document, *paths = json_array();
    json_array_append_new(paths, json_string(fuzz_file("a.pickle", data, size)));
    if (fuzz_status(el_snapshots_read(paths, &document))) {
        FILE *out = fuzz_print_begin();
        el_snapshots_print(document, out);
        fuzz_print_end(out);
        json_decref(document);
    }
    json_decref(paths);
    return 0;
}
