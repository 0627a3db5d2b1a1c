/* Checkpoint intervals and goodput. */
#include <math.h>

#include "bench/stats/stats.h"

double el_stats_checkpoint_interval(double checkpoint, double mtbf)
{
    if (checkpoint >= 2 * mtbf) return mtbf;
    return sqrt(2 * checkpoint * mtbf) * (1 + sqrt(checkpoint / (2 * mtbf)) / 3 + checkpoint / (18 * mtbf)) -
           checkpoint;
}

double el_stats_goodput(double interval, double checkpoint, double recovery, double mtbf)
{
    return interval / (mtbf * exp(recovery / mtbf) * expm1((interval + checkpoint) / mtbf));
}
