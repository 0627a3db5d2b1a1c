/* Devices that train the same model beside the measured one; nothing is recorded. All begin each step together, like
 * data-parallel replicas, so that memory-heavy ops coincide. */
#include <pthread.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/job/measurement.h"
#include "runtime/base/clock.h"

/* From the common begin of a step until ready for the next one. */
struct pace {
    int64_t began_ns, took_ns; /* of all steps after the warm-up */
    int64_t n_steps;
};

struct neighbour {
    struct el_job_beside *all;
    struct el_device *device;
    struct pace pace;
    pthread_t thread;
};

struct el_job_beside {
    const struct el_job *job;
    struct el_train_config config;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_come;       /* for the next step */
    uint64_t n_steps; /* begun */
    bool ended;
    struct el_error error; /* of the first that failed */
    struct pace pace;      /* of the measured device */
    int n;                 /* open neighbours */
    struct neighbour of[EL_MEMBERS_MAX];
};

/* Needs the lock. */
static void count_step(const struct el_job_beside *b, struct pace *pace)
{
    int64_t now_ns = el_clock_ns();
    if (pace->n_steps++ > b->job->trial->train.warmup) pace->took_ns += now_ns - pace->began_ns;
}

static enum el_status meet(struct el_job_beside *b, struct pace *pace)
{
    pthread_mutex_lock(&b->lock);
    uint64_t step = b->n_steps;
    if (!b->ended) count_step(b, pace);
    if (++b->n_come == b->job->trial->beside + 1) {
        b->n_come = 0;
        b->n_steps++;
        pthread_cond_broadcast(&b->changed);
    }
    while (b->n_steps == step && !b->ended) pthread_cond_wait(&b->changed, &b->lock);
    bool together = b->n_steps != step;
    pace->began_ns = el_clock_ns();
    pthread_mutex_unlock(&b->lock);
    return together ? EL_OK : el_fail(EL_ERR_PEER, "training beside another device: it has ended");
}

static void end(struct el_job_beside *b, enum el_status status)
{
    pthread_mutex_lock(&b->lock);
    if (!b->ended) el_error_take(status, &b->error);
    b->ended = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static enum el_status before_step(void *context, int member, int64_t step)
{
    struct neighbour *neighbour = context;
    (void)member, (void)step;
    return meet(neighbour->all, &neighbour->pace);
}

static enum el_status train_once(struct neighbour *neighbour, struct el_bootstrap *bootstrap)
{
    struct el_job_beside *b = neighbour->all;
    struct el_train_result result;
    const struct el_train_hooks hooks = {.context = neighbour, .before_step = before_step};
    const struct el_train_place place = {
        .devices = &neighbour->device, .n_devices = 1, .bootstrap = bootstrap, .dataset = b->job->dataset};
    EL_TRY(el_train(&b->config, &place, &hooks, &result));
    el_train_result_free(&result);
    return EL_OK;
}

static void *run(void *argument)
{
    struct neighbour *neighbour = argument;
    struct el_bootstrap *bootstrap = NULL;
    enum el_status status = el_bootstrap_open("self", &bootstrap);
    while (status == EL_OK) status = train_once(neighbour, bootstrap);
    end(neighbour->all, status);
    el_bootstrap_close(bootstrap);
    return NULL;
}

static enum el_status start(struct el_job_beside *b)
{
    struct neighbour *neighbour = &b->of[b->n];
    neighbour->all = b;
    EL_TRY(el_job_open_beside(b->job, b->n, &neighbour->device));
    if (pthread_create(&neighbour->thread, NULL, run, neighbour) != 0) {
        el_device_close(neighbour->device);
        return el_fail(EL_ERR_HOST_MEMORY, "--beside: a thread could not be made");
    }
    b->n++;
    return EL_OK;
}

enum el_status el_job_beside_open(const struct el_job *job, struct el_job_beside **beside_p)
{
    enum { STEPS = 100000 }; /* then it restarts */
    if (!job->trial->beside) return EL_OK;
    struct el_job_beside *b = calloc(1, sizeof *b);
    if (!b) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what trains beside the device");
    b->job = job;
    b->config = job->trial->train;
    b->config.epochs = b->config.warmup = 0;
    b->config.min_time_s = 0;
    b->config.control = EL_CONTROL_NONE;
    b->config.steps = STEPS;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    enum el_status status = EL_OK;
    while (status == EL_OK && b->n < job->trial->beside) status = start(b);
    *beside_p = b;
    return status;
}

enum el_status el_job_beside_meet(struct el_job_beside *b)
{
    enum el_status status = meet(b, &b->pace);
    return status == EL_OK ? EL_OK : el_error_give(&b->error);
}

/* A waiting neighbour has counted one step more than the measured device. */
static json_t *ratios_of(const struct el_job_beside *b)
{
    json_t *ratios = json_array();
    for (int i = 0; i < b->n; i++) {
        const struct pace *own = &b->pace, *other = &b->of[i].pace;
        int64_t warmup = b->job->trial->train.warmup + 1;
        double own_ns = (double)own->took_ns / (double)(own->n_steps - warmup);
        double other_ns = (double)other->took_ns / (double)(other->n_steps - warmup);
        json_array_append_new(ratios, el_json_real(other_ns / own_ns));
    }
    return ratios;
}

json_t *el_job_beside_close(struct el_job_beside *b)
{
    if (!b) return json_null();
    end(b, EL_OK);
    for (int i = 0; i < b->n; i++) {
        pthread_join(b->of[i].thread, NULL);
        el_device_close(b->of[i].device);
    }
    json_t *ratios = ratios_of(b);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
    return ratios;
}
