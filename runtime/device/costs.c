/* Curves of measured times; see costs.h. */
#include "runtime/device/costs.h"

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

static double message_ns(const struct el_cost_row *row, double bytes)
{
    const struct el_cost_point *p = row->points;
    int above = 1;
    if (row->n == 1 || bytes <= p[0].bytes) return p[0].ns;
    while (above + 1 < row->n && p[above].bytes < bytes) above++;
    double slope = (p[above].ns - p[above - 1].ns) / (p[above].bytes - p[above - 1].bytes);
    return p[above].ns + slope * (bytes - p[above].bytes);
}

double el_costs_ns(const struct el_costs *costs, const struct el_op_messages *messages)
{
    return messages->rounds * message_ns(row_of(costs, messages), (double)messages->largest_bytes);
}
