/* What ranks of any communicator play together, each a process with a bootstrap: everything that must work, and what
 * must fail at once and for all. Included by the tests that start ranks, each in its own way. */
#pragma once

#include <stdio.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/bootstrap.h"
#include "tests/conformance/comm_mail.h"
#include "tests/conformance/comm_sequences.h"
#include "tests/conformance/comm_splits.h"

/* One rank's part. All scenes are collective. */
typedef enum el_status (*el_scene)(struct el_bootstrap *bootstrap, struct el_comm *comm);

/* Opens a device and the communicator `kind`, plays, closes. Returns an exit status, having said what failed. */
static inline int scene_play(const char *kind, struct el_bootstrap *bootstrap, el_scene scene)
{
    int rank = el_bootstrap_rank(bootstrap);
    struct el_device *device = NULL;
    struct el_comm *comm = NULL;
    struct el_device_spec spec = {.backend = "cpu", .index = rank, .position = rank};
    enum el_status status = el_device_open(&spec, &device);
    if (status == EL_OK) status = el_comm_open_ranks(kind, bootstrap, device, &comm);
    if (status == EL_OK) status = scene(bootstrap, comm);
    if (status != EL_OK) fprintf(stderr, "rank %d: %s\n", rank, el_error_message());
    el_comm_close(comm);
    el_device_close(device);
    return status == EL_OK ? 0 : 1;
}

static inline enum el_status scene_everything(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    (void)bootstrap;
    return check_product(comm);
}

static inline enum el_status scene_splits(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    EL_TRY(check_splits(comm));
    return el_bootstrap_barrier(bootstrap);
}

static inline enum el_status scene_mail(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    EL_TRY(check_mail(comm));
    EL_TRY(check_partners(comm));
    return el_bootstrap_barrier(bootstrap);
}

static inline enum el_status scene_sequences(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    EL_TRY(check_sequences(comm, 40));
    return el_bootstrap_barrier(bootstrap);
}

/* Late is far beyond what a failure takes, also on a slow machine under a sanitizer; what hangs does not end at all. */
static inline enum el_status scene_expect_peer_error(struct el_comm *comm)
{
    int64_t begin_ns = el_clock_ns();
    if (check_operations(comm, is_sanitized() ? 250000 : 1000000, EL_F32, 0) != EL_ERR_PEER)
        return el_fail(EL_ERR_INTERNAL, "the operation did not fail");
    if (el_clock_ns() - begin_ns > INT64_C(20000000000)) return el_fail(EL_ERR_INTERNAL, "the operation failed late");
    return EL_OK;
}

/* The last of several ranks gives up while the others are in an operation; after that the ranks can still agree. */
static inline enum el_status scene_last_rank_aborts(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    if (el_bootstrap_rank(bootstrap) == el_bootstrap_size(bootstrap) - 1) {
        usleep(50000);
        el_comm_abort(comm);
    }
    EL_TRY(scene_expect_peer_error(comm));
    return el_bootstrap_agree(bootstrap, EL_OK);
}

static inline enum el_status scene_ranks_differ(struct el_bootstrap *bootstrap, struct el_comm *comm)
{
    enum el_status status = check_operations(comm, el_bootstrap_rank(bootstrap) == 0 ? 1000 : 1001, EL_F32, 0);
    return status == EL_OK ? el_fail(EL_ERR_INTERNAL, "nobody noticed") : EL_OK;
}

/* A scene, among how many ranks it is played, and how many of these fail. */
struct scene_row {
    const char *what;
    el_scene scene;
    int least, most, n_failed;
};

/* `run_ranks` returns how many ranks failed. Returns how often that was not the row's number, having said so. */
static inline int scene_play_rows(const struct scene_row *rows, size_t n, int (*run_ranks)(int size, el_scene scene))
{
    int n_wrong = 0;
    for (size_t i = 0; i < n; i++)
        for (int size = rows[i].least; size <= rows[i].most; size++) {
            int n_failed = run_ranks(size, rows[i].scene);
            if (n_failed == rows[i].n_failed) continue;
            fprintf(stderr, "%s: %d of %d ranks failed, not %d\n", rows[i].what, n_failed, size, rows[i].n_failed);
            n_wrong++;
        }
    return n_wrong;
}
