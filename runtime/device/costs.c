/* Curves of measured times; see costs.h. */
#include "runtime/device/costs.h"

#include <math.h>
#include <string.h>

static const struct el_cost_row *row_of(const struct el_costs *costs, const struct el_op_messages *messages)
{
    const struct el_cost_row *best = costs->rows;
    int most = 0;
    for (int i = 0; i < costs->n; i++) {
        const struct el_cost_row *row = &costs->rows[i];
        int fits = 2 * (strcmp(row->verb, messages->verb) == 0) + (strcmp(row->algorithm, messages->algorithm) == 0);
        if (fits <= most) continue;
        best = row;
        most = fits;
    }
    return best;
}

static double on_curve_ns(const struct el_cost_point *p, int n, double bytes)
{
    int above = 1;
    if (n == 1 || bytes <= p[0].bytes) return p[0].ns;
    while (above + 1 < n && p[above].bytes < bytes) above++;
    double slope = (p[above].ns - p[above - 1].ns) / (p[above].bytes - p[above - 1].bytes);
    return p[above].ns + slope * (bytes - p[above].bytes);
}

double el_costs_ns(const struct el_costs *costs, const struct el_op_messages *messages)
{
    const struct el_cost_row *row = row_of(costs, messages);
    return messages->rounds * on_curve_ns(row->points, row->n, (double)messages->largest_bytes);
}

/* ---- ops ---- */

static const double SAME_RATIO = 0.01; /* sizes that are taken for one */

static bool is_near(double a, double b)
{
    return fabs(a - b) <= SAME_RATIO * b;
}

static bool computes_little(const struct el_op_info *op)
{
    return op->op_class != EL_CLASS_COMPUTE || op->flops <= op->bytes;
}

/* Negative: it does not say. */
static double of_row_ns(const struct el_cost_op *row, const struct el_op_info *op)
{
    const struct el_cost_point *first = &row->points[0], *last = &row->points[row->n - 1];
    const struct el_cost_point *end = op->bytes <= first->bytes * (1 + SAME_RATIO) ? first : last;
    if (is_near(op->bytes, end->bytes)) return end->ns;
    if (op->bytes > first->bytes && op->bytes < last->bytes) return on_curve_ns(row->points, row->n, op->bytes);
    return computes_little(op) && end->bytes > 0 ? end->ns * op->bytes / end->bytes : -1;
}

static size_t kernel_length(const char *label)
{
    return strcspn(label, " ");
}

/* The row of the same kernel whose size is nearest; NULL: there is none. */
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

/* Negative: what was measured so does not say. */
static double measured_ns(const struct el_costs *costs, const struct el_op_info *op, bool beside)
{
    const struct el_cost_op *row = find(costs, op, beside);
    if (!row && computes_little(op)) row = nearest(costs, op, beside);
    return row ? of_row_ns(row, op) : -1;
}

enum el_status el_costs_op_ns(const struct el_costs *costs, const struct el_op_info *op, bool beside, double *ns_p)
{
    const struct el_cost_op *row = find(costs, op, beside);
    if (costs->n_ops == 0) {
        *ns_p = -1;
        return EL_OK;
    }
    double ns = measured_ns(costs, op, beside);
    if (ns < 0) ns = measured_ns(costs, op, !beside);
    if (!row) row = find(costs, op, !beside);
    if (ns < 0 && computes_little(op) && op->op_class != EL_CLASS_HOST && costs->copy.n > 0)
        ns = on_curve_ns(costs->copy.points, costs->copy.n, op->bytes / 2); /* read and written */
    if (ns < 0 && op->op_class != EL_CLASS_HOST && row)
        return el_fail(EL_ERR_INVALID,
                       "--costs: '%s' moves %.0f bytes here, and was measured with %.0f to %.0f: record single with as "
                       "many samples as go through it here",
                       op->label, op->bytes, row->points[0].bytes, row->points[row->n - 1].bytes);
    if (ns < 0 && op->op_class != EL_CLASS_HOST)
        return el_fail(EL_ERR_INVALID, "--costs: no record has times of '%s' (%s): record single with the same model",
                       op->label, el_phase_name(op->phase));
    *ns_p = ns;
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
