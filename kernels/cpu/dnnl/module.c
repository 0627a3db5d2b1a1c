/* The module's table of oneDNN's ops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/dnnl/common.h"
#include "runtime/base/process.h"

/* The C++ library throws when memory runs out, and C cannot catch it: end with a message of ours instead of an
 * abort. */
extern void (*set_terminate(void (*handler)(void)))(void) __asm__("_ZSt13set_terminatePFvvE");
extern const char *const *current_exception(void) __asm__("__cxa_current_exception_type");
extern void *make_globals(void) __asm__("__cxa_get_globals"); /* per-thread state for throwing, made at first use */

static void end_without_memory(void)
{
    static const char words[] = "evenload: no memory for oneDNN's kernels: give the process more memory, or take a "
                                "smaller model or batch\n";
    const char *const *type = current_exception();
    if (!type || !strstr(type[1], "bad_alloc")) abort();
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0) abort();
    _exit(EL_PROCESS_NO_MEMORY);
}

__attribute__((constructor)) static void take_over_the_end(void)
{
    set_terminate(end_without_memory);
}

static const struct el_kernel *find(enum el_op_kind op, enum el_dtype dtype)
{
    static const struct el_kernel *const rows[EL_OP_COUNT] = {
        [EL_OP_LINEAR_FORWARD] = el_dnnl_linear_forward,
        [EL_OP_LINEAR_BACKWARD_DATA] = el_dnnl_linear_backward_data,
        [EL_OP_LINEAR_BACKWARD_WEIGHTS] = el_dnnl_linear_backward_weights,
        [EL_OP_GROUPED_FORWARD] = el_dnnl_grouped_forward,
        [EL_OP_GROUPED_BACKWARD_DATA] = el_dnnl_grouped_backward_data,
        [EL_OP_GROUPED_BACKWARD_WEIGHTS] = el_dnnl_grouped_backward_weights,
        [EL_OP_CONV1D_FORWARD] = el_dnnl_forward,
        [EL_OP_CONV1D_BACKWARD_DATA] = el_dnnl_backward_data,
        [EL_OP_CONV1D_BACKWARD_WEIGHTS] = el_dnnl_backward_weights,
        [EL_OP_CONV2D_FORWARD] = el_dnnl_forward,
        [EL_OP_CONV2D_BACKWARD_DATA] = el_dnnl_backward_data,
        [EL_OP_CONV2D_BACKWARD_WEIGHTS] = el_dnnl_backward_weights,
    };
    make_globals();
    if ((unsigned)op >= EL_OP_COUNT || !rows[op] || (dtype != EL_F32 && dtype != EL_BF16)) return NULL;
    const struct el_kernel *row = rows[op] + (dtype == EL_BF16);
    return row->run ? row : NULL; /* products by expert: f32 only */
}

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
