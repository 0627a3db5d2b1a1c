/* Everything is in units of the noise: y = log value / sd, with running sums, so that a piece's cost takes two
 * differences. The penalty is calibrated by simulation (tests/unit/test_changes.c), so that fewer than 1 % of even
 * histories of 10 to 200 sessions have a change: few sessions pay for their variance's estimate. */
#include "bench/regress/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/stats/stats.h"

enum { NEIGHBOURS = 2 };
static const double LINE_HINT = 5; /* of chi-square with one degree of freedom: p = 0.025 */
static const double CLIP = 3, CREEP_P_MAX = 0.001;
static const double PENALTY_LOG = 3.4, PENALTY_FEW = 12, CORRELATION_MAX = 0.6;
/* Of the likelihood's profile over a change's position: with the maximum of two Brownian motions with drift,
 * P(2 log ratio <= x) = (1 - exp(-x / 2))^2 (Siegmund, International Statistical Review 56, 1988); 0.95 of it. */
static const double PROFILE = 7.353;

struct series {
    size_t n;
    double *y, *sum, *squares, *line; /* sum[i]: of the first i; line: of i y[i] */
    double *best;                     /* partition's; [n + 1] */
    size_t *from;                     /* where the best last piece of the first i begins; [n + 1] */
    double sd, centre;
    double inflation, per_number; /* a model's number costs so much: log n, for even noise */
};

static void series_free(struct series *s)
{
    free(s->y);
    free(s->from);
}

static enum el_status series_new(size_t n, struct series *s)
{
    *s = (struct series){.n = n, .y = calloc(5 * (n + 1), sizeof *s->y), .from = calloc(n + 1, sizeof *s->from)};
    if (!s->y || !s->from) {
        series_free(s);
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for a history of %zu sessions", n);
    }
    s->sum = s->y + n + 1;
    s->squares = s->sum + n + 1;
    s->line = s->squares + n + 1;
    s->best = s->line + n + 1;
    return EL_OK;
}

/* ---- noise ---- */

static double noise_of(const double *logs, size_t n, double *room)
{
    for (size_t i = 0; i + 1 < n; i++) room[i] = fabs(logs[i + 1] - logs[i]);
    double sd = n > 1 ? 1.4826 * el_stats_median(room, n - 1) / sqrt(2) : 0;
    return fmax(sd, EL_CHANGES_SD_MIN);
}

static double near_median(const double *logs, size_t n, size_t i)
{
    size_t begin = i < NEIGHBOURS ? 0 : i - NEIGHBOURS, end = i + NEIGHBOURS < n ? i + NEIGHBOURS + 1 : n;
    return el_stats_median(logs + begin, end - begin);
}

static void scale(const double *values, struct series *s)
{
    double *logs = s->best;
    for (size_t i = 0; i < s->n; i++) logs[i] = log(values[i]);
    s->sd = noise_of(logs, s->n, s->sum);
    s->centre = el_stats_median(logs, s->n);
    for (size_t i = 0; i < s->n; i++) {
        double about = near_median(logs, s->n, i), reach = CLIP * s->sd;
        s->y[i] = (fmin(fmax(logs[i], about - reach), about + reach) - s->centre) / s->sd;
    }
    s->sum[0] = s->squares[0] = s->line[0] = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->sum[i + 1] = s->sum[i] + s->y[i];
        s->squares[i + 1] = s->squares[i] + s->y[i] * s->y[i];
        s->line[i + 1] = s->line[i] + (double)i * s->y[i];
    }
}

static double mean_of(const struct series *s, size_t begin, size_t end)
{
    return (s->sum[end] - s->sum[begin]) / (double)(end - begin);
}

/* Squared distances of [begin, end) from their mean. */
static double cost(const struct series *s, size_t begin, size_t end)
{
    double sum = s->sum[end] - s->sum[begin];
    return s->squares[end] - s->squares[begin] - sum * sum / (double)(end - begin);
}

/* By least squares, per session. */
static double slope_of(const struct series *s, size_t begin, size_t end)
{
    double n = (double)(end - begin), middle = (double)begin + (n - 1) / 2;
    return (s->line[end] - s->line[begin] - middle * (s->sum[end] - s->sum[begin])) / (n * (n * n - 1) / 12);
}

/* From a line. */
static double line_cost(const struct series *s, size_t begin, size_t end)
{
    double n = (double)(end - begin), slope = slope_of(s, begin, end);
    return cost(s, begin, end) - slope * slope * n * (n * n - 1) / 12;
}

/* ---- the partition ---- */

static double penalty_of(size_t n)
{
    return PENALTY_LOG * log((double)n) * (1 + PENALTY_FEW / (double)n);
}

