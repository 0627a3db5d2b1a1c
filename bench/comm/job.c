/* Opens devices, communicators and members, measures, gathers. Each member of a process has its own thread. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/comm/wire.h"
#include "bench/machine/host.h"
#include "profiles/system.h"
#include "runtime/base/clock.h"
#include "runtime/base/files.h"

struct session {
    struct el_wire_plan plan;
    const struct el_job *job;
    struct el_job_devices open;
    struct el_comm *comms[EL_MEMBERS_MAX], *groups[EL_MEMBERS_MAX]; /* by device; NULL: in no group */
    struct el_wire_member members[EL_MEMBERS_MAX];
    int n_members;
    json_t *document;
    struct el_system_reading begin;
    int64_t deadline_ns; /* for calls that wait for other ranks; 0: none */
};

static enum el_status open_comms(struct session *s)
{
    struct el_bootstrap *bootstrap = s->job->bootstrap;
    const char *kind = s->job->trial->comm;
    if (el_bootstrap_size(bootstrap) == 1) return el_comm_open_local(s->open.devices, s->open.n, s->comms);
    if (!strcmp(kind, "auto")) kind = el_comm_choose(bootstrap, s->open.devices[0]);
    return el_comm_open_ranks(kind, bootstrap, s->open.devices[0], &s->comms[0]);
}

static enum el_status open_members(struct session *s)
{
    for (int i = 0; i < s->open.n; i++) {
        struct el_comm *comm = s->plan.n_groups ? s->groups[i] : s->comms[i];
        if (!comm) continue;
        EL_TRY(el_wire_member_open(&s->plan, comm, &s->members[s->n_members]));
        s->members[s->n_members++].deadline_ns = s->deadline_ns;
    }
    return EL_OK;
}

static void *run_member(void *argument)
{
    struct el_wire_member *member = argument;
    enum el_status status = el_wire_time(member);
    if (status != EL_OK && status != EL_ERR_ABSENT) el_comm_abort(member->comm);
    el_error_take(status, &member->error);
    return NULL;
}

/* Replaces the job's communicator by its group's. */
static void *split_member(void *argument)
{
    struct el_wire_member *member = argument;
    int rank = el_comm_rank(member->comm);
    enum el_status status = el_comm_split(member->comm, member->plan->colors[rank], rank, &member->comm);
    if (status != EL_OK) el_comm_abort(member->comm);
    el_error_take(status, &member->error);
    return NULL;
}

/* Returns the failure that explains the others, not a lost peer's. */
static enum el_status run_all(struct session *s, int n, void *(*run)(void *member))
{
    pthread_t threads[EL_MEMBERS_MAX];
    const struct el_error *found = NULL;
    int started = 0;
    if (n == 1) run(&s->members[0]);
    for (; n > 1 && started < n; started++)
        if (pthread_create(&threads[started], NULL, run, &s->members[started]) != 0) break;
    for (int m = 0; n > 1 && started < n && m < n; m++) el_comm_abort(s->members[m].comm);
    for (int m = 0; m < started; m++) pthread_join(threads[m], NULL);
    for (int m = 0; m < n; m++) {
        const struct el_error *error = &s->members[m].error;
        if (error->status != EL_OK && (!found || found->status == EL_ERR_PEER)) found = error;
    }
    if (n > 1 && started < n) return el_fail(EL_ERR_HOST_MEMORY, "no thread for a member");
    return found ? el_error_give(found) : EL_OK;
}

static enum el_status split_comms(struct session *s)
{
    if (s->plan.n_groups == 0) return EL_OK;
    for (int m = 0; m < s->open.n; m++) s->members[m] = (struct el_wire_member){.plan = &s->plan, .comm = s->comms[m]};
    enum el_status status = run_all(s, s->open.n, split_member);
    for (int m = 0; m < s->open.n; m++)
        if (s->members[m].comm != s->comms[m]) s->groups[m] = s->members[m].comm;
    memset(s->members, 0, sizeof s->members);
    return status;
}

static enum el_status run_curve(struct session *s, const struct el_wire_curve *curve)
{
    for (int m = 0; m < s->n_members; m++) {
        s->members[m].curve = curve;
        s->members[m].error = (struct el_error){.status = EL_OK};
        memset(s->members[m].wrong, 0, sizeof s->members[m].wrong);
    }
    return run_all(s, s->n_members, run_member);
}

