/* Who is late or computes longest, who sends most, and why. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/record/metrics.h"
#include "bench/report/ranks.h"

#define LONGER_RATIO 1.1 /* a smaller ratio of times or bytes counts as equal */
#define ALONE_RATIO  0.1 /* a phase belongs to one device if the others spend less than this part */

enum { WORDS_BYTES = 256, NAMES_BYTES = 64 };

struct devices {
    const json_t *trial, *list;
    int n, who;
    const char *others; /* the other one's name if there are two */
};

static const char *name_of(const json_t *device)
{
    return el_json_text(device, "device", "?");
}

/* "rank 3 (node-3)" on several hosts. */
static json_t *with_hosts(const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    const char *first = el_json_text(devices, "0.host", "");
    json_t *copy = json_copy((json_t *)trial), *named = json_array();
    bool several = false;
    EL_EACH(device, devices) {
        char name[96];
        const char *host = el_json_text(device, "host", "");
        json_t *own = json_copy(device);
        several |= strcmp(host, first) != 0;
        snprintf(name, sizeof name, "rank %lld (%.64s)", (long long)el_json_whole(device, "rank"), host);
        el_json_put(own, "device", el_json_string(name));
        json_array_append_new(named, own);
    }
    if (several)
        el_json_put(copy, "per_device", named);
    else
        json_decref(named);
    return copy;
}

static struct devices devices_of(const json_t *trial, int who)
{
    const json_t *list = json_object_get(trial, "per_device");
    struct devices d = {trial, list, (int)json_array_size(list), who, "the others"};
    if (d.n == 2) d.others = name_of(json_array_get(list, (size_t)(1 - who)));
    return d;
}

static double own_at(const struct devices *d, const char *path)
{
    return el_json_number(json_array_get(d->list, (size_t)d->who), path);
}

static double others_at(const struct devices *d, const char *path)
{
    double sum = 0;
    EL_EACH(device, d->list)
        if ((int)device_at.i != d->who) sum += el_json_number(device, path);
    return sum / (d->n - 1);
}

static bool in_stages(const struct devices *d)
{
    const char *path = "layout.stage";
    return el_json_number(json_array_get(d->list, (size_t)d->n - 1), path) > el_json_number(d->list, "0.layout.stage");
}

static double samples_ratio(const struct devices *d, double *own_p, double *others_p)
{
    const json_t *shares = json_object_get(d->trial, "batch_per_device");
    double sum = 0;
    EL_EACH(share, shares) sum += json_number_value(share);
    *own_p = json_number_value(json_array_get(shares, (size_t)d->who));
    *others_p = (sum - *own_p) / (d->n - 1);
    return *own_p / *others_p;
}

static json_t *cause_json(const char *cause, const char *words)
{
    return el_json_of(EL_KEY("cause", cause), EL_KEY("sentence", words));
}

static double alone_ms(const struct devices *d, char names[NAMES_BYTES])
{
    static const char *const phases[] = {"loss", "reduce", "optimizer"};
    double sum = 0;
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "busy_ms.%s", phases[i]);
        double own = own_at(d, path), others = others_at(d, path);
        if (!(own > 0 && others < ALONE_RATIO * own)) continue;
        sum += own - others;
        el_text_append(names, NAMES_BYTES, "%s%s", *names ? ", " : "", phases[i]);
    }
    return sum;
}

/* Rows of experts; NAN: none, or unknown. */
static double routed_ratio(const struct devices *d)
{
    double own = NAN, others = 0;
    EL_EACH(device, d->list) {
        const double rows = el_imbalance_rows(d->list, device);
        if ((int)device_at.i == d->who)
            own = rows;
        else
            others += rows / (d->n - 1);
    }
    return own / others;
}

