/* Watching any command from outside: its processes, the GPUs they use, and what that costs.
 *
 *     el_watch_begin(command, interval_s, &watch, &exit_status);   starts it; its standard streams are untouched
 *     el_watch_run(watch, wait_all);                     until it ends
 *     document = el_watch_record(watch, words);          what results.json holds (record.c)
 *     el_watch_release_signals(watch);                   the command has ended: they are for us again
 *     el_watch_print(document, dir, file);               the tables, from the document (report.c)
 *     el_watch_end(watch);
 *
 * Four activities, each with its own pace: finding new processes, their CPU time and memory, their Pss, and the GPUs.
 * Each has a share of one core that it may cost, and waits where it has cost more; together that is 1 % of a core.
 *
 * Threads: one. Signals: SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, and SIGINT and SIGQUIT from other processes are passed on
 * to the command while it runs; the terminal's own reach it by its group. While its processes are waited for after its
 * end SIGUSR1 and SIGUSR2 are dropped, and the others end the waiting.
 */
#ifndef EL_BENCH_WATCH_H
#define EL_BENCH_WATCH_H

#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#include "bench/watch/series.h"
#include "profiles/gpu_processes.h"
#include "profiles/process_tree.h"

enum { EL_WATCH_USES_MAX = 1024, EL_WATCH_REASON_BYTES = 160 };

enum el_watch_activity { EL_WATCH_DISCOVER, EL_WATCH_LOOK, EL_WATCH_SHARED, EL_WATCH_GPUS, EL_WATCH_ACTIVITIES };

/* When an activity is due, and what it has cost. */
struct el_watch_pace {
    int64_t every_ns, due_ns;
    double total_ns;
    int n;
};

/* A process on a GPU. */
struct el_watch_use {
    int process; /* place in the tree */
    int gpu;
    bool there; /* at the last look */
    int64_t bytes, peak_bytes;
    double byte_s, looked_s; /* for the mean */
    double busy_pct;         /* of its last sample, for as long as one holds */
    int64_t busy_ns;         /* when that was seen */
    double busy_pct_s, told_s;
    struct el_series series;
};

struct el_watch_gpu {
    double busy_sum;
    int n_busy;
    int64_t ours_peak_bytes;   /* the highest sum over our processes */
    int64_t others_peak_bytes; /* of processes that are not in the tree, or cannot be joined to it */
    int64_t used_peak_bytes, total_bytes;
};

struct el_watching {
    char *const *command;
    pid_t pid;
    sigset_t signals, signals_before;          /* that are taken here; what was blocked before */
    bool ended, waited_for_all, waiting_ended; /* by --wait-all; by a signal */
    int wait_status;
    int64_t begin_ns, end_ns;
    double interval_s;
    struct el_process_tree *tree;
    struct el_frames frames;
    struct el_series *series; /* by place in the tree */
    int n_series;
    struct el_watch_pace paces[EL_WATCH_ACTIVITIES];
    int64_t resident_peak_bytes;            /* the highest sum over all processes at one look */
    struct el_gpu_processes *gpus;          /* NULL: none */
    char gpu_reason[EL_WATCH_REASON_BYTES]; /* why */
    struct el_watch_gpu gpu[EL_GPUS_MAX];
    struct el_watch_use uses[EL_WATCH_USES_MAX];
    int n_uses;
    int64_t gpu_look_ns;
    double own_cpu_s;      /* of the watching itself */
    double children_cpu_s; /* of all that ended and were waited for */
    int64_t largest_bytes; /* the highest resident memory of any one of those */
};

/* The exit status where the command was never started, as shells have it. */
enum { EL_WATCH_NOT_FOUND = 127, EL_WATCH_NOT_STARTED = 126 };

/* Errors: EL_ERR_ABSENT: the command cannot be started, *exit_status_p says how; EL_ERR_HOST_MEMORY, EL_ERR_IO. */
enum el_status el_watch_begin(char *const *command, double interval_s, struct el_watching **watch_p,
                              int *exit_status_p);
/* Blocking until the command has ended, with `wait_all` until the last of its processes has. Errors:
 * EL_ERR_HOST_MEMORY; the command is waited for all the same. */
enum el_status el_watch_run(struct el_watching *watch, bool wait_all);
/* To be called when the command has ended. What still waits was meant for it, and is dropped; from here on a signal
 * does what it does to any program, but for SIGPIPE: who no longer reads our words does not take the command's status
 * away. */
void el_watch_release_signals(const struct el_watching *watch);
void el_watch_end(struct el_watching *watch); /* NULL is legal */
/* What the command's end means: its own status, or 128 and the signal that ended it. */
int el_watch_exit_status(const struct el_watching *watch);

/* start.c: with the signals that the watcher takes blocked in it and not in the command. `taken_p`: those; `before_p`:
 * the mask of before, which is the command's. */
enum el_status el_watch_start(char *const *command, sigset_t *taken_p, sigset_t *before_p, pid_t *pid_p,
                              int *exit_status_p);
/* The activities; look.c. */
enum el_status el_watch_do(struct el_watching *watch, enum el_watch_activity activity);
/* The last figures of a child that has ended and was not yet waited for. */
void el_watch_look_at_ended(struct el_watching *watch, pid_t pid);

/* CPU time over its life, 100: a whole core; NAN: its life is not known. */
double el_watch_cpu_pct(const struct el_watching *watch, const struct el_tree_process *p);
/* Over all looks at which the driver told; NAN: it never did. */
double el_watch_use_busy_pct(const struct el_watch_use *use);
/* When it was last there, as far as the command was watched: the looks after its end are not counted. */
int64_t el_watch_end_of(const struct el_watching *watch, const struct el_tree_process *p);

/* A peer: what is compared with the others. */
struct el_watch_peer {
    int process;                   /* place in the tree; -1: a whole GPU */
    int use;                       /* place in uses; -1: no GPU */
    int gpu;                       /* -1: none */
    double memory_bytes, busy_pct; /* NAN: not known */
};
struct el_watch_peers {
    const char *rule; /* in words */
    const char *what; /* "ranks", "GPUs", "processes" */
    struct el_watch_peer *list;
    int n; /* 0: there are none, and the rule says why */
};
/* Who is compared; peers.c has the rules. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_watch_peers(const struct el_watching *watch, struct el_watch_peers *peers_p);
void el_watch_peers_free(struct el_watch_peers *peers);

/* A run's document; `words`: the evenload command that made it. New reference; NULL without memory. */
json_t *el_watch_record(const struct el_watching *watch, const char *words);
/* The part of it that has the form of every run's trial; trial.c. */
json_t *el_watch_trial(const struct el_watching *watch, const struct el_watch_peers *peers, const char *words);
/* Bytes there as MiB; `text` has EL_FIGURE_BYTES. Returns it. */
const char *el_watch_mib(const json_t *object, const char *key, char *text);
/* Tables and sentences, from the document alone. */
void el_watch_print_tables(const json_t *document, FILE *out); /* tables.c */
void el_watch_print(const json_t *document, const char *dir, FILE *out);

#endif
