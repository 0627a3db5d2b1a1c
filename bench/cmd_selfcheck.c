/* `evenload selfcheck`: plants five disturbances on this machine, and says what was found of each. */
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

enum el_status el_cmd_selfcheck(struct el_options *options, int *exit_status_p)
{
    struct el_selfcheck check;
    EL_TRY(el_selfcheck_run(options, &check));
    if (el_runner_interrupted())
        *exit_status_p = el_exit_interrupted();
    else if (el_selfcheck_count(&check, EL_SELFCHECK_MISSED))
        *exit_status_p = EL_EXIT_TRIAL;
    return el_runner_interrupted() ? EL_OK : show(options, &check);
}
