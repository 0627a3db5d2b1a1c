/* Schedules of pipelines: the order in which a stage does its work of one step. Data, not code: whoever issues a step,
 * predicts its memory or draws it reads the same rows.
 *
 *     n = el_schedule_fill(&el_schedule_list()[config.schedule], n_stages, n_micro, stage, actions);
 *     for (int i = 0; i < n; i++) ... actions[i].kind, actions[i].micro ...
 *
 * gpipe: all forwards, then all backwards (Huang et al., GPipe, 2019). 1f1b: a stage keeps at most as many
 * micro-batches as there are stages from it on: after so many forwards a backward and a forward take turns (Narayanan
 * et al., PipeDream, 2019; as PyTorch's Schedule1F1B). Both are idle for (p - 1) / (m + p - 1) of the time between the
 * first forward and the last backward, for p stages of equal time and m micro-batches.
 *
 * Threads: any; nothing is kept. Errors: none.
 */
#ifndef EL_SCHEDULE_H
#define EL_SCHEDULE_H

enum { EL_MICRO_MAX = 256 };

enum el_action_kind { EL_ACTION_FORWARD, EL_ACTION_BACKWARD };

struct el_action {
    enum el_action_kind kind;
    int micro;
};

struct el_schedule {
    const char *name, *summary;
    /* How many micro-batches a stage has begun before its first backward. */
    int (*ahead)(int n_stages, int n_micro, int stage);
};

/* The list, ended by a row whose name is NULL. */
const struct el_schedule *el_schedule_list(void);
/* Fills actions[0 .. 2 * n_micro); returns how many. */
int el_schedule_fill(const struct el_schedule *schedule, int n_stages, int n_micro, int stage,
                     struct el_action *actions);
/* The most micro-batches that a stage has gone forward with and not yet back: how many sets of activations it holds. */
int el_schedule_in_flight(const struct el_schedule *schedule, int n_stages, int n_micro, int stage);

#endif
