/* `evenload watch -- COMMAND`: the command keeps its streams; our output goes to standard error after its end. */
#include <string.h>
#include <unistd.h>

#include "bench/base/text.h"
#include "bench/campaign/store.h"
#include "bench/commands.h"
#include "bench/page/page.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/watch/hosts.h"
#include "bench/watch/watch.h"
#include "profiles/op_table.h"

enum { WORDS_BYTES = 4096, SCHEDULE_BYTES = 64 };

/* Of several hosts, the first one has the record of all; the others have one only if that failed. */
static enum el_status join(struct el_store *store, struct el_watching *watch, struct el_hosts *hosts, json_t *document,
                           bool *ours_p)
{
    char own[EL_PATH_BYTES + 16];
    enum el_status status = hosts->n > 1 ? el_hosts_join(hosts, document) : EL_OK;
    *ours_p = hosts->place == 0 || status != EL_OK;
    if (status != EL_OK) fprintf(stderr, "evenload: watch: %s; the record is of this host alone\n", el_error_message());
    if (*ours_p) el_watch_put_training(watch, document);
    if (status != EL_OK) watch->hook.clocks = NULL; /* others may still write */
    if (*ours_p) el_python_hook_end(&watch->hook);
    if (status == EL_OK || hosts->place == 0) return EL_OK;
    snprintf(own, sizeof own, "%s/host-%d", store->dir, hosts->place);
    return el_store_create(own, "watch", store);
}

static enum el_status save(const struct el_options *options, const struct el_store *store,
                           const struct el_watching *watch, const json_t *document)
{
    char word[EL_WORD_BYTES];
    EL_TRY(el_store_save_run(store, document));
    el_store_discard(store); /* empty folders; from here on a signal may end us */
    el_watch_release_signals(watch);
    if (!options->quiet) {
        fputc('\n', stderr);
        el_watch_print(document, stderr);
        fputc('\n', stderr);
        el_text_line(stderr, "%s/results.json", store->dir);
        el_text_line(stderr, "%s/trials.csv", store->dir);
    }
    if (options->plot) {
        FILE *messages = options->quiet ? NULL : stderr;
        el_say_not_drawn(el_page_plot(store->dir, NULL, messages), messages);
    }
    if (options->quiet) return EL_OK;
    fputc('\n', stderr);
    el_text_line(stderr, "Next: %s plot %s --term", el_program_word(), el_shell_word(store->dir, word, sizeof word));
    return EL_OK;
}

/* The command line as given; truncated. */
static void command_words(const struct el_options *options, char words[WORDS_BYTES])
{
    snprintf(words, WORDS_BYTES, "evenload");
    for (int i = 0; i < options->argc; i++) el_text_append(words, WORDS_BYTES, " %s", options->argv[i]);
}

struct so_far {
    const struct el_options *options;
    const struct el_store *store;
};

/* For jobs of days. Only failures at the end are said. */
static void save_so_far(struct el_watching *watch, void *context)
{
    const struct so_far *so_far = context;
    char words[WORDS_BYTES];
    command_words(so_far->options, words);
    json_t *document = el_watch_record(watch, words);
    if (document) el_watch_put_training(watch, document);
    if (document) el_store_save_run(so_far->store, document);
    json_decref(document);
}

/* The command has run: its exit status is ours, even if the record could not be written. */
static int finish(const struct el_options *options, struct el_store *store, struct el_watching *watch,
                  struct el_hosts *hosts, enum el_status status)
{
    bool ours = true;
    char words[WORDS_BYTES];
    if (status == EL_OK) {
        command_words(options, words);
        json_t *document = el_watch_record(watch, words);
        if (hosts->n > 1) el_watch_release_signals(watch); /* the others' commands may run on */
        status = document ? join(store, watch, hosts, document, &ours)
                          : el_fail(EL_ERR_HOST_MEMORY, "no memory for the record");
        if (status == EL_OK && ours) status = save(options, store, watch, document);
        json_decref(document);
    }
    el_watch_release_signals(watch);
    if (status != EL_OK)
        fprintf(stderr, "evenload: watch: %s; the command's exit status follows\n", el_error_message());
    return el_watch_exit_status(watch);
}