/* cuts: [n]; returns how many. */
static size_t partition(struct series *s, double penalty, size_t *cuts)
{
    size_t count = 0, at = s->n;
    s->best[0] = -penalty;
    for (size_t end = 1; end <= s->n; end++) {
        s->best[end] = INFINITY;
        s->from[end] = 0;
        for (size_t begin = 0; begin + EL_PIECE_MIN <= end; begin++) {
            double all = s->best[begin] + cost(s, begin, end) + penalty;
            if (all < s->best[end]) s->best[end] = all, s->from[end] = begin;
        }
    }
    for (; at > 0 && s->from[at] > 0; at = s->from[at]) cuts[count++] = s->from[at];
    for (size_t i = 0; i < count / 2; i++) {
        size_t cut = cuts[i];
        cuts[i] = cuts[count - 1 - i];
        cuts[count - 1 - i] = cut;
    }
    return count;
}

/* What the noise costs more than the differences have shown: its variance about the pieces' means, which is larger
 * where tails are long on one side, and (1 + r) / (1 - r) for what a sum scatters more where neighbours are alike; r is
 * the correlation of the residuals from one session to the next. */
static double inflation(const struct series *s, const size_t *cuts, size_t n_cuts)
{
    double products = 0, squares = 0, before = 0;
    for (size_t k = 0; k <= n_cuts; k++) {
        size_t begin = k ? cuts[k - 1] : 0, end = k < n_cuts ? cuts[k] : s->n;
        double mean = mean_of(s, begin, end);
        for (size_t i = begin; i < end; i++) {
            double residual = s->y[i] - mean;
            products += before * residual;
            squares += residual * residual;
            before = residual;
        }
    }
    double r = squares > 0 ? fmin(fmax(products / squares, 0), CORRELATION_MAX) : 0;
    return fmax(squares / (double)(s->n - n_cuts - 1), 1) * (1 + r) / (1 - r);
}

/* ---- pieces ---- */

static size_t end_of(const struct el_piece *piece)
{
    return piece->first + piece->n;
}

static void set_level(const struct series *s, struct el_piece *piece)
{
    piece->level = s->centre + s->sd * mean_of(s, piece->first, end_of(piece));
    piece->slope = 0;
    piece->p = NAN;
}

static double step_of(const struct el_piece *old, const struct el_piece *new)
{
    return new->level - (old->level + old->slope * (double)old->n);
}

/* The smallest change first, as its pieces' new level may make the next one large enough. */
static void drop_small(const struct series *s, double floor, struct el_changes *c)
{
    while (c->n_pieces > 1) {
        struct el_piece *at = c->pieces, *end = c->pieces + c->n_pieces;
        for (struct el_piece *piece = at; piece + 1 < end; piece++)
            if (fabs(step_of(piece, piece + 1)) < fabs(step_of(at, at + 1))) at = piece;
        if (fabs(step_of(at, at + 1)) >= floor) return;
        at->n += at[1].n;
        set_level(s, at);
        memmove(at + 1, at + 2, (size_t)(end - at - 2) * sizeof *at);
        c->n_pieces--;
    }
}

/* ---- creeps ---- */

struct line {
    size_t first, end;
    double cost; /* of the whole span */
};

static double flat_cost(const struct series *s, size_t begin, size_t end)
{
    return begin < end ? cost(s, begin, end) + 2 * s->per_number : 0;
}

/* The best line through the pieces' middle; of several steps it may begin within the first piece and end within the
 * last. Costs by Schwarz's criterion: a line has two numbers, what is flat before or after it a level and a position.
 */
static struct line best_line(const struct series *s, const struct el_piece *pieces, size_t n)
{
    size_t begin = pieces[0].first, end = end_of(&pieces[n - 1]);
    struct line best = {begin, end, INFINITY};
    for (size_t first = begin; first <= end_of(&pieces[0]); first++)
        for (size_t last = end; last >= pieces[n - 1].first; last--) {
            bool whole = first == begin && last == end, room = last - first >= 2 * EL_PIECE_MIN;
            bool pieces_left =
                (first == begin || first - begin >= EL_PIECE_MIN) && (last == end || end - last >= EL_PIECE_MIN);
            if (!whole && (n < 3 || !room || !pieces_left)) continue;
            double all = line_cost(s, first, last) + 2 * s->per_number;
            all += flat_cost(s, begin, first) + flat_cost(s, last, end);
            if (all < best.cost) best = (struct line){first, last, all};
        }
    return best;
}

static void set_line(const struct series *s, struct el_piece *piece)
{
    set_level(s, piece);
    piece->slope = s->sd * slope_of(s, piece->first, end_of(piece));
    piece->level -= piece->slope * (double)(piece->n - 1) / 2;
}

