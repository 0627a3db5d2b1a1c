/* Gathers arrivals and windows; profiles/collectives.c evaluates them. */
#include "bench/job/measurement.h"

#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "profiles/ranks.h"

enum { TIMES_MAX = 1 << 17 }; /* per member; waits are not separated beyond it */

struct place {
    int position;
    size_t n; /* operations per step */
};

/* The members' places and times follow. */
struct header {
    int n_members; /* 0: nothing is known */
    bool in_stages;
    size_t n_steps, shown_step;
};

struct told {
    struct header header;
    struct place *places; /* [n_members] */
    int64_t *times;
};

/* A member's last arrivals [n_steps][n], then [n_steps] windows if in stages. */
static size_t times_of_member(const struct told *told, int i)
{
    return told->header.n_steps * (told->places[i].n + (told->header.in_stages ? 2 : 0));
}

static size_t times_of_all(const struct told *told)
{
    size_t n = 0;
    for (int i = 0; i < told->header.n_members; i++) n += times_of_member(told, i);
    return n;
}

struct members {
    int n;
    struct el_collectives *list; /* [n] */
    int *positions;              /* [n] */
};

/* ---- what a rank gives ---- */

static json_t *spans_json(const struct el_job_measurement *m, const struct el_span *spans, size_t n)
{
    json_t *times = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(times, json_integer(el_clock_common(&m->begin, &m->end, spans[i].begin_ns)));
        json_array_append_new(times, json_integer(el_clock_common(&m->begin, &m->end, spans[i].end_ns)));
    }
    return times;
}

/* Operations as texts, because JSON has no unsigned 64 bits. */
static json_t *member_json(const struct el_job_measurement *m, int position, const struct el_collectives *c)
{
    json_t *operations = json_array(), *links = json_array();
    for (size_t k = 0; k < c->n; k++) {
        json_array_append_new(operations, json_sprintf("%llx", (unsigned long long)c->ops[k].operation));
        json_array_append_new(links, json_integer(c->ops[k].link));
    }
    return json_pack("{s:i, s:I, s:I, s:o, s:o, s:o, s:o}", "position", position, "n", (json_int_t)c->n, "steps",
                     (json_int_t)c->n_steps, "times", spans_json(m, c->spans, c->n_steps * c->n), "operations",
                     operations, "links", links, "passes", spans_json(m, c->passes, c->n_steps));
}

static enum el_status add_member(struct el_job_measurement *m, int segment, int i, json_t *parts)
{
    struct el_collectives c;
    int position = m->open.first + i;
    if (!el_job_recorder(m, i)) return EL_OK;
    EL_TRY(el_recorder_collectives(el_job_recorder(m, i), position, segment, &c));
    m->too_many_collectives |= c.n_steps * c.n > TIMES_MAX;
    if (c.n > 0 && c.n_steps * c.n <= TIMES_MAX) json_array_append_new(parts, member_json(m, position, &c));
    el_collectives_free(&c);
    return EL_OK;
}

/* ---- what rank 0 makes of it ---- */

static struct el_span *read_spans(const json_t *times, size_t n)
{
    struct el_span *spans = calloc(n + 1, sizeof *spans);
    for (size_t i = 0; spans && i < n; i++) {
        spans[i].begin_ns = json_integer_value(json_array_get(times, 2 * i));
        spans[i].end_ns = json_integer_value(json_array_get(times, 2 * i + 1));
    }
    return spans;
}

static enum el_status read_member(const json_t *part, struct members *members)
{
    struct el_collectives *c = &members->list[members->n];
    const json_t *times = json_object_get(part, "times"), *operations = json_object_get(part, "operations");
    c->n = (size_t)json_integer_value(json_object_get(part, "n"));
    c->n_steps = (size_t)json_integer_value(json_object_get(part, "steps"));
    if (json_array_size(times) != 2 * c->n * c->n_steps) return el_fail(EL_ERR_INTERNAL, "collectives: times are lost");
    members->positions[members->n++] = (int)json_integer_value(json_object_get(part, "position"));
    c->spans = read_spans(times, c->n * c->n_steps);
    c->passes = read_spans(json_object_get(part, "passes"), c->n_steps);
    c->ops = calloc(c->n + 1, sizeof *c->ops);
    if (!c->spans || !c->passes || !c->ops) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    for (size_t k = 0; k < c->n; k++) {
        const char *text = json_string_value(json_array_get(operations, k));
        c->ops[k].operation = text ? strtoull(text, NULL, 16) : 0;
        c->ops[k].link = (enum el_op_link)json_integer_value(json_array_get(json_object_get(part, "links"), k));
    }
    return EL_OK;
}

