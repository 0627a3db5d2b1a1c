/* A run's document into a store of sessions, and against it into the gate: cells, verdicts, every form of its answer.
 * The base is the input, and the head is it too. */
#include "bench/record/record.h"
#include "bench/regress/answer.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"
#include "runtime/base/scratch.h"
#include "tests/fuzz/fuzz.h"

static void answer(const struct el_regress_set *set)
{
    char path[512];
    json_t *document = el_answer_json(set);
    snprintf(path, sizeof path, "%s/out", fuzz_folder());
    FILE *out = fuzz_print_begin();
    el_answer_print(document, out);
    fuzz_print_end(out);
    out = fuzz_print_begin();
    el_answer_print_github(document, out);
    fuzz_print_end_commands(out);
    fuzz_status(el_answer_write_junit(document, path));
    fuzz_status(el_answer_write_markdown(document, path));
    json_decref(document);
}

static void remember(const json_t *run)
{
    const json_t *trials = json_object_get(run, "trials");
    for (size_t t = 0; t < json_array_size(trials); t++) {
        json_decref(el_session_of(run, json_array_get(trials, t), "dir"));
        json_decref(el_workload_of(json_array_get(trials, t)));
    }
    json_t *machine = el_fingerprint_of(run);
    char words[256];
    el_fingerprint_words(json_object_get(machine, "fields"), words, sizeof words);
    json_decref(machine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct el_regress_set set = {.last_analysis = true};
    char store[512];
    json_t *run;
    fuzz_file("results.json", data, size);
    snprintf(store, sizeof store, "%s/store", fuzz_folder());
    FILE *notes = fuzz_print_begin();
    if (fuzz_status(el_run_load(fuzz_folder(), &run))) {
        remember(run);
        json_decref(run);
    }
    fuzz_status(el_baseline_add(store, fuzz_folder(), true, true));
    bool read = fuzz_status(el_regress_dirs(store, fuzz_folder(), "", notes, &set));
    fuzz_print_end(notes);
    el_scratch_remove(store);
    if (read) {
        el_regress_judge(&set);
        answer(&set);
    }
    el_regress_free(&set);
    return 0;
}
