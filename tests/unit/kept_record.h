/* Trials of the reference run, and copies of them that tests change. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"

/* single, dp and ddp with a batch of 64. */
static inline json_t *kept_record(void)
{
    json_t *run = NULL;
    assert_int_equal(el_record_read("results/reference/cpu-2-cores/results.json", &run), EL_OK);
    json_t *trials = json_object_get(run, "trials");
    while (json_array_size(trials) > 3) json_array_remove(trials, 3);
    return run;
}

/* Sets the value at a dotted path whose last part is a key or an index. */
static inline void set(json_t *run, const char *path, json_t *value)
{
    char parent[128];
    const char *dot = strrchr(path, '.');
    snprintf(parent, sizeof parent, "%.*s", (int)(dot - path), path);
    json_t *object = el_json_at(run, parent);
    assert_non_null(object);
    if (json_is_array(object))
        assert_int_equal(json_array_set_new(object, strtoul(dot + 1, NULL, 10), value), 0);
    else
        assert_int_equal(json_object_set_new(object, dot + 1, value), 0);
}
