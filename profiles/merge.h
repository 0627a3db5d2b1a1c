/* One trace of a job's related traces, on the first one's clock, for Perfetto.
 *
 *     el_merge_write(&job, "job.json.gz", &figures);
 *
 * All events of all traces, with processes that are apart: "rank 3: python". Beside them each rank has a process "rank
 * 3: collectives", in which a matched call is a slice (cat evenload.collective) of two parts: the wait for the last one
 * (evenload.wait, "waits for rank 1") and the transfer (evenload.transfer), and an arrow (flow evenload.wait) leads
 * from the transfer of the one that came last to that of each one that waited. Of a message only the receiver waits.
 * The member "evenloadMerged" has the clocks' offsets and errors; el_kineto_read takes no such file for a trace.
 *
 * Units: seconds. Blocking; written whole or not at all. Threads: one at a time. */
#pragma once

#include <limits.h>

#include "profiles/relate.h"

struct el_merge_job {
    const struct el_kineto_trace *traces;
    const struct el_relation *relation;
    char *const *paths;         /* [traces] */
    const char *const *members; /* [relation->n_members]: names */
    size_t n;                   /* traces */
};

struct el_merge_figures {
    size_t n_events, n_waits; /* n_events: of the traces */
    double wait_s;            /* sum of the waits */
    double error_s;           /* the clocks' largest */
};

/* .gz: packed. Errors: EL_ERR_INVALID (a trace whose clock is not related), EL_ERR_IO, EL_ERR_ABSENT (no gzip),
 * EL_ERR_HOST_MEMORY. */
enum el_status el_merge_write(const struct el_merge_job *job, const char *path, struct el_merge_figures *figures_p);
