/* What the module el_dnnl.so offers: rows of the op table in f32, made by oneDNN. It names nothing of oneDNN, so that
 * who opens the module need not have its headers. */
#ifndef EL_KERNELS_CPU_DNNL_MODULE_H
#define EL_KERNELS_CPU_DNNL_MODULE_H

#include "kernels/kernels.h"

struct el_dnnl_module {
    /* Required. NULL where the module has no such row. */
    const struct el_kernel *(*find)(enum el_op_kind op);
    /* Required. "oneDNN 2.6.3": the library found at run time. */
    const char *(*library)(void);
};

/* The module's one symbol, a struct el_dnnl_module. */
#define EL_DNNL_SYMBOL "el_dnnl_module"

#endif
