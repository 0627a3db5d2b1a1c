/* Writes a job's traces as one. */
#include "profiles/merge.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/gzip.h"
#include "profiles/json_scan.h"
#include "runtime/base/files.h"
#include "runtime/base/grow.h"

enum { PROCESS_TEXT_BYTES = 64, IDS_BITS = 40 };

/* A trace's process, with a number of its own. */
struct process {
    char pid[PROCESS_TEXT_BYTES], name[PROCESS_TEXT_BYTES];
};

struct merge {
    const struct el_merge_job *job;
    FILE *file;
    size_t t; /* being copied */
    struct process *processes;
    size_t n, room, first; /* first: of this trace */
    bool comma;
    struct el_merge_figures figures;
};

static void next_event(struct merge *m)
{
    fputs(m->comma ? ",\n" : "\n", m->file);
    m->comma = true;
}

static void put_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', file);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
    }
    fputc('"', file);
}

/* Nanoseconds as the format's microseconds. */
static void put_us(FILE *file, int64_t ns)
{
    const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    fprintf(file, "%s%" PRIu64 ".%03" PRIu64, ns < 0 ? "-" : "", size / 1000, size % 1000);
}

static int64_t first_ones_time(const struct merge *m, int64_t ns)
{
    return el_relation_time(m->job->relation, m->t, ns) + m->job->relation->origin_ns;
}

/* ---- the traces' own events ---- */

static size_t process_of(struct merge *m, struct el_scan_text pid)
{
    const size_t n = pid.n < PROCESS_TEXT_BYTES - 1 ? pid.n : PROCESS_TEXT_BYTES - 1;
    for (size_t i = m->first; i < m->n; i++)
        if (strlen(m->processes[i].pid) == n && !memcmp(m->processes[i].pid, pid.at, n)) return i + 1;
    if (!EL_GROW(m->processes, m->room, m->n + 1)) return 0;
    struct process *process = &m->processes[m->n++];
    *process = (struct process){.name = ""};
    memcpy(process->pid, pid.at, n);
    return m->n;
}

/* Flows of two traces may have the same number. */
static void put_id(const struct merge *m, struct el_scan_text value)
{
    int64_t id;
    if (el_scan_whole(value, &id) && id >= 0 && id >> IDS_BITS == 0)
        fprintf(m->file, "%" PRId64, id + ((int64_t)(m->t + 1) << IDS_BITS));
    else
        fprintf(m->file, "\"%zu:%.*s\"", m->t, (int)el_scan_unquoted(value).n, el_scan_unquoted(value).at);
}

struct event {
    struct el_scan_text ph, name, pid, args;
};

static struct event look_at(struct el_scan_text text)
{
    struct event event = {.ph = {"", 0}, .name = {"", 0}, .pid = {"", 0}, .args = {"", 0}};
    struct el_scan_text key, value;
    while (el_scan_member(&text, &key, &value) > 0) {
        if (el_scan_is(key, "ph")) event.ph = el_scan_string(value);
        if (el_scan_is(key, "name")) event.name = el_scan_string(value);
        if (el_scan_is(key, "pid")) event.pid = value;
        if (el_scan_is(key, "args")) event.args = value;
    }
    return event;
}

/* Names and places of processes are written anew. */
static bool take_name(struct merge *m, const struct event *event, size_t pid)
{
    struct el_scan_text rest = event->args, key, value;
    if (!el_scan_is(event->ph, "M")) return false;
    if (el_scan_is(event->name, "process_sort_index")) return true;
    if (!el_scan_is(event->name, "process_name")) return false;
    if (pid && rest.n && *rest.at == '{' && el_scan_member(&rest, &key, &value) > 0) {
        value = el_scan_string(value);
        size_t n = 0; /* escapes lose their backslash: put_text sets it */
        for (size_t i = 0; i < value.n && n + 1 < PROCESS_TEXT_BYTES; i++) {
            if (value.at[i] == '\\' && i + 1 < value.n) i++;
            m->processes[pid - 1].name[n++] = value.at[i];
        }
        m->processes[pid - 1].name[n] = 0;
    }
    return true;
}

