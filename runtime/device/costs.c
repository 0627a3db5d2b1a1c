/* Times from measured curves; see costs.h. */
#include "runtime/device/costs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_link(const struct el_op_messages *messages)
{
    return strcmp(messages->verb, "send") == 0 || strcmp(messages->verb, "recv") == 0;
}

/* A matching verb counts most, then the algorithm, then the number of ranks. */
static int fit_of(const struct el_cost_row *row, const struct el_op_messages *messages)
{
    bool verb = strcmp(row->verb, messages->verb) == 0, algorithm = strcmp(row->algorithm, messages->algorithm) == 0;
    return 4 * verb + 2 * algorithm + (row->ranks == messages->size);
}

static const struct el_cost_row *row_of(const struct el_costs *costs, const struct el_op_messages *messages)
{
    const struct el_cost_row *best = costs->rows;
    for (int i = 1; i < costs->n; i++)
        if (fit_of(&costs->rows[i], messages) > fit_of(best, messages)) best = &costs->rows[i];
    return best;
}

static double fitted_ns(const struct el_cost_row *row, double bytes)
{
    return row->latency_ns + row->ns_per_byte * bytes;
}

static bool is_fitted(const struct el_cost_row *row)
{
    return row->latency_ns > 0 || row->ns_per_byte > 0;
}

/* At least two points, by rising bytes. */
static double between_ns(const struct el_cost_point *p, int n, double bytes)
{
    int above = 1;
    while (above + 1 < n && p[above].bytes < bytes) above++;
    double slope = (p[above].ns - p[above - 1].ns) / (p[above].bytes - p[above - 1].bytes);
    return p[above].ns + slope * (bytes - p[above].bytes);
}

static double on_curve_ns(const struct el_cost_row *row, double bytes)
{
    const struct el_cost_point *first = &row->points[0], *last = &row->points[row->n - 1];
    bool fitted = is_fitted(row), rises = row->n > 1 && last->ns > last[-1].ns;
    if (bytes == first->bytes) return first->ns;
    if (bytes < first->bytes)
        return fitted ? first->ns * fitted_ns(row, bytes) / fitted_ns(row, first->bytes) : first->ns;
    if (bytes > last->bytes && row->n == 1) return last->ns * bytes / last->bytes;
    if (bytes > last->bytes && !rises && fitted) return last->ns * fitted_ns(row, bytes) / fitted_ns(row, last->bytes);
    return between_ns(row->points, row->n, bytes);
}

static struct el_cost_basis basis_of(const struct el_cost_row *row, double bytes)
{
    struct el_cost_basis basis = {
        .low_bytes = row->points[0].bytes, .high_bytes = row->points[row->n - 1].bytes, .ranks = row->ranks};
    if (bytes > 0 && !(bytes >= basis.low_bytes && bytes <= basis.high_bytes)) basis.how = EL_COST_OUTSIDE;
    return basis;
}

/* The largest message of the same data on the measured number of ranks; a chunk scales with it. */
static double measured_message(const struct el_cost_row *row, const struct el_op_messages *messages)
{
    double bytes = (double)messages->largest_bytes, chunks = bytes * messages->size / (double)messages->total_bytes;
    return chunks > 0.5 && chunks < 2 ? bytes * messages->size / row->ranks : bytes;
}

/* Scales the measured time by the fitted line. */
static double by_form_ns(const struct el_cost_row *row, const struct el_op_messages *messages)
{
    double at = measured_message(row, messages);
    return on_curve_ns(row, at) * fitted_ns(row, (double)messages->largest_bytes) / fitted_ns(row, at);
}

double el_costs_ns(const struct el_costs *costs, const struct el_op_messages *messages, struct el_cost_basis *basis_p)
{
    const struct el_cost_row *row = row_of(costs, messages);
    double bytes = (double)messages->largest_bytes;
    bool other_ranks = row->ranks > 0 && messages->size > 0 && row->ranks != messages->size;
    bool link = is_link(messages), by_form = other_ranks && !link && is_fitted(row);
    struct el_cost_basis basis = basis_of(row, bytes);
    if (strcmp(row->verb, link ? "send" : messages->verb) || (!link && strcmp(row->algorithm, messages->algorithm)))
        basis.how |= EL_COST_BORROWED;
    if (link ? messages->size > row->ranks && other_ranks : other_ranks) basis.how |= EL_COST_OTHER_RANKS;
    if (by_form) basis.how |= basis_of(row, measured_message(row, messages)).how;
    if (messages->rounds == 0) basis.how = 0;
    if (basis_p) *basis_p = basis;
    const double own = (double)messages->copied_bytes,
                 copy_ns = own > 0 && costs->copy.n > 0 ? on_curve_ns(&costs->copy, own) : 0;
    return messages->rounds * (by_form ? by_form_ns(row, messages) : on_curve_ns(row, bytes)) + copy_ns;
}