/* Phases and bytes are `own`'s. Skips messages. */
static enum el_status put_figures(const struct members *members, const struct el_collectives *own, const int *matches,
                                  int n_positions, double *late_s, json_t *figures)
{
    for (size_t k = 0; k < own->n; k++) {
        struct el_collective_figures f;
        const int *match = matches + k * (size_t)members->n;
        json_t *late;
        if (own->ops[k].link != EL_LINK_NONE) continue;
        EL_TRY(el_collectives_figures(members->list, members->n, match, &f, late_s));
        late = json_array();
        for (int p = 0; p < n_positions; p++) json_array_append_new(late, json_null());
        for (int i = 0; i < members->n; i++)
            if (match[i] >= 0) json_array_set_new(late, (size_t)members->positions[i], el_json_real(late_s[i] * 1e3));
        json_array_append_new(
            figures,
            json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "phase", el_phase_name(own->ops[k].phase), "bytes",
                      el_json_real(own->ops[k].bytes), "bus_bytes", el_json_real(own->ops[k].bus_bytes), "skew_ms",
                      el_json_real(f.skew_s * 1e3), "skew_median_ms", el_json_real(f.skew_median_s * 1e3),
                      "transfer_ms", el_json_real(f.transfer_s * 1e3), "late_ms", late));
    }
    return EL_OK;
}

/* Over all stages that member `m`'s data go through. */
static struct el_span window_of(const struct el_layout *layout, const struct members *members, int m, size_t step)
{
    struct el_span window = {INT64_MAX, INT64_MIN};
    for (int i = 0; i < members->n; i++) {
        struct el_span pass = members->list[i].passes[step];
        const struct el_spot own = el_layout_spot(layout, members->positions[m]);
        const struct el_spot other = el_layout_spot(layout, members->positions[i]);
        if (other.at[EL_AXIS_DATA] != own.at[EL_AXIS_DATA] || other.at[EL_AXIS_SHARD] != own.at[EL_AXIS_SHARD])
            continue;
        if (pass.end_ns <= pass.begin_ns) continue;
        if (pass.begin_ns < window.begin_ns) window.begin_ns = pass.begin_ns;
        if (pass.end_ns > window.end_ns) window.end_ns = pass.end_ns;
    }
    return window.begin_ns < window.end_ns ? window : (struct el_span){0};
}

static size_t median_step(const int64_t *windows, size_t n_steps)
{
    for (size_t i = 0; i < n_steps; i++) {
        int64_t length = windows[2 * i + 1] - windows[2 * i];
        size_t shorter = 0;
        for (size_t k = 0; k < n_steps; k++) {
            int64_t other = windows[2 * k + 1] - windows[2 * k];
            shorter += other < length || (other == length && k < i);
        }
        if (shorter == n_steps / 2) return i;
    }
    return 0;
}

static bool has_collectives(const struct el_collectives *member)
{
    for (size_t k = 0; k < member->n; k++)
        if (member->ops[k].link == EL_LINK_NONE) return true;
    return false;
}

static enum el_status put_arrivals(const struct members *members, json_t *arrivals)
{
    struct el_rank_row *rows = calloc((size_t)members->n, sizeof *rows);
    if (!rows) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    enum el_status status = el_ranks_arrivals(members->list, members->n, rows, NULL);
    for (int i = 0; i < members->n && status == EL_OK; i++) {
        if (!has_collectives(&members->list[i])) continue;
        while (json_array_size(arrivals) <= (size_t)members->positions[i]) json_array_append_new(arrivals, json_null());
        json_array_set_new(arrivals, (size_t)members->positions[i],
                           el_json_of(EL_KEY("last_pct", rows[i].last_pct), EL_KEY("late_ms", 1e3 * rows[i].late_s),
                                      EL_KEY("late_low_ms", 1e3 * rows[i].late_low_s),
                                      EL_KEY("caused_ms", 1e3 * rows[i].caused_s)));
    }
    free(rows);
    return status;
}