static enum el_status copy_event(void *of, struct el_scan_text text)
{
    struct merge *m = of;
    const struct event event = look_at(text);
    const size_t pid = event.pid.n ? process_of(m, event.pid) : 0;
    const bool flows = event.ph.n == 1 && strchr("stf", *event.ph.at);
    struct el_scan_text key, value;
    const char *comma = "";
    if (event.pid.n && !pid) return el_fail(EL_ERR_HOST_MEMORY, "no memory to merge traces");
    if (take_name(m, &event, pid) || event.ph.n == 0) return EL_OK;
    next_event(m);
    fputc('{', m->file);
    while (el_scan_member(&text, &key, &value) > 0) {
        int64_t ns;
        fprintf(m->file, "%s\"%.*s\": ", comma, (int)key.n, key.at);
        comma = ", ";
        if (el_scan_is(key, "ts") && el_scan_thousandths(el_scan_unquoted(value), &ns))
            put_us(m->file, first_ones_time(m, ns));
        else if (el_scan_is(key, "pid"))
            fprintf(m->file, "%zu", pid);
        else if (el_scan_is(key, "id") && flows)
            put_id(m, value);
        else
            fwrite(value.at, 1, value.n, m->file);
    }
    fputc('}', m->file);
    m->figures.n_events++;
    return EL_OK;
}

static const char *rank_of(const struct merge *m, char text[PROCESS_TEXT_BYTES])
{
    const int64_t rank = m->job->traces[m->t].rank;
    if (rank >= 0)
        snprintf(text, PROCESS_TEXT_BYTES, "rank %" PRId64, rank);
    else
        snprintf(text, PROCESS_TEXT_BYTES, "%.48s", el_path_tail(m->job->paths[m->t]));
    return text;
}

static void put_process(struct merge *m, size_t pid, const char *name, size_t place)
{
    char rank[PROCESS_TEXT_BYTES], text[3 * PROCESS_TEXT_BYTES];
    snprintf(text, sizeof text, "%s: %s", rank_of(m, rank), name);
    next_event(m);
    fprintf(m->file, "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %zu, \"args\": {\"name\": ", pid);
    put_text(m->file, text);
    fputs("}}", m->file);
    next_event(m);
    fprintf(m->file, "{\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": %zu, \"args\": {\"sort_index\": %zu}}",
            pid, place);
}

static enum el_status copy_trace(struct merge *m)
{
    enum { PLACES = 1000 };
    const struct el_merge_job *job = m->job;
    const int64_t rank = job->traces[m->t].rank;
    const size_t place = PLACES * (rank >= 0 && rank < 1 << 20 ? (size_t)rank : m->t);
    m->first = m->n;
    EL_TRY(el_kineto_each(job->paths[m->t], copy_event, m));
    for (size_t i = m->first; i < m->n; i++) {
        const struct process *process = &m->processes[i];
        char text[2 * PROCESS_TEXT_BYTES];
        snprintf(text, sizeof text, "process %s", process->pid);
        put_process(m, i + 1, *process->name ? process->name : text, place + 1 + i - m->first);
    }
    if (!EL_GROW(m->processes, m->room, m->n + 1)) return el_fail(EL_ERR_HOST_MEMORY, "no memory to merge traces");
    m->processes[m->n++] = (struct process){.name = ""}; /* that of its collectives */
    put_process(m, m->n, "collectives", place);
    return EL_OK;
}

/* ---- collectives, waits and arrows ---- */

/* Where a call is drawn: a row in which no other one lies at the time. */
struct row {
    size_t pid, tid;
};

struct by_begin {
    int64_t begin_ns;
    size_t member, entry;
};

