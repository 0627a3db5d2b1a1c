/* `evenload run` as a rank of the user's mpirun or torchrun. Nobody supervises the job, so each rank enforces
 * --timeout. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/job/worker.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/trial/trial.h"
#include "runtime/base/clock.h"

/* MEETING_S: rank 0's default wait for others. OTHERS_S: how much longer the others wait, so that rank 0, which knows
 * more, reports first. */
enum { MEETING_S = 60, OTHERS_S = 2 };

/* All but the first two change under the lock, with which either the job's thread goes on or the limit ends the
 * process. */
struct watched {
    const struct el_launch_place *place;
    double timeout_s;
    pthread_mutex_t lock; /* kept by the thread after the time limit */
    pthread_cond_t news;
    int64_t end_ns;
    bool over;                      /* nothing is left to watch */
    struct el_bootstrap *bootstrap; /* NULL: the ranks have not met */
    struct el_campaign *campaign;   /* while rank 0 measures, else NULL */
    const struct el_trial *trial;
    int repeat;
};

static void expire(const struct watched *w)
{
    char silent[96] = "", reason[256];
    if (w->bootstrap) el_bootstrap_silent(w->bootstrap, silent, sizeof silent);
    snprintf(reason, sizeof reason, "%s within %g s (--timeout)%s%s%s",
             w->bootstrap ? "the job did not end" : "the ranks did not meet", w->timeout_s, *silent ? ": rank " : "",
             silent, *silent ? " does not answer (stopped?)" : "");
    fprintf(stderr, "evenload: rank %d: %s\n", w->place->rank, reason);
    if (w->campaign) {
        json_t *document = el_record_failed_repeat(w->trial, w->repeat, w->repeat, "timeout", reason);
        if (el_store_save_repeat(&w->campaign->store, w->trial, w->repeat, document) == EL_OK)
            el_campaign_take(w->campaign, 0, w->repeat, document);
    }
    if (w->bootstrap) el_bootstrap_abort(w->bootstrap, EL_EXIT_TRIAL);
    _exit(EL_EXIT_TRIAL);
}

