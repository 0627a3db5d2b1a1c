/* Lateness of ranks, and the cause of waits. */
#include "profiles/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/intervals.h"

struct arrivals {
    int64_t first_ns, last_ns;
    double sum_ns; /* from the first */
    int n, n_last;
};

struct ranks {
    const struct el_collectives *members;
    int n;
    int **matches;              /* [n]: el_collectives_match */
    double *late, *caused;      /* [n][n_steps] */
    struct el_intervals *waits; /* [n]: one member's waits in one step, by cause */
    struct el_rank_row *rows;
};

static struct el_span span_of(const struct ranks *ranks, int m, size_t step, int k)
{
    return ranks->members[m].spans[step * ranks->members[m].n + (size_t)k];
}

static struct arrivals look(const struct ranks *ranks, const int *match, size_t step)
{
    struct arrivals a = {.first_ns = INT64_MAX, .last_ns = INT64_MIN};
    for (int m = 0; m < ranks->n; m++) {
        if (match[m] < 0) continue;
        int64_t begin = span_of(ranks, m, step, match[m]).begin_ns;
        if (begin < a.first_ns) a.first_ns = begin;
        a.n_last = begin > a.last_ns ? 1 : a.n_last + (begin == a.last_ns);
        if (begin > a.last_ns) a.last_ns = begin;
        a.n++;
    }
    for (int m = 0; m < ranks->n; m++)
        if (match[m] >= 0) a.sum_ns += (double)(span_of(ranks, m, step, match[m]).begin_ns - a.first_ns);
    return a;
}

/* Ties share the wait equally. */
static void add_wait(struct ranks *ranks, int m, size_t step, int k, const struct arrivals *a)
{
    const int *match = ranks->matches[m] + (size_t)k * (size_t)ranks->n;
    struct el_span own = span_of(ranks, m, step, k);
    int64_t wait_ns = (a->last_ns < own.end_ns ? a->last_ns : own.end_ns) - own.begin_ns, place = 0;
    for (int who = 0; who < ranks->n && wait_ns > 0; who++) {
        if (match[who] < 0 || span_of(ranks, who, step, match[who]).begin_ns != a->last_ns) continue;
        int64_t begin_ns = own.begin_ns + wait_ns * place++ / a->n_last;
        el_intervals_add(&ranks->waits[who], (struct el_span){begin_ns, own.begin_ns + wait_ns * place / a->n_last});
    }
}

/* Simultaneous collectives count once. */
static void charge(struct ranks *ranks, size_t step)
{
    for (int who = 0; who < ranks->n; who++) {
        el_intervals_unite(&ranks->waits[who]);
        ranks->caused[(size_t)who * ranks->members[who].n_steps + step] +=
            (double)el_intervals_measure(&ranks->waits[who]) * 1e-9;
        el_intervals_clear(&ranks->waits[who]);
    }
}

static void look_at_step(struct ranks *ranks, int m, size_t step)
{
    const struct el_collectives *own = &ranks->members[m];
    struct arrivals widest = {0};
    int64_t begin_ns = 0;
    for (size_t k = 0; k < own->n; k++) {
        const int *match = ranks->matches[m] + k * (size_t)ranks->n;
        if (own->ops[k].link != EL_LINK_NONE) continue;
        struct arrivals a = look(ranks, match, step);
        add_wait(ranks, m, step, (int)k, &a);
        if (a.last_ns - a.first_ns <= widest.last_ns - widest.first_ns) continue;
        widest = a;
        begin_ns = span_of(ranks, m, step, (int)k).begin_ns;
    }
    charge(ranks, step);
    if (widest.n < 2) return;
    double own_ns = (double)(begin_ns - widest.first_ns);
    ranks->late[(size_t)m * own->n_steps + step] = (own_ns - (widest.sum_ns - own_ns) / (widest.n - 1)) * 1e-9;
    if (begin_ns == widest.last_ns) ranks->rows[m].last_pct += 100.0 / widest.n_last;
}

static void finish(struct el_rank_row *row, double *late, const double *caused, size_t n_steps)
{
    double n = (double)n_steps;
    for (size_t step = 0; step < n_steps; step++) {
        row->late_s += late[step];
        row->caused_s += caused[step];
        if (caused[step] > row->most_s) row->most_s = caused[step], row->most_at = (int64_t)step;
    }
    row->n_steps = n_steps;
    row->late_s /= n;
    row->last_pct /= n;
    row->caused_s /= n;
    el_median(late, n_steps); /* sorts */
    row->late_low_s = late[n_steps / 4];
}

enum el_status el_ranks_arrivals(const struct el_collectives *members, int n_members, struct el_rank_row *rows,
                                 double *late_s)
{
    size_t n = (size_t)n_members, n_steps = n > 0 ? members[0].n_steps : 0;
    struct ranks ranks = {.members = members, .n = n_members, .rows = rows};
    ranks.matches = calloc(n + 1, sizeof *ranks.matches);
    ranks.late = calloc(n * n_steps + 1, sizeof *ranks.late);
    ranks.caused = calloc(n * n_steps + 1, sizeof *ranks.caused);
    ranks.waits = calloc(n + 1, sizeof *ranks.waits);
    bool enough = ranks.matches && ranks.late && ranks.caused && ranks.waits;
    for (int m = 0; m < n_members; m++) {
        rows[m].last_pct = rows[m].late_s = rows[m].late_low_s = rows[m].caused_s = rows[m].most_s = 0;
        rows[m].most_at = 0;
        if (enough) ranks.matches[m] = el_collectives_match(members, n_members, m);
        enough = enough && ranks.matches[m];
    }
    for (int m = 0; m < n_members && enough; m++)
        for (size_t step = 0; step < n_steps; step++) look_at_step(&ranks, m, step);
    if (late_s && enough) memcpy(late_s, ranks.late, n * n_steps * sizeof *late_s);
    for (size_t m = 0; m < n && enough && n_steps > 0; m++)
        finish(&rows[m], ranks.late + m * n_steps, ranks.caused + m * n_steps, n_steps);
    for (size_t m = 0; m < n && ranks.waits; m++) {
        enough &= !ranks.waits[m].failed;
        el_intervals_free(&ranks.waits[m]);
    }
    for (size_t m = 0; m < n && ranks.matches; m++) free(ranks.matches[m]);
    free(ranks.waits);
    free(ranks.matches);
    free(ranks.late);
    free(ranks.caused);
    return enough ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for the arrivals of %d ranks", n_members);
}