static json_t *largest_ratio(const struct devices *d, double own_ms, double others_ms)
{
    char words[WORDS_BYTES], own[EL_FIGURE_BYTES], others[EL_FIGURE_BYTES];
    double own_samples, others_samples, samples = samples_ratio(d, &own_samples, &others_samples);
    double work = own_at(d, "flops") / others_at(d, "flops") / samples, speed = own_ms / others_ms / samples / work;
    bool stages = in_stages(d);
    const double rows = routed_ratio(d);
    if (rows >= LONGER_RATIO) {
        snprintf(words, sizeof words, "routing: its experts get %s times the tokens of %s", el_text_figure(rows, own),
                 d->others);
        return cause_json("routing", words);
    }
    if (!(samples > 0 && work > 0)) return json_null();
    if (samples >= fmax(work, speed)) {
        snprintf(words, sizeof words, "share: %.0f samples per step, %s %.0f", own_samples, d->others, others_samples);
        return cause_json("share", words);
    }
    if (work >= speed) {
        const bool experts = el_json_number(json_array_get(d->list, (size_t)d->n - 1), "layout.expert") > 0;
        snprintf(words, sizeof words,
                 stages    ? "cut: its stage does %s times the arithmetic of %s"
                 : experts ? "routing: its experts do %s times the arithmetic of %s"
                           : "length: %s times the arithmetic a sample of %s",
                 el_text_figure(work, own), d->others);
        return cause_json(stages ? "cut" : experts ? "routing" : "length", words);
    }
    snprintf(words, sizeof words, "speed: %s ms of computing a sample, %s %s",
             el_text_figure(own_ms / own_samples, own), d->others, el_text_figure(others_ms / others_samples, others));
    return cause_json("speed", words);
}

static json_t *cause_of(const struct devices *d, double wait_ms)
{
    char words[WORDS_BYTES], names[NAMES_BYTES] = "", figure[EL_FIGURE_BYTES];
    double own = own_at(d, "compute_ms"), others = others_at(d, "compute_ms"), alone = alone_ms(d, names);
    double loading = own_at(d, "loading.exposed_ms") - others_at(d, "loading.exposed_ms");
    if (own - others < wait_ms / 2 && loading >= wait_ms / 2) {
        snprintf(words, sizeof words, "loading: its batches take %s ms more", el_text_figure(loading, figure));
        return cause_json("loading", words);
    }
    if (!(own - others >= wait_ms / 2)) return json_null();
    if (alone < (own - others) / 2) return largest_ratio(d, own - alone, others);
    snprintf(words, sizeof words, "algorithm: it alone does %s, %s ms", names, el_text_figure(alone, figure));
    return cause_json("algorithm", words);
}

static void fill_row(const json_t *device, struct el_rank_row *row)
{
    *row = (struct el_rank_row){.name = name_of(device),
                                .last_pct = el_json_number(device, "arrivals.last_pct"),
                                .late_s = el_json_number(device, "arrivals.late_ms") / 1e3,
                                .late_low_s = el_json_number(device, "arrivals.late_low_ms") / 1e3,
                                .caused_s = el_json_number(device, "arrivals.caused_ms") / 1e3,
                                .compute_s = el_json_number(device, "compute_ms") / 1e3,
                                .wait_s = el_json_number(device, el_at_device_comm_wait_ms) / 1e3,
                                .transfer_s = el_json_number(device, el_at_device_comm_transfer_ms) / 1e3,
                                .exposed_s = el_json_number(device, el_at_device_comm_exposed_ms) / 1e3,
                                .wait_exposed_s = el_json_number(device, "comm.wait_exposed_ms") / 1e3,
                                .sent_bytes = el_json_number(device, "sent_bytes")};
}

/* Where no collective waits: dp's first device, a stage. */
static json_t *longest_of(const json_t *trial, const struct el_rank_row *rows, int n, double step_s)
{
    char text[WORDS_BYTES], ratio[EL_FIGURE_BYTES], idle[EL_FIGURE_BYTES], step[EL_FIGURE_BYTES];
    int who = 0;
    for (int i = 1; i < n; i++)
        if (rows[i].compute_s > rows[who].compute_s) who = i;
    struct devices d = devices_of(trial, who);
    double longer = el_ranks_compute_ratio(rows, n, who), idle_ms = others_at(&d, "idle_ms");
    double wait_ms = others_at(&d, "comm.wait_exposed_ms");
    double more_ms = own_at(&d, "compute_ms") - others_at(&d, "compute_ms");
    if (!(longer >= LONGER_RATIO && more_ms >= 1e3 * EL_RANKS_WORTH * step_s)) return json_null();
    if (wait_ms > 0) idle_ms += wait_ms;
    snprintf(text, sizeof text,
             "%s computes %s times as long as %s, which %s idle or wait%s for %s ms of each %s ms step", rows[who].name,
             el_text_figure(longer, ratio), d.others, n == 2 ? "is" : "are", n == 2 ? "s" : "",
             el_text_figure(idle_ms, idle), el_text_figure(1e3 * step_s, step));
    return el_json_of(EL_KEY("rank", rows[who].name), EL_KEY("ratio", longer), EL_KEY("idle_ms", idle_ms),
                      EL_KEY("sentence", text), EL_KEY("cause", cause_of(&d, more_ms)));
}

