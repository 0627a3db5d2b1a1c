/* The record of a watch (docs/watch.md). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/program.h"
#include "bench/machine/host.h"
#include "bench/record/record.h"
#include "bench/trial/trial.h"
#include "bench/watch/late.h"
#include "bench/watch/watch.h"

enum { SERIES_MAX = 64 }; /* heaviest processes, with time series */
static const double SHARE_S = 1;

static const char *const activity_names[] = {[EL_WATCH_DISCOVER] = "new processes",
                                             [EL_WATCH_LOOK] = "CPU time and memory",
                                             [EL_WATCH_SHARED] = "Pss",
                                             [EL_WATCH_GPUS] = "GPUs",
                                             [EL_WATCH_LIVE] = "ranks",
                                             [EL_WATCH_SO_FAR] = "the record so far"};

static double seconds(int64_t from_ns, int64_t to_ns)
{
    return 1e-9 * (double)(to_ns - from_ns);
}

static double mean_bytes(const struct el_tree_process *p)
{
    if (p->looked_s > 0) return p->resident_byte_s / p->looked_s;
    return p->peak_bytes >= 0 ? (double)p->peak_bytes : NAN;
}

static json_t *series_of(const struct el_series *series, bool cpu)
{
    json_t *bytes = json_array(), *cpu_s = cpu ? json_array() : NULL;
    for (int i = 0; i < series->n; i++) {
        json_array_append_new(bytes, json_integer(series->points[i].bytes));
        json_array_append_new(cpu_s, el_json_real(1e-9 * (double)series->points[i].cpu_ns));
    }
    return json_pack("{s:i, s:o, s:o*}", "from", series->first, "bytes", bytes, "cpu_s", cpu_s);
}

static bool is_heavy(const struct el_watching *watch, int i)
{
    int n = 0;
    for (int k = 0; k < watch->tree->n; k++) {
        int64_t a = watch->tree->list[k]->peak_bytes, b = watch->tree->list[i]->peak_bytes;
        n += a > b || (a == b && k < i);
    }
    return n < SERIES_MAX;
}

/* Where GPUs are compared: the processes that use one. */
static bool is_peer(const struct el_watching *watch, const struct el_watch_peers *peers, int i)
{
    for (int k = 0; k < watch->n_uses; k++)
        if (peers->n > 0 && peers->list[0].gpu >= 0 && watch->uses[k].process == i) return true;
    for (int k = 0; k < peers->n; k++)
        if (peers->list[k].process == i) return true;
    return false;
}

static json_t *process_of(const struct el_watching *watch, const struct el_watch_peers *peers, int i)
{
    const struct el_tree_process *p = watch->tree->list[i];
    json_t *process = json_object();
    double cpu_pct = el_watch_cpu_pct(watch, p);
    int64_t end_ns = el_watch_end_of(watch, p), begin_ns = p->begin_ns < end_ns ? p->begin_ns : end_ns;
    bool peer = is_peer(watch, peers, i), heavy = peer || is_heavy(watch, i);
    el_json_put_all(process, EL_KEY("pid", p->process.pid), EL_KEY("parent", p->parent),
                    EL_KEY("rank", el_json_count(p->identity.rank)),
                    EL_KEY("launcher", p->identity.rank >= 0 ? p->identity.launcher : NULL),
                    EL_KEY("name", p->look.name), EL_KEY("executable", el_json_filled(p->identity.executable)),
                    EL_KEY("command", el_json_filled(p->identity.command)),
                    EL_KEY("cpus", el_json_filled(p->identity.cpus)), EL_KEY("threads", p->n_threads));
    el_json_put_all(process, EL_KEY("begin_s", seconds(watch->begin_ns, begin_ns)),
                    EL_KEY("end_s", seconds(watch->begin_ns, end_ns)), EL_KEY("left_running", p->alive));
    el_json_put_all(process, EL_KEY("peak_bytes", el_json_count(p->peak_bytes)),
                    EL_KEY("own_peak_bytes", el_json_count(p->own_peak_bytes)), EL_KEY("mean_bytes", mean_bytes(p)),
                    EL_KEY("pss_bytes", el_json_count(p->pss_bytes)),
                    EL_KEY("pss_resident_bytes", el_json_count(p->pss_bytes < 0 ? -1 : p->pss_resident_bytes)));
    el_json_put_all(process, EL_KEY("cpu_s", 1e-9 * (double)p->look.cpu_ns), EL_KEY("cpu_pct", cpu_pct),
                    EL_KEY("cpu_of_allowed_pct", p->identity.n_cpus ? cpu_pct / p->identity.n_cpus : NAN),
                    EL_KEY("peer", peer), EL_KEY("series", heavy ? series_of(&watch->series[i], true) : json_null()));
    return process;
}

