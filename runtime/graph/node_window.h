#pragma once

#include "kernels/window.h"
#include "runtime/graph/graph.h"

/* The output of such a node: x[h, w, c] -> [oh, ow, outputs]. Errors: EL_ERR_INVALID if the window does not fit. */
static inline enum el_status el_node_window_shape(const struct el_node *node, const struct el_shape *x, int64_t window,
                                                  int64_t outputs, struct el_shape *shape_p)
{
    int64_t stride = node->attributes.stride, pad = node->attributes.pad, h = x->d[0], w = x->d[1];
    if (h + 2 * pad < window || w + 2 * pad < window)
        return el_fail(EL_ERR_INVALID, "%s: a window of %lld does not fit an image of %lld x %lld; give --image more",
                       node->name, (long long)window, (long long)h, (long long)w);
    *shape_p = (struct el_shape){
        .n = 3, .d = {el_window_places(h, window, stride, pad), el_window_places(w, window, stride, pad), outputs}};
    return EL_OK;
}