static json_t *blame_of(const json_t *trial, const struct el_rank_row *rows, int n, double step_s)
{
    struct el_ranks_blame blame;
    json_t *cause = json_null();
    el_ranks_blame(rows, n, step_s, &blame);
    json_t *told = el_ranks_blame_json(rows, n, &blame);
    struct devices d = devices_of(trial, blame.who < 0 ? 0 : blame.who);
    if (blame.kind == EL_BLAME_STAYS || blame.kind == EL_BLAME_AT_TIMES) cause = cause_of(&d, 1e3 * blame.wait_s);
    if (blame.kind == EL_BLAME_WANDERS && el_json_is(trial, "config.length_by", "batch"))
        cause = cause_json("length", "length: each batch is as long as its longest sentence");
    el_json_put(told, "cause", cause);
    return told;
}

static json_t *time_of(const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    int n = (int)json_array_size(devices);
    struct el_rank_row *rows = calloc((size_t)n + 1, sizeof *rows);
    double step_s = 0;
    bool arrivals = n > 1;
    json_t *blame = json_null(), *longest = json_null();
    if (!rows) return NULL;
    EL_EACH(device, devices) {
        fill_row(device, &rows[device_at.i]);
        step_s += el_json_number(device, "step_ms") / 1e3 / n;
        arrivals = arrivals && !isnan(rows[device_at.i].caused_s) && !isnan(rows[device_at.i].wait_exposed_s);
    }
    bool known = n > 1 && !isnan(rows[0].compute_s);
    if (known && arrivals) blame = blame_of(trial, rows, n, step_s);
    if (known && !el_json_is(blame, "kind", el_blame_name(EL_BLAME_STAYS)))
        longest = longest_of(trial, rows, n, step_s);
    json_t *time =
        known ? el_json_of(EL_KEY("ranks", el_ranks_json(rows, n)), EL_KEY("blame", blame), EL_KEY("longest", longest))
              : json_null();
    free(rows);
    return time;
}

json_t *el_imbalance_time(const json_t *trial)
{
    json_t *named = with_hosts(trial), *time = time_of(named);
    json_decref(named);
    return time;
}

static json_t *cause_of_bytes(const struct devices *d)
{
    char words[WORDS_BYTES];
    const char *algorithms = el_json_text(d->trial, "comm_algorithms", "");
    if (in_stages(d)) return cause_json("cut", "cut: its neighbours among the stages");
    if (own_at(d, "comm.by_group.local.sent_bytes") > 0 || !*algorithms)
        snprintf(words, sizeof words, "algorithm: %s, whose first device holds the model and sends it to the others",
                 el_json_text(d->trial, "mode", "?"));
    else
        snprintf(words, sizeof words, "algorithm: %s", algorithms);
    return cause_json("algorithm", words);
}

static json_t *bytes_of(const json_t *trial)
{
    char text[WORDS_BYTES], ratio[EL_FIGURE_BYTES], own_mib[EL_FIGURE_BYTES], mib[EL_FIGURE_BYTES];
    const char *name = NULL;
    double own = 0;
    int most = 0;
    EL_EACH(device, json_object_get(trial, "per_device")) {
        double bytes = el_json_number(device, "sent_bytes");
        if (!(bytes > own)) continue;
        own = bytes;
        most = (int)device_at.i;
        name = name_of(device);
    }
    struct devices d = devices_of(trial, most);
    double others = d.n > 1 ? others_at(&d, "sent_bytes") : NAN;
    if (!name || isnan(others)) return json_null();
    bool even = own < LONGER_RATIO * others;
    snprintf(text, sizeof text, "%s sends %s times what %s, %s MiB per step against %s", name,
             el_text_figure(own / others, ratio), d.n == 2 ? "the other one does" : "the others do on average",
             el_text_mib(own, own_mib), el_text_mib(others, mib));
    return el_json_of(EL_KEY("rank", even ? NULL : name), EL_KEY("sent_ratio", own / others),
                      EL_KEY("sentence", even ? NULL : text), EL_KEY("cause", even ? json_null() : cause_of_bytes(&d)));
}

json_t *el_imbalance_bytes(const json_t *trial)
{
    json_t *named = with_hosts(trial), *bytes = bytes_of(named);
    json_decref(named);
    return bytes;
}
