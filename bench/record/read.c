/* Reading a run's document, whoever wrote it: records of schema 1 get the names of schema 2 (docs/record.md, "Schema
 * 2"), and nothing else in the program knows an older name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/parts.h"
#include "bench/record/record.h"
#include "runtime/base/utf8.h"

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

static void upgrade_trial(json_t *trial)
{
    size_t i, k;
    json_t *part, *op;
    json_t *repeats = json_object_get(trial, "repeats");
    rename_rules(json_object_get(trial, "warning_rules"));
    if (json_array_size(repeats) && json_object_get(trial, "step_ms"))
        el_json_put(trial, "step_ms", el_trial_step_ms(repeats)); /* was over all launches' steps as one */
    json_array_foreach(json_object_get(trial, "per_device"), i, part)
    {
        rename_key(json_object_get(part, "gpu"), "looks", "samples");
        json_array_foreach(json_object_get(part, "ops"), k, op) rename_key(op, "how", "implementation");
    }
    json_array_foreach(repeats, i, part)
        rename_key(json_object_get(part, "system"), "unlike_machines", "machine_differences");
}

/* In place; newer records stay as they are. */
static void upgrade(json_t *run)
{
    size_t i;
    json_t *trial;
    if (el_json_number(run, "schema") >= EL_SCHEMA) return;
    rename_key(json_object_get(run, "environment"), "cpu_library_lack", "cpu_library_reason");
    json_array_foreach(json_object_get(run, "trials"), i, trial) upgrade_trial(trial);
    el_json_put(run, "schema", json_integer(EL_SCHEMA));
}

static void clean_text(json_t *value);

/* Names too. The order stays; of two names that become one the last counts, as in any JSON. */
static void clean_object(json_t *object)
{
    const char *key;
    json_t *child, *cleaned = json_object();
    json_object_foreach(object, key, child)
    {
        clean_text(child);
        char *name = strdup(key);
        if (name == NULL) continue;
        el_utf8_printable(name);
        json_object_set(cleaned, name, child);
        free(name);
    }
    if (cleaned != NULL) json_object_clear(object);
    json_object_update(object, cleaned); /* nothing where there is no memory */
    json_decref(cleaned);
}

/* What is read may be anyone's: none of its text shall end a line or move a terminal's cursor wherever it is shown. */
static void clean_text(json_t *value)
{
    size_t i;
    json_t *child;
    if (json_is_object(value)) clean_object(value);
    json_array_foreach(value, i, child) clean_text(child);
    char *text = json_is_string(value) ? strdup(json_string_value(value)) : NULL;
    if (text == NULL) return;
    el_utf8_printable(text);
    if (strcmp(text, json_string_value(value)) != 0) json_string_set(value, text);
    free(text);
}

enum el_status el_record_read(const char *path, json_t **run_p)
{
    json_error_t error;
    FILE *file = fopen(path, "r");
    if (file == NULL) return el_fail_errno("%s could not be read", path);
    json_t *run = json_loadf(file, 0, &error);
    fclose(file);
    if (run == NULL) {
        return el_fail(EL_ERR_INVALID, "%s is no JSON: line %d, column %d: %s", path, error.line, error.column,
                       error.text);
    }
    double schema = el_json_number(run, "schema");
    if (!json_is_array(json_object_get(run, "trials")) || !(schema >= 1)) {
        json_decref(run);
        return el_fail(EL_ERR_INVALID, "%s is no record of a run: it has no schema and trials", path);
    }
    upgrade(run);
    clean_text(run);
    *run_p = run;
    return EL_OK;
}
