/* Progress on standard error: a line that is overwritten on a terminal, occasional lines elsewhere, none when quiet. */
#pragma once

#include "bench/options/config.h"
#include "bench/trial/trial.h"

struct el_progress {
    int n, done; /* launches: all, and done, also by an earlier command */
    bool quiet, terminal;
    int64_t begin_ns;
    int64_t said_ns; /* time of the last line */
    int measured;    /* launches of this process, for the estimate */
    char now[96];    /* "ddp on 2, batch 128, repeat 2" */
};

/* The estimate counts from here, or from the last phase. */
void el_progress_init(struct el_progress *progress, int n_launches, bool quiet);
/* Work before the first launch, on a terminal; "" ends it. */
void el_progress_phase(struct el_progress *progress, const char *what);
void el_progress_begin(struct el_progress *progress, const struct el_trial *trial, int repeat);
void el_progress_tick(void *progress, double elapsed_s);
/* `document` may be NULL (interrupted). */
void el_progress_end(struct el_progress *progress, const json_t *document);
/* A separate line: the gate, a warning. */
void el_progress_say(struct el_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
