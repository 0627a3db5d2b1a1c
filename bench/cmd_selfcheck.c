/* `evenload selfcheck`: plants four disturbances on this machine, and says what was found of each. */
#include <stdlib.h>

#include "bench/base/io.h"
#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/record/record.h"
#include "bench/selfcheck/selfcheck.h"

static enum el_status show(const struct el_options *options, const struct el_selfcheck *check)
{
    if (!options->json) {
        el_selfcheck_print(check, stdout);
        printf("\nNext: %s %s\n", el_program_word(),
               el_selfcheck_count(check, EL_SELFCHECK_MISSED) ? "selfcheck    (on a quiet machine)" : "compare");
        return EL_OK;
    }
    json_t *document = el_selfcheck_json(check);
    enum el_status status = document ? el_print_json(document, stdout) : el_fail_errno("the self-check's document");
    json_decref(document);
    return status;
}

int el_cmd_selfcheck(const struct el_options *options, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct el_selfcheck *check = calloc(1, sizeof *check);
    if (!check) return el_exit_failed(el_fail_errno("a self-check"));
    enum el_status status = el_selfcheck_run(options, check);
    int exit_status = status == EL_OK ? 0 : el_exit_failed(status);
    if (status == EL_OK && el_runner_interrupted()) {
        fprintf(stderr, "evenload: interrupted\n");
        exit_status = EL_EXIT_INTERRUPTED;
    } else if (status == EL_OK) {
        status = show(options, check);
        exit_status = status == EL_OK
                          ? el_exit_flush(el_selfcheck_count(check, EL_SELFCHECK_MISSED) ? EL_EXIT_TRIAL : 0)
                          : el_exit_failed(status);
    }
    free(check);
    return exit_status;
}
