/* Reading a run's document, whoever wrote it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/record/schema.h"
#include "runtime/base/utf8.h"

static void clean(json_t *value);

/* Names too. The order stays; of two names that become one the last counts, as in any JSON. */
static void clean_object(json_t *object)
{
    const char *key;
    json_t *child, *cleaned = json_object();
    json_object_foreach(object, key, child)
    {
        clean(child);
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
static void clean(json_t *value)
{
    size_t i;
    json_t *child;
    if (json_is_object(value)) clean_object(value);
    json_array_foreach(value, i, child) clean(child);
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
    el_record_upgrade(run);
    clean(run);
    *run_p = run;
    return EL_OK;
}