static json_t *member_json(const struct el_wire_member *member)
{
    json_t *samples = json_array(), *wrong = json_array(), *used = json_array();
    const double *at = member->samples_s;
    for (int s = 0; s < member->plan->n_sizes; s++) {
        json_t *places = json_array();
        for (int p = 0; p < el_wire_series(member->plan); p++) {
            json_t *calls = json_array();
            for (int i = 0; i < member->plan->options->iters; i++) json_array_append_new(calls, json_real(*at++ * 1e6));
            json_array_append_new(places, calls);
        }
        json_array_append_new(samples, places);
    }
    for (int s = 0; s < member->plan->n_sizes; s++) {
        json_array_append_new(wrong, json_pack("[I, I]", (json_int_t)member->wrong[s][EL_WIRE_APART],
                                               (json_int_t)member->wrong[s][EL_WIRE_IN_PLACE]));
        json_array_append_new(used, json_string(el_comm_algorithm_name(member->used[s])));
    }
    return json_pack("{s:o, s:o, s:o}", "samples_us", samples, "wrong", wrong, "used", used);
}

/* An operation that the communicator lacks gives a curve with a reason. */
static enum el_status measure_curve(struct session *s, const struct el_wire_curve *curve)
{
    struct el_error error;
    json_t *part = json_array(), *parts = NULL;
    enum el_status status = run_curve(s, curve);
    bool absent = status == EL_ERR_ABSENT && curve;
    if (status == EL_ERR_PEER && s->deadline_ns && el_clock_ns() >= s->deadline_ns) {
        json_decref(part); /* a silent rank would be silent in a gather too */
        return status;
    }
    char reason[EL_ERROR_TEXT_BYTES] = "";
    if (absent) snprintf(reason, sizeof reason, "%s", el_error_message());
    for (int m = 0; m < s->n_members && status == EL_OK; m++) json_array_append_new(part, member_json(&s->members[m]));
    EL_TRY(el_job_gather(s->job, absent ? EL_OK : status, part, &parts, &error));
    if (parts && error.status == EL_OK) {
        json_t *members = json_array(), *row = NULL; /* [member of the job] */
        EL_EACH(of_rank, parts) json_array_extend(members, of_rank);
        if (!json_array_size(members) && !absent) /* this rank is in no group, so it has no reason */
            absent = snprintf(reason, sizeof reason, "the ranks of the group have no such operation") > 0;
        if (!curve) json_object_set_new(s->document, "copy", el_wire_copy_json(&s->plan, members));
        if (curve) row = el_wire_curve_json(&s->plan, curve, members);
        if (absent) el_json_put_text(row, "status", "absent"), el_json_put_text(row, "reason", reason);
        if (curve) json_array_append_new(json_object_get(s->document, "curves"), row);
        json_decref(members);
    }
    json_decref(parts);
    return el_bootstrap_agree(s->job->bootstrap, error.status == EL_OK ? EL_OK : el_error_give(&error));
}

/* The largest share that other programs took of one thread's core; no cores for GPUs. */
static json_t *machine_json(const struct session *s)
{
    const struct el_trial *trial = s->job->trial;
    bool on_cores = !el_trial_backend(trial).gpu;
    char boot[64], host[256] = "";
    struct el_cores cores;
    json_t *list = json_array(), *members = json_array();
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < s->open.n; i++)
        json_array_append_new(members, el_json_of(EL_KEY("host", (const char *)host), EL_KEY("pid", (int)getpid()),
                                                  EL_KEY("group", s->plan.colors[el_comm_rank(s->comms[i])])));
    el_cores_find("", &cores);
    el_file_line("/proc/sys/kernel/random/boot_id", "", boot, sizeof boot);
    for (int i = 0; i < s->open.n && on_cores; i++)
        json_array_append_new(list, json_integer(cores.firsts[trial->devices[s->open.first + i].index % cores.n]));
    return el_json_of(EL_KEY("boot", boot), EL_KEY("quota", cores.quota), EL_KEY("cores", list),
                      EL_KEY("members", members), EL_KEY("waited_pct", el_system_waited_pct(&s->begin)));
}

