/* Watches a command from outside: its processes, their GPUs, and the cost of watching.
 *
 *     el_watch_begin(command, interval_s, &hook, NULL, &watch, &exit_status);   starts it with our standard streams
 *     el_watch_run(watch, wait_all);
 *     document = el_watch_record(watch, words);          results.json (watch_record.c)
 *     el_watch_put_training(watch, document);
 *     el_watch_release_signals(watch);                   after the command's end
 *     el_watch_print(document, file);                    tables (watch_report.c)
 *     el_watch_end(watch);
 *
 * Activities at their own intervals: new processes, CPU time and memory, Pss, GPUs, and with `live` a table of ranks.
 * Each has a share of one core, 1 % in all, and waits after exceeding it.
 *
 * Threads: one. Signals: SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, and SIGINT and SIGQUIT from other processes are forwarded
 * to the command; the terminal's own reach its group. After its end, while its processes are awaited, SIGUSR1 and
 * SIGUSR2 are ignored and the others end the wait. */
#pragma once

#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#include "bench/training/training.h"
#include "profiles/gpu_processes.h"
#include "profiles/process_tree.h"

/* ---- time series of many processes in bounded memory (look.c) ----
 *
 * At first each sample is a frame; when there are too many, pairs of frames merge in all series. A frame keeps the
 * highest memory and the last CPU time.
 *
 *     el_frames_begin(&frames, now_ns);                      a sample begins
 *     el_series_put(&frames, &series[i], bytes, cpu_ns);     for each process
 *     if (el_frames_are_many(&frames)) { el_frames_halve(&frames); el_series_halve(&series[i]) of every series; }
 *
 * A series begins at its first sample's frame. Frames without a sample repeat the last value once another follows. */
enum { EL_FRAMES_MAX = 1000 };

struct el_frames {
    int64_t ns[EL_FRAMES_MAX]; /* last sample of each */
    int n, looks, looks_each;
};

