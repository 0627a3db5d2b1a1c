/* `evenload selfcheck`: injects five disturbances on this machine and reports which were found. */
#include "bench/base/io.h"
#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/record/record.h"
#include "bench/selfcheck/selfcheck.h"

static enum el_status show(const struct el_options *options, const json_t *document)
{
    if (options->json) return el_print_json(document, stdout);
    el_selfcheck_print(document, stdout);
    printf("\nNext: %s %s\n", el_program_word(),
           el_selfcheck_missed(document) ? "selfcheck    (on a quiet machine)" : "compare");
    return EL_OK;
}

enum el_status el_cmd_selfcheck(struct el_options *options, int *exit_status_p)
{
    struct el_selfcheck check;
    EL_TRY(el_selfcheck_run(options, &check));
    if (el_runner_interrupted()) {
        *exit_status_p = el_exit_interrupted();
        return EL_OK;
    }
    json_t *document = el_selfcheck_json(&check);
    if (el_selfcheck_missed(document)) *exit_status_p = EL_EXIT_TRIAL;
    enum el_status status = show(options, document);
    json_decref(document);
    return status;
}
