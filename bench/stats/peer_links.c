/* Whether a slow link is a host's, a direction's, a pair's, or a switch's. */
#include <math.h>
#include <stdlib.h>

#include "bench/stats/peers.h"
#include "bench/stats/stats.h"

enum { SWEEPS = 10 };
#define CONNECTS   0.6 /* of the upper quartile */
#define FEW_SLOW   (1 - EL_PEERS_FEW_FLOOR)
#define HOST_FLOOR 0.05
#define PAIR_FLOOR 0.15
#define PART_FLOOR 0.15
#define OWN_SDS    3.75 /* Student's t of five repeats, 99 % */

struct work {
    const struct el_peer_links *links;
    double alpha;
    double *logs, *some; /* [n * n] */
    double *sends, *receives;
    bool few;              /* hosts that have links */
    struct el_peer *units; /* [n * n] */
    int *part, *sizes;     /* [n]; of the part with this number */
    bool *bad_sends, *bad_receives;
    struct el_peer_fault *faults;
    int n_faults;
};

static double rate(const struct work *w, int a, int b)
{
    return a == b ? NAN : w->links->rates[a * w->links->n + b];
}

static bool is_linked(const struct work *w, int i)
{
    for (int k = 0; k < w->links->n; k++)
        if (rate(w, i, k) > 0 || rate(w, k, i) > 0) return true;
    return false;
}

static double *log_of(const struct work *w, int a, int b)
{
    return &w->logs[a * w->links->n + b];
}

static void put(struct work *w, enum el_peer_fault_kind kind, int a, int b, double slower)
{
    if (w->n_faults < EL_PEER_FAULTS_MAX) w->faults[w->n_faults++] = (struct el_peer_fault){kind, a, b, slower};
}

static double upper_quartile(struct work *w)
{
    size_t n = 0;
    for (int a = 0; a < w->links->n; a++)
        for (int b = 0; b < w->links->n; b++)
            if (rate(w, a, b) > 0) w->some[n++] = rate(w, a, b);
    return n ? el_stats_quantile(w->some, n, 0.75) : NAN;
}

/* ---- parts ---- */

static int root(const struct work *w, int i)
{
    while (w->part[i] != i) i = w->part[i];
    return i;
}

static void find_parts(struct work *w, double fast)
{
    int n = w->links->n;
    for (int i = 0; i < n; i++) w->part[i] = i;
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            bool told = w->links->group && w->links->group[a] == w->links->group[b];
            bool apart = w->links->group && w->links->group[a] != w->links->group[b];
            bool quick = fmin(rate(w, a, b), rate(w, b, a)) >= CONNECTS * fast;
            if (told || (quick && !apart)) w->part[root(w, b)] = root(w, a);
        }
    for (int i = 0; i < n; i++) w->part[i] = root(w, i);
    for (int i = 0; i < n; i++) w->sizes[w->part[i]]++;
}

static bool crosses(const struct work *w, int a, int b)
{
    return w->part[a] != w->part[b] && w->sizes[w->part[a]] > 1 && w->sizes[w->part[b]] > 1;
}

/* Of the links between two parts, both ways (-1: of those that cross none). */
static double median_log(struct work *w, int one, int other)
{
    size_t n = 0;
    for (int a = 0; a < w->links->n; a++)
        for (int b = 0; b < w->links->n; b++) {
            bool between = (w->part[a] == one && w->part[b] == other) || (w->part[a] == other && w->part[b] == one);
            if (rate(w, a, b) > 0 && (one < 0 ? !crosses(w, a, b) : between)) w->some[n++] = *log_of(w, a, b);
        }
    return n ? el_stats_median(w->some, n) : NAN;
}

static void raise_links(const struct work *w, int one, int other, double by)
{
    for (int a = 0; a < w->links->n; a++)
        for (int b = 0; b < w->links->n; b++)
            if ((w->part[a] == one && w->part[b] == other) || (w->part[a] == other && w->part[b] == one))
                *log_of(w, a, b) += by;
}

/* Links between two parts are then judged among themselves. A part is slow to all others, or else the largest is said
 * that is slow to some. */
static void judge_parts(struct work *w)
{
    double within = median_log(w, -1, -1), worst = 0;
    int n = w->links->n, found = -1, best = -1;
    for (int a = 0; a < n; a++) {
        double most = 0;
        int slow = 0, others = 0;
        for (int b = 0; b < n && w->part[a] == a && w->sizes[a] > 1; b++) {
            if (w->part[b] != b || a == b || w->sizes[b] < 2) continue;
            double slower = el_peers_slower(median_log(w, a, b) - within);
            if (isnan(slower)) continue;
            others++;
            slow += slower > PART_FLOOR;
            most = fmax(most, slower);
        }
        if (slow > best && slow > 0 && (slow == others || found < 0)) best = slow, found = a, worst = most;
    }
    if (found < 0) return;
    put(w, EL_PEER_SWITCH, found, found, worst);
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++)
            if (w->part[a] == a && w->part[b] == b && w->sizes[a] > 1 && w->sizes[b] > 1) {
                double apart = median_log(w, a, b) - within;
                if (!isnan(apart)) raise_links(w, a, b, -apart);
            }
}

