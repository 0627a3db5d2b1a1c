/* The traces of one job's ranks beside one another: which of their collectives are one operation, on one clock, and
 * from there a row per rank by the record's own definitions (profiles/collectives.h, profiles/ranks.h).
 *
 *     el_relate(traces, n, &relation);        once all are read; changes nothing in them but the order of their spans
 *     el_ranks_blame(...)                     relation.members' rows
 *     el_relation_free(&relation);
 *
 * A member is a device of a trace, or the host where it has none. Operations are one where group, verb and the
 * communicator's own number (Seq) are the same. Where traces give no number, the j-th of all is the j-th of the others
 * if all have as many, else the j-th of a profiler step. A message is matched by its ends, and by order.
 *
 * Clocks: who takes part in a collective that needs everybody's data (all-reduce, all-gather, reduce-scatter,
 * all-to-all, barrier) leaves it when the last one has come and the data are through, so its ends are taken for one
 * moment. A trace's offset is the median of the differences between its ends and those of a trace whose clock is known.
 * A drift is taken into account where the medians of both halves differ by more than twice what a line through them
 * leaves, and that is less than 0.7 of what the median leaves. `error_s` is what 9 of 10 differences then stay under.
 * Where the offset itself is under it, or traces say that they have a common clock, times are left as they are.
 *
 * Figures are of a step: the time from a ProfilerStep's begin to the next one's. Of a message the receiver's wait is no
 * communication, as in the record. Calls whose partners are in no trace are in no figure: n_alone.
 * Units: seconds, bytes. Threads: any. Ownership: the relation owns its arrays; it does not refer to the traces.
 */
#pragma once

#include "profiles/kineto.h"
#include "profiles/ranks.h"

struct el_relation_clock {
    double offset_s, drift_ppm; /* what was added to its times */
    double error_s;             /* NAN: nothing to tell it by, or nothing to compare with (the first one) */
    size_t n_ends;
};

/* What of a step's time. */
enum {
    EL_RELATION_COMPUTE,
    EL_RELATION_EXPOSED,      /* communication without computation beside it */
    EL_RELATION_WAIT_EXPOSED, /* the part of it that waits for a later member */
    EL_RELATION_COPIES,       /* other copies, beside neither of both */
    EL_RELATION_WAIT,         /* whatever is beside it, */
    EL_RELATION_TRANSFER,     /* and so this */
    EL_RELATION_STEP,         /* the step's own length */
    EL_RELATION_PARTS
};

struct el_relation_member {
    size_t trace;            /* of those given */
    int64_t rank, device;    /* device -1: the host */
    size_t n_calls, n_alone; /* without a partner */
    double *parts_s;         /* [n_steps][EL_RELATION_PARTS] */
    struct el_rank_row row;  /* its name is NULL */
};

/* Collectives of one verb, group size and message size. */
struct el_relation_size {
    enum el_comm_verb verb;
    int n_ranks;
    double bytes;
    size_t n;
    double transfer_s; /* median */
};

struct el_relation {
    struct el_relation_member *members; /* by rank and device */
    size_t n_members, n_steps;
    bool has_steps;                   /* of the profiler; else all of it is one step */
    struct el_relation_clock *clocks; /* [traces] */
    struct el_relation_size *sizes;   /* by verb, then size */
    size_t n_sizes, n_operations;     /* collectives that were matched, over all steps */
    double step_s;                    /* mean */
};

/* n_operations is 0 where nothing can be matched. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_relate(struct el_kineto_trace *traces, size_t n_traces, struct el_relation *relation_p);
void el_relation_free(struct el_relation *relation);
