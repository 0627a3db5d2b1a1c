/* `evenload fleet`: as a launcher's rank, for the hosts of a file, or on this host. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/campaign/store.h"
#include "bench/commands.h"
#include "bench/fleet/fleet.h"
#include "bench/page/page.h"
#include "runtime/base/hash.h"

/* Where the first rank of MPI listens, as its launcher says no address. */
struct notice {
    char host[EL_FLEET_HOST_BYTES], token[40];
    int32_t port;
};

struct telling {
    struct el_bootstrap *bootstrap;
    bool told;
};

static enum el_status tell_by_mpi(void *context, int port, const char *token)
{
    struct telling *telling = context;
    telling->told = true;
    struct notice notice = {.port = port};
    gethostname(notice.host, sizeof notice.host - 1);
    snprintf(notice.token, sizeof notice.token, "%s", token);
    return el_bootstrap_broadcast(telling->bootstrap, &notice, sizeof notice);
}

/* A launcher's process has one device, by its number on its host. */
static enum el_status own_device(struct el_options *options, const struct el_launch_place *place)
{
    int gpus, local = place->local_rank < 0 ? 0 : place->local_rank;
    if (options->n_devices) return EL_OK;
    EL_TRY(el_device_gpus(&gpus));
    options->n_devices = 1;
    options->devices[0].index = gpus > 0 ? local % gpus : local;
    snprintf(options->devices[0].backend, sizeof options->devices[0].backend, "%s", gpus > 0 ? "cuda" : "cpu");
    return EL_OK;
}

static enum el_status check_inject(const struct el_options *options)
{
    int at;
    double x;
    char rest;
    bool simulated = options->n_devices && el_backend_facts(options->devices[0].backend).simulated;
    if (!*options->inject || simulated || sscanf(options->inject, "wrong=%d:%lf%c", &at, &x, &rest) == 2) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--inject %s: fleet takes wrong=RANK:X, which --soak has to find", options->inject);
}

static enum el_status read_baseline(const struct el_options *options, json_t **baseline_p)
{
    char path[EL_PATH_BYTES + 16];
    *baseline_p = NULL;
    if (!options->regress.baseline[0]) return EL_OK;
    snprintf(path, sizeof path, "%s/fleet.json", options->regress.baseline);
    return el_read_document(access(path, F_OK) == 0 ? path : options->regress.baseline, el_fleet_is, "fleet",
                            baseline_p);
}

static void say_next(const struct el_options *options, const json_t *document)
{
    struct el_options next = *options;
    bool bad = el_json_is(document, "verdict", "bad");
    fputc('\n', stdout);
    if (!el_option_given(options, "devices")) next.n_devices = 0;
    if (!el_option_given(options, "rounds")) next.fleet.rounds = 0;
    if (options->fleet.soak_s == 0 && !json_is_true(json_object_get(document, "simulated"))) {
        next.fleet.soak_s = 600;
        el_say_next(EL_CMD_FLEET, &next,
                    bad ? "    (are its results right, too?)" : "    (are all results right, bit for bit?)");
    } else {
        next.repeats = 2 * options->repeats;
        el_say_next(EL_CMD_FLEET, &next, "    (smaller slowdowns)");
    }
}

static enum el_status show(const struct el_options *options, const struct el_store *store, json_t *gathered,
                           const json_t *baseline, int *exit_status_p)
{
    json_t *document = NULL;
    enum el_status status = el_fleet_document(options, gathered, baseline, &document);
    if (status == EL_OK) status = el_printed_show("fleet", options, store->dir, document);
    if (status == EL_OK && !json_is_true(json_object_get(document, "simulated")))
        status = el_fleet_save_sessions(document, store->dir);
    if (status == EL_OK && options->fleet.prometheus[0])
        status = el_write_file(options->fleet.prometheus, el_fleet_prometheus, document);
    if (status == EL_OK && !options->json) say_next(options, document);
    *exit_status_p = (int)el_json_whole(document, "exit_status");
    json_decref(document);
    return status;
}

