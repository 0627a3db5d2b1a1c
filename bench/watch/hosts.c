#include "bench/watch/hosts.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/watch/watch.h"
#include "runtime/base/clock.h"
#include "runtime/base/files.h"
#include "runtime/comm/clock_relation.h"
#include "runtime/launch/launch.h"

enum { PATIENCE_S = 120, SILENCE_S = 60, HOSTS_MAX = 4096, HOST_BYTES = 256, BACKLOG = 128 };

/* Where the first one listens; it is removed when all have come. */
#define MEETING "hosts"

/* Which of them this is, by the launcher; negative: unknown. */
static enum el_status find_place(int *place_p)
{
    struct el_launch_place place;
    const char *slurm = getenv("SLURM_PROCID"); /* no rank by itself, since batch scripts have it too */
    EL_TRY(el_launch_environment(el_launch_getenv, NULL, &place));
    *place_p = place.is_rank ? place.rank : slurm && *slurm ? atoi(slurm) : -1;
    return EL_OK;
}

enum el_status el_hosts_read(const char *text, struct el_hosts *hosts_p)
{
    struct el_hosts hosts = {.n = 1};
    char rest;
    const bool numbered = sscanf(text, "%d/%d%c", &hosts.place, &hosts.n, &rest) == 2;
    if (!numbered && sscanf(text, "%d%c", &hosts.n, &rest) != 1) hosts.n = 0;
    if (!numbered) hosts.place = 0;
    if (hosts.n < 1 || hosts.n > HOSTS_MAX || hosts.place < 0 || hosts.place >= hosts.n)
        return el_fail(EL_ERR_INVALID,
                       "--hosts %s: it is the number of hosts, from 1 to %d, or I/N: this is number I of N, from 0",
                       text, HOSTS_MAX);
    if (!numbered && hosts.n > 1) EL_TRY(find_place(&hosts.place));
    if (hosts.place < 0)
        return el_fail(
            EL_ERR_INVALID,
            "--hosts %s: no launcher says which of them this is: write --hosts 0/%s on the first, 1/%s on the "
            "next one, and so on",
            text, text, text);
    if (hosts.place >= hosts.n)
        return el_fail(EL_ERR_INVALID,
                       "--hosts %s: the launcher calls this one number %d, from 0: start one on each host", text,
                       hosts.place);
    *hosts_p = hosts;
    return EL_OK;
}

/* ---- the meeting ---- */

static enum el_status listen_anywhere(int *listener_p, int *port_p)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    socklen_t length = sizeof address;
    const int off = 0;
    int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener >= 0)
        setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    else
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || listen(listener, BACKLOG) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        enum el_status status = el_fail_errno("watch --hosts: no port to meet at");
        if (listener >= 0) close(listener);
        return status;
    }
    *listener_p = listener;
    *port_p = ntohs(address.sin6_port); /* same offset for both families */
    return EL_OK;
}

static enum el_status invite(const char *path, struct el_rendezvous *meeting, char secret[EL_LAUNCH_SECRET_BYTES],
                             const char *own)
{
    EL_TRY(el_launch_make_secret(secret));
    EL_TRY(listen_anywhere(&meeting->listener, &meeting->port));
    json_t *words =
        el_json_of(EL_KEY("host", own), EL_KEY("port", meeting->port), EL_KEY("secret", (const char *)secret));
    enum el_status status = el_write_json(words, path);
    json_decref(words);
    return status;
}

