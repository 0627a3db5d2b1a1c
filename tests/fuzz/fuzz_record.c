/* A run's document, as a stranger may send it: results.json into the tables, the CSV, the plots'
 * data, costs and the page. */
#include <stdlib.h>
#include <string.h>

#include "bench/page/page.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/trial/costs.h"
#include "bench/verdict/verdict.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char csv[512], plots[512], line[512];
    json_t *run;
    struct el_costs *costs;
    snprintf(csv, sizeof csv, "%s/results.csv", fuzz_folder());
    snprintf(plots, sizeof plots, "%s/plots", fuzz_folder());
    bool read = fuzz_status(el_record_read(fuzz_file("results.json", data, size), &run));
    if (fuzz_status(el_costs_read(fuzz_folder(), NULL, &costs))) free(costs);
    if (!read) return 0;
    FILE *out = fuzz_print_begin();
    el_report_table(run, out);
    el_report_steps(run, out);
    el_report_processes(run, out);
    el_report_sentences(run, out);
    el_verdict_doubtful(run, line, sizeof line);
    fprintf(out, "%s\n", line);
    fuzz_status(el_page_markdown(run, out));
    fuzz_print_end(out);
    out = fuzz_print_begin();
    fuzz_status(el_page_html(run, fuzz_folder(), out));
    fuzz_print_end(out);
    fuzz_status(el_write_csv(run, csv));
    fuzz_status(el_plot_data(run, plots));
    json_decref(run);
    return 0;
}
