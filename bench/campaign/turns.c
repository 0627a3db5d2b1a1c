/* Every trial in turns, each repeat in fresh processes, written to disk at once. */
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/campaign/gate.h"
#include "bench/campaign/progress.h"
#include "bench/machine/host.h"
#include "bench/record/record.h"
#include "runtime/base/rng.h"
#include "runtime/gate/gate.h"

void el_plan_make(int n_trials, int repeats, uint64_t seed, struct el_plan_entry *entries)
{
    for (int r = 0; r < repeats; r++) {
        struct el_plan_entry *round = entries + r * n_trials;
        const struct el_rng_key key = {.seed = seed, .use = EL_RNG_ORDER, .id = (uint32_t)r};
        for (int t = 0; t < n_trials; t++) round[t] = (struct el_plan_entry){.trial = t, .repeat = r};
        for (int i = n_trials - 1; i > 0; i--) { /* Fisher and Yates */
            int j = (int)(el_rng_u64(&key, (uint64_t)i, 0) % (uint64_t)(i + 1));
            struct el_plan_entry other = round[j];
            round[j] = round[i];
            round[i] = other;
        }
    }
}

/* One trial of several processes stands for all. */
static void find_launcher(struct el_campaign *c)
{
    int t = 0;
    while (t < c->set.n && c->set.trials[t].procs < 2) t++;
    if (t < c->set.n && el_runner_check_launcher(&c->set.trials[t]) != EL_OK)
        snprintf(c->no_launcher, sizeof c->no_launcher, "%s", el_error_message());
}

static json_t *without_launch(const struct el_campaign *c, const struct el_plan_entry *entry, int order)
{
    const struct el_trial *trial = &c->set.trials[entry->trial];
    bool launched = trial->procs < 2 || !c->no_launcher[0];
    const char *status = "absent", *reason = launched ? el_gate_refusal(c, trial, &status) : c->no_launcher;
    return reason ? el_record_failed_repeat(trial, entry->repeat, order, status, reason) : NULL;
}

static enum el_status measure_one(struct el_campaign *c, const struct el_runner *runner, struct el_progress *progress,
                                  const struct el_plan_entry *entry, int order)
{
    struct el_trial *trial = &c->set.trials[entry->trial];
    bool there = *el_campaign_repeat(c, entry->trial, entry->repeat) != NULL;
    json_t *document = there ? NULL : without_launch(c, entry, order);
    if (there || document) progress->done++;
    if (there) return EL_OK;
    if (document) {
        EL_TRY(el_store_save_repeat(&c->store, trial, entry->repeat, document));
    } else {
        el_progress_begin(progress, trial, entry->repeat);
        enum el_status status = el_restart_measure(runner, trial, entry->repeat, order, &document);
        el_progress_end(progress, document);
        EL_TRY(status);
    }
    return document ? el_campaign_take(c, entry->trial, entry->repeat, document) : EL_OK;
}

static int count_missing(const struct el_campaign *c)
{
    int missing = 0;
    for (int i = 0; i < c->set.n * c->options->repeats; i++) missing += !c->repeats[i];
    return missing;
}

static bool is_empty(const struct el_campaign *c)
{
    return count_missing(c) == c->set.n * c->options->repeats;
}

void el_campaign_say_interrupted(const struct el_campaign *c, const char *how)
{
    el_text_line(stderr, "evenload: interrupted%s. Go on with: %s %s",
                 is_empty(c) ? " before anything was measured" : "; what was measured is kept", how, c->store.dir);
}

enum el_status el_campaign_measure(struct el_campaign *c, bool gate, const char *headline)
{
    struct el_runner runner;
    struct el_progress progress;
    int n = c->set.n * c->options->repeats;
    find_launcher(c);
    EL_TRY(el_runner_init(&runner, &c->store));
    struct el_plan_entry *plan = calloc((size_t)n + 1, sizeof *plan);
    if (!plan) return el_fail_errno("plan of %d launches", n);
    el_plan_make(c->set.n, c->options->repeats, c->options->train.seed, plan);
    el_runner_catch_signals();
    el_progress_init(&progress, n, c->options->quiet);
    runner.tick = el_progress_tick;
    runner.context = &progress;
    if (headline) el_progress_say(&progress, "%s; results go to %s", headline, c->store.dir);
    if (c->no_launcher[0]) el_progress_say(&progress, "%s", c->no_launcher);
    if (n && !el_backend_facts(c->set.trials[0].devices[0].backend).simulated)
        el_cores_say_busy(count_missing(c) * c->options->train.min_time_s, c->options->quiet);
    enum el_status status = EL_OK;
    if (gate) {
        el_progress_phase(&progress, "comparing the modes' first steps with the reference");
        status = el_gate_run(c, &runner, &progress);
    }
    el_progress_phase(&progress, "");
    for (int i = 0; i < n && status == EL_OK && !el_runner_interrupted(); i++)
        status = measure_one(c, &runner, &progress, &plan[i], i);
    if (status == EL_OK && !is_empty(c)) status = el_campaign_write(c); /* empty: interrupted before the first */
    free(plan);
    return status;
}
