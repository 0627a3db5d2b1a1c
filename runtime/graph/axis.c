/* The rows of the axes; see axis.h. */
#include "runtime/graph/axis.h"

const struct el_axis_row *el_axis_row(enum el_axis axis)
{
    static const struct el_axis_row rows[EL_AXIS_COUNT] = {
        [EL_AXIS_DATA] = {"data", "dp", "a part of each global batch", true},
        [EL_AXIS_STAGE] = {"stage", "pp", "a piece of the model, cut along its depth", false},
        [EL_AXIS_TENSOR] = {"tensor", "tp", "a piece of each layer, cut across", true},
        [EL_AXIS_SHARD] = {"shard", "shard", "a part of each global batch, and a range of the state", true},
    };
    return &rows[axis];
}
