/* Arrivals at collectives and messages, and where a model is in stages its windows, from all ranks and back to them.
 * What they come to is profiles/collectives.c's. */
#include "bench/job/measurement.h"

#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"

enum { TIMES_MAX = 1 << 17 }; /* of one member: beyond, waits are not separated */

/* What rank 0 tells all; behind it the members' times, one after the other. */
struct header {
    int n_members; /* 0: nothing is known */
    bool in_stages;
    size_t n_steps, shown_step;
    int positions[EL_MEMBERS_MAX];
    size_t n[EL_MEMBERS_MAX]; /* operations a step */
};

/* Of one member: when the last one arrived [n_steps][n], then [n_steps] windows where the model is in stages. */
static size_t times_of_member(const struct header *header, int i)
{
    return header->n_steps * (header->n[i] + (header->in_stages ? 2 : 0));
}

static size_t times_of_all(const struct header *header)
{
    size_t n = 0;
    for (int i = 0; i < header->n_members; i++) n += times_of_member(header, i);
    return n;
}

struct members {
    struct el_collectives list[EL_MEMBERS_MAX];
    int positions[EL_MEMBERS_MAX];
    int n;
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

/* Numbers of operations as texts: JSON has no 64 bits without a sign. */
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

/* Of rank 0's first member, whose phases and bytes are `own`'s. Messages are no collectives. */
static enum el_status put_figures(const struct members *members, const struct el_collectives *own, const int *matches,
                                  int n_positions, json_t *figures)
{
    for (size_t k = 0; k < own->n; k++) {
        struct el_collective_figures f;
        const int *match = matches + k * (size_t)members->n;
        json_t *late;
        if (own->ops[k].link != EL_LINK_NONE) continue;
        EL_TRY(el_collectives_figures(members->list, members->n, match, &f));
        late = json_array();
        for (int p = 0; p < n_positions; p++) json_array_append_new(late, json_null());
        for (int i = 0; i < members->n; i++)
            if (match[i] >= 0) json_array_set_new(late, (size_t)members->positions[i], el_json_real(f.late_s[i] * 1e3));
        json_array_append_new(
            figures, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "phase", el_phase_name(own->ops[k].phase), "bytes",
                               el_json_real(own->ops[k].bytes), "skew_ms", el_json_real(f.skew_s * 1e3),
                               "skew_median_ms", el_json_real(f.skew_median_s * 1e3), "transfer_ms",
                               el_json_real(f.transfer_s * 1e3), "late_ms", late));
    }
    return EL_OK;
}

/* From the first forward to the last backward of all stages through which member `m`'s data go. */
static struct el_span window_of(const struct el_layout *layout, const struct members *members, int m, size_t step)
{
    struct el_span window = {INT64_MAX, INT64_MIN};
    for (int i = 0; i < members->n; i++) {
        struct el_span pass = members->list[i].passes[step];
        if (layout->devices[members->positions[i]].at[EL_AXIS_DATA] !=
            layout->devices[members->positions[m]].at[EL_AXIS_DATA])
            continue;
        if (pass.end_ns <= pass.begin_ns) continue;
        if (pass.begin_ns < window.begin_ns) window.begin_ns = pass.begin_ns;
        if (pass.end_ns > window.end_ns) window.end_ns = pass.end_ns;
    }
    return window.begin_ns < window.end_ns ? window : (struct el_span){0};
}

/* The step whose first member's window is the median. */
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

static enum el_status fill_times(struct el_job_measurement *m, int segment, const struct members *members,
                                 struct header *header, int64_t *times)
{
    struct el_collectives own = {0};
    enum el_status status = EL_OK;
    for (int i = 0; i < members->n && status == EL_OK; i++) {
        int *matches = el_collectives_match(members->list, members->n, i);
        int64_t *windows = times + header->n_steps * header->n[i];
        if (!matches) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
        el_collectives_latest(members->list, members->n, i, matches, times);
        for (size_t s = 0; s < header->n_steps && header->in_stages; s++) {
            struct el_span window = window_of(&m->open.layout, members, i, s);
            windows[2 * s] = window.begin_ns;
            windows[2 * s + 1] = window.end_ns;
        }
        if (i == 0 && header->in_stages) header->shown_step = median_step(windows, header->n_steps);
        if (segment == EL_RECORDER_MEASURED && members->positions[i] == m->open.first) {
            status = el_recorder_collectives(el_job_recorder(m, 0), m->open.first, segment, &own);
            if (status == EL_OK && own.n == header->n[i])
                status = put_figures(members, &own, matches, m->job->trial->n_devices, m->collectives);
            el_collectives_free(&own);
        }
        free(matches);
        times += times_of_member(header, i);
    }
    return status;
}