static json_t *gpus_of(const struct el_watching *watch)
{
    json_t *gpus = json_array();
    for (int g = 0; watch->gpus && g < watch->gpus->n; g++) {
        const struct el_gpu_state *state = &watch->gpus->gpus[g];
        const struct el_watch_gpu *figures = &watch->gpu[g];
        double busy_pct = figures->n_busy ? figures->busy_sum / figures->n_busy : NAN;
        json_array_append_new(gpus, el_json_of(EL_KEY("gpu", g), EL_KEY("uuid", state->uuid),
                                               EL_KEY("name", state->name), EL_KEY("busy_pct", busy_pct),
                                               EL_KEY("ours_peak_bytes", figures->ours_peak_bytes),
                                               EL_KEY("others_peak_bytes", figures->others_peak_bytes),
                                               EL_KEY("used_peak_bytes", figures->used_peak_bytes),
                                               EL_KEY("total_bytes", figures->total_bytes)));
    }
    return gpus;
}

static json_t *uses_of(const struct el_watching *watch)
{
    json_t *uses = json_array();
    for (int k = 0; k < watch->n_uses; k++) {
        const struct el_watch_use *use = &watch->uses[k];
        const struct el_tree_process *p = watch->tree->list[use->process];
        json_array_append_new(
            uses, el_json_of(EL_KEY("gpu", use->gpu), EL_KEY("process", use->process), EL_KEY("pid", p->process.pid),
                             EL_KEY("rank", el_json_count(p->identity.rank)), EL_KEY("peak_bytes", use->peak_bytes),
                             EL_KEY("mean_bytes", use->looked_s > 0 ? use->byte_s / use->looked_s : (double)use->bytes),
                             EL_KEY("busy_pct", el_watch_use_busy_pct(use)),
                             EL_KEY("series", series_of(&use->series, false))));
    }
    return uses;
}

static json_t *sampler_of(const struct el_watching *watch)
{
    double lived_s = seconds(watch->begin_ns, watch->end_ns);
    json_t *activities = json_array();
    for (int a = 0; a < EL_WATCH_ACTIVITIES; a++) {
        const struct el_watch_pace *pace = &watch->paces[a];
        if ((a == EL_WATCH_GPUS && !watch->gpus) || (a >= EL_WATCH_LIVE && pace->n == 0)) continue;
        json_array_append_new(activities,
                              el_json_of(EL_KEY("name", activity_names[a]), EL_KEY("times", pace->n),
                                         EL_KEY("asked_every_ms", 1e-6 * (double)pace->every_ns),
                                         EL_KEY("every_ms", pace->n ? 1e3 * lived_s / pace->n : NAN),
                                         EL_KEY("cpu_us_each", pace->n ? 1e-3 * pace->total_ns / pace->n : NAN)));
    }
    /* Starting takes milliseconds, too much of a short run. */
    double share_pct = lived_s >= SHARE_S ? 100 * watch->own_cpu_s / lived_s : NAN;
    return el_json_of(EL_KEY("cpu_s", watch->own_cpu_s), EL_KEY("cpu_pct_of_a_core", share_pct),
                      EL_KEY("activities", activities));
}

/* Between samples, and after the last one. */
static double unseen_cpu_s(const struct el_watching *watch)
{
    double seen_s = 0;
    for (int i = 0; i < watch->tree->n; i++)
        if (!watch->tree->list[i]->alive) seen_s += 1e-9 * (double)watch->tree->list[i]->look.cpu_ns;
    return fmax(0, watch->children_cpu_s - seen_s);
}

static json_t *watch_of(const struct el_watching *watch, const struct el_watch_peers *peers)
{
    json_t *object = json_object(), *command = json_array(), *processes = json_array(), *frames_s = json_array();
    for (char *const *word = watch->command; *word; word++) json_array_append_new(command, el_json_string(*word));
    for (int i = 0; i < watch->tree->n; i++) json_array_append_new(processes, process_of(watch, peers, i));
    for (int i = 0; i < watch->frames.n; i++)
        json_array_append_new(frames_s, el_json_real(seconds(watch->begin_ns, watch->frames.ns[i])));
    bool killed = WIFSIGNALED(watch->wait_status);
    json_t *compared = json_pack("{s:s?, s:s, s:i}", "what", peers->what, "rule", peers->rule, "n", peers->n);
    el_json_put_all(object, EL_KEY("command", command), EL_KEY("exit_status", el_watch_exit_status(watch)),
                    EL_KEY("signal", killed ? json_integer(WTERMSIG(watch->wait_status)) : json_null()),
                    EL_KEY("seconds", seconds(watch->begin_ns, watch->end_ns)), EL_KEY("cpu_s", watch->children_cpu_s),
                    EL_KEY("unseen_cpu_s", unseen_cpu_s(watch)), EL_KEY("largest_bytes", watch->largest_bytes),
                    EL_KEY("resident_peak_bytes", watch->resident_peak_bytes),
                    EL_KEY("not_followed", watch->tree->n_not_followed), EL_KEY("wait_all", watch->waited_for_all),
                    EL_KEY("waiting_ended", watch->waiting_ended), EL_KEY("compared", compared));
    el_json_put_all(object, EL_KEY("sampler", sampler_of(watch)), EL_KEY("frames_s", frames_s),
                    EL_KEY("processes", processes), EL_KEY("gpus", gpus_of(watch)),
                    EL_KEY("gpu_reason", el_json_filled(watch->gpu_reason)), EL_KEY("gpu_processes", uses_of(watch)));
    return object;
}

