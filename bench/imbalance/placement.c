/* Experts to ranks, as many to each, so that the rank with the most tokens has as few as possible. First as EPLB does
 * (DeepSeek, 2025: the most loaded expert to the least loaded rank that has room); then by swaps; then by branch and
 * bound, which is exact unless it ends at its limit. Copies of an expert, which EPLB makes too, are for inference: they
 * would train apart. */
#include "bench/imbalance/placement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/record/metrics.h"
#include "runtime/models/experts.h"

enum { NODES_MAX = 5000000 };

struct search {
    int n, ranks, room;       /* experts of a rank */
    int order[EL_PLACED_MAX]; /* by load, the most loaded first */
    const double *load;
    int rank[EL_PLACED_MAX], best[EL_PLACED_MAX]; /* of order[i] */
    double sum[EL_PLACED_MAX], most;
    int held[EL_PLACED_MAX];
    long nodes;
};

static void place(struct search *s, int i, int rank, int way)
{
    s->rank[i] = rank;
    s->sum[rank] += way * s->load[s->order[i]];
    s->held[rank] += way;
}

static void keep(struct search *s)
{
    double most = 0;
    for (int r = 0; r < s->ranks; r++) most = fmax(most, s->sum[r]);
    if (most >= s->most) return;
    s->most = most;
    memcpy(s->best, s->rank, sizeof s->best);
}

static void greedy(struct search *s)
{
    for (int i = 0; i < s->n; i++) {
        int best = -1;
        for (int r = 0; r < s->ranks; r++)
            if (s->held[r] < s->room && (best < 0 || s->sum[r] < s->sum[best])) best = r;
        place(s, i, best, 1);
    }
    keep(s);
}

/* Swaps an expert of the busiest rank with a less loaded one elsewhere, as long as the busier of the two ranks then has
 * less than the busiest had. */
static bool swap_one(struct search *s)
{
    int busiest = 0;
    for (int r = 1; r < s->ranks; r++)
        if (s->sum[r] > s->sum[busiest]) busiest = r;
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < s->n && s->rank[i] == busiest; j++) {
            const int other = s->rank[j];
            const double less = s->load[s->order[i]] - s->load[s->order[j]];
            if (other == busiest || less <= 1e-12 || s->sum[other] + less >= s->sum[busiest] - 1e-12) continue;
            place(s, i, busiest, -1), place(s, j, other, -1);
            place(s, i, other, 1), place(s, j, busiest, 1);
            return true;
        }
    return false;
}

/* Ranks without experts are alike: only the first is tried. */
static void search_from(struct search *s, int i)
{
    if (s->nodes++ > NODES_MAX) return;
    if (i == s->n) {
        keep(s);
        return;
    }
    for (int r = 0; r < s->ranks; r++) {
        if (s->held[r] == s->room || s->sum[r] + s->load[s->order[i]] >= s->most) continue;
        const bool empty = s->held[r] == 0;
        place(s, i, r, 1);
        search_from(s, i + 1);
        place(s, i, r, -1);
        if (empty) return;
    }
}

static void sort(struct search *s)
{
    for (int i = 0; i < s->n; i++) {
        int at = i;
        for (; at > 0 && s->load[s->order[at - 1]] < s->load[i]; at--) s->order[at] = s->order[at - 1];
        s->order[at] = i;
    }
}

/* The most loaded expert stands at least beside the least loaded ones. */
static double bound(const struct search *s)
{
    double least = s->load[s->order[0]];
    for (int i = 1; i < s->room; i++) least += s->load[s->order[s->n - i]];
    return least;
}

void el_placement_find(struct el_placement *p)
{
    struct search s = {.n = p->n, .ranks = p->ranks, .room = p->n / p->ranks, .load = p->load, .most = INFINITY};
    sort(&s);
    greedy(&s);
    p->greedy = s.most;
    while (swap_one(&s)) keep(&s);
    for (int i = 0; i < s.n; i++) place(&s, i, s.rank[i], -1);
    search_from(&s, 0);
    p->most = s.most;
    p->proven = s.nodes <= NODES_MAX || s.most <= bound(&s) + 1e-12;
    p->own = 0;
    *p->text = 0;
    for (int r = 0; r < p->ranks; r++) {
        double own = 0;
        for (int e = r * s.room; e < (r + 1) * s.room; e++) own += p->load[e];
        p->own = fmax(p->own, own);
        for (int e = 0; e < p->n; e++)
            for (int i = 0; i < p->n; i++)
                if (s.order[i] == e && s.best[i] == r)
                    el_text_append(p->text, sizeof p->text, "%s%d", *p->text ? "," : "", e);
    }
    if (p->most >= p->own) *p->text = 0; /* none is better */
}

