/* The data files of a run's bars and of its accuracy, from hand-made trials: marks of suspect trials, notes only of
 * what is drawn, room for every label, and what the first device holds more. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/plot/plot.h"
#include "runtime/modes/mode_info.h"
#include "tests/unit/figure_data.h"

enum { MIB = 1 << 20 };

/* `first_mib` on the first device, 10 MiB on each of the others, all of it parameters. */
static json_t *trial_of(const char *mode, const char *verdict, int batch, int n_devices, int first_mib)
{
    json_t *devices = json_array();
    for (int i = 0; i < n_devices; i++) {
        json_int_t bytes = (json_int_t)(i == 0 ? first_mib : 10) * MIB;
        json_array_append_new(devices,
                              json_pack("{s:s, s:{s:I, s:{s:I}}, s:{s:f}}", "device", "cpu:0", "memory", "peak_bytes",
                                        bytes, "at_peak_by_tag", "param", bytes, "utilization", "busy_pct", 50.0));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:{s:f, s:n}, s:o}", "mode", mode, "status", "ok", "verdict",
                     verdict, "model", "toy", "global_batch", batch, "devices", n_devices, "throughput",
                     "samples_per_s", 100.0, "ci95", "per_device", devices);
}

static void a_suspect_trial_has_a_mark_and_a_note(void **state)
{
    json_t *run =
        json_pack("{s:[o,o]}", "trials", trial_of("dp", "suspect", 8, 2, 10), trial_of("ddp", "simulated", 8, 2, 10));
    DRAWS(&el_figure_memory, run,
          "# marks\n# columns: x, verdict of a trial with a mark\n0\t \n1\tsuspect\n2\tsuspect\n\n",
          "\n1\tsuspect, see the warnings; bytes are counted, and exact all the same\n", "\n1.5\tdp\n4\tddp\n",
          "# excess\n# columns: from x, to x, top, MiB, where the words stand in lines\n0\t0\t0\t \t0\n\n");
    DRAWS(&el_figure_utilization, run, "\n2\tsuspect\n\n", "\n1\tsuspect, see the warnings\n");
    json_object_set_new(json_array_get(json_object_get(run, "trials"), 0), "status", json_string("oom"));
    DRAWS(&el_figure_memory, run, "with a mark, and why\n0\tnone\n", "\n0\t \n1\toom\n"); /* no figures to doubt */
    json_decref(run);
}

static void error_bars_are_named_where_they_are(void **state)
{
    json_t *run = json_pack("{s:[o]}", "trials", trial_of("ddp", "valid", 8, 1, 10));
    json_t *throughput = json_object_get(json_array_get(json_object_get(run, "trials"), 0), "throughput");
    DRAWS(&el_figure_throughput, run, "!Error bars: ");
    json_object_set_new(throughput, "ci95", json_pack("[f, f]", 100.0, 100.0)); /* in virtual time */
    DRAWS(&el_figure_throughput, run, "!Error bars: ");
    json_object_set_new(throughput, "ci95", json_pack("[f, f]", 90.0, 110.0));
    DRAWS(&el_figure_throughput, run, "\tError bars: 95 % intervals over launches.\t", "\n1\t90\t110\n");
    DRAWS(&el_figure_utilization, run, "!Error bars: ");
    json_object_set_new(el_json_at(run, "trials.0.per_device.0.utilization"), "busy_ci95",
                        json_pack("[f, f]", 40.0, 60.0));
    DRAWS(&el_figure_utilization, run, "\tError bars: 95 % intervals over launches.\t", "\n1\t40\t60\n");
    json_decref(run);
}

/* The difference of what is drawn, so with what the system counts beyond the ledger. */
static void what_the_first_device_holds_more_is_drawn(void **state)
{
    json_t *run =
        json_pack("{s:[o,o]}", "trials", trial_of("dp", "valid", 8, 3, 26), trial_of("ddp", "valid", 8, 3, 10));
    json_t *memory = el_json_at(run, "trials.0.per_device.2.memory");
    DRAWS(&el_figure_memory, run,
          "# excess\n# columns: from x, to x, top, MiB, where the words stand in lines\n0\t0\t0\t \t0\n"
          "1.42\t3.42\t26\t+16.0\t-0.65\n\n",
          "# tops\n# columns: x, top, MiB, position of the device\n0\t0\t \t0\n1\t26\t26.0\t0\n2\t10\t10.0\t1\n3\t10\t"
          "10.0\t2\n4.5\t10\t10.0\t0\n");
    json_object_set_new(memory, "unattributed_bytes", json_integer(4 * MIB));
    DRAWS(&el_figure_memory, run, "\n3\t14\t14.0\t2\n", "\n1.42\t3.42\t26\t+14.0\t-0.65\n");
    json_decref(run);
}

