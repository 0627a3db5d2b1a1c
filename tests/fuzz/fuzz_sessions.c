/* A record of a baseline store: read, its levels made, and the store shown and drawn. */
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/regress/history.h"
#include "bench/regress/store.h"
#include "tests/fuzz/fuzz.h"

static void take_levels(const json_t *sessions)
{
    const json_t *last = json_array_get(sessions, json_array_size(sessions) - 1);
    json_t *figures = json_object_get(last, "figures"), *figure;
    const char *name, *run = el_json_text(last, "run", "");
    struct el_level level;
    json_object_foreach(figures, name, figure)
        fuzz_status(el_sessions_level(sessions, name, el_json_text(figure, "unit", ""), run, &level));
    el_sessions_standing(sessions, run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *machines, *document;
    fuzz_file("0123456789abcdef-1.json", data, size);
    if (fuzz_status(el_store_read(fuzz_folder(), &machines))) {
        EL_EACH(machine, machines) {
            EL_EACH(sessions, json_object_get(machine, "workloads")) take_levels(sessions);
        }
        json_decref(machines);
    }
    FILE *out = fuzz_print_begin();
    if (fuzz_status(el_baseline_describe(fuzz_folder(), &document))) {
        bool any = false;
        el_baseline_print(document, out);
        el_figure_baseline.write(&el_figure_baseline, document, out, &any);
        json_decref(document);
    }
    fuzz_print_end(out);
    return 0;
}