void el_cost_use_add(struct el_cost_use *use, const struct el_op_info *op, double ns, const struct el_cost_basis *basis)
{
    bool sends = op->messages.verb != NULL;
    use->all_ns += ns;
    for (int k = 0; k < EL_COST_KINDS; k++) {
        struct el_cost_share *share = &use->shares[k];
        if (!(basis->how & 1u << k)) continue;
        share->ns += ns;
        if (share->label[0] && ns <= share->largest_ns) continue;
        share->largest_ns = ns;
        share->bytes = sends ? (double)op->messages.largest_bytes : op->bytes;
        share->ranks = op->messages.size;
        share->basis = *basis;
        snprintf(share->label, sizeof share->label, "%s", op->label);
    }
}

static const double SAME_RATIO = 0.01; /* relative difference of sizes taken as equal */

static bool is_near(double a, double b)
{
    return fabs(a - b) <= SAME_RATIO * b;
}

static bool computes_little(const struct el_op_info *op)
{
    return op->op_class != EL_CLASS_COMPUTE || op->flops <= op->bytes;
}

static double of_row_ns(const struct el_cost_op *row, const struct el_op_info *op)
{
    const struct el_cost_point *first = &row->points[0], *last = &row->points[row->n - 1];
    const struct el_cost_point *end = op->bytes < first->bytes ? first : last;
    if (row->n > 1 && op->bytes >= first->bytes && op->bytes <= last->bytes)
        return between_ns(row->points, row->n, op->bytes);
    if (is_near(op->bytes, end->bytes)) return end->ns;
    return computes_little(op) && end->bytes > 0 ? end->ns * op->bytes / end->bytes : -1;
}

static size_t kernel_length(const char *label)
{
    return strcspn(label, " ");
}

static const struct el_cost_op *nearest(const struct el_costs *costs, const struct el_op_info *op, bool beside)
{
    const struct el_cost_op *best = NULL;
    size_t length = kernel_length(op->label);
    double least = INFINITY;
    for (int i = 0; i < costs->n_ops; i++) {
        const struct el_cost_op *row = &costs->ops[i];
        double apart = fabs(log((op->bytes + 1) / (row->points[0].bytes + 1)));
        bool same = kernel_length(row->label) == length && strncmp(row->label, op->label, length) == 0;
        if (!same || row->beside != beside || apart >= least) continue;
        best = row;
        least = apart;
    }
    return best;
}

static const struct el_cost_op *find(const struct el_costs *costs, const struct el_op_info *op, bool beside)
{
    for (int i = 0; i < costs->n_ops; i++) {
        const struct el_cost_op *row = &costs->ops[i];
        if (row->beside == beside && row->phase == op->phase && strcmp(row->label, op->label) == 0) return row;
    }
    return NULL;
}

/* < 0: unknown. */
static double measured_ns(const struct el_costs *costs, const struct el_op_info *op, bool beside,
                          struct el_cost_basis *basis)
{
    const struct el_cost_op *own = find(costs, op, beside), *row = own;
    if (!row && computes_little(op)) row = nearest(costs, op, beside);
    if (!row) return -1;
    double low = row->points[0].bytes, high = row->points[row->n - 1].bytes;
    bool outside = op->bytes < low * (1 - SAME_RATIO) || op->bytes > high * (1 + SAME_RATIO);
    *basis = (struct el_cost_basis){
        .how = (outside ? EL_COST_OUTSIDE : 0) | (own ? 0 : EL_COST_BORROWED), .low_bytes = low, .high_bytes = high};
    return of_row_ns(row, op);
}

static enum el_status refuse(const struct el_cost_op *row, const struct el_op_info *op)
{
    if (!row)
        return el_fail(EL_ERR_INVALID, "--costs: no record has times of '%s' (%s): record single with the same model",
                       op->label, el_phase_name(op->phase));
    return el_fail(EL_ERR_INVALID,
                   "--costs: '%s' moves %.0f bytes here, and was measured with %.0f to %.0f: record single with as "
                   "many samples as go through it here",
                   op->label, op->bytes, row->points[0].bytes, row->points[row->n - 1].bytes);
}

enum el_status el_costs_op_ns(const struct el_costs *costs, const struct el_op_info *op, bool beside, double *ns_p,
                              struct el_cost_basis *basis_p)
{
    struct el_cost_basis basis = {.how = 0};
    double ns = -1;
    if (costs->n_ops > 0) {
        ns = measured_ns(costs, op, beside, &basis);
        if (ns < 0) ns = measured_ns(costs, op, !beside, &basis);
        if (ns < 0 && computes_little(op) && op->op_class != EL_CLASS_HOST && costs->copy.n > 0) {
            ns = on_curve_ns(&costs->copy, op->bytes / 2); /* read and written */
            basis = basis_of(&costs->copy, op->bytes / 2);
        }
        const struct el_cost_op *row = find(costs, op, beside);
        if (ns < 0 && op->op_class != EL_CLASS_HOST) return refuse(row ? row : find(costs, op, !beside), op);
    }
    *ns_p = ns;
    if (basis_p) *basis_p = basis;
    return EL_OK;
}

int el_costs_add_point(struct el_cost_point *points, int n, int capacity, struct el_cost_point point)
{
    int at = 0;
    while (at < n && points[at].bytes < point.bytes) at++;
    bool known = at < n && points[at].bytes == point.bytes;
    if (!known && n == capacity) return n;
    if (!known) memmove(&points[at + 1], &points[at], (size_t)(n++ - at) * sizeof *points);
    points[at] = point;
    return n;
}
