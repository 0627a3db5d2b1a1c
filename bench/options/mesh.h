/* --mesh dp=2,pp=2: how many devices stand along each axis of a mode (runtime/graph/axis.h). The only reader of its
 * text.
 *
 * Threads: any. Errors: EL_ERR_INVALID in one line naming --mesh.
 */
#ifndef EL_MESH_H
#define EL_MESH_H

#include "runtime/base/status.h"
#include "runtime/modes/mode_info.h"

/* `text` "": nothing is given, all are 0. Of the axes that a mode has the first may be left out: it gets the devices
 * that the others leave. Others may be there with 1. n_devices 0: not known yet. */
enum el_status el_mesh_read(const char *text, const struct el_mode_info *mode, int n_devices, int mesh[EL_AXIS_COUNT]);

#endif