static int by_begin(const void *a, const void *b)
{
    const struct by_begin *x = a, *y = b;
    if (x->member != y->member) return x->member < y->member ? -1 : 1;
    if (x->begin_ns != y->begin_ns) return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

enum { ROWS_MAX = 64 };

static void name_row(struct merge *m, size_t member, struct row row, size_t number)
{
    char text[PROCESS_TEXT_BYTES + 16];
    snprintf(text, sizeof text, number ? "%.48s (%zu)" : "%.48s", m->job->members[member], number + 1);
    next_event(m);
    fprintf(m->file,
            "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %zu, \"tid\": %zu, \"args\": {\"name\": ", row.pid,
            row.tid);
    put_text(m->file, text);
    fputs("}}", m->file);
}

static void find_rows(struct merge *m, const struct by_begin *sorted, size_t n, const size_t *pids, struct row *rows)
{
    int64_t ends_ns[ROWS_MAX];
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t member = sorted[i].member;
        const struct el_relation_entry *entry = &m->job->relation->entries[sorted[i].entry];
        size_t r = 0;
        if (i == 0 || sorted[i - 1].member != member) used = 0;
        while (r < used && ends_ns[r] > entry->span.begin_ns && r + 1 < ROWS_MAX) r++;
        struct row row = {pids[m->job->relation->members[member].trace], member * ROWS_MAX + r + 1};
        if (r == used) name_row(m, member, row, used++);
        ends_ns[r] = entry->span.end_ns;
        rows[sorted[i].entry] = row;
    }
}

static void put_slice(struct merge *m, struct row row, const char *cat, const char *name, const char *who,
                      struct el_span span, size_t operation)
{
    const int64_t origin_ns = m->job->relation->origin_ns;
    next_event(m);
    fprintf(m->file, "{\"ph\": \"X\", \"cat\": \"evenload.%s\", \"pid\": %zu, \"tid\": %zu, \"name\": ", cat, row.pid,
            row.tid);
    char text[2 * PROCESS_TEXT_BYTES];
    snprintf(text, sizeof text, "%s%.64s", name, who);
    put_text(m->file, text);
    fputs(", \"ts\": ", m->file);
    put_us(m->file, span.begin_ns + origin_ns);
    fputs(", \"dur\": ", m->file);
    put_us(m->file, span.end_ns - span.begin_ns);
    fprintf(m->file, ", \"args\": {\"operation\": %zu}}", operation);
}

static void put_arrow(struct merge *m, struct row from, struct row to, int64_t at_ns)
{
    for (int end = 0; end < 2; end++) {
        next_event(m);
        fprintf(m->file,
                "{\"ph\": \"%s, \"cat\": \"evenload.wait\", \"name\": \"waits\", \"id\": %zu, \"pid\": %zu, \"tid\": "
                "%zu, \"ts\": ",
                end ? "f\", \"bp\": \"e\"" : "s\"", m->figures.n_waits, end ? to.pid : from.pid,
                end ? to.tid : from.tid);
        put_us(m->file, at_ns + m->job->relation->origin_ns);
        fputc('}', m->file);
    }
}

static void put_operation(struct merge *m, size_t o, const struct row *rows)
{
    const struct el_relation *relation = m->job->relation;
    const struct el_relation_operation *op = &relation->operations[o];
    size_t last = op->first;
    for (size_t i = op->first; i < op->first + op->n; i++)
        if (relation->entries[i].span.begin_ns > relation->entries[last].span.begin_ns) last = i;
    for (size_t i = op->first; i < op->first + op->n; i++) {
        const struct el_relation_entry *entry = &relation->entries[i];
        const struct el_kineto_call *call = &m->job->traces[relation->members[entry->member].trace].calls[entry->call];
        const struct el_span span = entry->span;
        const int64_t met_ns = op->latest_ns < span.end_ns ? op->latest_ns : span.end_ns;
        const bool waits = met_ns > span.begin_ns && !(entry->link && call->verb == EL_COMM_SEND);
        put_slice(m, rows[i], "collective", el_comm_verb_row(call->verb)->name, "", span, o);
        if (waits) {
            put_slice(m, rows[i], "wait", "waits for ", m->job->members[relation->entries[last].member],
                      (struct el_span){span.begin_ns, met_ns}, o);
            m->figures.n_waits++;
            m->figures.wait_s += (double)(met_ns - span.begin_ns) * 1e-9;
        }
        if (span.end_ns > met_ns)
            put_slice(m, rows[i], "transfer", "transfer", "", (struct el_span){met_ns, span.end_ns}, o);
        if (waits && span.end_ns > met_ns) put_arrow(m, rows[last], rows[i], op->latest_ns);
    }
}

