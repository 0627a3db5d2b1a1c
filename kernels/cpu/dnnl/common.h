/* What the oneDNN kernels share: one interface to versions 2 and 3 of its C API, and recipes.
 * A recipe describes an op: stages (primitives) in order, their operands, and workspace regions for the rest (blocked
 * weights, scratchpads, partial sums). workspace() makes it for the sizes, prepare() for the plan:
 *
 *     static enum el_status cook(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe);
 *     workspace:  el_dnnl_workspace(cook, type, args, workspace_p)
 *     prepare:    el_dnnl_prepare(cook, type, args, plan_p)  primitives and memory objects, on the computing thread
 *     run:        el_dnnl_run(args)                          executes the stages, allocates nothing
 *     release:    el_dnnl_release(plan)
 *
 * Threads: a plan belongs to the thread that prepared it. Scratchpads are in the op's workspace, because the library's
 * own belongs to the thread that made the primitive. Errors: EL_ERR_OOM; EL_ERR_INTERNAL with the call's name and the
 * library's status. */
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include "kernels/cpu/cpu.h"

/* A descriptor is a struct in version 2 and a handle in version 3; a view is what functions take. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t el_dnnl_view;
#define EL_DNNL_VIEW(desc) (desc)
#else
typedef const dnnl_memory_desc_t *el_dnnl_view;
#define EL_DNNL_VIEW(desc) (&(desc))
#endif

enum {
    EL_DNNL_STAGES = 32,
    EL_DNNL_OPERANDS = 6,
    EL_DNNL_REGIONS = 5,
    EL_DNNL_DESCS = 16,
    EL_DNNL_PDS = 5,
    EL_DNNL_ALIGN_BYTES = 64
};

/* Where an operand is: in a workspace region, or (region < 0) at data. */
struct el_dnnl_place {
    int region;
    void *data;
};

struct el_dnnl_operand {
    int arg;
    el_dnnl_view view;
    struct el_dnnl_place place;
};

struct el_dnnl_stage {
    const_dnnl_primitive_desc_t pd;
    int n_operands;
    struct el_dnnl_operand operands[EL_DNNL_OPERANDS];
};

/* Zeroed before use. Owns all descriptors made with it; el_dnnl_workspace and el_dnnl_prepare make and free it. */
struct el_dnnl_recipe {
    dnnl_data_type_t type; /* of the op's operands; gradients of weights are f32 */
    int n_descs, n_pds, n_stages, n_regions;
    dnnl_memory_desc_t descs[EL_DNNL_DESCS];
    dnnl_primitive_desc_t pds[EL_DNNL_PDS];
    struct el_dnnl_stage stages[EL_DNNL_STAGES];
    struct el_dnnl_place scratchpad; /* shared by the stages so far, if any needs one */
    size_t scratchpad_bytes;
    size_t region_offset[EL_DNNL_REGIONS];
    size_t workspace_bytes, padding_bytes;
};

typedef enum el_status (*el_dnnl_cook)(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe);

enum el_status el_dnnl_workspace(el_dnnl_cook cook, dnnl_data_type_t type, const struct el_kernel_args *args,
                                 struct el_workspace *workspace_p);
enum el_status el_dnnl_prepare(el_dnnl_cook cook, dnnl_data_type_t type, const struct el_kernel_args *args,
                               void **plan_p);
enum el_status el_dnnl_run(const struct el_kernel_args *args);
void el_dnnl_release(void *plan);
const char *el_dnnl_describe(const void *plan);

/* Descriptors of `type`, kept in the recipe: with strides, or with a format tag (dnnl_format_tag_any: the primitive
 * chooses). */
enum el_status el_dnnl_strided(struct el_dnnl_recipe *recipe, dnnl_data_type_t type, int n_dims, const dnnl_dims_t dims,
                               const dnnl_dims_t strides, el_dnnl_view *view_p);
enum el_status el_dnnl_tagged(struct el_dnnl_recipe *recipe, dnnl_data_type_t type, int n_dims, const dnnl_dims_t dims,
                              dnnl_format_tag_t tag, el_dnnl_view *view_p);

struct el_dnnl_place el_dnnl_region(struct el_dnnl_recipe *recipe, size_t bytes);
static inline struct el_dnnl_place el_dnnl_at(void *data)
{
    return (struct el_dnnl_place){.region = -1, .data = data};
}
/* Where region `index` is at run time, for our own loops. */
void *el_dnnl_region_data(const struct el_kernel_args *args, int index);