/* The first host may begin later. */
static enum el_status accept_invitation(const char *path, struct el_rendezvous *meeting, char host[HOST_BYTES],
                                        char secret[EL_LAUNCH_SECRET_BYTES], const char *own)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    const int64_t until_ns = el_clock_ns() + (int64_t)PATIENCE_S * 1000000000;
    json_t *words = NULL;
    while (!(words = json_load_file(path, 0, NULL))) {
        if (el_clock_ns() > until_ns)
            return el_fail(EL_ERR_TIMEOUT,
                           "watch --hosts: the first host did not write %s within %d s: all hosts must see one folder",
                           path, PATIENCE_S);
        nanosleep(&pause, NULL);
    }
    snprintf(host, HOST_BYTES, "%s", el_json_text(words, "host", ""));
    snprintf(secret, EL_LAUNCH_SECRET_BYTES, "%s", el_json_text(words, "secret", ""));
    meeting->port = (int)el_json_whole(words, "port");
    if (!strcmp(host, own)) snprintf(host, HOST_BYTES, "localhost");
    json_decref(words);
    return EL_OK;
}

/* The real time of the hook's lines, where el_clock_relate has the steady one. */
static enum el_status relate(struct el_hosts *hosts, bool end)
{
    struct el_clock_anchor mine;
    struct timespec real;
    char text[96], **texts = NULL;
    EL_TRY(el_clock_relate(hosts->bootstrap, &mine));
    const int64_t steady_ns = el_clock_ns();
    clock_gettime(CLOCK_REALTIME, &real);
    const int64_t real_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec, apart_ns = real_ns - steady_ns;
    int64_t first_ns = apart_ns;
    EL_TRY(el_bootstrap_broadcast(hosts->bootstrap, &first_ns, sizeof first_ns));
    snprintf(text, sizeof text, "%" PRId64 " %" PRId64 " %" PRId64, real_ns, mine.offset_ns + apart_ns - first_ns,
             mine.error_ns);
    EL_TRY(el_bootstrap_gather(hosts->bootstrap, text, &texts));
    for (int h = 0; texts && h < hosts->n; h++) {
        struct el_clock_anchor *anchor = end ? &hosts->clocks[h].end : &hosts->clocks[h].begin;
        sscanf(texts[h], "%" SCNd64 " %" SCNd64 " %" SCNd64, &anchor->at_ns, &anchor->offset_ns, &anchor->error_ns);
        if (!end) hosts->clocks[h].end = *anchor;
        free(texts[h]);
    }
    free(texts);
    return EL_OK;
}

enum el_status el_hosts_meet(const char *dir, struct el_hosts *hosts)
{
    char path[EL_PATH_BYTES + 16], own[HOST_BYTES] = "", host[HOST_BYTES], secret[EL_LAUNCH_SECRET_BYTES];
    struct el_rendezvous meeting = {.rank = hosts->place,
                                    .size = hosts->n,
                                    .host = host,
                                    .listener = -1,
                                    .token = "watch",
                                    .secret = secret,
                                    .patience_s = PATIENCE_S};
    if (hosts->n == 1) return EL_OK;
    snprintf(path, sizeof path, "%s/" MEETING, dir);
    gethostname(own, sizeof own - 1);
    snprintf(host, sizeof host, "%s", own);
    hosts->clocks = calloc((size_t)hosts->n, sizeof *hosts->clocks);
    if (!hosts->clocks) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %d hosts", hosts->n);
    enum el_status status =
        hosts->place == 0 ? invite(path, &meeting, secret, own) : accept_invitation(path, &meeting, host, secret, own);
    if (status == EL_OK) status = el_bootstrap_open_tcp(&meeting, &hosts->bootstrap);
    if (hosts->place == 0) unlink(path);
    if (status == EL_OK) el_bootstrap_set_timeout(hosts->bootstrap, SILENCE_S);
    return status == EL_OK ? relate(hosts, false) : status;
}

void el_hosts_end(struct el_hosts *hosts)
{
    el_bootstrap_close(hosts->bootstrap);
    free(hosts->clocks);
    *hosts = (struct el_hosts){.n = 1};
}

/* ---- one document of all ---- */

static void name_host(json_t *list, const char *host)
{
    EL_EACH(item, list) el_json_put_text(item, "host", host);
}

