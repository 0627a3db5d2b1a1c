/* The cells and their trials: small models on random batches. */
#include <string.h>
#include <unistd.h>

#include "bench/options/options.h"
#include "bench/verify/verify.h"
#include "runtime/base/rng.h"
#include "runtime/state/buffers.h"

/* 22 samples give unequal shares on three and four devices; 24 equal micro-batches, and equal shares of tokens. */
enum { BATCH = 22, BATCH_OF_MICRO = 24, STEPS = 30, STEPS_OF_PAIRS = 6, WORDS_MAX = 80 };

const char *el_verify_kind(int kind)
{
    static const char *const names[] = {"sgd", "momentum", "adam", "f32", "f64"};
    return names[kind];
}

/* Random labels, so that no loss vanishes; sentences shorter and longer than the model takes. */
enum el_status el_verify_write_data(const char *path)
{
    enum { SAMPLES = 720, WORDS = 58, SHORTEST = 4, LENGTHS = 8, CLASSES = 4 };
    const struct el_rng_key key = {.seed = 1, .use = EL_RNG_DATA};
    FILE *file = fopen(path, "w");
    for (uint64_t i = 0; file && i < SAMPLES; i++) {
        int n = SHORTEST + (int)(el_rng_u64(&key, i, 0) % LENGTHS);
        fprintf(file, "%d", (int)(el_rng_u64(&key, i, 1) % CLASSES));
        for (int w = 0; w < n; w++) fprintf(file, " w%d", (int)(el_rng_u64(&key, i, (uint64_t)w + 2) % WORDS));
        fputc('\n', file);
    }
    bool failed = !file || ferror(file);
    if (file) failed |= fclose(file) != 0;
    enum el_status status = failed ? el_fail_errno("%s could not be written", path) : EL_OK;
    if (failed) unlink(path);
    return status;
}

static enum el_status take_variant(const char *variant, struct el_options *options)
{
    char text[sizeof((struct el_verify_cell *)0)->variant], *words[WORDS_MAX + 1] = {text}, *rest = NULL;
    int n = 1;
    snprintf(text, sizeof text, "%s", variant);
    for (char *word = strtok_r(text, " ", &rest); word && n < WORDS_MAX; word = strtok_r(NULL, " ", &rest))
        words[n++] = word;
    return el_options_parse(EL_CMD_COMPARE, n, words, options);
}

static void take_sizes(const struct el_model_info *info, struct el_model_config *model)
{
    snprintf(model->name, sizeof model->name, "%s", info->name);
    for (const struct el_model_size *row = info->sizes; row->name; row++) {
        int n = 0;
        while (n < EL_MODEL_VALUES_MAX && row->small[n]) n++;
        if (n) el_model_set(model, row->name, row->small, n);
    }
}

static enum el_status take_devices(const char *backend, int n, struct el_options *o)
{
    int n_gpus = 0;
    if (el_backend_facts(backend).gpu) EL_TRY(el_device_gpus(&n_gpus));
    o->n_devices = n;
    for (int d = 0; d < n; d++) {
        o->devices[d].index = n_gpus ? d % n_gpus : d;
        snprintf(o->devices[d].backend, sizeof o->devices[d].backend, "%s", backend);
    }
    return EL_OK;
}

enum el_status el_verify_resolve(const struct el_options *options, const char *backend,
                                 const struct el_verify_cell *cell, int procs, struct el_trial_set *set_p)
{
    struct el_options o;
    el_options_defaults(EL_CMD_COMPARE, &o);
    o.n_modes = o.n_batches = 1;
    snprintf(o.modes[0], sizeof o.modes[0], "%s", cell->mode->name);
    take_sizes(cell->model, &o.train.model);
    EL_TRY(take_devices(backend, cell->n_devices, &o));
    memcpy(o.comm, options->comm, sizeof o.comm);
    /* sentences have no images */
    snprintf(o.data, sizeof o.data, "%s",
             cell->model->input == EL_INPUT_IMAGES || cell->model->input == EL_INPUT_TOKENS ? "dummy" : options->data);
    snprintf(o.inject, sizeof o.inject, "%s", options->inject);
    o.procs = procs;
    o.launcher = options->launcher;
    const bool stages = el_mode_cuts(cell->mode->name) || strstr(cell->variant, "pp=");
    const bool equal = cell->mode->axes & 1U << EL_AXIS_EXPERT;
    o.batches[0] = equal || (stages && el_mode_option_of(cell->mode->name, "micro")) ? BATCH_OF_MICRO : BATCH;
    o.bucket_mib = 4 / 1024.0; /* several buckets */
    o.first_bucket_mib = 1 / 1024.0;
    o.train.dtype = cell->kind == EL_VERIFY_F32 ? EL_F32 : EL_F64;
    o.train.optimizer = cell->kind >= EL_VERIFY_F32 ? EL_OPT_MOMENTUM : (enum el_optimizer_kind)cell->kind;
    o.train.lr = cell->kind == EL_OPT_ADAM ? 0.002 : 0.05;
    o.train.control = EL_CONTROL_NONE;
    o.train.warmup = 0;
    o.train.min_time_s = 0;
    o.train.steps = cell->model->check.steps ? cell->model->check.steps : STEPS;
    if (options->pairs && o.train.steps > STEPS_OF_PAIRS) o.train.steps = STEPS_OF_PAIRS;
    EL_TRY(take_variant(cell->variant, &o));
    return el_trials_resolve(EL_CMD_COMPARE, &o, set_p);
}

