/* What several subcommands do alike: read a folder's records, end a campaign, say which command comes next. */
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/text.h"
#include "bench/commands.h"
#include "bench/record/record.h"

bool el_say_next(unsigned command, struct el_options *next, const char *note)
{
    char line[2 * EL_PATH_BYTES];
    next->out[0] = 0;
    next->quiet = next->json = false;
    bool fits = el_options_command_line(command, next, line, sizeof line) == EL_OK;
    if (fits) el_text_line(stdout, "Next: %s%s%s", el_program_word(), line + strlen("evenload"), note);
    return fits;
}

enum el_status el_read_records(const char *command, const struct el_options *options, json_t **run_p)
{
    char path[EL_PATH_BYTES + 16];
    json_t *run;
    EL_TRY(el_options_check_records_alone(command, options));
    snprintf(path, sizeof path, "%s/results.json", options->dir);
    EL_TRY(el_record_read(path, &run));
    if (json_object_get(run, "watch")) {
        json_decref(run);
        return el_fail(EL_ERR_INVALID,
                       "%s was watched from outside, where neither memory by tag nor counts of devices can be seen: "
                       "'evenload plot %s' draws what there is",
                       options->dir, options->dir);
    }
    *run_p = run;
    return EL_OK;
}

/* Of command.json, which a person may have edited: nothing in it is passed over. */
static enum el_status set_all(unsigned command, const char *dir, const char *of, json_t *echo,
                              struct el_options *options)
{
    const char *name;
    json_t *value;
    json_object_foreach(echo, name, value)
    {
        const struct el_option_row *row = el_option_rows();
        while (row->name && (strcmp(row->name, name) || !(row->commands & command))) row++;
        if (!row->name) return el_fail(EL_ERR_INVALID, "%s/command.json: '%s' has no option '%.60s'", dir, of, name);
        if (!json_is_string(value))
            return el_fail(EL_ERR_INVALID, "%s/command.json: the value of '%s' is not a text in quotes", dir, name);
        EL_TRY(el_option_set(row, json_string_value(value), options));
    }
    return EL_OK;
}

enum el_status el_recall_command(unsigned command, const char *name, const char *dir, struct el_options *options_p)
{
    struct el_store store;
    json_t *echo;
    EL_TRY(el_store_open(dir, &store));
    EL_TRY(el_store_load_command(&store, name, &echo));
    el_options_defaults(command, options_p);
    enum el_status status = set_all(command, dir, name, echo, options_p);
    json_decref(echo);
    return status;
}

enum el_status el_end_campaign(struct el_campaign *campaign, enum el_status status, const char *how,
                               enum el_status (*show)(struct el_campaign *campaign), int *exit_status_p)
{
    if (el_runner_interrupted()) {
        el_exit_failed(status);
        if (how) el_campaign_say_interrupted(campaign, how);
        *exit_status_p = how ? EL_EXIT_INTERRUPTED : el_exit_interrupted();
        status = EL_OK;
    } else if (status == EL_OK) {
        campaign->exit_status = el_campaign_exit_status(campaign);
        status = show(campaign);
        *exit_status_p = campaign->exit_status;
        if (campaign->no_launcher[0]) fprintf(stderr, "evenload: %s\n", campaign->no_launcher);
    }
    el_campaign_end(campaign);
    return status;
}
