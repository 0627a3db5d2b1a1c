/* Arrivals at collectives, from all ranks and back to them. What they come to is profiles/collectives.c's. */
#include "bench/job/collectives.h"

#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/job/gather.h"

enum { TIMES_MAX = 1 << 17 }; /* of one member: beyond, waits are not separated */

/* What rank 0 tells all: n_steps * n times follow. */
struct header {
    size_t n_steps, n;
};

struct members {
    struct el_collectives list[EL_MEMBERS_MAX];
    int positions[EL_MEMBERS_MAX];
    int n;
};

static json_t *times_of(const struct el_job_recorders *r, const struct el_collectives *c)
{
    json_t *times = json_array();
    for (size_t i = 0; i < c->n_steps * c->n; i++) {
        json_array_append_new(times, json_integer(el_clock_common(&r->begin, &r->end, c->spans[i].begin_ns)));
        json_array_append_new(times, json_integer(el_clock_common(&r->begin, &r->end, c->spans[i].end_ns)));
    }
    return times;
}

/* {"position", "n", "steps", "phases", "bytes", "times": [begin, end, ...]} of one member with collectives. */
static enum el_status add_member(struct el_job_recorders *r, int i, json_t *parts)
{
    struct el_collectives c;
    if (!r->recorders[i]) return EL_OK;
    EL_TRY(el_recorder_collectives(r->recorders[i], r->first + i, &c));
    r->too_many |= c.n_steps * c.n > TIMES_MAX;
    if (c.n > 0 && c.n_steps * c.n <= TIMES_MAX) {
        json_t *phases = json_array(), *bytes = json_array();
        for (size_t k = 0; k < c.n; k++) {
            json_array_append_new(phases, json_integer(c.phases[k]));
            json_array_append_new(bytes, json_real(c.bytes[k]));
        }
        json_array_append_new(parts, json_pack("{s:i, s:I, s:I, s:o, s:o, s:o}", "position", r->first + i, "n",
                                               (json_int_t)c.n, "steps", (json_int_t)c.n_steps, "phases", phases,
                                               "bytes", bytes, "times", times_of(r, &c)));
    }
    el_collectives_free(&c);
    return EL_OK;
}

static enum el_status read_member(const json_t *part, struct members *members)
{
    struct el_collectives *c = &members->list[members->n];
    const json_t *times = json_object_get(part, "times");
    c->n = (size_t)json_integer_value(json_object_get(part, "n"));
    c->n_steps = (size_t)json_integer_value(json_object_get(part, "steps"));
    if (json_array_size(times) != 2 * c->n * c->n_steps) return el_fail(EL_ERR_INTERNAL, "collectives: times are lost");
    members->positions[members->n++] = (int)json_integer_value(json_object_get(part, "position"));
    c->spans = calloc(c->n * c->n_steps + 1, sizeof *c->spans);
    c->phases = calloc(c->n + 1, sizeof *c->phases);
    c->bytes = calloc(c->n + 1, sizeof *c->bytes);
    if (!c->spans || !c->phases || !c->bytes) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    for (size_t i = 0; i < c->n * c->n_steps; i++) {
        c->spans[i].begin_ns = json_integer_value(json_array_get(times, 2 * i));
        c->spans[i].end_ns = json_integer_value(json_array_get(times, 2 * i + 1));
    }
    for (size_t k = 0; k < c->n; k++) {
        c->phases[k] = (enum el_phase)json_integer_value(json_array_get(json_object_get(part, "phases"), k));
        c->bytes[k] = json_number_value(json_array_get(json_object_get(part, "bytes"), k));
    }
    return EL_OK;
}

static enum el_status read_members(const json_t *accounts, struct members *members)
{
    for (size_t r = 0; r < json_array_size(accounts); r++) {
        const json_t *parts = json_array_get(accounts, r);
        for (size_t i = 0; i < json_array_size(parts) && members->n < EL_MEMBERS_MAX; i++)
            EL_TRY(read_member(json_array_get(parts, i), members));
    }
    return EL_OK;
}

/* Members that took part in the same operations, as many times. */
static bool agree(const struct members *members)
{
    for (int m = 1; m < members->n; m++)
        if (members->list[m].n != members->list[0].n || members->list[m].n_steps != members->list[0].n_steps)
            return false;
    return members->n > 1;
}