static enum el_status put_operations(struct merge *m, const size_t *pids)
{
    const struct el_relation *relation = m->job->relation;
    struct by_begin *sorted = calloc(relation->n_entries + 1, sizeof *sorted);
    struct row *rows = calloc(relation->n_entries + 1, sizeof *rows);
    size_t n = 0;
    for (size_t o = 0; o < relation->n_operations && sorted; o++)
        for (size_t i = relation->operations[o].first; i < relation->operations[o].first + relation->operations[o].n;
             i++)
            sorted[n++] = (struct by_begin){relation->entries[i].span.begin_ns, relation->entries[i].member, i};
    if (sorted && rows) {
        qsort(sorted, n, sizeof *sorted, by_begin);
        find_rows(m, sorted, n, pids, rows);
        for (size_t o = 0; o < relation->n_operations; o++) put_operation(m, o, rows);
    }
    const bool enough = sorted && rows;
    free(sorted);
    free(rows);
    return enough ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory to merge traces");
}

/* ---- the document ---- */

static void put_number(FILE *file, const char *key, double value)
{
    fprintf(file, isfinite(value) ? ", \"%s\": %.9g" : ", \"%s\": null", key, value);
}

static void put_head(struct merge *m)
{
    const struct el_merge_job *job = m->job;
    fputs("{\"" EL_KINETO_MERGED "\": {\"clocks\": [", m->file);
    for (size_t t = 0; t < job->n; t++) {
        const struct el_relation_clock *clock = &job->relation->clocks[t];
        fputs(t ? ",\n{\"file\": " : "\n{\"file\": ", m->file);
        put_text(m->file, el_path_tail(job->paths[t]));
        put_number(m->file, "offset_ms", clock->offset_s * 1e3);
        put_number(m->file, "drift_ppm", clock->drift_ppm);
        put_number(m->file, "error_ms", clock->error_s * 1e3);
        fputc('}', m->file);
        if (clock->error_s > m->figures.error_s) m->figures.error_s = clock->error_s;
    }
    fprintf(m->file, "]}, \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": %" PRId64 ", \"traceEvents\": [",
            job->traces[0].base_ns);
}

static enum el_status put_all(struct merge *m)
{
    size_t *pids = calloc(m->job->n + 1, sizeof *pids);
    enum el_status status = pids ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory to merge traces");
    put_head(m);
    for (m->t = 0; m->t < m->job->n && status == EL_OK; m->t++) {
        status = copy_trace(m);
        pids[m->t] = m->n;
    }
    if (status == EL_OK) status = put_operations(m, pids);
    fputs("\n]}\n", m->file);
    free(pids);
    return status;
}

static enum el_status pack(struct merge *m, const char *path, FILE *file)
{
    struct el_gzip gzip;
    EL_TRY(el_gzip_begin(path, fileno(file), true, &gzip));
    m->file = gzip.stream;
    enum el_status status = put_all(m), packed = el_gzip_end(&gzip, true);
    return status == EL_OK ? packed : status;
}

enum el_status el_merge_write(const struct el_merge_job *job, const char *path, struct el_merge_figures *figures_p)
{
    char temporary[EL_PATH_BYTES + EL_TEMPORARY_BYTES];
    struct merge m = {.job = job};
    const size_t n = strlen(path);
    for (size_t t = 0; t < job->n; t++)
        if (!job->relation->clocks[t].known)
            return el_fail(EL_ERR_INVALID,
                           "%s cannot be placed beside the others: it shares no collective with them that all ranks "
                           "leave together, so its clock is not known; leave it out of the folder",
                           job->paths[t]);
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (!file) return el_fail_errno("%s", path);
    m.file = file;
    enum el_status status = n > 3 && !strcmp(path + n - 3, ".gz") ? pack(&m, path, file) : put_all(&m);
    free(m.processes);
    if (status == EL_OK)
        status = el_file_end(file, temporary, path);
    else
        el_file_drop(file, temporary);
    if (status == EL_OK) *figures_p = m.figures;
    return status;
}