struct el_series_point {
    int64_t bytes;  /* the frame's highest */
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

/* If out of memory, the next value fills the gap. */
void el_series_put(const struct el_frames *frames, struct el_series *series, int64_t bytes, int64_t cpu_ns);
void el_series_halve(struct el_series *series);
void el_series_free(struct el_series *series);

/* ---- a watch ---- */

enum { EL_WATCH_USES_MAX = 1024, EL_WATCH_REASON_BYTES = 160 };

enum el_watch_activity {
    EL_WATCH_DISCOVER,
    EL_WATCH_LOOK,
    EL_WATCH_SHARED,
    EL_WATCH_GPUS,
    EL_WATCH_LIVE,   /* prints what the ranks of a training do */
    EL_WATCH_SO_FAR, /* writes the record so far */
    EL_WATCH_ACTIVITIES
};

/* When an activity is due, and its cost so far. */
struct el_watch_pace {
    int64_t every_ns, due_ns;
    double total_ns;
    int n;
};

/* A process on a GPU. */
struct el_watch_use {
    int process; /* index in the tree */
    int gpu;
    bool there; /* at the last sample */
    int64_t bytes, peak_bytes;
    double byte_s, looked_s; /* for the mean */
    double busy_pct;         /* the driver's last sample, while valid */
    int64_t busy_ns;         /* when it was read */
    double busy_pct_s, told_s;
    struct el_series series;
};

struct el_watch_gpu {
    double busy_sum;
    int n_busy;
    int64_t ours_peak_bytes;   /* highest sum over our processes */
    int64_t others_peak_bytes; /* of processes outside the tree, or not matched to it */
    int64_t used_peak_bytes, total_bytes;
};

struct el_watching {
    char *const *command;
    struct el_python_hook hook;
    bool live;        /* set these after el_watch_begin, as need be */
    bool one_of_many; /* of several hosts: one device is enough to be compared */
    void (*so_far)(struct el_watching *watch, void *context); /* NULL: not written before the end */
    void *so_far_context;
    double timeout_s; /* 0: none; then its processes get SIGTERM, and SIGKILL two seconds later */
    bool timed_out;
    pid_t pid;
    sigset_t signals, signals_before;          /* handled ones; the mask before */
    bool ended, waited_for_all, waiting_ended; /* by --wait-all; by a signal */
    bool asked_to_end;                         /* SIGINT, SIGTERM or SIGHUP came */
    int wait_status;
    int64_t begin_ns, end_ns;
    double interval_s;
    struct el_process_tree *tree;
    struct el_frames frames;
    struct el_series series[EL_TREE_PROCESSES_MAX]; /* by index in the tree */
    struct el_watch_pace paces[EL_WATCH_ACTIVITIES];
    int64_t resident_peak_bytes;            /* highest simultaneous sum */
    struct el_gpu_processes *gpus;          /* NULL: none */
    char gpu_reason[EL_WATCH_REASON_BYTES]; /* for none */
    struct el_watch_gpu gpu[EL_GPUS_MAX];
    struct el_watch_use uses[EL_WATCH_USES_MAX];
    int n_uses;
    int64_t gpu_look_ns;
    double own_cpu_s;      /* of the watching */
    double children_cpu_s; /* of ended and reaped processes */
    int64_t largest_bytes; /* highest resident memory of one of those */
};

/* Exit statuses of a command that did not start, as in shells. */
enum { EL_WATCH_NOT_FOUND = 127, EL_WATCH_NOT_STARTED = 126 };

/* `log`: a file for its output, its input is then empty; NULL: our streams. Errors: EL_ERR_ABSENT (cannot be started:
 * exit with *exit_status_p), EL_ERR_HOST_MEMORY, EL_ERR_IO. */
enum el_status el_watch_begin(char *const *command, double interval_s, const struct el_python_hook *hook,
                              const char *log, struct el_watching **watch_p, int *exit_status_p);
/* Blocks until the command, or with `wait_all` its last process, has ended. Errors: EL_ERR_HOST_MEMORY; the command is
 * still awaited. */
enum el_status el_watch_run(struct el_watching *watch, bool wait_all);
/* After the command's end: drops pending signals, which were meant for it, and restores default handling; SIGPIPE stays
 * ignored, so that a closed reader does not change the exit status. */
void el_watch_release_signals(const struct el_watching *watch);
void el_watch_end(struct el_watching *watch); /* NULL is legal */
/* The command's, or 128 plus the signal that ended it. */
int el_watch_exit_status(const struct el_watching *watch);
/* To all of its processes that are known to live. */
void el_watch_kill(const struct el_watching *watch, int signal_number);

/* The figures that are of its end, as of now. */
void el_watch_conclude(struct el_watching *watch);

/* One sample of an activity; look.c. */
enum el_status el_watch_do(struct el_watching *watch, enum el_watch_activity activity);

/* CPU time over its life; 100: a core; NAN: unknown life. */
double el_watch_cpu_pct(const struct el_watching *watch, const struct el_tree_process *p);
/* Mean over the driver's samples; NAN: none. */
double el_watch_use_busy_pct(const struct el_watch_use *use);
/* Its last sample, or the command's end if earlier. */
int64_t el_watch_end_of(const struct el_watching *watch, const struct el_tree_process *p);

/* A process or GPU that is compared with others. */
struct el_watch_peer {
    int process;                   /* index in the tree; -1: a whole GPU */
    int gpu;                       /* -1: none */
    double memory_bytes, busy_pct; /* NAN: unknown */
};
struct el_watch_peers {
    const char *rule; /* in words */
    const char *what; /* "ranks", "GPUs", "processes" */
    struct el_watch_peer *list;
    int n; /* 0: none; the rule says why */
};
/* peers.c has the rules. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_watch_peers(const struct el_watching *watch, struct el_watch_peers *peers_p);
void el_watch_peers_free(struct el_watch_peers *peers);

/* A run's document without its training; `words`: the evenload command. New reference; NULL without memory. */
json_t *el_watch_record(const struct el_watching *watch, const char *words);
/* Steps of PyTorch, where there are some, are the trial's. */
void el_watch_put_training(const struct el_watching *watch, json_t *document);
/* The figures that compare a document's devices. */
void el_watch_compare(json_t *document);
void el_watch_print(const json_t *document, FILE *out);
