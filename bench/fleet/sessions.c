/* The run as sessions of the baseline store, a program a host: `baseline add DIR`, `baseline show`, `regress`. */
#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/fleet/fleet.h"
#include "bench/regress/session.h"
#include "bench/stats/stats.h"

static void put(json_t *figures, const char *name, const char *unit, double value)
{
    if (value > 0) el_json_put(figures, name, el_figure_new(unit, EL_BETTER_HIGHER, value, NULL, false));
}

double el_fleet_link_median(const json_t *document, int64_t host, const char *side)
{
    double *values = NULL, median = NAN;
    json_t *mine = json_array();
    EL_EACH(link, json_object_get(document, "links"))
        if (el_json_whole(link, side) == host) json_array_append(mine, link);
    size_t n = el_json_numbers_at(mine, "gb_per_s", &values);
    if (n) median = el_stats_median(values, n);
    free(values);
    json_decref(mine);
    return median;
}

double el_fleet_slowest(const json_t *host, const char *figure)
{
    double low = NAN;
    EL_EACH(device, json_object_get(host, "devices"))
        low = fmin(low, el_json_number(json_object_get(json_object_get(device, "figures"), figure), "median"));
    return low;
}

static json_t *session_of(const json_t *document, const json_t *host, int64_t at)
{
    json_t *figures = json_object();
    for (int f = 0; f < EL_FLEET_DEVICE_FIGURES; f++)
        put(figures, el_fleet_figures[f].name, el_fleet_figures[f].unit,
            el_fleet_slowest(host, el_fleet_figures[f].key) * el_fleet_figures[f].scale);
    put(figures, "sends", "GB/s", el_fleet_link_median(document, at, "from"));
    put(figures, "receives", "GB/s", el_fleet_link_median(document, at, "to"));
    return el_json_of(EL_KEY("program", json_sprintf("fleet %s", el_json_text(host, "name", "?"))),
                      EL_KEY("status", "ok"), EL_KEY("figures", figures));
}

/* What depends on the build of evenload stays in the environment: it does the work that is measured. */
enum el_status el_fleet_save_sessions(const json_t *document, const char *dir)
{
    json_t *trials = json_array();
    EL_EACH(host, json_object_get(document, "hosts")) {
        json_t *session = session_of(document, host, (int64_t)host_at.i);
        if (json_object_size(json_object_get(session, "figures"))) json_array_append(trials, session);
        json_decref(session);
    }
    return el_session_save_programs(json_incref(json_object_get(document, "environment")), trials, dir);
}