/* Flat up to the line, the line, flat behind it: the last of these goes to *last_p, the others to `kept`. Returns how
 * many those are. */
static size_t put_line(const struct series *s, const struct line *line, size_t begin, struct el_piece *last_p,
                       struct el_piece *kept)
{
    const size_t ends[] = {line->first, line->end, end_of(last_p)};
    size_t n = 0;
    for (int k = 0; k < 3; k++) {
        if (ends[k] == begin) continue;
        struct el_piece piece = {.first = begin, .n = ends[k] - begin};
        (k == 1 ? set_line : set_level)(s, &piece);
        begin = ends[k];
        *(begin == ends[2] ? last_p : &kept[n++]) = piece;
    }
    return n;
}

/* Steps one way, as many as there are in a row; k steps have k + 1 levels and k positions. What is kept goes to the
 * front: it is never more than what was read. */
static void find_staircases(const struct series *s, struct el_changes *c)
{
    struct el_piece *pieces = c->pieces;
    size_t kept = 0, i = 0;
    for (size_t last; i + 1 < c->n_pieces; i = last) {
        double way = step_of(&pieces[i], &pieces[i + 1]), steps = 0;
        for (last = i + 1; last + 1 < c->n_pieces && step_of(&pieces[last], &pieces[last + 1]) * way > 0;) last++;
        size_t n = last - i + 1, begin = pieces[i].first;
        for (size_t k = i; k <= last; k++) steps += cost(s, pieces[k].first, end_of(&pieces[k]));
        struct line line = best_line(s, pieces + i, n);
        if (line.cost < steps + (double)(2 * n - 1) * s->per_number)
            kept += put_line(s, &line, begin, &pieces[last], pieces + kept);
        else
            for (size_t k = i; k < last; k++) pieces[kept++] = pieces[k];
    }
    pieces[kept++] = pieces[i];
    c->n_pieces = kept;
}

/* A step that is too small to be told is no creep either. */
static bool step_is_better(const struct series *s, const struct el_piece *piece)
{
    double step = INFINITY;
    for (size_t at = piece->first + EL_PIECE_MIN; at + EL_PIECE_MIN <= end_of(piece); at++)
        step = fmin(step, cost(s, piece->first, at) + cost(s, at, end_of(piece)));
    return step + s->per_number < line_cost(s, piece->first, end_of(piece));
}

/* Kendall's test and the slope of Theil and Sen, about the piece's mean. */
static void find_creep(const struct series *s, const double *values, double floor, struct el_piece *piece)
{
    size_t begin = piece->first, end = end_of(piece);
    /* The test takes n^2 log n: not where a line explains next to nothing. */
    if (piece->n < 2 * EL_PIECE_MIN || cost(s, begin, end) - line_cost(s, begin, end) < LINE_HINT) return;
    struct el_trend trend = el_stats_trend(values + piece->first, piece->n);
    piece->p = trend.p;
    if (piece->slope != 0 || !(trend.p < CREEP_P_MAX) || fabs(log(trend.ratio)) < floor) return;
    if (step_is_better(s, piece)) return;
    piece->slope = log(trend.ratio) / (double)(piece->n - 1);
    piece->level -= piece->slope * (double)(piece->n - 1) / 2;
}

double el_piece_drift(const struct el_piece *piece)
{
    return exp(piece->slope * (double)(piece->n - 1));
}

/* ---- a change: where, and how much ---- */

/* Next to a line only what is worth a change's price, too: a line's end scatters as a mean of a quarter. */
static bool is_told(const struct el_piece both[2], double floor, const struct el_changes *c)
{
    double step = step_of(&both[0], &both[1]), variance = 0;
    for (int k = 0; k < 2; k++) variance += (both[k].slope != 0 ? 4 : 1) / (double)both[k].n;
    bool flat = both[0].slope == 0 && both[1].slope == 0;
    return fabs(step) >= floor && (flat || pow(step / c->sd, 2) >= c->penalty * variance);
}

/* Between the first of `both` and the next, whose values [n] are on one level each: places whose likelihood is near the
 * best one's. */
static void find_position(const double *values, size_t n, double tolerance, size_t begin, struct el_change *change)
{
    double mean = el_stats_mean(values, n), most = 0;
    for (int pass = 0; pass < 2; pass++) { /* first the best */
        double left = 0;
        for (size_t i = 1; i + 1 < n; i++) {
            left += values[i - 1] - mean;
            double explained = left * left * (1 / (double)i + 1 / (double)(n - i));
            if (i < 2) continue;
            if (pass == 0) most = fmax(most, explained);
            if (pass == 0 || explained < most - tolerance) continue;
            if (begin + i < change->low) change->low = begin + i;
            if (begin + i > change->high) change->high = begin + i;
        }
    }
}

