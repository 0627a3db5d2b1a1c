/* Arrivals at collectives, from all ranks and back to them. What they come to is profiles/collectives.c's. */
#include "bench/job/measurement.h"

#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"

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

static json_t *times_of(const struct el_job_measurement *m, const struct el_collectives *c)
{
    json_t *times = json_array();
    for (size_t i = 0; i < c->n_steps * c->n; i++) {
        json_array_append_new(times, json_integer(el_clock_common(&m->begin, &m->end, c->spans[i].begin_ns)));
        json_array_append_new(times, json_integer(el_clock_common(&m->begin, &m->end, c->spans[i].end_ns)));
    }
    return times;
}

/* {"position", "n", "steps", "times": [begin, end, ...]} of one member with collectives. */
static enum el_status add_member(struct el_job_measurement *m, int i, json_t *parts)
{
    struct el_collectives c;
    int position = m->open.first + i;
    if (!el_job_recorder(m, i)) return EL_OK;
    EL_TRY(el_recorder_collectives(el_job_recorder(m, i), position, &c));
    m->too_many_collectives |= c.n_steps * c.n > TIMES_MAX;
    if (c.n > 0 && c.n_steps * c.n <= TIMES_MAX)
        json_array_append_new(parts, json_pack("{s:i, s:I, s:I, s:o}", "position", position, "n", (json_int_t)c.n,
                                               "steps", (json_int_t)c.n_steps, "times", times_of(m, &c)));
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
    if (!c->spans) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    for (size_t i = 0; i < c->n * c->n_steps; i++) {
        c->spans[i].begin_ns = json_integer_value(json_array_get(times, 2 * i));
        c->spans[i].end_ns = json_integer_value(json_array_get(times, 2 * i + 1));
    }
    return EL_OK;
}

/* `own`: of rank 0's first member, whose phases and bytes are everyone's. */
static enum el_status put_figures(const struct members *members, const struct el_collectives *own, int n_positions,
                                  json_t *figures)
{
    for (size_t k = 0; k < own->n; k++) {
        struct el_collective_figures f;
        json_t *late = json_array();
        EL_TRY(el_collectives_figures(members->list, members->n, k, &f));
        for (int p = 0; p < n_positions; p++) json_array_append_new(late, json_null());
        for (int m = 0; m < members->n; m++)
            json_array_set_new(late, (size_t)members->positions[m], el_json_real(f.late_s[m] * 1e3));
        json_array_append_new(figures,
                              json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "phase", el_phase_name(own->phases[k]),
                                        "bytes", el_json_real(own->bytes[k]), "skew_ms", el_json_real(f.skew_s * 1e3),
                                        "skew_median_ms", el_json_real(f.skew_median_s * 1e3), "transfer_ms",
                                        el_json_real(f.transfer_s * 1e3), "late_ms", late));
    }
    return EL_OK;
}

/* On rank 0: what the ranks gave, into the times of last arrivals and the figures. */
static enum el_status relate(struct el_job_measurement *m, const struct members *members, struct header *header,
                             int64_t **latest_p)
{
    const struct el_collectives *c = members->list;
    struct el_collectives own;
    bool agree = members->n > 1; /* members took part in the same operations, as many times */
    for (int i = 1; i < members->n; i++)
        agree = agree && members->list[i].n == c->n && members->list[i].n_steps == c->n_steps;
    if (!agree) return EL_OK;
    *latest_p = calloc(c->n * c->n_steps + 1, sizeof **latest_p);
    if (!*latest_p) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    *header = (struct header){.n_steps = c->n_steps, .n = c->n};
    el_collectives_latest(c, members->n, *latest_p);
    EL_TRY(el_recorder_collectives(el_job_recorder(m, 0), m->open.first, &own));
    enum el_status status =
        own.n == c->n ? put_figures(members, &own, m->job->trial->n_devices, m->collectives) : EL_OK;
    el_collectives_free(&own);
    return status;
}

static enum el_status analyse(struct el_job_measurement *m, const json_t *accounts, struct header *header,
                              int64_t **latest_p)
{
    struct members *members = calloc(1, sizeof *members);
    if (!members) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    enum el_status status = EL_OK;
    for (size_t r = 0; r < json_array_size(accounts); r++) {
        const json_t *parts = json_array_get(accounts, r);
        for (size_t i = 0; i < json_array_size(parts) && members->n < EL_MEMBERS_MAX && status == EL_OK; i++)
            status = read_member(json_array_get(parts, i), members);
    }
    if (status == EL_OK) status = relate(m, members, header, latest_p);
    for (int i = 0; i < members->n; i++) el_collectives_free(&members->list[i]);
    free(members);
    return status;
}

/* The times on this rank's own clock, to each of its members that took part. */
static enum el_status tell_recorders(const struct el_job_measurement *m, const struct header *header, int64_t *latest)
{
    size_t n = header->n * header->n_steps;
    for (size_t i = 0; i < n; i++) latest[i] = el_clock_own(&m->begin, &m->end, latest[i]);
    for (int i = 0; i < m->open.n && n > 0 && m->n_recorders; i++) {
        struct el_collectives c = {0};
        EL_TRY(el_recorder_collectives(el_job_recorder(m, i), m->open.first + i, &c));
        bool takes_part = c.n == header->n && c.n_steps == header->n_steps;
        el_collectives_free(&c);
        if (takes_part) EL_TRY(el_recorder_set_arrivals(el_job_recorder(m, i), m->open.first + i, latest, n));
    }
    return EL_OK;
}

/* Rank 0's times reach all; a rank without memory says so before anybody waits. */
static enum el_status share(const struct el_job *job, struct header *header, int64_t **latest_p)
{
    EL_TRY(el_bootstrap_broadcast(job->bootstrap, header, sizeof *header));
    size_t n = header->n * header->n_steps;
    if (!*latest_p) *latest_p = calloc(n + 1, sizeof **latest_p);
    EL_TRY(
        el_bootstrap_agree(job->bootstrap, *latest_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory")));
    return n ? el_bootstrap_broadcast(job->bootstrap, *latest_p, n * sizeof **latest_p) : EL_OK;
}

static enum el_status tell_all(struct el_job_measurement *m, const json_t *accounts, enum el_status status)
{
    const struct el_job *job = m->job;
    struct header header = {0};
    int64_t *latest = NULL;
    if (accounts && status == EL_OK) status = analyse(m, accounts, &header, &latest);
    status = el_bootstrap_agree(job->bootstrap, status);
    if (status == EL_OK) status = share(job, &header, &latest);
    if (status == EL_OK) status = tell_recorders(m, &header, latest);
    free(latest);
    return status;
}

enum el_status el_job_relate_collectives(struct el_job_measurement *m)
{
    json_t *parts = json_array(), *accounts = NULL;
    struct el_error error;
    enum el_status status = EL_OK;
    if (el_bootstrap_rank(m->job->bootstrap) == 0) m->collectives = json_array();
    for (int i = 0; i < m->open.n && status == EL_OK; i++) status = add_member(m, i, parts);
    EL_TRY(el_job_gather(m->job, status, parts, &accounts, &error));
    if (accounts && error.status != EL_OK) status = el_error_give(&error);
    status = tell_all(m, accounts, status);
    json_decref(accounts);
    return status;
}
