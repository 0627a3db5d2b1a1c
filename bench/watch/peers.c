/* Which processes are compared: the first rule that finds two or more (docs/watch.md).
 *
 *     1. GPUs: each GPU, if our processes use several; each process on it, if they use one.
 *     2. Ranks: one process per launcher's rank, the largest of those with the same rank (script, data loaders).
 *     3. Siblings: children of one process that run the same program at the same time; the family with the most CPU
 *        time. A child and its descendants count as one: the largest process among them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/watch/watch.h"

static const double SIDE_BY_SIDE_RATIO = 0.5; /* of the family's longest life */
static const double SMALL_RATIO = 0.1;        /* of the family's largest, in memory and CPU time: a helper */

struct subtree {
    int64_t cpu_ns;
    int heaviest;
    int family; /* first process of the same program and parent */
};

static bool heavier(const struct el_watching *watch, int i, int k)
{
    const struct el_tree_process *a = watch->tree->list[i], *b = watch->tree->list[k];
    return a->peak_bytes != b->peak_bytes ? a->peak_bytes > b->peak_bytes : a->look.cpu_ns > b->look.cpu_ns;
}

int64_t el_watch_end_of(const struct el_watching *watch, const struct el_tree_process *p)
{
    return p->end_ns < watch->end_ns ? p->end_ns : watch->end_ns;
}

double el_watch_cpu_pct(const struct el_watching *watch, const struct el_tree_process *p)
{
    double lived_s = 1e-9 * (double)(el_watch_end_of(watch, p) - p->begin_ns);
    return lived_s > 0 ? 100e-9 * (double)p->look.cpu_ns / lived_s : NAN;
}

double el_watch_use_busy_pct(const struct el_watch_use *use)
{
    return use->told_s > 0 ? use->busy_pct_s / use->told_s : NAN;
}

/* Without file pages, which processes of one program share and the kernel maps variably. Older kernels report only the
 * sum. */
static double own_peak_bytes(const struct el_tree_process *p)
{
    if (p->own_peak_bytes >= 0) return (double)p->own_peak_bytes;
    return p->peak_bytes >= 0 ? (double)p->peak_bytes : NAN;
}

static struct el_watch_peer peer_of(const struct el_watching *watch, int i)
{
    const struct el_tree_process *p = watch->tree->list[i];
    return (struct el_watch_peer){
        .process = i, .gpu = -1, .memory_bytes = own_peak_bytes(p), .busy_pct = el_watch_cpu_pct(watch, p)};
}

static void add_uses(const struct el_watching *watch, struct el_watch_peers *peers)
{
    for (int k = 0; k < watch->n_uses; k++) {
        const struct el_watch_use *use = &watch->uses[k];
        peers->list[peers->n++] = (struct el_watch_peer){.process = use->process,
                                                         .gpu = use->gpu,
                                                         .memory_bytes = (double)use->peak_bytes,
                                                         .busy_pct = el_watch_use_busy_pct(use)};
    }
    peers->what = "processes";
    peers->rule = "processes on the one GPU in use";
}

static bool is_used(const struct el_watching *watch, int gpu)
{
    for (int k = 0; k < watch->n_uses; k++)
        if (watch->uses[k].gpu == gpu) return true;
    return false;
}

static void add_gpus(const struct el_watching *watch, struct el_watch_peers *peers)
{
    for (int g = 0; watch->gpus && g < watch->gpus->n; g++) {
        const struct el_watch_gpu *gpu = &watch->gpu[g];
        if (!is_used(watch, g)) continue;
        peers->list[peers->n++] = (struct el_watch_peer){.process = -1,
                                                         .gpu = g,
                                                         .memory_bytes = (double)gpu->ours_peak_bytes,
                                                         .busy_pct = gpu->n_busy ? gpu->busy_sum / gpu->n_busy : NAN};
    }
    peers->what = "GPUs";
    peers->rule = "GPUs in use by its processes";
}

static void add_ranks(const struct el_watching *watch, struct el_watch_peers *peers)
{
    for (int i = 0; i < watch->tree->n; i++) {
        int rank = watch->tree->list[i]->identity.rank, k = peers->n;
        if (rank < 0) continue;
        while (k > 0 && watch->tree->list[peers->list[k - 1].process]->identity.rank > rank) k--;
        struct el_watch_peer *before = k > 0 ? &peers->list[k - 1] : NULL;
        if (before && watch->tree->list[before->process]->identity.rank == rank) {
            if (heavier(watch, i, before->process)) *before = peer_of(watch, i);
            continue;
        }
        memmove(&peers->list[k + 1], &peers->list[k], (size_t)(peers->n++ - k) * sizeof *peers->list);
        peers->list[k] = peer_of(watch, i);
    }
    peers->what = "ranks";
    peers->rule = "processes with a rank from a launcher, the largest of each rank";
}

