/* The data file of a step of a model in stages, from a hand-made run: which trials are drawn, and the rows of a lane.
 */
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "bench/plot/plot.h"
#include "tests/unit/figure_data.h"

/* A device with two parts of the model, in ms: it loads, goes forward in both, sends, goes back for inputs and weights.
 */
static json_t *lane(void)
{
    return json_pack("{s:f, s:[s,s,s,s,s,s], s:[n,i,i,i,i,i], s:[n,i,i,i,i,i], s:[f,f,f,f,f,f], s:[f,f,f,f,f,f]}",
                     "window_ms", 80.0, "what", "data", "F", "F", "send", "I", "W", "part", 1, 3, 1, 3, 3, "micro", 0,
                     0, 0, 0, 0, "from_ms", -5.0, 0.0, 20.0, 20.0, 60.0, 70.0, "to_ms", 0.0, 20.0, 40.0, 24.0, 70.0,
                     70.5);
}

static json_t *trial(const char *status, json_t *of_device)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:[i,i], s:f, s:{s:i, s:s}, s:[{s:s, s:f, s:o}, {s:s, s:f, s:O}]}",
                     "mode", "pipeline", "status", status, "model", "mlp", "global_batch", 8, "devices", 2,
                     "batch_per_device", 8, 8, "bubble_pct", 12.34, "config", "micro_batches", 4, "schedule", "1f1b",
                     "per_device", "device", "cpu:0", "window_ms", 81.0, "lane", of_device, "device", "cpu:1",
                     "window_ms", 81.0, "lane", of_device);
}

static void a_lane_has_boxes_numbers_and_bubbles(void **state)
{
    json_t *run = json_pack("{s:[o,o]}", "trials", trial("failed", lane()), trial("ok", lane()));
    DRAWS(&el_figure_stages, run,
          "\tforward forward_2 backward_inputs_2 backward_weights_2 load transfer travel bubble\t",
          "\npipeline, batch 8 (2 stages), 1f1b, 4 micro-batches: bubble 12.3 %\t-4\t80\t-2\t58\t68\t0\n",
          "# 0 bubble\n# columns: from ms, to ms, low, high\n0\t80\t-0.78\t-0.06\n0\t80\t-1.78\t-1.06\n\n",
          "# 0 forward\n# columns: from ms, to ms, low, high\n0\t0\t0\t0\n0\t20\t-0.78\t-0.06\n0\t20\t-1.78\t-1.06\n\n",
          "# 0 forward_2\n# columns: from ms, to ms, low, high\n0\t0\t0\t0\n20\t40\t-0.78\t-0.06\n",
          "# 0 backward_inputs_2\n# columns: from ms, to ms, low, high\n0\t0\t0\t0\n60\t70\t-0.78\t-0.06\n",
          "# 0 transfer\n# columns: from ms, to ms, low, high\n0\t0\t0\t0\n20\t24\t-0.96\t-0.84\n",
          "# 0 under\n# columns: from ms, to ms, low, high\n0\t0\t0\t0\n20\t24\t-0.78\t-0.06\n",
          "\n65\t-0.42\t0\tI\t9.26\n70.25\t-0.42\t0\tW\t0.463\n", "!# 1 about");
    json_decref(run);
}

/* The second trial takes twice as long: both panels have its axis. It is suspect. */
static void panels_share_the_axis_of_time(void **state)
{
    json_t *slow = lane(), *run = json_pack("{s:[o,o]}", "trials", trial("ok", lane()), trial("ok", slow));
    json_t *suspect = json_array_get(json_object_get(run, "trials"), 1);
    json_object_set_new(slow, "window_ms", json_real(160));
    json_array_set_new(json_object_get(slow, "to_ms"), 5, json_real(160));
    json_object_set_new(suspect, "verdict", json_string("suspect"));
    DRAWS(&el_figure_stages, run, ": bubble 12.3 %\t-5\t160\t-2\t58\t68\t0\n",
          ": bubble 12.3 %\t-5\t160\t-2\t160\t68\t1\n",
          "# warning\n# columns: trials with a mark, and why\n1\tsuspect, see the warnings\n");
    json_decref(run);
}

/* Sixteen micro-batches whose boxes have room for one digit only: a lane shows all its numbers or none. */
static void all_numbers_of_a_lane_have_the_same_room(void **state)
{
    json_t *own = lane(), *run = json_pack("{s:[o]}", "trials", trial("ok", own));
    static const char *const columns[] = {"what", "part", "micro", "from_ms", "to_ms"};
    for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++) json_array_clear(json_object_get(own, columns[k]));
    for (int i = 0; i < 16; i++) {
        json_array_append_new(json_object_get(own, "what"), json_string("F"));
        json_array_append_new(json_object_get(own, "part"), json_integer(0));
        json_array_append_new(json_object_get(own, "micro"), json_integer(i));
        json_array_append_new(json_object_get(own, "from_ms"), json_real(5 * i));
        json_array_append_new(json_object_get(own, "to_ms"), json_real(5 * i + 1.2));
    }
    DRAWS(&el_figure_stages, run, "\n0.6\t-0.42\t0\tF\t0.7\n", "\n75.6\t-0.42\t15\tF\t0.7\n");
    for (size_t i = 0; i < 16; i++) json_array_set_new(json_object_get(own, "to_ms"), i, json_real(5 * (double)i + 3));
    DRAWS(&el_figure_stages, run, "\n1.5\t-0.42\t0\tF\t1.75\n", "\n76.5\t-0.42\t15\tF\t1.75\n");
    json_decref(run);
}

static void without_lanes_there_is_no_file(void **state)
{
    json_t *run = json_pack("{s:[o,{s:s, s:s, s:[{s:s}]}]}", "trials", trial("ok", json_null()), "mode", "ddp",
                            "status", "ok", "per_device", "device", "cpu:0");
    assert_null(data_of(&el_figure_stages, run));
    json_decref(run);
}

RUN_TESTS(NULL, NULL, a_lane_has_boxes_numbers_and_bubbles, panels_share_the_axis_of_time,
          all_numbers_of_a_lane_have_the_same_room, without_lanes_there_is_no_file)