static json_t *device_of(const struct el_watching *watch, const struct el_watch_peer *peer, const char *host)
{
    char name[32] = "cpu";
    const struct el_tree_process *p = peer->process < 0 ? NULL : watch->tree->list[peer->process];
    if (peer->gpu >= 0) snprintf(name, sizeof name, "gpu:%d", peer->gpu);
    const char *source = peer->gpu >= 0 ? "the driver's samples" : "CPU time of the process, of one core";
    json_t *memory = el_json_of(EL_KEY("peak_bytes", peer->memory_bytes), EL_KEY("at_peak_by_tag", json_object()),
                                EL_KEY("timeline", json_null()));
    json_t *utilization = el_json_of(EL_KEY("busy_pct", peer->busy_pct), EL_KEY("source", source));
    return el_json_of(EL_KEY("device", name), EL_KEY("host", host),
                      EL_KEY("rank", p ? el_json_count(p->identity.rank) : json_null()),
                      EL_KEY("pid", p ? json_integer(p->process.pid) : json_null()), EL_KEY("simulated", json_false()),
                      EL_KEY("memory", memory), EL_KEY("utilization", utilization));
}

/* The peers are the devices, so that all readers of records work. */
static json_t *trial_of(const struct el_watching *watch, const struct el_watch_peers *peers, const char *words)
{
    char id[EL_TRIAL_ID_BYTES], host[256] = "", reason[64] = "";
    int exit_status = el_watch_exit_status(watch);
    uint64_t build = el_build_hash(), hash = el_hash(EL_HASH_BEGIN, &build, sizeof build);
    json_t *trial = json_object(), *per_device = json_array();
    snprintf(id, sizeof id, "%016" PRIx64, el_hash(hash, words, strlen(words)));
    if (exit_status != 0) snprintf(reason, sizeof reason, "the command's exit status is %d", exit_status);
    if (!watch->ended) snprintf(reason, sizeof reason, "the command still ran when this was written");
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < peers->n; i++) json_array_append_new(per_device, device_of(watch, &peers->list[i], host));
    el_json_put_all(trial, EL_KEY("id", id), EL_KEY("mode", "watch"), EL_KEY("model", watch->command[0]),
                    EL_KEY("procs", watch->tree->n), EL_KEY("command", words),
                    EL_KEY("status", *reason ? "failed" : "ok"), EL_KEY("reason", el_json_filled(reason)),
                    EL_KEY("warnings", json_array()), EL_KEY("warning_rules", json_array()),
                    EL_KEY("simulated", json_false()));
    el_json_put(trial, "per_device", per_device);
    return trial;
}

void el_watch_compare(json_t *document)
{
    json_t *trial = json_array_get(json_object_get(document, "trials"), 0), *imbalance = NULL;
    const size_t n = json_array_size(json_object_get(trial, "per_device"));
    json_t *launch = json_pack("[{s:O}]", "members", json_object_get(trial, "per_device"));
    if (n >= 2)
        imbalance = json_pack("{s:o, s:o, s:n}", "memory", el_launches_imbalance(launch, el_at_device_peak_bytes, NULL),
                              "busy", el_launches_imbalance(launch, el_at_device_busy_pct, NULL), "bytes");
    json_decref(launch);
    el_json_put_all(trial, EL_KEY("devices", n), EL_KEY("imbalance", imbalance));
    el_json_put_all(json_object_get(json_object_get(document, "watch"), "compared"), EL_KEY("n", n));
}

void el_watch_put_training(const struct el_watching *watch, json_t *document)
{
    json_t *training = el_late_document(&watch->hook), *trial = json_array_get(json_object_get(document, "trials"), 0);
    if (json_is_object(training)) {
        el_json_put(trial, "step_ms", json_incref(json_object_get(training, "step_ms")));
        el_json_put(trial, "throughput",
                    el_json_of(EL_KEY("samples_per_s", el_json_number(training, "samples_per_s")),
                               EL_KEY("ci95", json_null()), EL_KEY("ci_reason", "one launch")));
    }
    const char *reason = json_is_object(training) ? "" : el_error_message();
    el_json_put_all(json_object_get(document, "watch"), EL_KEY("training_reason", el_json_filled(reason)),
                    EL_KEY("training", training));
}

json_t *el_watch_record(const struct el_watching *watch, const char *words)
{
    struct el_watch_peers peers;
    if (el_watch_peers(watch, &peers) != EL_OK) return NULL;
    json_t *trials = json_array();
    json_array_append_new(trials, trial_of(watch, &peers, words));
    json_t *document = el_record_run(el_environment(), trials);
    if (document) el_json_put(document, "watch", watch_of(watch, &peers));
    if (document) el_watch_compare(document);
    el_watch_peers_free(&peers);
    return document;
}
