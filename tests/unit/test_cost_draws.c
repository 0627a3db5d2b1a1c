/* Draws of the launches that a record has: which of them, the same ones each time, and the median of calls drawn again;
 * and what the records have against them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/jvalue.h"
#include "bench/trial/costs.h"
#include "tests/test.h"
#include "tests/unit/cost_files.h"
#include "tests/unit/own_folder.h"

enum { DRAWS = 20, LAUNCHES = 3 };

static const char *path_of(const char *name)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

#define OPS(ms) "{'ops': [{'op': 'linear_forward out', 'phase': 'forward', 'count': 1, 'bytes': 1000, 'ms': " ms "}]}"

static const char run_record[] =
    "{'schema': 2, 'trials': [{'id': 'ab', 'verdict': 'suspect', 'warnings': ['devices share a core'], 'mode': "
    "'single', 'status': 'ok', 'model': 'linear', 'dtype': 'f32', 'optimizer': 'sgd', 'param_bytes': 440, 'config': "
    "{'beside': 1}, 'repeats': [{'repeat': 0, 'status': 'ok'}, {'repeat': 1, 'status': 'ok'}, {'repeat': 2, 'status': "
    "'ok'}, {'repeat': 3, 'status': 'failed'}], 'per_device': [" OPS("2.33") "]}]}";

/* Of 1, 2 and 4 ms: each draw is one of them, and together they are all. */
static void draws_are_launches(void **state)
{
    static const char *const files[LAUNCHES] = {"repeats/ab-0.json", "repeats/ab-1.json", "repeats/ab-2.json"};
    static const char *const ops[LAUNCHES] = {OPS("1"), OPS("2"), OPS("4")};
    struct el_train_config config = linear();
    struct el_cost_set set, again;
    char text[256];
    int seen[5] = {0};
    assert_int_equal(mkdir(path_of("repeats"), 0700), 0);
    write_text(path_of("results.json"), run_record, "", "");
    for (int k = 0; k < LAUNCHES; k++) {
        snprintf(text, sizeof text, "{'members': [%s]}", ops[k]);
        write_text(path_of(files[k]), text, "", "");
    }
    assert_int_equal(el_cost_set_read(folder, &config, DRAWS, &set), EL_OK);
    assert_int_equal(el_cost_set_read(folder, &config, DRAWS, &again), EL_OK);
    assert_int_equal(set.n_launches, LAUNCHES);
    assert_true(set.costs[0].ops[0].points[0].ns == 2.33e6);
    assert_string_equal(el_json_text(json_array_get(set.records, 0), "verdict", ""), "suspect");
    assert_string_equal(el_json_text(json_array_get(set.records, 0), "reason", ""), "devices share a core");
    assert_true(el_json_number(json_array_get(set.records, 0), "beside") == 1);
    for (int d = 1; d <= DRAWS; d++) {
        double ms = set.costs[d].ops[0].points[0].ns / 1e6;
        assert_true((ms == 1 || ms == 2 || ms == 4) && again.costs[d].ops[0].points[0].ns == ms * 1e6);
        seen[(int)ms]++;
    }
    assert_true(seen[1] > 0 && seen[2] > 0 && seen[4] > 0);
    el_cost_set_free(&set);
    el_cost_set_free(&again);
    for (int k = 0; k < LAUNCHES; k++) assert_int_equal(remove(path_of(files[k])), 0);
    assert_int_equal(el_cost_set_read(folder, &config, DRAWS, &set), EL_OK); /* its launches are not there */
    assert_int_equal(set.n_launches, 1);
    assert_true(set.costs[DRAWS].ops[0].points[0].ns == 2.33e6);
    el_cost_set_free(&set);
    assert_int_equal(remove(path_of("repeats")), 0);
    assert_int_equal(remove(path_of("results.json")), 0);
}

/* The time is 10 us; calls of 8, 10 and 15 us are drawn again, the slowest rank's each. */
static void draws_of_the_wire_are_medians_of_calls(void **state)
{
    struct el_cost_set set;
    int other = 0;
    write_text(path_of("comm.json"),
               "{'schema': 1, 'kind': 'comm', 'ranks': 2, 'devices': ['cpu:0', 'cpu:1'], 'shared_cores': "
               "true, 'others_waited_pct': 12.5, 'copy': [], 'curves': [{'operation': 'sendrecv', "
               "'algorithm': 'auto', 'points': [{'bytes': 4096, 'count': 1024, 'algorithm': 'auto', "
               "'in_place': {'time_us': 10, 'samples_us': [[8, 3, 15], [1, 10, 2]]}}]}]}",
               "", "");
    assert_int_equal(el_cost_set_read(folder, NULL, DRAWS, &set), EL_OK);
    assert_int_equal(set.n_launches, 0);
    assert_true(set.costs[0].rows[0].points[0].ns == 10e3 && set.costs[0].rows[0].ranks == 2);
    for (int d = 1; d <= DRAWS; d++) {
        double us = set.costs[d].rows[0].points[0].ns / 1e3;
        if (us != 8 && us != 10 && us != 15) fail_msg("draw %d: %g us", d, us);
        other += us != 10;
    }
    assert_true(other > 0 && other < DRAWS);
    assert_string_equal(el_json_text(json_array_get(set.records, 0), "reason", ""), "its ranks shared cores");
    assert_true(el_json_number(json_array_get(set.records, 0), "others_pct") == 12.5);
    el_cost_set_free(&set);
    assert_int_equal(remove(path_of("comm.json")), 0);
}

RUN_TESTS(make_folder, remove_folder, draws_are_launches, draws_of_the_wire_are_medians_of_calls)