static enum el_status conduct(struct el_options *options, const struct el_launch_place *place,
                              struct el_fleet_opening *opening, int *exit_status_p)
{
    struct el_store store = {.locked = false};
    json_t *baseline = NULL, *gathered = NULL;
    EL_TRY(check_inject(options));
    EL_TRY(read_baseline(options, &baseline));
    bool simulated = options->n_devices && el_backend_facts(options->devices[0].backend).simulated;
    enum el_status status = el_store_create(options->out, "fleet", &store);
    opening->store = &store;
    el_runner_catch_signals();
    if (status == EL_OK) status = el_store_save_command(&store, EL_CMD_FLEET, options);
    if (status == EL_OK)
        status =
            simulated ? el_fleet_simulate(options, &gathered) : el_fleet_conduct(options, place, opening, &gathered);
    if (status == EL_OK && gathered) status = show(options, &store, gathered, baseline, exit_status_p);
    char path[EL_PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/fleet.json", store.dir);
    if (store.locked && access(path, F_OK) != 0) el_store_forget(&store); /* nothing to keep */
    if (status == EL_OK && !gathered) *exit_status_p = el_exit_interrupted();
    json_decref(baseline);
    return status;
}

/* MPI only says where to meet: what follows has to bear the loss of a rank. */
static enum el_status meet_by_mpi(struct el_options *options, const struct el_launch_place *place, int *exit_status_p)
{
    struct el_bootstrap *bootstrap = NULL;
    struct notice notice;
    EL_TRY(el_join(place, 0, &bootstrap));
    if (el_bootstrap_rank(bootstrap) == 0) {
        struct el_launch_place first = *place;
        first.rank = 0;
        first.size = el_bootstrap_size(bootstrap);
        struct el_fleet_opening opening = {.tell = tell_by_mpi, .context = &(struct telling){bootstrap, false}};
        enum el_status status = conduct(options, &first, &opening, exit_status_p);
        if (!((struct telling *)opening.context)->told) tell_by_mpi(opening.context, 0, "");
        if (opening.lost) { /* MPI's own end would wait for it */
            fflush(stdout);
            el_bootstrap_abort(bootstrap, el_exit_flush(status == EL_OK ? *exit_status_p : el_exit_failed(status)));
        }
        el_bootstrap_close(bootstrap);
        return status;
    }
    int rank = el_bootstrap_rank(bootstrap);
    EL_TRY(el_bootstrap_broadcast(bootstrap, &notice, sizeof notice));
    const struct el_fleet_meeting meeting = {notice.host, notice.port, 1, notice.token, options->fleet.wait_s};
    enum el_status status = notice.port ? el_fleet_agent(options, &meeting, "", rank) : EL_OK;
    el_bootstrap_close(bootstrap);
    return status;
}

static enum el_status take_part(struct el_options *options, const struct el_launch_place *place, int *exit_status_p)
{
    char token[40];
    EL_TRY(own_device(options, place));
    if (!place->host) return meet_by_mpi(options, place, exit_status_p);
    /* the same in all of a job, and unknown to others where EVENLOAD_SECRET is set */
    uint64_t hash =
        el_hash(el_hash(EL_HASH_BEGIN, place->token, strlen(place->token) + 1), place->secret, strlen(place->secret));
    snprintf(token, sizeof token, "%016llx", (unsigned long long)hash);
    struct el_fleet_opening opening = {.token = token};
    if (place->rank == 0) return conduct(options, place, &opening, exit_status_p);
    const struct el_fleet_meeting meeting = {place->host, place->port, place->n_ports, token, options->fleet.wait_s};
    return el_fleet_agent(options, &meeting, "", place->rank);
}

enum el_status el_cmd_fleet(struct el_options *options, int *exit_status_p)
{
    struct el_launch_place place;
    struct el_fleet_opening opening = {.token = NULL};
    bool rank = false;
    if (!options->hosts[0]) EL_TRY(el_takes_place(options, &place, &rank));
    if (!rank && !options->hosts[0] && options->n_devices == 0)
        EL_TRY(el_devices_default(options->devices, &options->n_devices));
    if (!rank && !options->hosts[0]) EL_TRY(el_devices_check(options->devices, options->n_devices));
    return rank ? take_part(options, &place, exit_status_p) : conduct(options, NULL, &opening, exit_status_p);
}