static json_t *about_host(const json_t *watch, const char *host, double clock_error_ns)
{
    return el_json_of(EL_KEY("host", host), EL_KEY("exit_status", el_json_whole(watch, "exit_status")),
                      EL_KEY("seconds", el_json_number(watch, "seconds")),
                      EL_KEY("cpu_s", el_json_number(watch, "cpu_s")),
                      EL_KEY("resident_peak_bytes", el_json_number(watch, "resident_peak_bytes")),
                      EL_KEY("clock_error_us", 1e-3 * clock_error_ns));
}

static void add_up(json_t *watch, const json_t *its, const char *name)
{
    el_json_put_real(watch, name, el_json_number(watch, name) + el_json_number(its, name));
}

/* Its series have times of their own, which no picture has. */
static void add_host(json_t *trial, json_t *watch, const json_t *its_trial, json_t *its)
{
    static const char *const sums[] = {"cpu_s", "unseen_cpu_s", "resident_peak_bytes", "not_followed"};
    const size_t before = json_array_size(json_object_get(watch, "processes"));
    EL_EACH(process, json_object_get(its, "processes")) el_json_put(process, "series", json_null());
    EL_EACH(use, json_object_get(its, "gpu_processes"))
        el_json_put_all(use, EL_KEY("process", (int64_t)before + el_json_whole(use, "process")),
                        EL_KEY("series", json_null()));
    json_array_extend(json_object_get(watch, "processes"), json_object_get(its, "processes"));
    json_array_extend(json_object_get(watch, "gpu_processes"), json_object_get(its, "gpu_processes"));
    json_array_extend(json_object_get(watch, "gpus"), json_object_get(its, "gpus"));
    json_array_extend(json_object_get(trial, "per_device"), json_object_get(its_trial, "per_device"));
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) add_up(watch, its, sums[i]);
    if (el_json_number(its, "largest_bytes") > el_json_number(watch, "largest_bytes"))
        el_json_put_real(watch, "largest_bytes", el_json_number(its, "largest_bytes"));
    el_json_put_all(trial, EL_KEY("procs", el_json_whole(trial, "procs") + el_json_whole(its_trial, "procs")));
    if (!el_json_is(its_trial, "status", "ok") && el_json_is(trial, "status", "ok"))
        el_json_put_all(trial, EL_KEY("status", "failed"),
                        EL_KEY("reason", json_sprintf("%s, on host %s", el_json_text(its_trial, "reason", "it failed"),
                                                      el_json_text(its_trial, "per_device.0.host", "?"))));
}

static void join_all(const struct el_hosts *hosts, char **texts, json_t *document)
{
    json_t *trial = json_array_get(json_object_get(document, "trials"), 0), *watch = json_object_get(document, "watch");
    json_t *about = json_array();
    for (int h = 0; h < hosts->n; h++) {
        json_t *its = h ? json_loads(texts[h], 0, NULL) : json_incref(document);
        json_t *its_watch = json_object_get(its, "watch");
        const char *host = el_json_text(its, "environment.hostname", "?");
        name_host(json_object_get(its_watch, "processes"), host);
        name_host(json_object_get(its_watch, "gpus"), host);
        name_host(json_object_get(its_watch, "gpu_processes"), host);
        json_array_append_new(about, about_host(its_watch, host, (double)hosts->clocks[h].end.error_ns));
        if (h) add_host(trial, watch, json_array_get(json_object_get(its, "trials"), 0), its_watch);
        json_decref(its);
    }
    el_json_put(watch, "hosts", about);
    el_watch_compare(document);
}

enum el_status el_hosts_join(struct el_hosts *hosts, json_t *document)
{
    char *text = json_dumps(document, JSON_COMPACT), **texts = NULL;
    enum el_status status = text ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for the record");
    if (status == EL_OK) status = relate(hosts, true);
    if (status == EL_OK) status = el_bootstrap_gather(hosts->bootstrap, text, &texts);
    if (texts) join_all(hosts, texts, document);
    for (int h = 0; texts && h < hosts->n; h++) free(texts[h]);
    free(texts);
    free(text);
    return status;
}
