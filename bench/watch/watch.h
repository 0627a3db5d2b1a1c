/* Watching any command from outside: its processes, the GPUs they use, and the cost of watching.
 *
 *     el_watch_begin(command, interval_s, &watch, &exit_status);   starts it; its standard streams are untouched
 *     el_watch_run(watch, wait_all);                     until it ends
 *     document = el_watch_record(watch, words);          the content of results.json (watch_record.c)
 *     el_watch_release_signals(watch);                   once the command has ended: they act on us again
 *     el_watch_print(document, file);                    the tables, from the document (watch_report.c)
 *     el_watch_end(watch);
 *
 * Four activities, each with its own interval: finding new processes, their CPU time and memory, their Pss, and the
 * GPUs. Each may use a share of one core, 1 % in all; one that used more waits.
 *
 * Threads: one. Signals: SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, and SIGINT and SIGQUIT from other processes are passed on
 * to the command while it runs; the terminal's own reach it by its group. After its end, while its processes are waited
 * for, SIGUSR1 and SIGUSR2 are ignored and the others end the wait.
 */
#pragma once

#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#include "profiles/gpu_processes.h"
#include "profiles/process_tree.h"

/* ---- figures over time of many processes, in bounded memory (look.c) ----
 *
 * At first each sample is a frame. When there are too many frames, each two become one, in all series. A frame keeps
 * the highest memory and the last CPU time.
 *
 *     el_frames_begin(&frames, now_ns);                      a sample begins
 *     el_series_put(&frames, &series[i], bytes, cpu_ns);     of each that is there
 *     if (el_frames_are_many(&frames)) { el_frames_halve(&frames); el_series_halve(&series[i]) of every series; }
 *
 * A series begins at the frame of its first sample. A sample that failed leaves no gap: once there is another, the
 * frames between repeat the last value. */
enum { EL_FRAMES_MAX = 1000 };

struct el_frames {
    int64_t ns[EL_FRAMES_MAX]; /* of the last sample in each */
    int n, looks, looks_each;
};

struct el_series_point {
    int64_t bytes;  /* the highest of the frame */
    int64_t cpu_ns; /* since the process began, at the frame's end */
};

struct el_series {
    int first, n;
    size_t room;
    struct el_series_point *points;
};

void el_frames_begin(struct el_frames *frames, int64_t now_ns);
bool el_frames_are_many(const struct el_frames *frames);
void el_frames_halve(struct el_frames *frames);

/* Into the present frame. Where no memory is left for it, the next value fills the gap. */
void el_series_put(const struct el_frames *frames, struct el_series *series, int64_t bytes, int64_t cpu_ns);
void el_series_halve(struct el_series *series);
void el_series_free(struct el_series *series);

/* ---- a watch ---- */

enum { EL_WATCH_USES_MAX = 1024, EL_WATCH_REASON_BYTES = 160 };

enum el_watch_activity { EL_WATCH_DISCOVER, EL_WATCH_LOOK, EL_WATCH_SHARED, EL_WATCH_GPUS, EL_WATCH_ACTIVITIES };

/* When an activity is due, and its cost so far. */
struct el_watch_pace {
    int64_t every_ns, due_ns;
    double total_ns;
    int n;
};

/* A process on a GPU. */
struct el_watch_use {
    int process; /* place in the tree */
    int gpu;
    bool there; /* at the last sample */
    int64_t bytes, peak_bytes;
    double byte_s, looked_s; /* for the mean */
    double busy_pct;         /* of the driver's last sample, while it is valid */
    int64_t busy_ns;         /* when that sample was read */
    double busy_pct_s, told_s;
    struct el_series series;
};

struct el_watch_gpu {
    double busy_sum;
    int n_busy;
    int64_t ours_peak_bytes;   /* the highest sum over our processes */
    int64_t others_peak_bytes; /* of processes that are not in the tree, or cannot be matched to it */
    int64_t used_peak_bytes, total_bytes;
};

struct el_watching {
    char *const *command;
    pid_t pid;
    sigset_t signals, signals_before;          /* that we handle; the mask of before */
    bool ended, waited_for_all, waiting_ended; /* by --wait-all; by a signal */
    int wait_status;
    int64_t begin_ns, end_ns;
    double interval_s;
    struct el_process_tree *tree;
    struct el_frames frames;
    struct el_series series[EL_TREE_PROCESSES_MAX]; /* by place in the tree */
    struct el_watch_pace paces[EL_WATCH_ACTIVITIES];
    int64_t resident_peak_bytes;            /* the highest sum over all processes at one time */
    struct el_gpu_processes *gpus;          /* NULL: none */
    char gpu_reason[EL_WATCH_REASON_BYTES]; /* why */
    struct el_watch_gpu gpu[EL_GPUS_MAX];
    struct el_watch_use uses[EL_WATCH_USES_MAX];
    int n_uses;
    int64_t gpu_look_ns;
    double own_cpu_s;      /* of the watching itself */
    double children_cpu_s; /* of all processes that ended and were waited for */
    int64_t largest_bytes; /* the highest resident memory of any one of those */
};

/* The exit status if the command was never started, as in shells. */
enum { EL_WATCH_NOT_FOUND = 127, EL_WATCH_NOT_STARTED = 126 };

/* Errors: EL_ERR_ABSENT (the command cannot be started: exit with *exit_status_p), EL_ERR_HOST_MEMORY, EL_ERR_IO. */
enum el_status el_watch_begin(char *const *command, double interval_s, struct el_watching **watch_p,
                              int *exit_status_p);
/* Blocks until the command has ended, with `wait_all` until the last of its processes has. Errors: EL_ERR_HOST_MEMORY;
 * the command is still waited for. */
enum el_status el_watch_run(struct el_watching *watch, bool wait_all);
/* Call when the command has ended. Pending signals were meant for it and are dropped. From here on signals act as on
 * any program, but SIGPIPE is ignored: a reader that closed our output must not change the exit status. */
void el_watch_release_signals(const struct el_watching *watch);
void el_watch_end(struct el_watching *watch); /* NULL is legal */
/* The command's own status, or 128 plus the number of the signal that ended it. */
int el_watch_exit_status(const struct el_watching *watch);

/* The activities; look.c. */
enum el_status el_watch_do(struct el_watching *watch, enum el_watch_activity activity);

/* CPU time over its life; 100: a whole core; NAN: its life is unknown. */
double el_watch_cpu_pct(const struct el_watching *watch, const struct el_tree_process *p);
/* Mean over the samples that the driver had; NAN: none. */
double el_watch_use_busy_pct(const struct el_watch_use *use);
/* Its last sample, or the command's end if that was earlier. */
int64_t el_watch_end_of(const struct el_watching *watch, const struct el_tree_process *p);

/* A peer: a process or GPU that is compared with others. */
struct el_watch_peer {
    int process;                   /* place in the tree; -1: a whole GPU */
    int gpu;                       /* -1: none */
    double memory_bytes, busy_pct; /* NAN: unknown */
};
struct el_watch_peers {
    const char *rule; /* in words */
    const char *what; /* "ranks", "GPUs", "processes" */
    struct el_watch_peer *list;
    int n; /* 0: none; the rule says why */
};
/* Which processes are compared; peers.c has the rules. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_watch_peers(const struct el_watching *watch, struct el_watch_peers *peers_p);
void el_watch_peers_free(struct el_watch_peers *peers);

/* A run's document; `words`: the evenload command that made it. New reference; NULL without memory. */
json_t *el_watch_record(const struct el_watching *watch, const char *words);
/* Tables and sentences, from the document alone. */
void el_watch_print(const json_t *document, FILE *out);