static enum el_status fill_figures(struct el_job_measurement *m, int segment, const struct members *members,
                                   const int *matches, size_t n)
{
    struct el_collectives own = {0};
    double *late_s = calloc((size_t)members->n, sizeof *late_s);
    if (!late_s) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    enum el_status status = el_recorder_collectives(el_job_recorder(m, 0), m->open.first, segment, &own);
    if (status == EL_OK && own.n == n)
        status = put_figures(members, &own, matches, m->job->trial->n_devices, late_s, m->collectives);
    el_collectives_free(&own);
    free(late_s);
    return status;
}

static enum el_status fill_times(struct el_job_measurement *m, int segment, const struct members *members,
                                 struct told *told)
{
    struct header *header = &told->header;
    int64_t *times = told->times;
    enum el_status status = EL_OK;
    for (int i = 0; i < members->n && status == EL_OK; i++) {
        int *matches = el_collectives_match(members->list, members->n, i);
        int64_t *windows = times + header->n_steps * told->places[i].n;
        if (!matches) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
        el_collectives_latest(members->list, members->n, i, matches, times);
        for (size_t s = 0; s < header->n_steps && header->in_stages; s++) {
            struct el_span window = window_of(&m->open.layout, members, i, s);
            windows[2 * s] = window.begin_ns;
            windows[2 * s + 1] = window.end_ns;
        }
        if (i == 0 && header->in_stages) header->shown_step = median_step(windows, header->n_steps);
        if (segment == EL_RECORDER_MEASURED && members->positions[i] == m->open.first)
            status = fill_figures(m, segment, members, matches, told->places[i].n);
        free(matches);
        times += times_of_member(told, i);
    }
    return status;
}

static enum el_status relate(struct el_job_measurement *m, int segment, const struct members *members,
                             struct told *told)
{
    bool agree = members->n > 1; /* equal numbers of steps */
    for (int i = 1; i < members->n; i++) agree = agree && members->list[i].n_steps == members->list[0].n_steps;
    if (!agree) return EL_OK;
    told->header = (struct header){
        .n_members = members->n, .in_stages = m->open.layout.n[EL_AXIS_STAGE] > 1, .n_steps = members->list[0].n_steps};
    told->places = calloc((size_t)members->n, sizeof *told->places);
    if (!told->places) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    for (int i = 0; i < members->n; i++)
        told->places[i] = (struct place){.position = members->positions[i], .n = members->list[i].n};
    told->times = calloc(times_of_all(told) + 1, sizeof *told->times);
    if (!told->times) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    if (segment == EL_RECORDER_MEASURED) EL_TRY(put_arrivals(members, m->arrivals));
    return fill_times(m, segment, members, told);
}

static enum el_status analyse(struct el_job_measurement *m, int segment, const json_t *accounts, struct told *told)
{
    size_t n = (size_t)m->job->trial->n_devices;
    struct members members = {.list = calloc(n, sizeof *members.list), .positions = calloc(n, sizeof(int))};
    enum el_status status =
        members.list && members.positions ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    EL_EACH(parts, accounts)
        for (size_t i = 0; i < json_array_size(parts) && (size_t)members.n < n && status == EL_OK; i++)
            status = read_member(json_array_get(parts, i), &members);
    if (status == EL_OK) status = relate(m, segment, &members, told);
    for (int i = 0; i < members.n; i++) el_collectives_free(&members.list[i]);
    free(members.list);
    free(members.positions);
    return status;
}

/* ---- what all ranks are told ---- */

