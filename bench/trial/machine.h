/* A machine as a file: what simulated devices stand for (runtime/device/machine.h). Units: in the file GB/s (1e9
 * bytes), TFLOP/s and us, as its keys say.
 *
 *     el_machine_read("h100-sxm", &machine);      "" : the default; a file, or a name in profiles/hardware
 *     el_machine_text(&machine, text, sizeof text)
 */
#pragma once

#include <jansson.h>

#include "runtime/base/status.h"
#include "runtime/device/machine.h"

enum { EL_MACHINE_TEXT_BYTES = 256 };

/* Errors: EL_ERR_INVALID in one line: no such file or name, a key that is unknown or missing, a value that cannot be.
 */
enum el_status el_machine_read(const char *name, struct el_machine *machine_p);
/* Makes one of its figures half as good: a rate is halved, a time doubled. The figure's key in the file; NULL: it has
 * no more than `i`, and is as it was. */
const char *el_machine_worsen(struct el_machine *machine, int i);
/* The object as in the file. New reference. */
json_t *el_machine_json(const struct el_machine *machine);
/* "machine default (f32 1.00 TFLOP/s, f64 1.00, memory 500 GB/s, links 20.0 GB/s)", of an object as above. */
const char *el_machine_text(const json_t *machine, char text[EL_MACHINE_TEXT_BYTES]);
