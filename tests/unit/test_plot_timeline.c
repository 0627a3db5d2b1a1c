/* The memory timeline's data file and sentence, from a hand-made run: which panels are drawn, and every row of one. */
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "bench/plot/plot.h"
#include "bench/report/report.h"
#include "tests/unit/figure_data.h"
#include "tests/unit/printed.h"

enum { MIB = 1 << 20 };

/* A step of 8 ms: params throughout, `peak_mib` of activations more from 3 to 6 ms; the last 2 ms nothing runs. */
static json_t *device_of(const char *name, int peak_mib)
{
    json_t *timeline = json_pack("{s:[f,f,f,f,f], s:[s,s,s,s,s], s:{s:[i,i,i,i,i], s:[i,i,i,i,i]}, s:f, s:s, s:s}",
                                 "ms", 0.0, 1.0, 3.0, 6.0, 8.0, "phase", "data", "forward", "backward", "idle", "idle",
                                 "bytes", "param", MIB, MIB, MIB, MIB, MIB, "activation", 0, 0, peak_mib * MIB, 0, 0,
                                 "peak_ms", 3.0, "peak_phase", "backward", "peak_label", "gemm");
    json_object_set_new(timeline, "lanes",
                        json_pack("{s:[s,s,s], s:[s,s,s], s:[f,f,f], s:[f,f,f]}", "lane", "compute", "compute",
                                  "compute", "phase", "data", "forward", "backward", "from_ms", 0.0, 1.0, 3.0, "to_ms",
                                  1.0, 3.0, 6.0));
    return json_pack("{s:s, s:{s:i, s:o}}", "device", name, "memory", "peak_bytes", (peak_mib + 1) * MIB, "timeline",
                     timeline);
}

static json_t *trial_of(const char *mode, const char *status, int batch, int n_devices, int peak_mib)
{
    json_t *devices = json_array();
    json_array_append_new(devices, device_of("cpu:0", peak_mib));
    if (n_devices == 2) json_array_append_new(devices, device_of("cpu:1", peak_mib - 1));
    json_t *shares = json_array();
    for (int i = 0; i < n_devices; i++) json_array_append_new(shares, json_integer(batch / n_devices));
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:o, s:{s:f}, s:o}", "mode", mode, "status", status, "model", "toy",
                     "global_batch", batch, "devices", n_devices, "batch_per_device", shares, "throughput",
                     "samples_per_s", 1.0, "per_device", devices);
}

static json_t *run_of(void)
{
    return json_pack("{s:[o,o,o,o,o]}", "trials", trial_of("single", "ok", 64, 1, 3),
                     trial_of("single", "oom", 256, 1, 9), trial_of("dp", "ok", 64, 2, 4),
                     trial_of("dp", "ok", 128, 2, 4), trial_of("ddp", "ok", 128, 2, 2));
}

static void the_largest_batch_that_finished_is_drawn(void **state)
{
    json_t *run = run_of();
    DRAWS(&el_figure_timeline, run,
          "toy, _, _, 2 CPU devices\tparam activation\t \t8\t12\tMean step of the launch, on the first device; "
          "also on the second for dp.\t4\tdata forward backward "
          "idle\t "
          "\t6\t2\n",
          "\nsingle, batch 64: cpu:0\t8\t0\n", "\ndp, batch 128 (2 x 64): cpu:0\t8\t0\n",
          "\ndp, batch 128 (2 x 64): cpu:1\t8\t0\n", "\nddp, batch 128 (2 x 64): cpu:0\t8\t0\n");
    json_decref(run);
}

/* ddp sends while it goes backward, after it has waited; its step is the longest and ends the axis of all panels. */
static void communication_has_a_lane_of_its_own(void **state)
{
    json_t *run = run_of(), *ddp = json_array_get(json_object_get(run, "trials"), 4);
    json_t *device = json_array_get(json_object_get(ddp, "per_device"), 0);
    json_t *timeline = json_object_get(json_object_get(device, "memory"), "timeline");
    json_array_set_new(json_object_get(timeline, "ms"), 4, json_real(20));
    json_object_set_new(timeline, "lanes",
                        json_pack("{s:[s,s,s,s], s:[s,s,s,s], s:[n,n,s,s], s:[f,f,f,f], s:[f,f,f,f]}", "lane",
                                  "compute", "comm", "comm", "comm", "phase", "backward", "wait", "comm", "comm",
                                  "group", "data", "pipeline", "from_ms", 3.0, 4.0, 4.5, 7.0, "to_ms", 6.0, 4.5, 5.5,
                                  9.0));
    json_object_set_new(ddp, "verdict", json_string("suspect"));
    DRAWS(&el_figure_timeline, run, "toy, _, _, 2 CPU devices\tparam activation\t \t20\t12\t",
          "# 3 phase backward\n# columns: from ms, to ms, low, high\n3\t6\t0.56\t1\n",
          "# 3 phase comm\n# columns: from ms, to ms, low, high\n4.5\t5.5\t0\t0.44\n",
          "# 3 phase stage\n# columns: from ms, to ms, low, high\n7\t9\t0\t0.44\n",
          "# 3 phase wait\n# columns: from ms, to ms, low, high\n4\t4.5\t0\t0.44\n",
          "\nddp, batch 128 (2 x 64): cpu:0\t20\t1\n",
          "\n1\tsuspect, see the warnings; bytes are counted, and exact all the same\n");
    json_decref(run);
}

static void a_panel_has_steps_lanes_and_a_peak(void **state)
{
    json_t *run = run_of();
    DRAWS(&el_figure_timeline, run,
          "# 1 activation\n# columns: ms, MiB of the outline\n"
          "0\t1\n3\t1\n3\t5\n6\t5\n6\t1\n8\t1\n8\t1\n0\t1\n\n",
          "# 1 total\n# columns: ms, MiB\n0\t1\n3\t1\n3\t5\n6\t5\n6\t1\n8\t1\n\n",
          "# 1 note right\n# columns: ms, MiB, label\n3\t5.52\tpeak 5.0 MiB, in backward\n\n",
          "# 1 note left\n# columns: ms, MiB, label\n3\t5.52\t \n\n",
          "# 1 lanes\n# columns: y, lane\n0.78\tcompute\n0.22\tcomm\n",
          "# 1 phase backward\n# columns: from ms, to ms, low, high\n3\t6\t0.56\t1\n",
          "# 1 phase idle\n# columns: from ms, to ms, low, high\n0\t8\t0\t0.44\n0\t8\t0.56\t1\n");
    json_decref(run);
}

static void without_timelines_there_is_no_file(void **state)
{
    size_t i;
    json_t *run = run_of(), *trial;
    json_array_foreach(json_object_get(run, "trials"), i, trial)
    {
        json_t *memory = json_object_get(json_array_get(json_object_get(trial, "per_device"), 0), "memory");
        json_object_set_new(memory, "timeline", json_null());
    }
    assert_null(data_of(&el_figure_timeline, run));
    json_decref(run);
}

static void the_sentence_says_where_the_peak_lies(void **state)
{
    json_t *run = run_of();
    char *text = printed(el_report_sentences, run);
    holds(text, "(cpu:0) peaks at 5.0 MiB (in backward, at 38 % of the step), ");
    free(text);
    json_decref(run);
}

RUN_TESTS(NULL, NULL, the_largest_batch_that_finished_is_drawn, communication_has_a_lane_of_its_own,
          a_panel_has_steps_lanes_and_a_peak, without_timelines_there_is_no_file, the_sentence_says_where_the_peak_lies)