static const char *program_of(const struct el_tree_process *p)
{
    return *p->identity.executable ? p->identity.executable : p->look.name;
}

static bool is_family(const struct el_tree_process *a, const struct el_tree_process *b)
{
    return a->parent == b->parent && a->above == b->above && !strcmp(program_of(a), program_of(b));
}

/* Children come after parents in the list. */
static struct subtree *sum_subtrees(const struct el_watching *watch)
{
    int n = watch->tree->n;
    struct subtree *trees = calloc((size_t)n + 1, sizeof *trees);
    for (int i = 0; i < n && trees; i++) {
        trees[i] = (struct subtree){watch->tree->list[i]->look.cpu_ns, i, 0};
        while (!is_family(watch->tree->list[trees[i].family], watch->tree->list[i])) trees[i].family++;
    }
    for (int i = n - 1; i >= 0 && trees; i--) {
        int above = watch->tree->list[i]->above;
        if (above < 0) continue;
        trees[above].cpu_ns += trees[i].cpu_ns;
        if (heavier(watch, trees[i].heaviest, trees[above].heaviest)) trees[above].heaviest = trees[i].heaviest;
    }
    return trees;
}

static int64_t life_ns(const struct el_tree_process *p)
{
    return p->end_ns - p->begin_ns;
}

/* They overlap with the family's longest life. Returns their CPU time. */
static double add_family(const struct el_watching *watch, const struct subtree *trees, int family,
                         struct el_watch_peers *peers)
{
    int n = watch->tree->n;
    int64_t most_bytes = 0, most_ns = 0;
    double cpu_ns = 0;
    const struct el_tree_process *longest = watch->tree->list[family];
    for (int i = family; i < n; i++) {
        if (trees[i].family != family) continue;
        int64_t bytes = watch->tree->list[trees[i].heaviest]->peak_bytes;
        if (bytes > most_bytes) most_bytes = bytes;
        if (trees[i].cpu_ns > most_ns) most_ns = trees[i].cpu_ns;
        if (life_ns(watch->tree->list[i]) > life_ns(longest)) longest = watch->tree->list[i];
    }
    for (int i = family; i < n; i++) {
        const struct el_tree_process *p = watch->tree->list[i];
        int64_t from_ns = p->begin_ns > longest->begin_ns ? p->begin_ns : longest->begin_ns;
        int64_t to_ns = p->end_ns < longest->end_ns ? p->end_ns : longest->end_ns;
        if (trees[i].family != family) continue;
        if (to_ns <= from_ns || (double)(to_ns - from_ns) < SIDE_BY_SIDE_RATIO * (double)life_ns(longest)) continue;
        if ((double)watch->tree->list[trees[i].heaviest]->peak_bytes < SMALL_RATIO * (double)most_bytes) continue;
        if ((double)trees[i].cpu_ns < SMALL_RATIO * (double)most_ns) continue;
        peers->list[peers->n++] = peer_of(watch, trees[i].heaviest);
        cpu_ns += (double)trees[i].cpu_ns;
    }
    return cpu_ns;
}

static void add_siblings(const struct el_watching *watch, const struct subtree *trees, struct el_watch_peers *peers)
{
    int best = -1;
    double best_ns = -1;
    for (int i = 0; i < watch->tree->n; i++) {
        if (trees[i].family != i) continue;
        double cpu_ns = add_family(watch, trees, i, peers);
        if (peers->n >= 2 && cpu_ns > best_ns) {
            best = i;
            best_ns = cpu_ns;
        }
        peers->n = 0;
    }
    if (best >= 0) add_family(watch, trees, best, peers);
    peers->what = "processes";
    peers->rule = "processes of one program and one parent that ran at the same time";
}

enum el_status el_watch_peers(const struct el_watching *watch, struct el_watch_peers *peers_p)
{
    int n = watch->tree->n + watch->n_uses + EL_GPUS_MAX;
    struct el_watch_peers peers = {.list = calloc((size_t)n, sizeof *peers.list)};
    struct subtree *trees = sum_subtrees(watch);
    if (!peers.list || !trees) {
        free(peers.list);
        free(trees);
        return el_fail(EL_ERR_HOST_MEMORY, "no memory to compare %d processes", n);
    }
    const int least = watch->one_of_many ? 1 : 2;
    add_gpus(watch, &peers);
    if (peers.n < least) peers.n = 0, add_uses(watch, &peers);
    if (peers.n < least) peers.n = 0, add_ranks(watch, &peers);
    if (peers.n < least) peers.n = 0, add_siblings(watch, trees, &peers);
    if (peers.n < least) {
        peers.n = 0;
        peers.rule = "no two processes of one program ran at the same time";
    }
    free(trees);
    *peers_p = peers;
    return EL_OK;
}

void el_watch_peers_free(struct el_watch_peers *peers)
{
    free(peers->list);
    *peers = (struct el_watch_peers){0};
}
