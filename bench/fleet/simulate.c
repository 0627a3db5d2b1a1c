#include "bench/fleet/fleet.h"
enum el_status el_fleet_simulate(struct el_options *options, json_t **gathered_p)
{
    (void)options; (void)gathered_p;
    return el_fail(EL_ERR_INVALID, "later");
}
