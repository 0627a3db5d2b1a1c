/* Reading a run's document, whoever wrote it: records of schema 1 get the names of schema 2 (docs/record.md, "Schema
 * 2"), and nothing else in the program knows an older name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/parts.h"
#include "bench/record/record.h"

static void rename_key(json_t *object, const char *from, const char *to)
{
    json_t *value = json_object_get(object, from);
    if (!value) return;
    json_object_set(object, to, value);
    json_object_del(object, from);
}

static void rename_rules(json_t *rules)
{
    static const char *const names[][2] = {{"own", "reported"},
                                           {"planted", "injected"},
                                           {"unlike_cores", "heterogeneous_cores"},
                                           {"unlike_memory", "heterogeneous_memory"},
                                           {"unlike_machines", "heterogeneous_machines"}};
    EL_EACH(rule, rules)
        for (size_t k = 0; json_is_string(rule) && k < sizeof names / sizeof names[0]; k++)
            if (!strcmp(json_string_value(rule), names[k][0])) json_string_set(rule, names[k][1]);
}

static void upgrade_trial(json_t *trial)
{
    json_t *repeats = json_object_get(trial, "repeats");
    rename_rules(json_object_get(trial, "warning_rules"));
    if (json_array_size(repeats) && json_object_get(trial, "step_ms"))
        el_json_put(trial, "step_ms", el_trial_step_ms(repeats)); /* was over all launches' steps as one */
    EL_EACH(part, json_object_get(trial, "per_device")) {
        rename_key(json_object_get(part, "gpu"), "looks", "samples");
        EL_EACH(op, json_object_get(part, "ops")) rename_key(op, "how", "implementation");
    }
    EL_EACH(part, repeats) rename_key(json_object_get(part, "system"), "unlike_machines", "machine_differences");
}

/* In place; newer records stay as they are. */
static void upgrade(json_t *run)
{
    if (el_json_number(run, "schema") >= EL_SCHEMA) return;
    rename_key(json_object_get(run, "environment"), "cpu_library_lack", "cpu_library_reason");
    EL_EACH(trial, json_object_get(run, "trials")) upgrade_trial(trial);
    el_json_put(run, "schema", json_integer(EL_SCHEMA));
}

enum el_status el_record_read(const char *path, json_t **run_p)
{
    json_t *run;
    EL_TRY(el_read_json(path, &run));
    double schema = el_json_number(run, "schema");
    if (!json_is_array(json_object_get(run, "trials")) || !(schema >= 1)) {
        json_decref(run);
        return el_fail(EL_ERR_INVALID, "%s is no record of a run: it has no schema and trials", path);
    }
    upgrade(run);
    el_json_printable(run);
    *run_p = run;
    return EL_OK;
}
