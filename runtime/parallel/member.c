/* A member's state: what it allocates, how weights begin. What a step does with it stands in member_issue.c. */
#include "runtime/parallel/member.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"

size_t el_member_param_bytes(const struct el_member *member, int param)
{
    return (size_t)el_param_count(member->graph, param) * el_dtype_bytes(member->config->dtype);
}

size_t el_member_input_bytes(const struct el_member *member)
{
    const struct el_tensor *input = &member->graph->tensors[member->graph->input];
    return (size_t)el_shape_count(&input->shape) *
           el_dtype_bytes(input->is_float ? member->config->dtype : input->dtype);
}

static int slot_count(enum el_optimizer_kind optimizer)
{
    return optimizer == EL_OPT_ADAM ? 2 : optimizer == EL_OPT_MOMENTUM ? 1 : 0;
}

/* One buffer a parameter, filled with zeros. */
static enum el_status alloc_like_params(struct el_member *member, enum el_tag tag, struct el_view *views)
{
    for (int p = 0; p < member->graph->n_params; p++) {
        size_t bytes = el_member_param_bytes(member, p);
        struct el_buffer *buffer;
        EL_TRY(el_device_alloc(member->device, tag, bytes, member->graph->params[p].name, &buffer));
        views[p] = el_view_of(buffer, 0);
        if (el_device_is_simulated(member->device)) continue;
        void *zeros = calloc(1, bytes);
        if (!zeros) return el_fail_errno("%s: '%s'", el_device_name(member->device), member->graph->params[p].name);
        enum el_status status = el_device_write(views[p], zeros, bytes);
        free(zeros);
        EL_TRY(status);
    }
    return EL_OK;
}

/* Uniform in [-bound, bound) by (seed, parameter, element): the same numbers in f32 and f64, and for every mode. */
static enum el_status initialize(struct el_member *member, int p)
{
    const struct el_param *param = &member->graph->params[p];
    int64_t n = el_param_count(member->graph, p);
    void *values = malloc(el_member_param_bytes(member, p));
    if (!values) return el_fail_errno("initial values of '%s'", param->name);
    struct el_rng_key key = {.seed = member->config->seed, .use = EL_RNG_INIT, .id = (uint32_t)p};
    for (int64_t i = 0; i < n; i++) {
        float value = (float)((2 * el_rng_uniform(&key, 0, (uint64_t)i) - 1) * param->init_bound);
        if (member->config->dtype == EL_F64)
            ((double *)values)[i] = value;
        else
            ((float *)values)[i] = value;
    }
    enum el_status status = el_device_write(member->params[p], values, el_member_param_bytes(member, p));
    free(values);
    return status;
}

/* `batch` is that of all `size` ranks together. */
static enum el_status open_loader(struct el_member *member, enum el_data_split split, int64_t batch)
{
    const struct el_train_config *config = member->config;
    if (!member->dataset) return EL_OK;
    member->share = el_share_size(batch, member->size, member->rank);
    struct el_loader_spec spec = {.split = split,
                                  .global_batch = batch,
                                  .ranks = member->size,
                                  .rank = member->rank,
                                  .shuffle = split == EL_SPLIT_TRAIN,
                                  .seed = config->seed,
                                  .input = el_model_find(config->model.name)->input,
                                  .features = el_model_size(&config->model, "features"),
                                  .dtype = config->dtype};
    EL_TRY(el_loader_open(member->dataset, &spec, &member->loader));
    member->host_inputs = malloc((size_t)member->share * el_member_input_bytes(member));
    member->host_labels = malloc((size_t)member->share * sizeof(int32_t));
    if (!member->host_inputs || !member->host_labels) return el_fail_errno("a batch of %lld", (long long)member->share);
    return EL_OK;
}

enum el_status el_member_open_owner(struct el_member *member, const struct el_train_config *config,
                                    const struct el_graph *graph, struct el_device *device, int rank, int size,
                                    const struct el_dataset *dataset)
{
    *member = (struct el_member){.config = config, .graph = graph, .device = device, .rank = rank, .size = size};
    member->share = el_share_size(config->global_batch, size, rank);
    member->dataset = dataset;
    EL_TRY(alloc_like_params(member, EL_TAG_PARAM, member->params));
    if (config->keep_grads) EL_TRY(alloc_like_params(member, EL_TAG_GRAD, member->grads));
    for (int s = 0; s < slot_count(config->optimizer); s++) {
        EL_TRY(alloc_like_params(member, EL_TAG_OPTIMIZER, member->slots[s]));
    }
    EL_TRY(el_device_alloc(device, EL_TAG_OUTPUT, el_dtype_bytes(config->dtype), "loss", &member->loss));
    if (!el_device_is_simulated(device)) {
        for (int p = 0; p < graph->n_params; p++) EL_TRY(initialize(member, p));
        EL_TRY(el_device_write(el_view_of(member->loss, 0), &(double){0}, el_dtype_bytes(config->dtype)));
    }
    return open_loader(member, EL_SPLIT_TRAIN, config->global_batch);
}

void el_member_open_helper(struct el_member *member, const struct el_train_config *config, const struct el_graph *graph,
                           struct el_device *device)
{
    *member = (struct el_member){.config = config, .graph = graph, .device = device};
}

enum el_status el_member_open_share(struct el_member *member, const struct el_member *owner, int rank, int size)
{
    el_member_open_helper(member, owner->config, owner->graph, owner->device);
    member->dataset = owner->dataset;
    member->rank = rank;
    member->size = size;
    member->share = el_share_size(owner->config->global_batch, size, rank);
    return open_loader(member, EL_SPLIT_TRAIN, owner->config->global_batch);
}

enum el_status el_member_open_evaluation(struct el_member *member, const struct el_member *owner,
                                         enum el_data_split split, int rank, int size, int64_t batch)
{
    *member = *owner;
    member->loader = NULL;
    member->host_inputs = NULL;
    member->host_labels = NULL;
    member->rank = rank;
    member->size = size;
    return open_loader(member, split, batch);
}

void el_member_close_share(struct el_member *member)
{
    el_loader_close(member->loader);
    free(member->host_inputs);
    free(member->host_labels);
    *member = (struct el_member){0};
}

void el_member_close(struct el_member *member)
{
    if (!member->graph) return;
    for (int p = 0; p < member->graph->n_params; p++) {
        el_device_free(member->params[p].buffer);
        el_device_free(member->grads[p].buffer);
        for (int s = 0; s < 2; s++) el_device_free(member->slots[s][p].buffer);
    }
    el_device_free(member->loss);
    el_member_close_share(member);
}

enum el_status el_member_read_loss(const struct el_member *member, double *loss_p)
{
    union {
        float f;
        double d;
    } value = {0};
    EL_TRY(el_device_read(el_view_of(member->loss, 0), &value, el_dtype_bytes(member->config->dtype)));
    *loss_p = member->config->dtype == EL_F64 ? value.d : (double)value.f;
    return EL_OK;
}
