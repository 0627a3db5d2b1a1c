/* The module's table: which ops oneDNN does. What it does not list, the vector loops or the reference do. */
#include <stdio.h>

#include "kernels/cpu/dnnl/common.h"

static const struct el_kernel *find(enum el_op_kind op)
{
    static const struct el_kernel *const rows[EL_OP_COUNT] = {
        [EL_OP_LINEAR_FORWARD] = &el_dnnl_linear_forward,
        [EL_OP_LINEAR_BACKWARD_DATA] = &el_dnnl_linear_backward_data,
        [EL_OP_LINEAR_BACKWARD_WEIGHTS] = &el_dnnl_linear_backward_weights,
        [EL_OP_CONV1D_FORWARD] = &el_dnnl_conv1d_forward,
        [EL_OP_CONV1D_BACKWARD_DATA] = &el_dnnl_conv1d_backward_data,
        [EL_OP_CONV1D_BACKWARD_WEIGHTS] = &el_dnnl_conv1d_backward_weights,
        [EL_OP_CONV2D_FORWARD] = &el_dnnl_conv2d_forward,
        [EL_OP_CONV2D_BACKWARD_DATA] = &el_dnnl_conv2d_backward_data,
        [EL_OP_CONV2D_BACKWARD_WEIGHTS] = &el_dnnl_conv2d_backward_weights,
    };
    return (unsigned)op < EL_OP_COUNT ? rows[op] : NULL;
}

/* Written once, by the loader. */
static char version_text[32];

__attribute__((constructor)) static void read_version(void)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(version_text, sizeof version_text, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

static const char *library(void)
{
    return version_text;
}

extern const struct el_dnnl_module el_dnnl_module;
const struct el_dnnl_module el_dnnl_module = {.find = find, .library = library};
