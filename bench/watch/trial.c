/* A watch as one trial whose devices are the peers, in the form of every run's, so that everything that reads records
 * can read it. Fields that need spans or tags are missing. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/hash.h"
#include "bench/base/jvalue.h"
#include "bench/stats/stats.h"
#include "bench/trial/trial.h"
#include "bench/watch/watch.h"

/* A row of the trial's devices. */
static json_t *device_of(const struct el_watching *watch, const struct el_watch_peer *peer, const char *host)
{
    char name[32] = "cpu";
    const struct el_tree_process *p = peer->process < 0 ? NULL : el_process_tree_at(watch->tree, peer->process);
    json_t *device = json_object();
    if (peer->gpu >= 0) snprintf(name, sizeof name, "gpu:%d", peer->gpu);
    el_json_put(device, "device", json_string(name));
    el_json_put(device, "host", el_json_string(host));
    el_json_put(device, "rank", p ? el_json_count(p->identity.rank) : json_null());
    el_json_put(device, "pid", p ? json_integer(p->process.pid) : json_null());
    el_json_put(device, "simulated", json_false());
    el_json_put(
        device, "memory",
        json_pack("{s:o, s:{}, s:n}", "peak_bytes", el_json_real(peer->memory_bytes), "at_peak_by_tag", "timeline"));
    el_json_put(device, "utilization",
                json_pack("{s:o, s:s}", "busy_pct", el_json_real(peer->busy_pct), "source",
                          peer->gpu >= 0 ? "the driver's samples" : "CPU time of the process, of one core"));
    return device;
}

static json_t *imbalance_of(const struct el_watch_peers *peers, bool memory)
{
    struct el_imbalance m = {NAN, NAN, NAN, NAN, NAN};
    double *values = malloc(((size_t)peers->n + 1) * sizeof *values);
    for (int i = 0; i < peers->n && values; i++)
        values[i] = memory ? peers->list[i].memory_bytes : peers->list[i].busy_pct;
    if (values) el_stats_imbalance(values, (size_t)peers->n, &m);
    free(values);
    json_t *imbalance = json_object();
    el_json_put_real(imbalance, "max_over_mean_minus_1", m.max_over_mean_minus_1);
    el_json_put_real(imbalance, "imbalance_pct", m.imbalance_pct);
    el_json_put_real(imbalance, "lb", m.lb);
    el_json_put_real(imbalance, "cv", m.cv);
    el_json_put_real(imbalance, "first_over_rest", m.first_over_rest);
    return imbalance;
}

json_t *el_watch_trial(const struct el_watching *watch, const struct el_watch_peers *peers, const char *words)
{
    char id[EL_TRIAL_ID_BYTES], host[256] = "", reason[64] = "";
    int exit_status = el_watch_exit_status(watch);
    uint64_t build = el_build_hash(), hash = el_hash(EL_HASH_BEGIN, &build, sizeof build);
    json_t *trial = json_object(), *per_device = json_array();
    snprintf(id, sizeof id, "%016" PRIx64, el_hash(hash, words, strlen(words)));
    if (exit_status != 0) snprintf(reason, sizeof reason, "the command's exit status is %d", exit_status);
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < peers->n; i++) json_array_append_new(per_device, device_of(watch, &peers->list[i], host));
    el_json_put(trial, "id", json_string(id));
    el_json_put(trial, "mode", json_string("watch"));
    el_json_put(trial, "model", el_json_string(watch->command[0]));
    el_json_put(trial, "devices", json_integer(peers->n));
    el_json_put(trial, "procs", json_integer(el_process_tree_count(watch->tree)));
    el_json_put(trial, "command", el_json_string(words));
    el_json_put(trial, "status", json_string(exit_status == 0 ? "ok" : "failed"));
    el_json_put(trial, "reason", el_json_string(*reason ? reason : NULL));
    el_json_put(trial, "warnings", json_array());
    el_json_put(trial, "warning_rules", json_array());
    el_json_put(trial, "simulated", json_false());
    el_json_put(trial, "imbalance",
                peers->n < 2 ? json_null()
                             : json_pack("{s:o, s:o, s:n}", "memory", imbalance_of(peers, true), "busy",
                                         imbalance_of(peers, false), "bytes"));
    el_json_put(trial, "per_device", per_device);
    return trial;
}
