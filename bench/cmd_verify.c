/* `evenload verify`: starts jobs of one to four processes that train every possible mode. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/machine/host.h"
#include "bench/trial/trial.h"
#include "bench/verify/verify.h"
#include "runtime/base/clock.h"

static const char *const backends[] = {"cpu", "cuda"};
static const char DATA[] = "sentences.txt";

/* The last line may be cut. */
static void read_lines(const char *path, json_t *cells)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t bytes = 0;
    while (file && getline(&line, &bytes, file) > 0) {
        json_t *cell = json_loads(line, 0, NULL);
        if (cell) json_array_append_new(cells, cell);
    }
    free(line);
    if (file) fclose(file);
}

/* Launched like ddp with a device per process. */
static struct el_trial job_of(const struct el_options *options, const char *backend, int procs)
{
    struct el_trial trial = {.timeout_s = options->timeout_s,
                             .launcher = options->launcher,
                             .procs = procs,
                             .n_devices = EL_VERIFY_MOST,
                             .train = {.mode = "ddp", .n_devices = EL_VERIFY_MOST, .global_batch = EL_VERIFY_MOST}};
    memcpy(trial.comm, options->comm, sizeof trial.comm);
    for (int d = 0; d < EL_VERIFY_MOST; d++)
        snprintf(trial.devices[d].backend, sizeof trial.devices[d].backend, "%s", backend);
    return trial;
}

/* A job that ended early is a failed cell. */
static enum el_status launch(const struct el_store *store, const struct el_options *options, const char *backend,
                             int procs, json_t *cells)
{
    struct el_trial trial = job_of(options, backend, procs);
    char path[EL_PATH_BYTES], data[EL_PATH_BYTES], number[16];
    struct el_follow follow = {.gap_s = 5};
    snprintf(number, sizeof number, "%d", procs);
    el_store_path(store, path, "cells-%s-%d.jsonl", backend, procs);
    el_store_path(store, data, DATA);
    el_store_path(store, follow.logs, "logs/%s-%d", backend, procs);
    enum el_status status = el_follow_launch(
        &follow, store, &trial, (const char *const[]){"worker", "verify", path, data, backend, number, NULL},
        EL_CMD_VERIFY, options);
    if (status != EL_OK && status != EL_ERR_PEER) return status;
    read_lines(path, cells);
    unlink(path);
    if (status == EL_OK || el_runner_interrupted()) return EL_OK; /* its results are kept */
    json_array_append_new(cells,
                          json_pack("{s:s, s:i, s:s, s:o}", "backend", backend, "procs", procs, "status", "failed",
                                    "reason", json_sprintf("the job ended at %s: %s", follow.now, el_error_message())));
    return EL_OK;
}

static enum el_status launch_all(const struct el_options *options, int gpus, const struct el_store *store,
                                 json_t *cells)
{
    char data[EL_PATH_BYTES];
    el_store_path(store, data, DATA);
    EL_TRY(el_verify_write_data(data));
    for (int b = 0; b < 2; b++) {
        if (el_backend_facts(backends[b]).gpu && gpus == 0) continue;
        for (int procs = 1; procs <= (options->pairs ? 1 : EL_VERIFY_MOST) && !el_runner_interrupted(); procs++)
            EL_TRY(launch(store, options, backends[b], procs, cells));
    }
    return EL_OK;
}

static json_t *take_pairs(json_t *cells)
{
    for (size_t i = 0; i < json_array_size(cells); i++) {
        json_t *cell = json_array_get(cells, i);
        if (!el_json_is(cell, "status", "pairs")) continue;
        json_incref(cell);
        json_array_remove(cells, i);
        json_object_del(cell, "status");
        return cell;
    }
    return NULL;
}

