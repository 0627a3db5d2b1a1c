/* Where a member's lateness arises: in which part of its training loop its time went before it came late.
 *
 *     el_causes_find(traces, &relation, who, least_s, &causes);
 *     causes.parts_s[EL_CAUSE_BACKWARD]
 *
 * At a step's place (profiles/ranks.h) each member's time since it left its last collective that had ended before the
 * first arrival is cut into parts; a part counts with what it takes longer than in the mean of the other members, so
 * that the parts add up to late_s. Means over the steps in which `who` comes later than the mean by more than
 * `least_s`.
 *
 * On a device what it computes and copies counts first, and the host's parts are those in which it is idle.
 *
 *     pause       Python's garbage collection (profiles/hook knows it; traces do not)
 *     data        waits for PyTorch's DataLoader
 *     forward     from the end of that, or of the backward pass or optimizer before it, to the backward pass
 *     backward
 *     optimizer   from the end of the backward pass to the end of Optimizer.step
 *     other       the rest of the script
 *     earlier     it left the collective before later than the others; where calls' ends are not known (no_ends), also
 *                 the rest of the backward pass, which waits for the transfer
 *
 * Units: seconds. Threads: any. */
#pragma once

#include "profiles/relate.h"

#define EL_CAUSES(X)                                                                                                   \
    X(COMPUTE, "compute")                                                                                              \
    X(COPIES, "copies")                                                                                                \
    X(PAUSE, "pause")                                                                                                  \
    X(DATA, "data")                                                                                                    \
    X(BACKWARD, "backward")                                                                                            \
    X(OPTIMIZER, "optimizer")                                                                                          \
    X(FORWARD, "forward")                                                                                              \
    X(OTHER, "other")                                                                                                  \
    X(EARLIER, "earlier")
#define EL_CAUSE_MEMBER(name, text) EL_CAUSE_##name,
enum el_cause { EL_CAUSES(EL_CAUSE_MEMBER) EL_CAUSE_PARTS };
const char *el_cause_name(enum el_cause part);

struct el_causes {
    size_t n_steps; /* 0: in none is it known */
    double late_s, parts_s[EL_CAUSE_PARTS];
};

/* `traces` as el_relate left them. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_causes_find(const struct el_kineto_trace *traces, const struct el_relation *relation, size_t who,
                              double least_s, struct el_causes *causes_p);

/* A member's mean step by the same parts; what it waits for others in collectives, and on a device their transfers, are
 * no time of theirs. Of a host waits are counted from its call, also while it computes beside them. */
struct el_step_parts {
    double parts_s[EL_CAUSE_PARTS], wait_s, transfer_s;
};
/* parts[relation->n_members]. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_causes_steps(const struct el_kineto_trace *traces, const struct el_relation *relation,
                               struct el_step_parts *parts);
