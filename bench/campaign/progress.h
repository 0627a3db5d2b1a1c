/* Progress on standard error: one line that is written over on a terminal, a line now and then elsewhere, none when
 * quiet. */
#pragma once

#include "bench/options/config.h"
#include "bench/trial/trial.h"

struct el_progress {
    int n, done; /* launches: all, and those that are behind us, by an earlier command too */
    bool quiet, terminal;
    int64_t begin_ns;
    int64_t said_ns; /* when a line was last printed */
    int measured;    /* launches of this process: what the estimate is made from */
    char now[96];    /* "ddp on 2, batch 128, repeat 2" */
};

/* The estimate counts from here, or from the last phase. */
void el_progress_init(struct el_progress *progress, int n_launches, bool quiet);
/* What is done before the first launch, on a terminal; "" when that begins. */
void el_progress_phase(struct el_progress *progress, const char *what);
void el_progress_begin(struct el_progress *progress, const struct el_trial *trial, int repeat);
void el_progress_tick(void *progress, double elapsed_s);
/* `document` may be NULL (interrupted). */
void el_progress_end(struct el_progress *progress, const json_t *document);
/* A line of its own, between: the gate, a warning. */
void el_progress_say(struct el_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
