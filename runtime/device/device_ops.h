/* What a backend gives: the contract for authors. Users read device.h; a new backend starts from skeleton.c.
 *
 * Only device.c and program*.c call these hooks, after checking arguments; the ledger and the probe's events are
 * theirs, so a backend knows nothing of tags, phases or recorders. Life: usable, open, map..., stream_open...,
 * submit..., stream_close, unmap, close.
 *
 * A registry row is one backend; see el_backends in device.c.
 */
#ifndef EL_DEVICE_OPS_H
#define EL_DEVICE_OPS_H

#include "runtime/device/program.h"

struct el_device_ops {
    const char *name;    /* Required: the word before the colon in a device's name */
    const char *summary; /* Required: for `evenload devices` */
    bool simulated;      /* no memory, no time: programs are resolved in virtual time */
    bool computes;       /* kernels run; false: they are skipped */

    /* Optional: default is usable. EL_ERR_ABSENT with the reason. `n_devices_p`: how many can be opened without
     * sharing. */
    enum el_status (*usable)(int *n_devices_p);
    /* Required. Called once a device. */
    enum el_status (*open)(const struct el_device_spec *spec, void **state_p);
    /* Required. All streams are closed and all memory is unmapped. */
    void (*close)(void *state);

    /* Required unless simulated. Device memory, 64-byte aligned, never 0. EL_ERR_HOST_MEMORY or EL_ERR_OOM. */
    enum el_status (*map)(void *state, size_t bytes, uintptr_t *address_p);
    void (*unmap)(void *state, uintptr_t address, size_t bytes);
    /* Optional: default is that nobody knows. Bytes that the system says this device's memory takes just now. */
    enum el_status (*resident)(void *state, int64_t *bytes_p);
    /* Required unless simulated. Blocking copies; streams are idle. `host_to_device`: which address is which. */
    enum el_status (*move)(void *state, void *host, uintptr_t address, size_t bytes, bool host_to_device);

    /* Required unless simulated. A stream is an ordered queue of functions with a thread of its own. */
    enum el_status (*stream_open)(void *state, int index, void **stream_p);
    void (*stream_close)(void *stream);
    /* Required unless simulated. Queues run(argument) on the stream's thread and returns at once. At most one is
     * pending. */
    void (*submit)(void *stream, void (*run)(void *argument), void *argument);
    /* Required unless simulated. One copy, within submit's thread. */
    enum el_status (*copy)(void *destination, const void *source, size_t bytes);

    /* Optional, simulated backends only: fills spans[] of every op in virtual time from 0. */
    void (*resolve)(const struct el_program *program, struct el_span *spans);
};

extern const struct el_device_ops el_device_cpu, el_device_null, el_device_sim;

#endif