const char *el_blame_name(enum el_blame_kind kind)
{
#define TEXT(name, text) text,
    static const char *const names[] = {EL_BLAMES(TEXT)};
#undef TEXT
    return names[kind];
}

bool el_ranks_is_late(const struct el_rank_row *rows, int i, const struct el_ranks_blame *blame)
{
    if (i == blame->who || !blame->stays) return i == blame->who;
    return rows[i].late_low_s >= blame->step_s * EL_RANKS_WORTH / 2 && rows[i].late_s >= rows[blame->who].late_s / 2;
}

/* In one step `who` caused nearly all, and without that nobody waits for what is worth speaking of. */
static bool is_once(const struct el_rank_row *rows, int n, double caused_s, const struct el_ranks_blame *blame)
{
    const struct el_rank_row *who = &rows[blame->who];
    const double steps = (double)who->n_steps, rest_s = (caused_s * steps - who->most_s) / (steps - 1);
    const double step_s = (blame->step_s * steps - who->most_s / (n - 1)) / (steps - 1);
    return who->n_steps > 2 && who->most_s >= EL_RANKS_ONE * who->caused_s * steps &&
           rest_s / (n - 1) < EL_RANKS_WORTH * (step_s > 0 ? step_s : blame->step_s);
}

static void find_late(const struct el_rank_row *rows, int n, struct el_ranks_blame *blame)
{
    double caused_s = 0, own_s = 0, others_s = 0, exposed_s = 0;
    for (int i = 0; i < n; i++) {
        caused_s += rows[i].caused_s;
        if (blame->who < 0 || rows[i].caused_s > rows[blame->who].caused_s) blame->who = i;
    }
    const struct el_rank_row *who = &rows[blame->who];
    blame->late_s = who->late_s;
    blame->stays = who->late_low_s >= blame->step_s * EL_RANKS_WORTH / 2;
    for (int i = 0; i < n; i++) {
        const bool late = el_ranks_is_late(rows, i, blame);
        blame->n_late += late && blame->stays;
        own_s += late ? rows[i].caused_s : 0;
        others_s += late ? 0 : rows[i].wait_s;
        exposed_s += late ? 0 : rows[i].wait_exposed_s;
    }
    const double share = caused_s > 0 ? own_s / caused_s : 0;
    blame->caused_pct = 100 * share;
    blame->kind = blame->stays ? EL_BLAME_STAYS : share >= EL_RANKS_ONE ? EL_BLAME_AT_TIMES : EL_BLAME_WANDERS;
    if (!blame->stays && is_once(rows, n, caused_s, blame)) {
        blame->kind = EL_BLAME_ONCE;
        blame->step = who->most_at;
        blame->wait_s = who->most_s / (n - 1);
    }
    if (blame->kind == EL_BLAME_WANDERS || blame->kind == EL_BLAME_ONCE) return;
    blame->wait_s = exposed_s / (n - (blame->n_late > 1 ? blame->n_late : 1));
    if (others_s > own_s) blame->wait_s *= own_s / others_s; /* the rest is for each other */
}

/* A slow link makes ranks behind it late too. A rank is itself late if longer computation explains most of it. */
static void clear_rank(const struct el_rank_row *rows, int n, struct el_ranks_blame *blame)
{
    double longer_s = 0;
    for (int i = 0; i < n; i++) longer_s += (rows[blame->who].compute_s - rows[i].compute_s) / (n - 1);
    if (blame->stays && blame->late_s > 0 && longer_s >= blame->late_s / 2) return;
    blame->who = -1;
    blame->stays = false;
    blame->n_late = 0;
    blame->late_s = blame->caused_pct = 0;
}

void el_ranks_blame(const struct el_rank_row *rows, int n, double step_s, struct el_ranks_blame *blame_p)
{
    struct el_ranks_blame blame = {.kind = EL_BLAME_EVEN, .who = -1, .step = -1, .step_s = step_s};
    for (int i = 0; i < n && n > 1; i++) {
        blame.wait_s += rows[i].wait_exposed_s / n;
        blame.transfer_s += (rows[i].exposed_s - rows[i].wait_exposed_s) / n;
    }
    double wait_s = n > 1 ? blame.wait_s * n / (n - 1) : 0; /* the last one at a collective does not wait */
    double mean_s = blame.wait_s;
    if (n > 1 && step_s > 0 && wait_s >= EL_RANKS_WORTH * step_s) find_late(rows, n, &blame);
    if (step_s > 0 && blame.transfer_s >= EL_RANKS_WORTH * step_s && blame.transfer_s > wait_s) {
        blame.kind = EL_BLAME_WIRE;
        blame.wait_s = mean_s;
        if (blame.who >= 0) clear_rank(rows, n, &blame);
    }
    *blame_p = blame;
}