static int watch_command(const struct el_options *options, struct el_store *store, struct el_hosts *hosts,
                         const char *schedule)
{
    struct el_watching *watch = NULL;
    int exit_status = EL_WATCH_NOT_STARTED;
    char *const *command = options->argv + options->command_at;
    struct so_far so_far = {options, store};
    struct el_python_hook hook = {.folder = ""};
    if (options->hook) el_python_hook_begin(store->dir, schedule, &hook);
    if (hosts->n > 1) el_python_hook_of_host(&hook, hosts->place, hosts->n);
    enum el_status status = el_watch_begin(command, 1e-3 * options->interval_ms, &hook, NULL, &watch, &exit_status);
    if (status != EL_OK) {
        fprintf(stderr, "evenload: watch: %s\n", el_error_message());
        return status == EL_ERR_ABSENT ? exit_status : EL_EXIT_USE;
    }
    watch->live = options->live && isatty(STDERR_FILENO);
    watch->one_of_many = hosts->n > 1;
    if (hosts->place == 0) {
        watch->so_far = save_so_far;
        watch->so_far_context = &so_far;
        watch->hook.clocks = hosts->clocks;
    }
    status = el_watch_run(watch, options->wait_all);
    exit_status = finish(options, store, watch, hosts, status);
    el_watch_end(watch);
    return exit_status;
}

/* One cycle, in torch.profiler.schedule's own words. */
static enum el_status read_schedule(const struct el_options *options, char schedule[SCHEDULE_BYTES])
{
    struct el_profile_schedule read;
    if (!*options->profile) return EL_OK;
    EL_TRY(el_profile_schedule_read(options->profile, &read));
    if (!options->hook) return el_fail(EL_ERR_INVALID, "--profile needs the hook: leave --no-hook out");
    if (read.repeat > 1)
        return el_fail(EL_ERR_INVALID, "--profile repeat=%d: watch records one cycle", (int)read.repeat);
    snprintf(schedule, SCHEDULE_BYTES, "skip_first=%d,wait=%d,warmup=%d,active=%d,repeat=1", (int)read.skip_first,
             (int)read.wait, (int)read.warmup, (int)read.active);
    return EL_OK;
}

/* Of several hosts, the first one makes the folder. */
static enum el_status open_store(const struct el_options *options, const struct el_hosts *hosts,
                                 struct el_store *store_p)
{
    if (hosts->n > 1 && !*options->out)
        return el_fail(EL_ERR_INVALID, "--hosts %s: --out DIR names the folder that all hosts share", options->hosts);
    if (hosts->place == 0) return el_store_create(options->out, "watch", store_p);
    *store_p = (struct el_store){.existing = strlen(options->out)};
    snprintf(store_p->dir, sizeof store_p->dir, "%s", options->out);
    return EL_OK;
}

enum el_status el_cmd_watch(struct el_options *options, int *exit_status_p)
{
    struct el_store store;
    struct el_hosts hosts;
    char schedule[SCHEDULE_BYTES] = "";
    int at = options->command_at;
    if (at == 0 || at >= options->argc || !*options->argv[at])
        return el_fail(EL_ERR_INVALID, "watch: which command? write it after '--': evenload watch -- python train.py");
    EL_TRY(read_schedule(options, schedule));
    EL_TRY(el_hosts_read(*options->hosts ? options->hosts : "1", &hosts));
    EL_TRY(open_store(options, &hosts, &store));
    enum el_status status = el_hosts_meet(store.dir, &hosts);
    if (status == EL_OK) *exit_status_p = watch_command(options, &store, &hosts, schedule);
    if (hosts.place == 0) el_store_discard(&store); /* empty folders; all if the command could not start */
    el_hosts_end(&hosts);
    return status;
}
