/* Relates the traces of a job's ranks: matches collectives, finds a common clock, and gives a row per rank
 * (profiles/collectives.h, profiles/ranks.h).
 *
 *     el_relate(traces, n, &relation);        sorts the traces' spans, otherwise read-only
 *     el_ranks_blame(...)                     relation.members' rows
 *     el_relation_free(&relation);
 *
 * A member is a device of a trace, or its host. Operations match by group, verb and the communicator's number (Seq);
 * without numbers the j-th matches the j-th if all members have equally many, else within a profiler step. Messages
 * match by ends and order.
 *
 * Clocks: members of a collective that needs everybody's data (all-reduce, all-gather, reduce-scatter, all-to-all,
 * barrier) leave it together. A trace's offset is the median difference of ends to a trace with a known clock. A drift
 * counts if the medians of both halves differ by more than twice the residual of a line through them, and that is below
 * 0.7 of the median's. `error_s`: 9 of 10 differences are then below it. Times stay if the offset is below it, or if
 * traces declare a common clock.
 *
 * Figures are per step, from one ProfilerStep's begin to the next one's. A message receiver's wait is no communication.
 * Calls without a partner count only in n_alone. Units: seconds, bytes. Threads: any. Ownership: independent of the
 * traces. */
#pragma once

#include "profiles/kineto.h"
#include "profiles/ranks.h"

struct el_relation_clock {
    bool known;                 /* false: it shares no collective with a trace that is */
    double offset_s, drift_ppm; /* added to its times */
    int64_t base_ns, from_ns;   /* its begin after the first trace's; where the drift is 0 (el_relation_time) */
    double error_s;             /* NAN: no data, or the reference (the first one) */
    size_t n_ends;
};

/* Parts of a step's time. */
enum {
    EL_RELATION_COMPUTE,
    EL_RELATION_EXPOSED,      /* communication without concurrent computation */
    EL_RELATION_WAIT_EXPOSED, /* its part that waits for a later member */
    EL_RELATION_COPIES,       /* other copies, beside neither */
    EL_RELATION_WAIT,         /* whatever is beside it */
    EL_RELATION_TRANSFER,     /* whatever is beside it */
    EL_RELATION_STEP,         /* the step's length */
    EL_RELATION_PARTS
};

struct el_relation_member {
    size_t trace;            /* index in the given ones */
    int64_t rank, device;    /* device -1: the host */
    size_t n_calls, n_alone; /* n_alone: without a partner */
    double *parts_s;         /* [n_steps][EL_RELATION_PARTS] */
    double *late_s;          /* [n_steps], as row.late_s, their mean */
    struct el_rank_row row;  /* name: NULL */
};

/* Collectives of one verb, group size and message size. */
struct el_relation_size {
    enum el_comm_verb verb;
    int n_ranks;
    double bytes;
    size_t n;
    double transfer_s; /* median */
};

/* A member's part in a collective or message. */
struct el_relation_entry {
    uint64_t class, order; /* kind, and number within it: the matching's */
    size_t member, call;   /* which of its trace's calls */
    int64_t step;
    bool link, syncs;
    struct el_span span; /* el_relation_time */
};

/* One that all its members have. */
struct el_relation_operation {
    size_t first, n;    /* its entries */
    size_t step, place; /* its step, and its number in the step */
    int64_t latest_ns, end_ns;
};

struct el_relation {
    struct el_relation_member *members; /* by rank and device */
    size_t n_members, n_steps;
    int64_t *steps;                   /* the profiler's numbers of those that all traces have, [n_steps]; NULL: none */
    size_t n_left_out;                /* steps that not all traces have */
    bool has_steps;                   /* the profiler's; else all is one step */
    struct el_relation_clock *clocks; /* [traces] */
    struct el_relation_size *sizes;   /* by verb, then size */
    size_t n_sizes, n_collectives;    /* n_collectives: matched, over all steps */
    double step_s;                    /* mean */
    struct el_relation_entry *entries;
    struct el_relation_operation *operations; /* collectives and messages */
    size_t n_entries, n_operations;
    int64_t origin_ns; /* the first trace's first call, in its own time */
};

/* n_collectives 0: nothing matches. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_relate(struct el_kineto_trace *traces, size_t n_traces, struct el_relation *relation_p);
/* A time of a trace as nanoseconds after origin_ns on the first one's clock. */
int64_t el_relation_time(const struct el_relation *relation, size_t trace, int64_t ns);
void el_relation_free(struct el_relation *relation);
