/* Gathers a text from each rank. Failed ranks take part too, so that nobody waits in vain. Under the user's own
 * launcher ranks with other options would train another model, or wait in another collective. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/job/worker.h"
#include "bench/options/options.h"
#include "runtime/base/clock.h"
#include "runtime/state/checkpoint.h"

#ifndef EL_BUILD_COMMIT
#define EL_BUILD_COMMIT "unknown"
#endif

enum { VALUE_BYTES = 2048, SHOWN = 120 };

static void add(json_t *phrases, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(json_t *phrases, const char *format, ...)
{
    char text[VALUE_BYTES + 128];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    json_array_append_new(phrases, el_json_string(text));
}

/* "with --optimizer adam": given or not, in row order. */
static json_t *list_options(unsigned command, const struct el_options *options)
{
    json_t *phrases = json_array();
    add(phrases, "from commit %s", EL_BUILD_COMMIT);
    add(phrases, "as 'evenload %s%s%s'", el_command_name(command), *options->action ? " " : "", options->action);
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        char value[VALUE_BYTES];
        if (!(row->commands & command) || row->per_rank) continue;
        el_option_show(row, options, value, sizeof value);
        bool valued = *value && row->argument, initial = valued && !strcmp(value, el_option_initial(row, command));
        char called[64];
        el_option_called(row, command, called, sizeof called);
        add(phrases, "with%s %s%s%s%s", *value ? "" : "out", called, valued ? " " : "", valued ? value : "",
            initial ? " (the default)" : "");
    }
    return phrases;
}

static enum el_status compare_phrases(const json_t *own, int rank, const char *text, const char *verb,
                                      const char *advice)
{
    json_t *its = json_loads(text, 0, NULL);
    enum el_status status = its ? EL_OK : el_fail(EL_ERR_INVALID, "rank %d: its options could not be read", rank);
    for (size_t i = 0; status == EL_OK && i < json_array_size(own); i++) {
        const char *theirs = json_string_value(json_array_get(its, i)),
                   *mine = json_string_value(json_array_get(own, i));
        if (!theirs) theirs = "as another program";
        if (strcmp(theirs, mine))
            status = el_fail(EL_ERR_INVALID, "rank %d %s %.*s, rank 0 %.*s: %s", rank, verb, SHOWN, theirs, SHOWN, mine,
                             advice);
    }
    json_decref(its);
    return status;
}

/* Steals `phrases`. A rank without memory sends an unreadable text, so that nobody waits. */
static enum el_status compare(struct el_bootstrap *bootstrap, json_t *phrases, const char *verb, const char *advice)
{
    char *text = json_dumps(phrases, JSON_COMPACT), **texts = NULL;
    enum el_status status = el_bootstrap_gather(bootstrap, text ? text : "", &texts), same = EL_OK;
    for (int r = 0; texts && r < el_bootstrap_size(bootstrap); r++) {
        if (same == EL_OK) same = compare_phrases(phrases, r, texts[r], verb, advice);
        free(texts[r]);
    }
    free(texts);
    free(text);
    json_decref(phrases);
    return status == EL_OK ? el_bootstrap_agree(bootstrap, same) : status;
}

enum el_status el_job_compare_options(struct el_bootstrap *bootstrap, unsigned command,
                                      const struct el_options *options)
{
    return compare(bootstrap, list_options(command, options), "was started",
                   "start all ranks with the same program and options");
}

enum el_status el_job_compare_data(struct el_bootstrap *bootstrap, const struct el_dataset *dataset)
{
    json_t *phrases = json_array();
    add(phrases, "%s", el_dataset_info(dataset)->description);
    return compare(bootstrap, phrases, "reads", "give all ranks the same data");
}

/* Other hosts may see it late. */
static bool is_seen(const char *path)
{
    enum { TRIES = 10, TRY_NS = 100000000 };
    for (int i = 0; i < TRIES && access(path, F_OK) != 0; i++) nanosleep(&(struct timespec){.tv_nsec = TRY_NS}, NULL);
    return access(path, F_OK) == 0;
}

/* Rank 0 makes a file there; without room for it there is none for checkpoints. */
static enum el_status check_shared(struct el_bootstrap *bootstrap, const char *dir)
{
    char path[EL_PATH_BYTES + 64] = "";
    const bool first = el_bootstrap_rank(bootstrap) == 0;
    if (first) {
        snprintf(path, sizeof path, "%s/.shared.%" PRIx64, dir, (uint64_t)el_clock_ns() ^ (uint64_t)getpid() << 40);
        const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0) *path = 0;
        if (file >= 0) close(file);
    }
    enum el_status status = el_bootstrap_broadcast(bootstrap, path, sizeof path);
    if (status == EL_OK && *path && !is_seen(path))
        status =
            el_fail(EL_ERR_INVALID, "--checkpoint %s: not the folder of rank 0: give one that all ranks share", dir);
    status = el_bootstrap_agree(bootstrap, status);
    if (first && *path) unlink(path);
    return status;
}

enum el_status el_job_compare_checkpoints(struct el_bootstrap *bootstrap, const struct el_trial *trial)
{
    const struct el_checkpoint *from = trial->from;
    json_t *phrases = json_array();
    if (from)
        add(phrases, "at step %" PRId64 ", from the checkpoint %016" PRIx64, el_checkpoint_step(from),
            el_checkpoint_index_hash(from));
    else
        add(phrases, "at step 0");
    EL_TRY(compare(bootstrap, phrases, "begins", "give --resume a folder that all ranks share"));
    return *trial->checkpoint ? check_shared(bootstrap, trial->checkpoint) : EL_OK;
}

/* ---- parts of a document ---- */

/* A lost peer does not explain the others' failures. */
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
    /* a rank without memory sends an unreadable text, so that nobody waits */
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
