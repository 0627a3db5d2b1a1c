/* A file of a baseline store: a header line, then a session a line; read, its levels made, and the store shown. */
#include <stdlib.h>

#include "bench/base/jvalue.h"
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
    el_sessions_have(sessions, run, true);
    el_sessions_is_level(sessions, run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *workload, *sessions, *document;
    size_t skipped;
    const char *path = fuzz_file("0123456789abcdef/ddp-2-textcnn-b128-0123456789abcdef.jsonl", data, size);
    FILE *out = fuzz_print_begin();
    if (fuzz_status(el_sessions_read(path, out, &workload, &sessions, &skipped))) {
        take_levels(sessions);
        json_decref(workload);
        json_decref(sessions);
    }
    if (fuzz_status(el_baseline_describe(fuzz_folder(), out, &document))) {
        el_baseline_print(document, out);
        json_decref(document);
    }
    fuzz_print_end(out);
    return 0;
}