/* 0: the plain mode; the last one has frozen layers. */
static bool find_variant(const struct el_verify_cell *cell, int v, char *text, size_t bytes)
{
    const char *at = cell->mode->variants, *frozen = cell->model->check.freeze;
    *text = 0;
    if (v == 0) return true;
    for (; at && v > 1; v--) at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL;
    if (at) snprintf(text, bytes, "%.*s", (int)strcspn(at, "|"), at);
    if (!at && v == 1 && frozen) snprintf(text, bytes, "--freeze %s", frozen);
    return *text;
}

bool el_verify_asks_for(const struct el_options *options, const char *mode)
{
    for (int m = 0; m < options->n_modes; m++)
        if (!strcmp(options->modes[m], mode)) return true;
    return options->n_modes == 0;
}

struct walk {
    const struct el_options *options;
    const char *backend;
    enum el_status (*visit)(void *context, const struct el_verify_cell *cell);
    void *context;
};

static bool is_served(const struct walk *walk, const struct el_verify_cell *cell)
{
    struct el_trial_set set;
    if (el_verify_resolve(walk->options, walk->backend, cell, 1, &set) != EL_OK) return false;
    el_trials_free(&set);
    return true;
}

/* For variants, slow models and --quick one number that the mode can serve, in turn. */
static enum el_status visit_counts(const struct walk *walk, struct el_verify_cell *cell, int turn)
{
    enum { COUNTS = EL_VERIFY_MOST - EL_VERIFY_FEWEST + 1 };
    bool one = walk->options->quick || *cell->variant || cell->model->check.slow;
    for (int i = 0; i < COUNTS; i++) {
        cell->n_devices = EL_VERIFY_FEWEST + (one ? (i + turn) % COUNTS : i);
        bool all = el_mode_devices(cell->mode->name, cell->n_devices) < cell->n_devices;
        if (one && !all && !is_served(walk, cell)) continue;
        EL_TRY(walk->visit(walk->context, cell));
        if (one || all) return EL_OK;
    }
    cell->n_devices = EL_VERIFY_FEWEST;
    return one ? walk->visit(walk->context, cell) : EL_OK; /* its refusal says why */
}

static bool takes_few(const struct el_verify_cell *cell)
{
    const char *mode = cell->mode->name;
    return el_mode_devices_for(mode, el_model_list()->name, EL_VERIFY_FEWEST) < el_mode_devices(mode, EL_VERIFY_FEWEST);
}

/* Variants take turns with the first two models, which have more layers than devices. */
static bool takes_variant(const struct walk *walk, const struct el_verify_cell *cell, int model, int v)
{
    struct el_model_config config = {.dropout = -1};
    if (cell->model->check.slow && v > 0) return false;
    if (strstr(cell->variant, "--precision")) return cell->kind == EL_VERIFY_F32 && model == v % 2;
    if (strstr(cell->variant, "--freeze")) return true;
    if (strstr(cell->variant, "--sequence-parallel") && cell->model->input != EL_INPUT_TOKENS) return false;
    if (takes_few(cell)) return true;
    if (!strstr(cell->variant, "broadcast-buffers")) return v == 0 || model == v % 2 || !walk->options->quick;
    take_sizes(cell->model, &config);
    return el_model_resolve(&config) == EL_OK && el_buffers_are_in(&config);
}

static bool takes_model(const struct el_verify_cell *cell)
{
    const char *mode = cell->mode->name;
    return el_mode_devices_for(mode, cell->model->name, EL_VERIFY_FEWEST) == el_mode_devices(mode, EL_VERIFY_FEWEST);
}

static enum el_status visit_modes(const struct walk *walk, struct el_verify_cell *cell, int model)
{
    int turn = model;
    for (cell->mode = el_mode_list(); cell->mode->name; cell->mode++) {
        if (!el_verify_asks_for(walk->options, cell->mode->name) || !takes_model(cell)) continue;
        const bool few = takes_few(cell);
        for (int v = 0; find_variant(cell, v, cell->variant, sizeof cell->variant); v++, turn++) {
            bool its_kind =
                cell->kind == EL_VERIFY_F32 || cell->kind == turn % EL_VERIFY_F32 || !walk->options->quick || few;
            if (its_kind && takes_variant(walk, cell, model, v)) EL_TRY(visit_counts(walk, cell, turn + model));
        }
    }
    return EL_OK;
}

enum el_status el_verify_each(const struct el_options *options, const char *backend,
                              enum el_status (*visit)(void *context, const struct el_verify_cell *cell), void *context)
{
    struct walk walk = {.options = options, .backend = backend, .visit = visit, .context = context};
    struct el_verify_cell cell = {.model = el_model_list()};
    for (int model = 0; cell.model->name; cell.model++, model++)
        for (cell.kind = 0; cell.kind < EL_VERIFY_KINDS && !(options->quick && cell.model->check.slow); cell.kind++)
            EL_TRY(visit_modes(&walk, &cell, model));
    return EL_OK;
}