static void *keep_time(void *context)
{
    struct watched *w = context;
    pthread_mutex_lock(&w->lock);
    while (!w->over && el_clock_ns() < w->end_ns) el_clock_cond_wait(&w->news, &w->lock, w->end_ns);
    if (!w->over) expire(w);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void begin_part(struct watched *w, struct el_bootstrap *bootstrap, struct el_campaign *campaign, int repeat)
{
    pthread_mutex_lock(&w->lock);
    bool first = bootstrap && el_bootstrap_rank(bootstrap) == 0;
    w->end_ns = el_clock_ns() + (int64_t)((w->timeout_s + (first ? 0 : OTHERS_S)) * 1e9);
    w->bootstrap = bootstrap;
    w->campaign = campaign;
    w->repeat = repeat;
    pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
}

static enum el_status begin_watch(struct watched *w, pthread_t *thread_p)
{
    pthread_mutex_init(&w->lock, NULL);
    el_clock_cond_init(&w->news);
    begin_part(w, NULL, NULL, 0);
    bool begun = pthread_create(thread_p, NULL, keep_time, w) == 0;
    return begun ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no thread for --timeout");
}

static void end_watch(struct watched *w, pthread_t thread)
{
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
    pthread_join(thread, NULL);
}

static enum el_status check_size(int size)
{
    return size <= EL_MEMBERS_MAX ? EL_OK : el_fail(EL_ERR_INVALID, "%d ranks: at most %d", size, EL_MEMBERS_MAX);
}

static enum el_status take_place(struct el_options *options, const struct el_launch_place *place,
                                 struct el_bootstrap *bootstrap)
{
    const char *mode = options->modes[0];
    int size = el_bootstrap_size(bootstrap), asked = options->n_devices;
    if (size > 1 && el_mode_find(mode)->one_process)
        return el_fail(EL_ERR_INVALID, "mode %s is one process, but %s started %d: start it without %s", mode,
                       place->launcher, size, place->launcher);
    bool several = el_mode_find(mode)->many_a_rank; /* devices per rank */
    if (asked && asked != size && !(several && asked % size == 0))
        return el_fail(EL_ERR_INVALID, "--devices %d, but %s started %d ranks: %s; leave --devices out", asked,
                       place->launcher, size, several ? "each takes as many" : "a rank has one device");
    EL_TRY(check_size(size));
    options->n_devices = asked ? asked : size;
    options->procs = size > 1 ? size : 0;
    return asked ? EL_OK : el_devices_of_ranks(bootstrap, options->devices);
}

static void print_result(const struct el_campaign *c)
{
    if (c->options->json)
        el_print_json(el_json_at(c->run, "trials.0"), stdout);
    else
        el_report_table(c->run, stdout);
    if (!c->options->json) {
        printf("\n");
        el_text_line(stdout, "%s/results.json", c->store.dir);
    }
}

/* Rank 0 first: it makes the folder and chooses the checkpoint to resume from. */
static enum el_status begin(struct el_campaign *campaign, struct el_trial_set *others, const struct el_options *options,
                            struct el_bootstrap *bootstrap)
{
    bool first = el_bootstrap_rank(bootstrap) == 0;
    struct el_options same = *options;
    EL_TRY(el_bootstrap_agree(bootstrap, first ? el_campaign_begin(campaign, EL_CMD_RUN, options) : EL_OK));
    if (first) memcpy(same.resume, campaign->set.trials->resume, sizeof same.resume);
    EL_TRY(el_bootstrap_broadcast(bootstrap, same.resume, sizeof same.resume));
    EL_TRY(el_bootstrap_agree(bootstrap, first ? EL_OK : el_trials_resolve(EL_CMD_RUN, &same, others)));
    EL_TRY(el_job_compare_data(bootstrap, first ? campaign->set.dataset : others->dataset));
    return el_job_compare_checkpoints(bootstrap, first ? campaign->set.trials : others->trials);
}

static int work(const struct el_options *options, struct watched *watched)
{
    struct el_bootstrap *bootstrap = watched->bootstrap;
    struct el_campaign campaign = {.options = NULL};
    struct el_trial_set others = {0};
    bool first = el_bootstrap_rank(bootstrap) == 0;
    enum el_status status = begin(&campaign, &others, options, bootstrap);
    if (status != EL_OK && campaign.options) el_campaign_undo(&campaign);
    if (status != EL_OK) {
        el_trials_free(&others);
        if (first) el_exit_failed(status);
        return EL_EXIT_USE; /* also if another rank was refused */
    }
    struct el_trial_set *set = first ? &campaign.set : &others;
    struct el_job job = {.trial = set->trials, .dataset = set->dataset, .bootstrap = bootstrap};
    watched->trial = job.trial; /* used only with a campaign */
    int exit_status = 0;
    for (int r = 0; r < options->repeats; r++) {
        json_t *document = NULL;
        job.repeat = job.order = r;
        begin_part(watched, bootstrap, first ? &campaign : NULL, r);
        status = el_job_measure(&job, &document);
        begin_part(watched, bootstrap, NULL, r);
        if (status != EL_OK) exit_status = EL_EXIT_TRIAL;
        if (status == EL_ERR_PEER && !first) /* rank 0 may be lost */
            fprintf(stderr, "evenload: rank %d: %s\n", el_bootstrap_rank(bootstrap), el_error_message());
        if (!document) continue;
        enum el_status written = el_store_save_repeat(&campaign.store, job.trial, r, document);
        if (written == EL_OK) written = el_campaign_take(&campaign, 0, r, document);
        if (written != EL_OK) exit_status = el_exit_failed(written);
    }
    el_trials_free(&others);
    if (!first) return exit_status;
    if (campaign.run) print_result(&campaign);
    if (campaign.run && exit_status == 0) exit_status = el_campaign_exit_status(&campaign);
    exit_status = el_exit_flush(exit_status);
    el_campaign_end(&campaign);
    return exit_status;
}

/* As our own launcher does. */
static void set_environment(const char *mode)
{
    for (const char *const *row = el_rank_environment(mode); *row; row++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*row, "="), *row);
        setenv(name, *row + strlen(name) + 1, 0);
    }
}

enum el_status el_cmd_run_rank(struct el_options *options, const struct el_launch_place *place, int *exit_status_p)
{
    struct watched watched = {.place = place, .timeout_s = options->timeout_s};
    struct el_bootstrap *bootstrap = NULL;
    double meeting_s = options->timeout_s < MEETING_S ? options->timeout_s : MEETING_S;
    bool first = true; /* a rank that does not meet the others says why */
    pthread_t thread;
    setenv("NO_COLOR", "1", 1); /* mpirun gives its ranks a terminal, wherever its own output goes */
    if (place->size > 1) set_environment(options->train.mode);
    EL_TRY(check_size(place->size));
    EL_TRY(begin_watch(&watched, &thread));
    enum el_status status = el_join(place, meeting_s, &bootstrap);
    if (status == EL_OK) {
        first = el_bootstrap_rank(bootstrap) == 0;
        el_bootstrap_set_timeout(bootstrap, options->train.comm_timeout_s);
        begin_part(&watched, bootstrap, NULL, 0);
        status = el_job_compare_options(bootstrap, EL_CMD_RUN, options);
    }
    if (status == EL_OK) status = take_place(options, place, bootstrap);
    if (status == EL_OK)
        *exit_status_p = work(options, &watched);
    else /* printed before a rank ends, as mpirun then ends the others */
        *exit_status_p = first ? el_exit_failed(status) : EL_EXIT_USE;
    end_watch(&watched, thread);
    el_bootstrap_close(bootstrap);
    return EL_OK;
}