/* The labels of a block do not touch: of each two neighbours half of both fits between them. */
static void check_room(const char *text, const char *block, double pixels_per_bar, double letter)
{
    char head[64], label[64], before_label[64] = "";
    const char *at = strstr(text, (snprintf(head, sizeof head, "\n# %s\n", block), head));
    double x, before = 0;
    assert_non_null(at);
    at = strchr(strchr(at + 1, '\n') + 1, '\n') + 1;
    for (; sscanf(at, "%lf\t%63[^\n]", &x, label) == 2; at = strchr(at, '\n') + 1) {
        double letters = (double)(strlen(label) + strlen(before_label)) / 2;
        if (*before_label && (x - before) * pixels_per_bar < letters * letter)
            fail_msg("'%s' and '%s' touch in:\n%s", before_label, label, text);
        snprintf(before_label, sizeof before_label, "%s", label);
        before = x;
        if (at[strcspn(at, "\n") + 1] == '\n') break;
    }
    assert_true(*before_label);
}

static void check_figure(const struct el_figure *figure, json_t *run)
{
    char *text = data_of(figure, run);
    double cells[8] = {0};
    const char *row = strchr(strchr(text, '\n') + 1, '\n') + 1;
    for (int i = 0; i < 8; i++) {
        cells[i] = strtod(row, NULL);
        row += strcspn(row, "\t\n") + 1;
    }
    double right = cells[3], bars = cells[4];
    double width = 560 + 24 * bars > 1800 ? 1800 : 560 + 24 * bars; /* as in plots/style.gnuplot; 290 are no bars' */
    double pitch = (width - 290) / right; /* letters are smaller where the pitch is less than they need */
    check_room(text, "modes", fmax(pitch, cells[6]), 9);
    check_room(text, "batches", fmax(pitch, cells[7]), 9);
    if (cells[6] > 0) assert_true(pitch > 0.6 * cells[6]);
    free(text);
}

/* One trial, and twelve with long names on 1, 2, 4, 8 and 16 devices. */
static void every_label_has_room(void **state)
{
    for (int n = 1; n <= 16; n *= 2) {
        json_t *one = json_pack("{s:[o]}", "trials", trial_of("pipeline", "valid", 8, n, 10));
        json_t *trials = json_array(), *twelve = json_pack("{s:o}", "trials", trials);
        for (int i = 0; i < 12; i++) {
            json_t *trial = trial_of("ddp", "valid", i < 6 ? 1024 : 2048, n, 10);
            json_object_set_new(trial, "config",
                                json_pack("{s:s, s:i, s:i, s:i}", "bucket_view", "on", "bucket_cap_bytes",
                                          (100 + i) * MIB, "bucket_first_bytes", (100 + i) * MIB, "workers", 16));
            json_array_append_new(trials, trial);
        }
        check_figure(&el_figure_memory, one);
        check_figure(&el_figure_memory, twelve);
        check_figure(&el_figure_throughput, twelve);
        json_decref(one);
        json_decref(twelve);
    }
}

static void accuracy_of_a_suspect_trial_has_a_mark(void **state)
{
    json_t *run =
        json_pack("{s:[o,o]}", "trials", trial_of("dp", "suspect", 8, 1, 10), trial_of("ddp", "valid", 8, 1, 10));
    for (size_t i = 0; i < 2; i++)
        json_object_set_new(json_array_get(json_object_get(run, "trials"), i), "epochs",
                            json_pack("[{s:f, s:f}]", "seconds", 2.0, "held_out_accuracy", 0.75));
    DRAWS(&el_figure_accuracy, run, "\n2\t75\tdp\tline0\t8\t1\n2\t75\tddp\tline1\t8\t0\n",
          "\n1\tsuspect, see the warnings\n");
    json_decref(run);
}

/* Modes that stand in one figure differ in their point, and in colour by more than a shade. */
static void modes_of_a_plan_look_different(void **state)
{
    static const char *const modes[] = {"ddp", "zero1", "zero2", "zero3", "tp", "pipeline"};
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < i; k++) {
            const struct el_mode_look *a = &el_mode_find(modes[i])->look, *b = &el_mode_find(modes[k])->look;
            int apart = 0;
            for (int shift = 0; shift < 24; shift += 8)
                apart += abs((int)(a->ink >> shift & 0xff) - (int)(b->ink >> shift & 0xff));
            if (a->point == b->point || apart < 80) fail_msg("%s and %s: %d apart", modes[i], modes[k], apart);
        }
}

RUN_TESTS(NULL, NULL, a_suspect_trial_has_a_mark_and_a_note, error_bars_are_named_where_they_are,
          what_the_first_device_holds_more_is_drawn, every_label_has_room, accuracy_of_a_suspect_trial_has_a_mark,
          modes_of_a_plan_look_different)