/* ---- hosts ---- */

/* effect[i] = the median over its links of what the other side does not explain. */
static void sweep(struct work *w, bool of_senders)
{
    int n = w->links->n;
    double *effect = of_senders ? w->sends : w->receives, *other = of_senders ? w->receives : w->sends;
    for (int i = 0; i < n; i++) {
        size_t known = 0;
        for (int k = 0; k < n; k++) {
            double value = of_senders ? *log_of(w, i, k) : *log_of(w, k, i);
            if (!isnan(value)) w->some[known++] = value - (isnan(other[k]) ? 0 : other[k]);
        }
        effect[i] = known ? el_stats_median(w->some, known) : NAN;
    }
}

/* The level goes to the senders: receivers' effects have the median 0. */
static void polish(struct work *w)
{
    int n = w->links->n;
    for (int i = 0; i < n; i++) w->receives[i] = 0;
    for (int s = 0; s < SWEEPS; s++) {
        size_t known = 0;
        sweep(w, true);
        sweep(w, false);
        for (int i = 0; i < n; i++)
            if (!isnan(w->receives[i])) w->some[known++] = w->receives[i];
        double middle = known ? el_stats_median(w->some, known) : 0;
        for (int i = 0; i < n; i++) w->receives[i] -= middle, w->sends[i] += middle;
    }
}

/* `slower` of each that stands out, else 0. */
static void judge_effects(struct work *w, const double *effect, bool *bad, double *slower, struct el_peers *peers_p)
{
    const struct el_peers_rule rule = {w->alpha, HOST_FLOOR};
    size_t n = (size_t)w->links->n;
    for (size_t i = 0; i < n; i++) {
        w->some[i] = exp(effect[i]);
        w->units[i] = (struct el_peer){.rates = &w->some[i], .n = isnan(effect[i]) ? 0 : 1};
    }
    el_peers_judge(w->units, n, &rule, peers_p);
    for (size_t i = 0; i < n; i++) {
        bad[i] = w->units[i].bad;
        slower[i] = bad[i] ? el_peers_slower(w->units[i].deviation) : 0;
    }
}

static void judge_hosts(struct work *w, double *slower, struct el_peers *peers_p)
{
    int n = w->links->n;
    struct el_peers sends, receives;
    judge_effects(w, w->sends, w->bad_sends, slower, &sends);
    judge_effects(w, w->receives, w->bad_receives, slower + n, &receives);
    *peers_p = sends.detects > receives.detects ? sends : receives;
    for (int i = 0; i < n; i++) {
        double most = fmax(slower[i], slower[n + i]);
        if (w->bad_sends[i] && w->bad_receives[i])
            put(w, EL_PEER_HOST, i, i, most);
        else if (w->bad_sends[i] || w->bad_receives[i])
            put(w, w->bad_sends[i] ? EL_PEER_SENDS : EL_PEER_RECEIVES, i, i, most);
    }
}

/* Few hosts: each of whose links is slow, with some others that are not. */
static void judge_few_hosts(struct work *w, double fast)
{
    int n = w->links->n;
    for (int i = 0; i < n; i++) {
        bool sends = true, receives = true, others = false;
        double most[2] = {0, 0};
        int known = 0;
        for (int k = 0; k < n; k++) {
            if (k == i || !(rate(w, i, k) > 0 && rate(w, k, i) > 0)) continue;
            known++;
            sends &= rate(w, i, k) < FEW_SLOW * fast;
            receives &= rate(w, k, i) < FEW_SLOW * fast;
            most[0] = fmax(most[0], rate(w, i, k));
            most[1] = fmax(most[1], rate(w, k, i));
            for (int j = 0; j < n; j++) others |= j != i && rate(w, k, j) >= FEW_SLOW * fast;
        }
        others &= known > 1;
        w->bad_sends[i] = sends && others;
        w->bad_receives[i] = receives && others;
        if (!others || !(sends || receives)) continue;
        put(w,
            sends && receives ? EL_PEER_HOST
            : sends           ? EL_PEER_SENDS
                              : EL_PEER_RECEIVES,
            i, i, 1 - most[sends ? 0 : 1] / fast);
    }
}

/* ---- pairs ---- */

static double own_sd(const struct work *w, int a, int b)
{
    return w->links->sds ? w->links->sds[a * w->links->n + b] : 0;
}