/* Appends a stage for `pd`; its scratchpad is shared with earlier stages if that is large enough. */
struct el_dnnl_stage *el_dnnl_stage_add(struct el_dnnl_recipe *recipe, const_dnnl_primitive_desc_t pd);
void el_dnnl_operand_add(struct el_dnnl_stage *stage, int arg, el_dnnl_view view, struct el_dnnl_place place);

/* Appends a copy between layouts; `acc` adds to the destination. */
enum el_status el_dnnl_reorder_add(struct el_dnnl_recipe *recipe, el_dnnl_view from, struct el_dnnl_place from_place,
                                   el_dnnl_view to, struct el_dnnl_place to_place, int acc);

struct el_dnnl_after {
    int acc, relu;
};

/* Primitive descriptors, kept in the recipe. `hint`: the same convolution's forward one; `bias`: NULL for none. */
struct el_dnnl_conv {
    el_dnnl_view x, w, bias, y;
    int64_t stride, pad;
};
enum el_status el_dnnl_conv_forward(struct el_dnnl_recipe *recipe, const struct el_dnnl_conv *conv,
                                    struct el_dnnl_after after, const_dnnl_primitive_desc_t *pd_p);
enum el_dnnl_backward { EL_DNNL_DATA, EL_DNNL_WEIGHTS };
enum el_status el_dnnl_conv_backward(struct el_dnnl_recipe *recipe, enum el_dnnl_backward way,
                                     const struct el_dnnl_conv *conv, const_dnnl_primitive_desc_t hint,
                                     const_dnnl_primitive_desc_t *pd_p);

/* a x b (+ bias, NULL for none) -> c. */
enum el_status el_dnnl_matmul(struct el_dnnl_recipe *recipe, el_dnnl_view a, el_dnnl_view b, el_dnnl_view bias,
                              el_dnnl_view c, struct el_dnnl_after after, const_dnnl_primitive_desc_t *pd_p);
enum el_status el_dnnl_reorder(struct el_dnnl_recipe *recipe, el_dnnl_view from, el_dnnl_view to,
                               struct el_dnnl_after after, const_dnnl_primitive_desc_t *pd_p);

/* The library's name of the implementation: "brgconv:avx512_core". */
const char *el_dnnl_implementation(const_dnnl_primitive_desc_t pd);

enum el_status el_dnnl_engine(dnnl_engine_t *engine_p);

enum el_status el_dnnl_check(dnnl_status_t status, const char *call);
#define EL_DNNL_TRY(call) EL_TRY(el_dnnl_check((call), #call))

/* Defines the f32 and bf16 rows `kernel` from `cook`, run by `run_f32` and `run_bf16`. */
#define EL_DNNL_FUNCTIONS(kernel, type, cook)                                                                          \
    static enum el_status kernel##_##type##_workspace(const struct el_kernel_args *args,                               \
                                                      struct el_workspace *workspace_p)                                \
    {                                                                                                                  \
        return el_dnnl_workspace(cook, dnnl_##type, args, workspace_p);                                                \
    }                                                                                                                  \
    static enum el_status kernel##_##type##_prepare(const struct el_kernel_args *args, void **plan_p)                  \
    {                                                                                                                  \
        return el_dnnl_prepare(cook, dnnl_##type, args, plan_p);                                                       \
    }
#define EL_DNNL_ROW(kernel, type, run_function)                                                                        \
    {                                                                                                                  \
        .run = run_function, .workspace = kernel##_##type##_workspace, .prepare = kernel##_##type##_prepare,           \
        .release = el_dnnl_release, .describe = el_dnnl_describe                                                       \
    }
#define EL_DNNL_KERNEL(kernel, cook, run_f32, run_bf16)                                                                \
    EL_DNNL_FUNCTIONS(kernel, f32, cook)                                                                               \
    EL_DNNL_FUNCTIONS(kernel, bf16, cook)                                                                              \
    const struct el_kernel kernel[2] = {EL_DNNL_ROW(kernel, f32, run_f32), EL_DNNL_ROW(kernel, bf16, run_bf16)}

extern const struct el_kernel el_dnnl_linear_forward[2], el_dnnl_linear_backward_data[2],
    el_dnnl_linear_backward_weights[2];
extern const struct el_kernel el_dnnl_grouped_forward[2], el_dnnl_grouped_backward_data[2],
    el_dnnl_grouped_backward_weights[2];
/* For conv1d and conv2d. */
extern const struct el_kernel el_dnnl_forward[2], el_dnnl_backward_data[2], el_dnnl_backward_weights[2];
