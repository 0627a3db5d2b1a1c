/* Records of schema 1, read as schema 2: the names that changed (docs/record.md, "Schema 2"). Nothing else in the
 * program knows an older name. */
#include "bench/record/schema.h"

#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/record/stats.h"

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
    size_t i;
    json_t *rule;
    json_array_foreach(rules, i, rule)
    {
        for (size_t k = 0; json_is_string(rule) && k < sizeof names / sizeof names[0]; k++)
            if (!strcmp(json_string_value(rule), names[k][0])) json_string_set(rule, names[k][1]);
    }
}

static void upgrade_device(json_t *device)
{
    size_t i;
    json_t *op;
    rename_key(json_object_get(device, "gpu"), "looks", "samples");
    json_array_foreach(json_object_get(device, "ops"), i, op) rename_key(op, "how", "implementation");
}

static void upgrade_trial(json_t *trial)
{
    size_t i;
    json_t *part;
    json_t *repeats = json_object_get(trial, "repeats");
    rename_rules(json_object_get(trial, "warning_rules"));
    if (json_array_size(repeats) && json_object_get(trial, "step_ms"))
        json_object_set_new(trial, "step_ms", el_trial_step_ms(repeats)); /* was over all launches' steps as one */
    json_array_foreach(json_object_get(trial, "per_device"), i, part) upgrade_device(part);
    json_array_foreach(repeats, i, part)
        rename_key(json_object_get(part, "system"), "unlike_machines", "machine_differences");
}

void el_record_upgrade(json_t *run)
{
    size_t i;
    json_t *trial;
    if (el_json_number(run, "schema") >= EL_SCHEMA) return;
    rename_key(json_object_get(run, "environment"), "cpu_library_lack", "cpu_library_reason");
    json_array_foreach(json_object_get(run, "trials"), i, trial) upgrade_trial(trial);
    json_object_set_new(run, "schema", json_integer(EL_SCHEMA));
}