/* The rest of each link that no host explains, as a rate. */
static size_t take_rests(struct work *w, int (*place)[2])
{
    size_t k = 0;
    for (int a = 0; a < w->links->n; a++)
        for (int b = 0; b < w->links->n; b++) {
            if (isnan(*log_of(w, a, b)) || w->bad_sends[a] || w->bad_receives[b]) continue;
            place[k][0] = a;
            place[k][1] = b;
            w->some[k] = exp(*log_of(w, a, b) - w->sends[a] - w->receives[b]);
            w->units[k] = (struct el_peer){.rates = &w->some[k], .n = 1};
            k++;
        }
    return k;
}

static void judge_pairs(struct work *w, double fast)
{
    const struct el_peers_rule rule = {w->alpha, PAIR_FLOOR};
    int n = w->links->n, (*place)[2] = calloc((size_t)n * (size_t)n + 1, sizeof *place);
    bool few = w->few, *slow = calloc((size_t)n * (size_t)n + 1, sizeof *slow);
    double *by = calloc((size_t)n * (size_t)n + 1, sizeof *by);
    struct el_peers peers;
    size_t k = place && slow && by ? take_rests(w, place) : 0;
    if (!few) el_peers_judge(w->units, k, &rule, &peers);
    for (size_t i = 0; i < k; i++) {
        int a = place[i][0], b = place[i][1], at = a * n + b;
        double deviation = few ? *log_of(w, a, b) - log(fast) : w->units[i].deviation;
        by[at] = el_peers_slower(deviation);
        slow[at] = (few ? by[at] > EL_PEERS_FEW_FLOOR : w->units[i].bad) && -deviation > OWN_SDS * own_sd(w, a, b);
    }
    for (int a = 0; a < n && slow && by; a++)
        for (int b = 0; b < n; b++) {
            bool back = slow[b * n + a];
            if (!slow[a * n + b] || (back && b < a)) continue;
            put(w, back ? EL_PEER_PAIR : EL_PEER_ONE_WAY, a, b, fmax(by[a * n + b], back ? by[b * n + a] : 0));
        }
    free(place);
    free(slow);
    free(by);
}

static int by_kind(const void *a, const void *b)
{
    const struct el_peer_fault *x = a, *y = b;
    bool switches[] = {x->kind == EL_PEER_SWITCH, y->kind == EL_PEER_SWITCH};
    if (switches[0] != switches[1]) return switches[0] ? -1 : 1;
    return (x->slower < y->slower) - (x->slower > y->slower);
}

int el_peer_links_judge(const struct el_peer_links *links, double alpha,
                        struct el_peer_fault faults[EL_PEER_FAULTS_MAX], int *part, struct el_peers *peers_p)
{
    size_t n = (size_t)links->n, all = n * n + 1;
    struct work w = {.links = links,
                     .alpha = alpha,
                     .logs = calloc(all, sizeof(double)),
                     .some = calloc(all, sizeof(double)),
                     .sends = calloc(2 * n + 1, sizeof(double)),
                     .units = calloc(all, sizeof *w.units),
                     .bad_sends = calloc(2 * n + 1, sizeof(bool)),
                     .part = part,
                     .sizes = calloc(n + 1, sizeof(int)),
                     .faults = faults};
    double *slower = calloc(2 * n + 1, sizeof *slower);
    *peers_p = (struct el_peers){.centre = NAN, .sd = NAN, .detects = NAN};
    if (w.logs && w.some && w.sends && w.units && w.bad_sends && w.sizes && slower && n > 1) {
        double fast = upper_quartile(&w);
        w.receives = w.sends + n;
        w.bad_receives = w.bad_sends + n;
        for (int a = 0; a < links->n; a++)
            for (int b = 0; b < links->n; b++) *log_of(&w, a, b) = rate(&w, a, b) > 0 ? log(rate(&w, a, b)) : NAN;
        find_parts(&w, fast);
        judge_parts(&w);
        polish(&w);
        for (int i = 0; i < links->n; i++) peers_p->n += is_linked(&w, i);
        w.few = peers_p->few = peers_p->n < EL_PEERS_MIN;
        if (peers_p->few)
            judge_few_hosts(&w, fast);
        else
            judge_hosts(&w, slower, peers_p);
        if (peers_p->n > 2) judge_pairs(&w, fast);
        if (peers_p->few && peers_p->n > 2) peers_p->detects = EL_PEERS_FEW_FLOOR;
        peers_p->centre = fast;
        qsort(faults, (size_t)w.n_faults, sizeof *faults, by_kind);
    }
    free(w.logs);
    free(w.some);
    free(w.sends);
    free(w.units);
    free(w.bad_sends);
    free(w.sizes);
    free(slower);
    return w.n_faults;
}