/* The command's document; steals `cells` and `disturbances`. */
static json_t *document_of(bool quick, json_t *cells, json_t *disturbances, double seconds)
{
    const bool interrupted = el_runner_interrupted();
    json_t *pairs = take_pairs(cells), *checks = disturbances ? disturbances : cells;
    const size_t failed = el_verify_count(cells, "failed"), missed = el_verify_count(disturbances, "missed");
    const size_t ok = el_verify_count(cells, "ok"), found = el_verify_count(disturbances, "found");
    return json_pack("{s:b, s:b, s:I, s:I, s:I, s:b, s:f, s:o*, s:o*, s:o, s:o}", "passed",
                     failed + missed == 0 && !interrupted, "interrupted", interrupted, "checks",
                     (json_int_t)(ok + failed + found + missed), "failed", (json_int_t)(failed + missed), "unserved",
                     (json_int_t)(el_verify_count(checks, "unserved") + el_verify_count(checks, "skipped")), "quick",
                     quick, "seconds", seconds, "pairs", pairs, "disturbances", disturbances, "environment",
                     el_environment(), "cells", cells);
}

static enum el_status show(const struct el_options *options, const struct el_store *store, const json_t *document)
{
    const bool failed = el_json_number(document, "failed") > 0;
    char path[EL_PATH_BYTES];
    el_store_path(store, path, "verify.json");
    EL_TRY(el_write_json(document, path));
    if (options->json) return el_print_json(document, stdout);
    el_verify_print(document, stdout);
    el_verify_say(document, stdout);
    fputs(".\n", stdout);
    el_text_line(stdout, "%s", path);
    printf("\nNext: %s %s\n", el_program_word(),
           failed && options->disturb ? "verify --disturb    (on a quiet machine)"
           : failed                   ? "devices    (what this build found; the cells' commands are in the file above)"
           : options->quick           ? "verify    (every number of devices and optimizer)"
                                      : "compare");
    return EL_OK;
}

/* Logs stay. */
static void forget(const struct el_store *store)
{
    char data[EL_PATH_BYTES];
    if (!store->locked) return;
    el_store_path(store, data, DATA);
    unlink(data);
    el_store_discard(store);
}

/* --disturb has trials of its own. */
static enum el_status check_options(const struct el_options *options)
{
    static const char *const others[] = {"quick", "pairs", "modes", "inject", "comm"};
    for (int i = 0; options->disturb && i < (int)(sizeof others / sizeof others[0]); i++)
        if (el_option_given(options, others[i]))
            return el_fail(EL_ERR_INVALID, "--disturb runs trials of its own: leave out --%s", others[i]);
    return EL_OK;
}

enum el_status el_cmd_verify(struct el_options *options, int *exit_status_p)
{
    struct el_store store = {.locked = false};
    json_t *cells = json_array(), *disturbances = options->disturb ? json_array() : NULL;
    int64_t begin_ns = el_clock_ns();
    struct el_inject injects[EL_MEMBERS_MAX];
    int gpus;
    enum el_status status = check_options(options);
    if (status == EL_OK) status = el_device_gpus(&gpus);
    if (status == EL_OK) status = el_inject_parse(options->inject, EL_VERIFY_MOST, injects);
    if (status == EL_OK) status = el_store_create(options->out, "verify", &store);
    if (status == EL_OK) el_runner_catch_signals();
    if (status == EL_OK)
        status = options->disturb ? el_verify_disturb(options, store.dir, disturbances)
                                  : launch_all(options, gpus, &store, cells);
    if (status == EL_OK) {
        el_verify_judge(cells);
        json_t *document = document_of(options->quick, cells, disturbances, (double)(el_clock_ns() - begin_ns) * 1e-9);
        if (el_json_number(document, "failed") > 0) *exit_status_p = EL_EXIT_TRIAL;
        status = show(options, &store, document);
        if (status == EL_OK && el_runner_interrupted()) *exit_status_p = el_exit_interrupted();
        json_decref(document);
    } else {
        json_decref(cells);
        json_decref(disturbances);
    }
    if (status != EL_OK) *exit_status_p = 0; /* the failure's own, whatever the checks found */
    if (status != EL_OK) forget(&store);
    return status;
}