static enum el_status tell_recorder(const struct el_job_measurement *m, int segment, const struct told *told, int k,
                                    int64_t *times)
{
    const struct header *header = &told->header;
    const struct place *place = &told->places[k];
    int i = place->position - m->open.first;
    size_t n_latest = header->n_steps * place->n, n_windows = header->in_stages ? header->n_steps : 0;
    struct el_collectives c = {0};
    if (i < 0 || i >= m->open.n || !el_job_recorder(m, i)) return EL_OK;
    for (size_t t = 0; t < times_of_member(told, k); t++) times[t] = el_clock_own(&m->begin, &m->end, times[t]);
    EL_TRY(el_recorder_collectives(el_job_recorder(m, i), place->position, segment, &c));
    bool takes_part = c.n == place->n && c.n_steps == header->n_steps;
    el_collectives_free(&c);
    if (!takes_part) return EL_OK;
    struct el_span *windows = calloc(n_windows + 1, sizeof *windows);
    if (!windows) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    for (size_t s = 0; s < n_windows; s++)
        windows[s] = (struct el_span){times[n_latest + 2 * s], times[n_latest + 2 * s + 1]};
    enum el_status status = el_recorder_tell(el_job_recorder(m, i), place->position, segment, times, n_latest,
                                             header->in_stages ? windows : NULL, n_windows);
    free(windows);
    return status;
}

static enum el_status tell_recorders(struct el_job_measurement *m, int segment, const struct told *told)
{
    int64_t *times = told->times;
    for (int k = 0; k < told->header.n_members && m->n_recorders; k++) {
        EL_TRY(tell_recorder(m, segment, told, k, times));
        times += times_of_member(told, k);
    }
    if (segment == EL_RECORDER_MEASURED) m->shown_step = told->header.shown_step;
    return EL_OK;
}

/* A rank without memory reports it before anybody waits. */
static enum el_status share_array(const struct el_job *job, void *array_p, size_t n, size_t size)
{
    void *array;
    memcpy(&array, array_p, sizeof array);
    if (!array) array = calloc(n + 1, size);
    memcpy(array_p, &array, sizeof array);
    EL_TRY(el_bootstrap_agree(job->bootstrap, array ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory")));
    return n ? el_bootstrap_broadcast(job->bootstrap, array, n * size) : EL_OK;
}

static enum el_status share(const struct el_job *job, struct told *told)
{
    EL_TRY(el_bootstrap_broadcast(job->bootstrap, &told->header, sizeof told->header));
    EL_TRY(share_array(job, &told->places, (size_t)told->header.n_members, sizeof *told->places));
    return share_array(job, &told->times, times_of_all(told), sizeof *told->times);
}

static enum el_status tell_all(struct el_job_measurement *m, int segment, const json_t *accounts, enum el_status status)
{
    const struct el_job *job = m->job;
    struct told told = {.places = NULL};
    if (accounts && status == EL_OK) status = analyse(m, segment, accounts, &told);
    status = el_bootstrap_agree(job->bootstrap, status);
    if (status == EL_OK) status = share(job, &told);
    if (status == EL_OK) status = tell_recorders(m, segment, &told);
    free(told.places);
    free(told.times);
    return status;
}

static enum el_status relate_segment(struct el_job_measurement *m, int segment)
{
    json_t *parts = json_array(), *accounts = NULL;
    struct el_error error;
    enum el_status status = EL_OK;
    for (int i = 0; i < m->open.n && status == EL_OK; i++) status = add_member(m, segment, i, parts);
    EL_TRY(el_job_gather(m->job, status, parts, &accounts, &error));
    if (accounts && error.status != EL_OK) status = el_error_give(&error);
    status = tell_all(m, segment, accounts, status);
    json_decref(accounts);
    return status;
}

enum el_status el_job_relate_collectives(struct el_job_measurement *m)
{
    if (el_bootstrap_rank(m->job->bootstrap) == 0) {
        m->collectives = json_array();
        m->arrivals = json_array();
    }
    EL_TRY(relate_segment(m, EL_RECORDER_MEASURED));
    /* A stage that waits to receive is idle, also in blocks without communication. */
    if (m->open.layout.n[EL_AXIS_STAGE] == 1) return EL_OK;
    EL_TRY(relate_segment(m, el_job_segment(EL_SEGMENT_ON)));
    return relate_segment(m, el_job_segment(EL_SEGMENT_OFF));
}