static enum el_status put_figures(const struct members *members, int n_positions, json_t *figures)
{
    for (size_t k = 0; k < members->list[0].n; k++) {
        struct el_collective_figures f;
        json_t *late = json_array();
        EL_TRY(el_collectives_figures(members->list, members->n, k, &f));
        for (int p = 0; p < n_positions; p++) json_array_append_new(late, json_null());
        for (int m = 0; m < members->n; m++)
            json_array_set_new(late, (size_t)members->positions[m], el_json_real(f.late_s[m] * 1e3));
        json_array_append_new(
            figures, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "phase", el_phase_name(members->list[0].phases[k]),
                               "bytes", el_json_real(members->list[0].bytes[k]), "skew_ms",
                               el_json_real(f.skew_s * 1e3), "skew_median_ms", el_json_real(f.skew_median_s * 1e3),
                               "transfer_ms", el_json_real(f.transfer_s * 1e3), "late_ms", late));
    }
    return EL_OK;
}

/* On rank 0: everything that the ranks gave, into the times of last arrivals and the figures. */
static enum el_status analyse(const struct el_job *job, const json_t *accounts, struct header *header,
                              int64_t **latest_p, json_t *figures)
{
    struct members *members = calloc(1, sizeof *members);
    if (!members) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    enum el_status status = read_members(accounts, members);
    if (status == EL_OK && agree(members)) {
        const struct el_collectives *c = members->list;
        *latest_p = calloc(c->n * c->n_steps + 1, sizeof **latest_p);
        if (*latest_p) {
            *header = (struct header){.n_steps = c->n_steps, .n = c->n};
            el_collectives_latest(c, members->n, *latest_p);
            status = put_figures(members, job->trial->n_devices, figures);
        } else {
            status = el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
        }
    }
    for (int m = 0; m < members->n; m++) el_collectives_free(&members->list[m]);
    free(members);
    return status;
}

/* The times on this rank's own clock, to each of its members that took part. */
static enum el_status tell_recorders(const struct el_job_recorders *r, const struct header *header, int64_t *latest)
{
    size_t n = header->n * header->n_steps;
    for (size_t i = 0; i < n; i++) latest[i] = el_clock_own(&r->begin, &r->end, latest[i]);
    for (int i = 0; i < r->n && n > 0; i++) {
        struct el_collectives c = {0};
        if (!r->recorders[i]) continue;
        EL_TRY(el_recorder_collectives(r->recorders[i], r->first + i, &c));
        bool takes_part = c.n == header->n && c.n_steps == header->n_steps;
        el_collectives_free(&c);
        if (takes_part) EL_TRY(el_recorder_set_arrivals(r->recorders[i], r->first + i, latest, n));
    }
    return EL_OK;
}

/* Rank 0's times reach all; whoever lacks memory says so before anybody waits. */
static enum el_status share(const struct el_job *job, struct header *header, int64_t **latest_p)
{
    EL_TRY(el_bootstrap_broadcast(job->bootstrap, header, sizeof *header));
    size_t n = header->n * header->n_steps;
    if (!*latest_p) *latest_p = calloc(n + 1, sizeof **latest_p);
    EL_TRY(
        el_bootstrap_agree(job->bootstrap, *latest_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory")));
    return n ? el_bootstrap_broadcast(job->bootstrap, *latest_p, n * sizeof **latest_p) : EL_OK;
}

enum el_status el_job_relate_collectives(const struct el_job *job, struct el_job_recorders *recorders,
                                         json_t **figures_p)
{
    json_t *parts = json_array(), *accounts = NULL, *figures = json_array();
    struct el_error error;
    struct header header = {0};
    int64_t *latest = NULL;
    enum el_status status = EL_OK;
    for (int i = 0; i < recorders->n && status == EL_OK; i++) status = add_member(recorders, i, parts);
    enum el_status gathered = el_job_gather(job, status, parts, &accounts, &error);
    if (gathered == EL_OK) {
        status = accounts
                     ? error.status == EL_OK ? analyse(job, accounts, &header, &latest, figures) : el_error_give(&error)
                     : status;
        status = el_bootstrap_agree(job->bootstrap, status);
        if (status == EL_OK) status = share(job, &header, &latest);
        if (status == EL_OK) status = tell_recorders(recorders, &header, latest);
    }
    json_decref(accounts);
    free(latest);
    if (gathered != EL_OK || status != EL_OK || el_bootstrap_rank(job->bootstrap) != 0) {
        json_decref(figures);
        figures = NULL;
    }
    *figures_p = figures;
    return gathered != EL_OK ? gathered : status;
}