enum el_status el_placement_of(const struct el_trial *trial, struct el_placement *placement_p)
{
    struct el_layout layout;
    struct el_routing *routing;
    struct el_model_config model = trial->train.model;
    *placement_p = (struct el_placement){.n = (int)el_model_size(&model, "experts")};
    *model.placement = 0;
    el_layout_of(&trial->train, 0, &layout);
    placement_p->ranks = layout.n[EL_AXIS_EXPERT];
    if (!(el_mode_find(trial->train.mode)->axes & 1U << EL_AXIS_EXPERT))
        return el_fail(EL_ERR_INVALID, "--solve placement: mode %s has all experts on each device: give --modes ep",
                       trial->train.mode);
    if (placement_p->n > EL_PLACED_MAX)
        return el_fail(EL_ERR_INVALID, "--solve placement: at most %d experts", EL_PLACED_MAX);
    enum el_status status = el_routing_open(&model, &routing);
    if (status == EL_OK && !(routing && routing->expected))
        status = el_fail(EL_ERR_INVALID,
                         "--solve placement: a routing that is %s: give --routing zipf:1.2, or a FILE of what a "
                         "job counted",
                         routing ? "balanced loads each rank alike already" : "learned has no load that is known");
    for (int e = 0; e < placement_p->n && status == EL_OK; e++) placement_p->load[e] = routing->expected[e];
    el_routing_close(routing);
    if (status == EL_OK) el_placement_find(placement_p);
    return status;
}

static const json_t *trial_of(const json_t *trials, const char *placement)
{
    EL_EACH(trial, trials)
        if (!strcmp(el_json_text(trial, "config.model_sizes.placement", ""), placement)) return trial;
    return NULL;
}

/* Of rank `r`'s experts, by a placement's order. */
static double load_of(const struct el_placement *p, bool moved, int r)
{
    const char *at = p->text;
    double sum = 0;
    for (int i = 0; i < p->n; i++) {
        char *end = NULL;
        const long e = moved ? strtol(at, &end, 10) : i;
        if (moved) at = *end ? end + 1 : end;
        if (i / (p->n / p->ranks) == r) sum += p->load[e];
    }
    return sum;
}

static double step_ms(const json_t *trial)
{
    return el_json_number(trial, el_at_step_median_ms);
}

/* A device's time is a line over its tokens, through what the devices took: the step changes by what the slowest one
 * does. NAN: not measured. */
static double predict_ms(const struct el_placement *p, const json_t *own)
{
    const json_t *devices = json_object_get(own, "per_device");
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, slowest = 0, most = 0;
    EL_EACH(device, devices) {
        const double load = load_of(p, false, (int)el_json_number(device, "layout.expert"));
        const double ms = el_json_number(device, "compute_ms");
        n++, x += load, y += ms, xx += load * load, xy += load * ms;
        slowest = fmax(slowest, ms);
    }
    const double slope = (n * xy - x * y) / (n * xx - x * x), fixed = (y - slope * x) / n;
    if (!(slope > 0)) return NAN;
    for (int r = 0; r < p->ranks; r++) most = fmax(most, fixed + slope * load_of(p, true, r));
    return step_ms(own) - slowest + most;
}

json_t *el_placement_document(const struct el_placement *p, const json_t *trials)
{
    const json_t *own = trial_of(trials, ""), *moved = *p->text ? trial_of(trials, p->text) : NULL;
    char text[EL_SENTENCE_BYTES], a[EL_FIGURE_BYTES], b[EL_FIGURE_BYTES], c[EL_FIGURE_BYTES];
    double all = 0;
    for (int e = 0; e < p->n; e++) all += p->load[e];
    const double even = all / p->ranks, predicted = *p->text ? predict_ms(p, own) : NAN;
    snprintf(text, sizeof text, "the busiest rank gets %s times its even share of the tokens",
             el_text_figure(p->own / even, a));
    if (*p->text)
        el_text_append(text, sizeof text, "; --routing placement=%s makes that %s times, %s", p->text,
                       el_text_figure(p->most / even, b),
                       p->proven ? "the least that moving experts can" : "the least that was found");
    else
        el_text_append(text, sizeof text, ", and moving experts makes it no less");
    if (step_ms(moved) > 0)
        el_text_append(text, sizeof text, "; the step goes from %s to %s ms (predicted %s)",
                       el_text_figure(step_ms(own), a), el_text_figure(step_ms(moved), b),
                       el_text_figure(predicted, c));
    el_text_append(text, sizeof text, ".");
    return el_json_of(EL_KEY("by", "placement"), EL_KEY("placement", *p->text ? p->text : NULL),
                      EL_KEY("own_over_mean", p->own / even), EL_KEY("over_mean", p->most / even),
                      EL_KEY("greedy_over_mean", p->greedy / even), EL_KEY("proven", p->proven),
                      EL_KEY("own_step_ms", step_ms(own)), EL_KEY("predicted_step_ms", predicted),
                      EL_KEY("step_ms", moved ? step_ms(moved) : NAN), EL_KEY("sentence", text));
}
