/* A training with PyTorch in somebody's program, as the hook in its Python recorded it (profiles/hook).
 *
 *     el_python_hook_begin(store_dir, "", &hook);             where its processes write
 *     el_python_hook_environment(&hook, list);                for the program
 *     if (el_training_read(&hook, &training) == EL_OK) {        after its end
 *         el_training_ranks(&training); ...
 *         el_training_free(&training);
 *     }
 *     el_python_hook_end(&hook);                              removes the folder
 *
 * Threads: one. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/files.h"
#include "runtime/comm/clock_relation.h"

enum { EL_HOOK_VARIABLES = 5 };

/* A host's real time against the first one's, when its watch began and when it ended. */
struct el_hook_clocks {
    struct el_clock_anchor begin, end;
};

struct el_python_hook {
    char folder[EL_PATH_BYTES]; /* absolute; "": none. Of several hosts, each has a folder in it: 0, 1, ... */
    int host, n_hosts;
    const struct el_hook_clocks *clocks; /* [n_hosts], not owned; NULL: this host alone is read */
    char traces[EL_PATH_BYTES];          /* absolute; "": none are written */
    char variables[EL_HOOK_VARIABLES][2 * EL_PATH_BYTES + 32];
};

/* Without the hook's file there is none. `profile`: "active=8,...", or "". */
void el_python_hook_begin(const char *store_dir, const char *profile, struct el_python_hook *hook_p);
/* This is one of several hosts. */
void el_python_hook_of_host(struct el_python_hook *hook, int host, int n_hosts);
/* Where the processes of a host write. */
void el_python_hook_folder(const struct el_python_hook *hook, int host, char folder[EL_PATH_BYTES + 16]);
/* From that host's clock to the first one's. */
int64_t el_python_hook_time(const struct el_python_hook *hook, int host, int64_t ns);
/* "NAME=value" for the program's environment, then NULL; the texts are the hook's. */
void el_python_hook_environment(const struct el_python_hook *hook, const char *list[EL_HOOK_VARIABLES + 1]);
void el_python_hook_end(const struct el_python_hook *hook);

/* A process that steps. Of any number of steps it holds 64 KiB, and the training 16 bytes of each step of one rank. */
struct el_trainer {
    int64_t pid, rank; /* rank -1: none is known */
    int host;
    size_t n;         /* steps */
    int64_t *ends_ns; /* of the last n_kept, since 1970 by the first host's clock */
    size_t n_kept, room;
    double lived_s, median_ms; /* from the first step's end to the last one's; NAN: one step */
    double data_ns, samples, numbers, collecting_ns, delay_ns; /* sums, without the first step's; delay NAN: unknown */
    double allocated_bytes, reserved_bytes;                    /* peaks, of its GPUs together; NAN: none */
};

struct el_training {
    struct el_trainer *list; /* by rank, then pid; at least one */
    size_t n, room;
    double *sums_ms; /* of each step after the first one, over the processes that made it */
    size_t n_sums, sums_room;
    json_t *trouble; /* [what the hook could not do] */
};

/* Errors: EL_ERR_ABSENT: no process made a step with PyTorch; the message is what is known of it, or empty. */
enum el_status el_training_read(const struct el_python_hook *hook, struct el_training *training_p);
void el_training_free(struct el_training *training);

/* [{"rank", "pid", "steps", "step_ms": the median, "data_ms": the mean wait for PyTorch's DataLoader, "samples_per_s",
 * "numbers": of its batches, per step, "collecting_ms": Python's garbage collection, "delay_ms": the main thread's wait
 * for a processor, "allocated_bytes", "reserved_bytes": the peaks of PyTorch's allocator, on its GPUs together}]. New
 * reference. */
json_t *el_training_ranks(const struct el_training *training);
/* {"median", "mean", "p95"} of the ranks' mean step. New reference. */
json_t *el_training_step_ms(const struct el_training *training);
/* Of all ranks together, of which one may load for all; NAN: their DataLoaders gave none. */
double el_training_samples_per_s(const struct el_training *training);