static json_t *begin_document(const struct session *s)
{
    const struct el_wire_options *options = s->plan.options;
    const struct el_trial *trial = s->job->trial;
    return el_json_of(EL_KEY("schema", EL_WIRE_SCHEMA), EL_KEY("kind", "comm"), EL_KEY("environment", el_environment()),
                      EL_KEY("backend", el_comm_backend(s->comms[0])), EL_KEY("devices", el_trial_device_names(trial)),
                      EL_KEY("ranks", s->plan.n), EL_KEY("processes", el_bootstrap_size(s->job->bootstrap)),
                      EL_KEY("group", el_json_filled(options->group)), EL_KEY("groups", s->plan.n_groups),
                      EL_KEY("datatype", el_wire_dtype(options->dtype)),
                      EL_KEY("redop", el_wire_redop(options->reduction)),
                      EL_KEY("root", strcmp(options->root, "all") ? s->plan.curves[0].root : -1),
                      EL_KEY("agg_iters", options->aggregate), EL_KEY("cycles", options->cycles),
                      EL_KEY("blocking", options->blocking), EL_KEY("average", options->average),
                      EL_KEY("iters", options->iters), EL_KEY("minbytes", options->min_bytes),
                      EL_KEY("maxbytes", options->max_bytes), EL_KEY("stepbytes", options->step_bytes),
                      EL_KEY("stepfactor", options->factor), EL_KEY("warmup", options->warmup),
                      EL_KEY("check", options->check), EL_KEY("shared_cores", false), EL_KEY("curves", json_array()));
}

static enum el_status join_machines(struct session *s)
{
    struct el_error error;
    json_t *parts = NULL, *members = json_array();
    EL_TRY(el_job_gather(s->job, EL_OK, machine_json(s), &parts, &error));
    EL_EACH(part, parts) json_array_extend(members, json_object_get(part, "members"));
    if (s->document)
        el_json_put_all(s->document, EL_KEY("members", json_incref(members)),
                        EL_KEY("overlap", (bool)s->plan.options->overlap), EL_KEY("time_sliced", s->open.time_sliced),
                        EL_KEY("shared_cores", el_wire_share_cores(parts)),
                        EL_KEY("others_waited_pct", el_json_highest(parts, "waited_pct")));
    json_decref(parts);
    json_decref(members);
    return error.status == EL_OK ? EL_OK : el_error_give(&error);
}

/* Copies first: all curves are compared with them. */
static enum el_status measure_all(struct session *s, bool say)
{
    bool all = !strcmp(s->plan.options->algorithms, "all");
    if (all && el_comm_set_algorithm(s->comms[0], EL_COMM_DIRECT) == EL_ERR_ABSENT) el_wire_plan_auto(&s->plan);
    el_system_read("", NULL, 0, &s->begin);
    for (int c = -1; c < s->plan.n_curves; c++) {
        const struct el_wire_curve *curve = c < 0 ? NULL : &s->plan.curves[c];
        if (say)
            fprintf(stderr, "[%d/%d] %s%s%s, %d sizes\n", c + 2, s->plan.n_curves + 1,
                    curve ? curve->operation->name : "memory copies", curve ? ", algorithm " : "",
                    curve ? el_comm_algorithm_name(curve->algorithm) : "", s->plan.n_sizes);
        EL_TRY(measure_curve(s, curve));
    }
    return join_machines(s);
}

enum el_status el_wire_measure(const struct el_wire_plan *plan, const struct el_job *job, bool say, json_t **document_p)
{
    bool first = el_bootstrap_rank(job->bootstrap) == 0;
    struct session *s = calloc(1, sizeof *s);
    *document_p = NULL;
    enum el_status status = el_bootstrap_agree(job->bootstrap, s ? EL_OK : el_fail_errno("a measurement of the wire"));
    if (status != EL_OK) {
        free(s);
        return status;
    }
    s->plan = *plan;
    s->job = job;
    if (job->trial->timeout_s > 0) { /* earlier, so that a rank can still report whom it waits for */
        double before_s = fmin(2, job->trial->timeout_s / 4);
        s->deadline_ns = el_clock_ns() + (int64_t)((job->trial->timeout_s - before_s) * 1e9);
    }
    status = el_bootstrap_agree(job->bootstrap, el_job_open_devices(job, &s->open));
    if (status == EL_OK) status = el_bootstrap_agree(job->bootstrap, open_comms(s));
    if (status == EL_OK) status = el_bootstrap_agree(job->bootstrap, split_comms(s));
    if (status == EL_OK) status = el_bootstrap_agree(job->bootstrap, open_members(s));
    if (status == EL_OK && first) s->document = begin_document(s);
    if (status == EL_OK) status = measure_all(s, say && first);
    for (int m = 0; m < s->n_members; m++) el_wire_member_close(&s->members[m]);
    for (int m = 0; m < s->open.n; m++) el_comm_close(s->groups[m]);
    for (int m = 0; m < s->open.n; m++) el_comm_close(s->comms[m]);
    el_job_close_devices(&s->open);
    if (status == EL_OK && first) el_wire_judge(s->document);
    if (status == EL_OK)
        *document_p = s->document;
    else
        json_decref(s->document);
    free(s);
    return status;
}
