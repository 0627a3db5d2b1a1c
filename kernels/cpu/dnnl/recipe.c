/* From a recipe to its workspace, plan and run. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/cpu/dnnl/common.h"

struct step {
    dnnl_primitive_t primitive;
    int n_args;
    dnnl_exec_arg_t args[EL_DNNL_OPERANDS];
};

struct plan {
    dnnl_stream_t stream;
    int n_steps;
    struct step steps[EL_DNNL_STAGES];
    size_t region_offset[EL_DNNL_REGIONS];
    char text[160];
};

/* One computing thread: the caller. OpenMP keeps this setting per thread, and primitives are made for it; a oneDNN
 * without OpenMP lacks the function. */
static void compute_alone(void)
{
    void (*set)(int);
    *(void **)&set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set) set(1);
}

struct el_dnnl_place el_dnnl_region(struct el_dnnl_recipe *recipe, size_t bytes)
{
    struct el_dnnl_place place = {.region = recipe->n_regions++, .data = NULL};
    recipe->region_offset[place.region] = recipe->workspace_bytes;
    recipe->workspace_bytes += (bytes + EL_DNNL_ALIGN_BYTES - 1) / EL_DNNL_ALIGN_BYTES * EL_DNNL_ALIGN_BYTES;
    return place;
}

void *el_dnnl_region_data(const struct el_kernel_args *args, int index)
{
    const struct plan *plan = args->plan;
    return (char *)args->workspace + plan->region_offset[index];
}

void el_dnnl_operand_add(struct el_dnnl_stage *stage, int arg, el_dnnl_view view, struct el_dnnl_place place)
{
    stage->operands[stage->n_operands++] = (struct el_dnnl_operand){.arg = arg, .view = view, .place = place};
}

struct el_dnnl_stage *el_dnnl_stage_add(struct el_dnnl_recipe *recipe, const_dnnl_primitive_desc_t pd)
{
    struct el_dnnl_stage *stage = &recipe->stages[recipe->n_stages++];
    *stage = (struct el_dnnl_stage){.pd = pd};
    el_dnnl_view scratchpad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    size_t bytes = scratchpad ? dnnl_memory_desc_get_size(scratchpad) : 0;
    if (bytes > recipe->scratchpad_bytes) {
        recipe->scratchpad = el_dnnl_region(recipe, bytes);
        recipe->scratchpad_bytes = bytes;
    }
    if (bytes) el_dnnl_operand_add(stage, DNNL_ARG_SCRATCHPAD, scratchpad, recipe->scratchpad);
    return stage;
}

enum el_status el_dnnl_reorder_add(struct el_dnnl_recipe *recipe, el_dnnl_view from, struct el_dnnl_place from_place,
                                   el_dnnl_view to, struct el_dnnl_place to_place, int acc)
{
    const_dnnl_primitive_desc_t pd;
    EL_TRY(el_dnnl_reorder(recipe, from, to, (struct el_dnnl_after){.acc = acc}, &pd));
    struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, pd);
    el_dnnl_operand_add(stage, DNNL_ARG_FROM, from, from_place);
    el_dnnl_operand_add(stage, DNNL_ARG_TO, to, to_place);
    return EL_OK;
}

static void recipe_free(struct el_dnnl_recipe *recipe)
{
    for (int i = 0; i < recipe->n_pds; i++) dnnl_primitive_desc_destroy(recipe->pds[i]);
#if DNNL_VERSION_MAJOR >= 3
    for (int i = 0; i < recipe->n_descs; i++) dnnl_memory_desc_destroy(recipe->descs[i]);
#endif
}

/* The library checks few of its allocations and dies by a signal if others fail: first make sure that there is room for
 * its generated code and objects. */
static enum el_status check_room(void)
{
    enum { ROOM_BYTES = 8 << 20 };
    void *room = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return el_fail(EL_ERR_OOM, "no memory for oneDNN's kernels: give the process more memory");
    munmap(room, ROOM_BYTES);
    return EL_OK;
}

static enum el_status recipe_make(el_dnnl_cook cook, dnnl_data_type_t type, const struct el_kernel_args *args,
                                  struct el_dnnl_recipe *recipe)
{
    dnnl_engine_t engine;
    memset(recipe, 0, sizeof *recipe);
    recipe->type = type;
    EL_TRY(check_room());
    compute_alone();
    EL_TRY(el_dnnl_engine(&engine));
    return cook(args, recipe);
}

/* A thread's last answers: layers and micro-batches repeat queries, and one takes 0.1 ms. */
struct answer {
    el_dnnl_cook cook;
    dnnl_data_type_t type;
    int64_t d[EL_ARGS_SIZES];
    double s[EL_ARGS_SCALARS];
    uint64_t k[EL_ARGS_KEYS];
    struct el_workspace workspace;
};

static bool answers(const struct answer *answer, el_dnnl_cook cook, dnnl_data_type_t type,
                    const struct el_kernel_args *args)
{
    return answer->cook == cook && answer->type == type && !memcmp(answer->d, args->d, sizeof answer->d) &&
           !memcmp(answer->s, args->s, sizeof answer->s) && !memcmp(answer->k, args->k, sizeof answer->k);
}

