/* What a launch wrote (repeats/ID-K.json), read again by the next command in its folder: into the trial that is made of
 * repeats, its verdict and its table. */
#include <stdlib.h>

#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/trial/trial.h"
#include "tests/fuzz/fuzz.h"

static struct el_trial_set set;

static void resolve(void)
{
    char *words[] = {(char *)"run",    (char *)"--devices", (char *)"null:2",  (char *)"--mode", (char *)"ddp",
                     (char *)"--data", (char *)"dummy",     (char *)"--batch", (char *)"8",      NULL};
    struct el_options *options = calloc(1, sizeof *options);
    if (!options) abort();
    el_options_defaults(EL_CMD_RUN, options);
    bool made = el_options_parse(EL_CMD_RUN, 9, words, options) == EL_OK &&
                el_trials_resolve(EL_CMD_RUN, options, &set) == EL_OK;
    fuzz_expect(made, "the target's own trial is made");
    free(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!set.trials) resolve();
    json_t *repeat = json_loadb((const char *)data, size, 0, NULL);
    if (!json_is_string(json_object_get(repeat, "status"))) { /* the reader's own check */
        json_decref(repeat);
        return 0;
    }
    json_t *environment = json_object();
    el_record_learn(environment, repeat);
    json_t *repeats = json_pack("[o, O]", repeat, repeat);
    json_t *run = el_record_run(environment, json_pack("[o]", el_record_trial(set.trials, "evenload run", repeats)));
    json_decref(repeats);
    FILE *out = fuzz_print_begin();
    el_report_table(run, out);
    el_report_sentences(run, out);
    fuzz_print_end(out);
    json_decref(run);
    return 0;
}