/* Values of a creeping piece are moved along its line to where the two meet. */
static void find_change(struct series *s, const struct el_piece both[2], struct el_changes *c)
{
    size_t meet = both[1].first, n = both[0].n + both[1].n;
    struct el_change change = {.at = meet, .low = meet, .high = meet, .end = end_of(&both[1])};
    double *room = s->best, *at = room;
    for (int k = 0; k < 2; k++)
        for (size_t i = both[k].first; i < end_of(&both[k]); i++)
            *at++ = s->centre + s->sd * s->y[i] - both[k].slope * ((double)i - (double)meet);
    struct el_interval step = el_stats_difference_unpaired(room, both[0].n, room + both[0].n, both[1].n);
    change.ratio = exp(step.centre);
    change.ratio_low = exp(step.low);
    change.ratio_high = exp(step.high);
    find_position(room, n, PROFILE * s->inflation * s->sd * s->sd, both[0].first, &change);
    c->changes[c->n_changes++] = change;
}

static bool any_accepted(const bool *accepted, size_t begin, size_t end)
{
    for (size_t i = begin; accepted && i < end; i++)
        if (accepted[i]) return true;
    return false;
}

/* ---- all of it ---- */

static void find_exact(const double *values, size_t n, struct el_changes *c)
{
    c->sd = c->penalty = NAN;
    for (size_t i = 0; i < n; i++) {
        bool new = i == 0 || values[i] != values[i - 1];
        if (new) c->pieces[c->n_pieces++] = (struct el_piece){.first = i, .level = log(values[i]), .p = NAN};
        if (new &&i > 0) c->cuts[c->n_cuts++] = i;
        c->pieces[c->n_pieces - 1].n++;
    }
    for (size_t i = 1; i < c->n_pieces; i++) {
        size_t at = c->pieces[i].first;
        c->changes[c->n_changes++] =
            (struct el_change){at, at, at, end_of(&c->pieces[i]), values[at] / values[at - 1], NAN, NAN, false};
    }
}

static void find_noisy(const double *values, double floor, struct series *s, struct el_changes *c)
{
    scale(values, s);
    c->sd = s->sd;
    c->penalty = penalty_of(s->n);
    c->n_cuts = partition(s, c->penalty, c->cuts);
    s->inflation = inflation(s, c->cuts, c->n_cuts);
    c->penalty *= s->inflation;
    s->per_number = s->inflation * log((double)s->n);
    if (c->n_cuts && s->inflation > 1) c->n_cuts = partition(s, c->penalty, c->cuts);
    c->n_pieces = c->n_cuts + 1;
    for (size_t i = 0; i < c->n_pieces; i++) {
        size_t first = i ? c->cuts[i - 1] : 0, end = i < c->n_cuts ? c->cuts[i] : s->n;
        c->pieces[i] = (struct el_piece){.first = first, .n = end - first};
        set_level(s, &c->pieces[i]);
    }
    drop_small(s, floor, c);
    find_staircases(s, c);
    find_creep(s, values, floor, &c->pieces[c->n_pieces - 1]);
    for (size_t i = 1; i < c->n_pieces; i++)
        if (is_told(&c->pieces[i - 1], floor, c)) find_change(s, &c->pieces[i - 1], c);
}

enum el_status el_changes_of(const double *values, const bool *accepted, size_t n, bool exact, double floor_ratio,
                             struct el_changes *changes_p)
{
    struct el_changes c = {.sd = NAN, .penalty = NAN};
    struct series s;
    if (n > EL_HISTORY_MAX)
        return el_fail(EL_ERR_INVALID, "a history of %zu sessions, and at most %d count", n, EL_HISTORY_MAX);
    EL_TRY(series_new(n, &s));
    c.pieces = calloc(n + 1, sizeof *c.pieces);
    c.changes = calloc(n + 1, sizeof *c.changes);
    c.cuts = calloc(n + 1, sizeof *c.cuts);
    bool made = c.pieces && c.changes && c.cuts;
    if (made && n > 0 && exact) find_exact(values, n, &c);
    if (made && n > 0 && !exact) find_noisy(values, log(floor_ratio), &s, &c);
    for (size_t i = 0; i < c.n_changes; i++)
        c.changes[i].accepted = any_accepted(accepted, c.changes[i].low, c.changes[i].end);
    series_free(&s);
    if (made) *changes_p = c;
    if (!made) el_changes_free(&c);
    return made ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for a history of %zu sessions", n);
}

void el_changes_free(struct el_changes *changes)
{
    free(changes->pieces);
    free(changes->changes);
    free(changes->cuts);
    *changes = (struct el_changes){.sd = NAN};
}