enum el_status el_dnnl_workspace(el_dnnl_cook cook, dnnl_data_type_t type, const struct el_kernel_args *args,
                                 struct el_workspace *workspace_p)
{
    enum { N_ANSWERS = 32 };
    static _Thread_local struct answer last[N_ANSWERS];
    static _Thread_local int next;
    struct el_dnnl_recipe recipe;
    for (int i = 0; i < N_ANSWERS; i++) {
        if (!answers(&last[i], cook, type, args)) continue;
        *workspace_p = last[i].workspace;
        return EL_OK;
    }
    enum el_status status = recipe_make(cook, type, args, &recipe);
    if (status == EL_OK) {
        struct answer *answer = &last[next++ % N_ANSWERS];
        answer->cook = cook;
        answer->type = type;
        answer->workspace = (struct el_workspace){recipe.workspace_bytes, .padding_bytes = recipe.padding_bytes};
        memcpy(answer->d, args->d, sizeof answer->d);
        memcpy(answer->s, args->s, sizeof answer->s);
        memcpy(answer->k, args->k, sizeof answer->k);
        *workspace_p = answer->workspace;
    }
    recipe_free(&recipe);
    return status;
}

/* Makes a stage's memory objects; on failure those already made are in step->args, for release(). */
static enum el_status step_make(const struct el_dnnl_recipe *recipe, const struct el_dnnl_stage *stage, char *workspace,
                                struct step *step)
{
    dnnl_engine_t engine;
    EL_TRY(el_dnnl_engine(&engine));
    EL_DNNL_TRY(dnnl_primitive_create(&step->primitive, stage->pd));
    for (int i = 0; i < stage->n_operands; i++) {
        const struct el_dnnl_operand *operand = &stage->operands[i];
        int region = operand->place.region;
        void *data = region >= 0 ? workspace + recipe->region_offset[region] : operand->place.data;
        EL_DNNL_TRY(dnnl_memory_create(&step->args[i].memory, operand->view, engine, data));
        step->args[i].arg = operand->arg;
        step->n_args = i + 1;
    }
    return EL_OK;
}

static void text_make(const struct el_dnnl_recipe *recipe, char *text, size_t bytes)
{
    size_t n = (size_t)snprintf(text, bytes, "oneDNN");
    for (int i = 0; i < recipe->n_stages && n < bytes; i++) {
        if (i && recipe->stages[i].pd == recipe->stages[i - 1].pd) continue;
        const char *name = el_dnnl_implementation(recipe->stages[i].pd);
        n += (size_t)snprintf(text + n, bytes - n, "%s %s", i ? "," : ":", name);
    }
}

const char *el_dnnl_describe(const void *plan)
{
    return ((const struct plan *)plan)->text;
}

static enum el_status plan_make(const struct el_dnnl_recipe *recipe, char *workspace, struct plan *plan)
{
    dnnl_engine_t engine;
    EL_TRY(el_dnnl_engine(&engine));
    text_make(recipe, plan->text, sizeof plan->text);
    memcpy(plan->region_offset, recipe->region_offset, sizeof plan->region_offset);
    EL_DNNL_TRY(dnnl_stream_create(&plan->stream, engine, dnnl_stream_default_flags));
    for (int i = 0; i < recipe->n_stages; i++) {
        plan->n_steps = i + 1;
        EL_TRY(step_make(recipe, &recipe->stages[i], workspace, &plan->steps[i]));
    }
    return EL_OK;
}

enum el_status el_dnnl_prepare(el_dnnl_cook cook, dnnl_data_type_t type, const struct el_kernel_args *args,
                               void **plan_p)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan) return el_fail(EL_ERR_HOST_MEMORY, "oneDNN: no memory for a plan");
    struct el_dnnl_recipe recipe;
    enum el_status status = recipe_make(cook, type, args, &recipe);
    if (status == EL_OK) status = plan_make(&recipe, args->workspace, plan);
    recipe_free(&recipe);
    if (status == EL_OK)
        *plan_p = plan;
    else
        el_dnnl_release(plan);
    return status;
}

enum el_status el_dnnl_run(const struct el_kernel_args *args)
{
    const struct plan *plan = args->plan;
    for (int i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];
        EL_DNNL_TRY(dnnl_primitive_execute(step->primitive, plan->stream, step->n_args, step->args));
    }
    EL_DNNL_TRY(dnnl_stream_wait(plan->stream));
    return EL_OK;
}

void el_dnnl_release(void *plan_or_null)
{
    struct plan *plan = plan_or_null;
    if (!plan) return;
    for (int i = 0; i < plan->n_steps; i++) {
        for (int j = 0; j < plan->steps[i].n_args; j++) dnnl_memory_destroy(plan->steps[i].args[j].memory);
        if (plan->steps[i].primitive) dnnl_primitive_destroy(plan->steps[i].primitive);
    }
    if (plan->stream) dnnl_stream_destroy(plan->stream);
    free(plan);
}
