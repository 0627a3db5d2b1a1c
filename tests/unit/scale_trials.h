/* Trials of a scaling study as a record has them, made by hand so that what follows from them is known. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/scale/scale.h"

enum { REPEATS = 5, MIB = 1 << 20 };

static const double PLAIN[REPEATS] = {100, 104, 97, 101, 99};
/* About a mean of 1, so that ratios have an interval. */
static const double WOBBLE[REPEATS] = {1.01, 1 / 1.01, 1, 1, 1};

#define assert_near(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9 * fmax(1, fabs((double)(b))))

/* A trial as a record has it: `factor` times as fast as PLAIN, and times noise[r] (NULL: 1) in repeat r; NAN: it
 * failed.
 */
static inline json_t *make_trial(const char *mode, int devices, bool weak, double factor, const double *noise)
{
    json_t *repeats = json_array();
    double logs = 0;
    int n = 0;
    for (int r = 0; r < REPEATS; r++) {
        double rate = PLAIN[r] * factor * (noise ? noise[r] : 1);
        bool ok = !isnan(rate);
        json_array_append_new(repeats, json_pack("{s:i, s:s, s:o}", "repeat", r, "status", ok ? "ok" : "failed",
                                                 "samples_per_s", el_json_real(rate)));
        if (ok) logs += log(rate), n++;
    }
    int batch = weak ? 8 * devices : 8;
    return json_pack("{s:s, s:i, s:i, s:s, s:s, s:[], s:[], s:{s:s, s:f}, s:{s:f}, s:o, s:[{s:{s:i}}, {s:{s:i}}]}",
                     "mode", mode, "devices", devices, "global_batch", batch, "status", "ok", "verdict", "valid",
                     "warnings", "warning_rules", "config", "batch_given", weak ? "per_device" : "global",
                     "bucket_cap_bytes", 25.0 * MIB, "throughput", "samples_per_s", exp(logs / n), "repeats", repeats,
                     "per_device", "memory", "peak_bytes", 100, "memory", "peak_bytes", 300);
}

static inline json_t *make_single(bool weak)
{
    return make_trial("single", 1, weak, 1, NULL);
}

static inline void mark_shared(json_t *trial)
{
    json_object_set_new(trial, "warnings", json_pack("[s, s]", "others were there", "devices share a core (a and b)"));
    json_object_set_new(trial, "warning_rules", json_pack("[s, s]", "others", "shared_core"));
}

static inline json_t *make_run(json_t *trials)
{
    return json_pack("{s:i, s:o}", "schema", 1, "trials", trials);
}

static inline json_t *document_of(json_t *trials)
{
    json_t *run = make_run(trials), *document = NULL;
    assert_int_equal(el_scale_document(run, "dir", &document), EL_OK);
    json_decref(run);
    return document;
}
