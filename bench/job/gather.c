/* One text a rank over the bootstrap. A rank that failed takes part too: so one failure gives one clear message, and
 * nobody waits in vain. */
#include "bench/job/measurement.h"

#include <stdlib.h>
#include <string.h>

/* A peer that lost its partner is not the failure that explains the others. */
static void take_error(const json_t *whole, struct el_error *error)
{
    enum el_status status = (enum el_status)json_integer_value(json_object_get(whole, "status"));
    const char *text = json_string_value(json_object_get(whole, "text"));
    if (!json_is_object(whole)) status = EL_ERR_INTERNAL, text = "a rank's account could not be read";
    if (status == EL_OK || (error->status != EL_OK && (error->status != EL_ERR_PEER || status == EL_ERR_PEER))) return;
    error->status = status;
    snprintf(error->text, sizeof error->text, "%s", text ? text : el_status_text(status));
}

enum el_status el_job_gather(const struct el_job *job, enum el_status mine, json_t *part, json_t **parts_p,
                             struct el_error *error_p)
{
    char **texts = NULL;
    json_t *parts = NULL,
           *whole = json_pack("{s:i, s:s?, s:o}", "status", (int)mine, "text",
                              mine == EL_OK ? NULL : el_error_message(), "part", part ? part : json_null());
    char *text = json_dumps(whole, JSON_COMPACT);
    json_decref(whole);
    el_error_take(mine, error_p);
    /* Nobody may wait for a rank that has no memory for its account: what cannot be read says that. */
    enum el_status status = el_bootstrap_gather(job->bootstrap, text ? text : "", &texts);
    free(text);
    EL_TRY(status);
    if (texts) {
        parts = json_array();
        *error_p = (struct el_error){.status = EL_OK};
        for (int r = 0; r < el_bootstrap_size(job->bootstrap); r++) {
            json_t *read = json_loads(texts[r], 0, NULL);
            take_error(read, error_p);
            json_array_append(parts, json_object_get(read, "part"));
            json_decref(read);
            free(texts[r]);
        }
        free(texts);
    }
    *parts_p = parts;
    return EL_OK;
}