/* On rank 0: what the ranks gave, into the times of last arrivals and the figures. */
static enum el_status relate(struct el_job_measurement *m, int segment, const struct members *members,
                             struct header *header, int64_t **times_p)
{
    bool agree = members->n > 1; /* members have as many steps */
    for (int i = 1; i < members->n; i++) agree = agree && members->list[i].n_steps == members->list[0].n_steps;
    if (!agree) return EL_OK;
    struct header found = {
        .n_members = members->n, .in_stages = m->open.layout.n[EL_AXIS_STAGE] > 1, .n_steps = members->list[0].n_steps};
    for (int i = 0; i < members->n; i++) {
        found.positions[i] = members->positions[i];
        found.n[i] = members->list[i].n;
    }
    *times_p = calloc(times_of_all(&found) + 1, sizeof **times_p);
    if (!*times_p) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    EL_TRY(fill_times(m, segment, members, &found, *times_p));
    *header = found;
    return EL_OK;
}

static enum el_status analyse(struct el_job_measurement *m, int segment, const json_t *accounts, struct header *header,
                              int64_t **times_p)
{
    struct members *members = calloc(1, sizeof *members);
    if (!members) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    enum el_status status = EL_OK;
    EL_EACH(parts, accounts)
        for (size_t i = 0; i < json_array_size(parts) && members->n < EL_MEMBERS_MAX && status == EL_OK; i++)
            status = read_member(json_array_get(parts, i), members);
    if (status == EL_OK) status = relate(m, segment, members, header, times_p);
    for (int i = 0; i < members->n; i++) el_collectives_free(&members->list[i]);
    free(members);
    return status;
}

/* ---- what all ranks are told ---- */

/* The member's times on this rank's own clock. */
static enum el_status tell_recorder(const struct el_job_measurement *m, int segment, const struct header *header, int k,
                                    int64_t *times)
{
    int i = header->positions[k] - m->open.first;
    size_t n_latest = header->n_steps * header->n[k], n_windows = header->in_stages ? header->n_steps : 0;
    struct el_collectives c = {0};
    if (i < 0 || i >= m->open.n || !el_job_recorder(m, i)) return EL_OK;
    for (size_t t = 0; t < times_of_member(header, k); t++) times[t] = el_clock_own(&m->begin, &m->end, times[t]);
    EL_TRY(el_recorder_collectives(el_job_recorder(m, i), header->positions[k], segment, &c));
    bool takes_part = c.n == header->n[k] && c.n_steps == header->n_steps;
    el_collectives_free(&c);
    if (!takes_part) return EL_OK;
    struct el_span *windows = calloc(n_windows + 1, sizeof *windows);
    if (!windows) return el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory");
    for (size_t s = 0; s < n_windows; s++)
        windows[s] = (struct el_span){times[n_latest + 2 * s], times[n_latest + 2 * s + 1]};
    enum el_status status = el_recorder_tell(el_job_recorder(m, i), header->positions[k], segment, times, n_latest,
                                             header->in_stages ? windows : NULL, n_windows);
    free(windows);
    return status;
}

static enum el_status tell_recorders(struct el_job_measurement *m, int segment, const struct header *header,
                                     int64_t *times)
{
    for (int k = 0; k < header->n_members && m->n_recorders; k++) {
        EL_TRY(tell_recorder(m, segment, header, k, times));
        times += times_of_member(header, k);
    }
    if (segment == EL_RECORDER_MEASURED) m->shown_step = header->shown_step;
    return EL_OK;
}

/* Rank 0's times reach all; a rank without memory says so before anybody waits. */
static enum el_status share(const struct el_job *job, struct header *header, int64_t **times_p)
{
    EL_TRY(el_bootstrap_broadcast(job->bootstrap, header, sizeof *header));
    size_t n = times_of_all(header);
    if (!*times_p) *times_p = calloc(n + 1, sizeof **times_p);
    EL_TRY(
        el_bootstrap_agree(job->bootstrap, *times_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "collectives: no memory")));
    return n ? el_bootstrap_broadcast(job->bootstrap, *times_p, n * sizeof **times_p) : EL_OK;
}

static enum el_status tell_all(struct el_job_measurement *m, int segment, const json_t *accounts, enum el_status status)
{
    const struct el_job *job = m->job;
    struct header header = {0};
    int64_t *times = NULL;
    if (accounts && status == EL_OK) status = analyse(m, segment, accounts, &header, &times);
    status = el_bootstrap_agree(job->bootstrap, status);
    if (status == EL_OK) status = share(job, &header, &times);
    if (status == EL_OK) status = tell_recorders(m, segment, &header, times);
    free(times);
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
    if (el_bootstrap_rank(m->job->bootstrap) == 0) m->collectives = json_array();
    EL_TRY(relate_segment(m, EL_RECORDER_MEASURED));
    /* A stage that waits to receive is idle, in blocks with communication off too. */
    if (m->open.layout.n[EL_AXIS_STAGE] == 1) return EL_OK;
    EL_TRY(relate_segment(m, el_job_segment(EL_SEGMENT_ON)));
    return relate_segment(m, el_job_segment(EL_SEGMENT_OFF));
}
