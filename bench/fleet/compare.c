/* Which device's first pass of the soak differs from most others' of its kind. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/fleet/conduct.h"

static const json_t *soak_of(const struct el_fleet_conductor *c, int device)
{
    return json_object_get(c->devices[device].parts, "soak");
}

static bool same_kind(const struct el_fleet_conductor *c, int a, int b)
{
    return !strcmp(el_json_text(soak_of(c, a), "model", ""), el_json_text(soak_of(c, b), "model", ""));
}

static const char *digest_at(const json_t *soak, size_t step, size_t op)
{
    const json_t *row = json_array_get(json_object_get(soak, "first"), step);
    const char *text = json_string_value(json_array_get(json_object_get(row, "digests"), op));
    return text ? text : "";
}

static int agreeing(const struct el_fleet_conductor *c, int device, size_t step, size_t op)
{
    int n = 0;
    for (int i = 0; i < c->n_devices; i++)
        n += soak_of(c, i) && same_kind(c, i, device) &&
             !strcmp(digest_at(soak_of(c, i), step, op), digest_at(soak_of(c, device), step, op));
    return n;
}

/* One that agrees with more devices than `device` does; -1: none. */
static int better_one(const struct el_fleet_conductor *c, int device, size_t step, size_t op)
{
    int best = -1, most = agreeing(c, device, step, op), kind = 0;
    for (int i = 0; i < c->n_devices; i++) kind += soak_of(c, i) && same_kind(c, i, device);
    if (2 * most > kind) return -1;
    for (int i = 0; i < c->n_devices; i++) {
        if (!soak_of(c, i) || !same_kind(c, i, device)) continue;
        int n = agreeing(c, i, step, op);
        if (n > most) best = i, most = n;
    }
    return best;
}

bool el_fleet_differs(const struct el_fleet_conductor *c, int device, struct el_fleet_difference *found_p)
{
    const json_t *soak = soak_of(c, device), *steps = json_object_get(soak, "first");
    size_t n_ops = json_array_size(json_object_get(soak, "ops"));
    for (size_t step = 0; step < json_array_size(steps); step++)
        for (size_t op = 0; op < n_ops; op++) {
            int other = better_one(c, device, step, op);
            if (other < 0) continue;
            *found_p = (struct el_fleet_difference){
                .right = other, .op = (int)op, .step = (int)el_json_whole(json_array_get(steps, step), "step")};
            return true;
        }
    return false;
}

bool el_fleet_no_majority(const struct el_fleet_conductor *c)
{
    for (int a = 0; a < c->n_devices; a++)
        for (int b = a + 1; b < c->n_devices; b++) {
            const json_t *steps = json_object_get(soak_of(c, a), "first");
            size_t last = json_array_size(steps), n_ops = json_array_size(json_object_get(soak_of(c, a), "ops"));
            if (!last || !soak_of(c, b) || !same_kind(c, a, b)) continue;
            struct el_fleet_difference none;
            bool equal =
                !strcmp(digest_at(soak_of(c, a), last - 1, n_ops - 1), digest_at(soak_of(c, b), last - 1, n_ops - 1));
            if (!equal && !el_fleet_differs(c, a, &none) && !el_fleet_differs(c, b, &none)) return true;
        }
    return false;
}

int el_fleet_first_difference(const struct el_fleet_conductor *c, int device, int right, double values[2])
{
    const json_t *mine = el_json_at(c->devices[device].parts, "locate.list");
    const json_t *theirs = el_json_at(c->devices[right].parts, "locate.list");
    for (size_t i = 0; i < json_array_size(mine); i++) {
        const json_t *a = json_array_get(mine, i), *b = json_array_get(theirs, i);
        if (!b || json_equal(a, b)) continue;
        values[0] = json_is_number(a) ? json_number_value(a) : NAN;
        values[1] = json_is_number(b) ? json_number_value(b) : NAN;
        return (int)i;
    }
    return -1;
}
