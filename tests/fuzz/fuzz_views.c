/* A run's document into what `scale` and `imbalance` make of it: documents, tables, sentences, plots' data. */
#include "bench/imbalance/imbalance.h"
#include "bench/record/record.h"
#include "bench/scale/scale.h"
#include "tests/fuzz/fuzz.h"

static void scale(const json_t *run, const char *plots)
{
    bool drawn;
    json_t *document;
    if (!fuzz_status(el_scale_document(run, "dir", &document))) return;
    FILE *out = fuzz_print_begin();
    el_scale_print(document, out);
    fuzz_print_end(out);
    fuzz_status(el_data_save(&el_figure_scale, document, plots, &drawn));
    json_decref(document);
}

static void imbalance(const json_t *run, const char *plots)
{
    bool drawn;
    FILE *out = fuzz_print_begin();
    el_imbalance_print(run, out);
    fuzz_print_end(out);
    json_decref(el_imbalance_document(run, NULL, "dir"));
    fuzz_status(el_data_save(&el_figure_imbalance, run, plots, &drawn));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char plots[512];
    json_t *run;
    snprintf(plots, sizeof plots, "%s/plots", fuzz_folder());
    if (!fuzz_status(el_record_read(fuzz_file("results.json", data, size), &run))) return 0;
    scale(run, plots);
    imbalance(run, plots);
    json_decref(run);
    return 0;
}
