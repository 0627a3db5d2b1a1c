/* Schedules: their rows as papers print them and as PyTorch writes them, how many sets of activations they hold, how
 * long they take, and every way in which a file's is refused. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/layout/schedule.h"
#include "runtime/train/train.h"

#define TABLES "tests/unit/data/schedules/" /* by tests/torch/schedules.py */

static enum el_status open_schedule(const char *name, int n_devices, int n_micro, int parts,
                                    struct el_schedule *schedule)
{
    struct el_train_config config = {.n_micro = n_micro, .parts = parts};
    snprintf(config.schedule, sizeof config.schedule, "%s", name);
    return el_schedule_open(&config, n_devices, schedule);
}

static struct el_schedule opened(const char *name, int n_devices, int n_micro, int parts)
{
    struct el_schedule schedule;
    if (open_schedule(name, n_devices, n_micro, parts, &schedule) != EL_OK) fail_msg("%s", el_error_message());
    return schedule;
}

/* "0F0 0F1 0B0 0B1" */
static const char *row(const struct el_schedule *schedule, int device)
{
    static char text[2][2048];
    static int turn;
    char *to = text[turn ^= 1], one[16];
    int at = 0;
    *to = 0;
    for (int i = 0; i < schedule->n_actions[device]; i++)
        at += snprintf(to + at, sizeof text[0] - (size_t)at, "%s%s", i ? " " : "",
                       el_action_text(schedule->actions[device][i], one));
    return to;
}

static void rows_are_those_of_the_papers(void **state)
{
    static const struct {
        const char *name;
        int devices, micro, parts, device;
        const char *row;
    } rows[] = {
        {"gpipe", 2, 3, 0, 0, "0F0 0F1 0F2 0B0 0B1 0B2"},
        {"gpipe", 2, 3, 0, 1, "1F0 1F1 1F2 1B0 1B1 1B2"},
        {"1f1b", 4, 4, 0, 0, "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3"},
        {"1f1b", 4, 4, 0, 1, "1F0 1F1 1F2 1B0 1F3 1B1 1B2 1B3"},
        {"", 4, 4, 0, 3, "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3"},
        {"1f1b", 2, 1, 0, 0, "0F0 0B0"},
        {"interleaved", 2, 2, 0, 1, "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1"},
        {"zero-bubble", 2, 3, 0, 0, "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2"},
        {"zero-bubble", 2, 3, 0, 1, "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2"},
        {"interleaved", 1, 2, 2, 0, "0F0 1F0 1B0 0F1 0B0 1F1 1B1 0B1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct el_schedule schedule = opened(rows[i].name, rows[i].devices, rows[i].micro, rows[i].parts);
        assert_string_equal(row(&schedule, rows[i].device), rows[i].row);
        el_schedule_close(&schedule);
    }
}

/* Where the names mean the same. */
static void rows_are_those_of_pytorch(void **state)
{
    static const struct {
        const char *name, *file;
        int devices, micro, parts;
    } tables[] = {
        {"gpipe", TABLES "GPipe-1x4-6.csv", 4, 6, 0},
        {"1f1b", TABLES "1F1B-1x4-6.csv", 4, 6, 0},
        {"interleaved", TABLES "Interleaved1F1B-2x2-4.csv", 2, 4, 0},
        {"interleaved", TABLES "Interleaved1F1B-3x4-8.csv", 4, 8, 3},
        {"zero-bubble", TABLES "InterleavedZeroBubble-1x4-6.csv", 4, 6, 0},
        {"zero-bubble", TABLES "InterleavedZeroBubble-2x2-6.csv", 2, 6, 2},
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct el_schedule ours = opened(tables[i].name, tables[i].devices, tables[i].micro, tables[i].parts),
                           theirs = opened(tables[i].file, tables[i].devices, 0, 0);
        assert_int_equal(theirs.n_micro, tables[i].micro);
        assert_int_equal(theirs.n_parts, ours.n_parts);
        assert_memory_equal(theirs.device, ours.device, sizeof theirs.device);
        for (int d = 0; d < tables[i].devices; d++) assert_string_equal(row(&ours, d), row(&theirs, d));
        el_schedule_close(&ours);
        el_schedule_close(&theirs);
    }
}

/* ---- how long they take ---- */

/* When an action of a part with a micro-batch ends: forward, back, weights. */
enum { DEVICES = 8, PARTS = 16 };
static int ends[3][PARTS][EL_MICRO_MAX];

static int kind_of(struct el_action action)
{
    return action.kind == EL_ACTION_FORWARD ? 0 : action.kind == EL_ACTION_BACKWARD_WEIGHTS ? 2 : 1;
}

/* When what it needs is there; -1: not yet. */
static int ready_at(const struct el_schedule *schedule, struct el_action action)
{
    int part = action.part, kind = kind_of(action);
    if (kind == 2) return ends[1][part][action.micro];
    if (kind == 0) return part > 0 ? ends[0][part - 1][action.micro] : 0;
    return part < schedule->n_parts - 1 ? ends[1][part + 1][action.micro] : ends[0][part][action.micro];
}

/* In units of a forward of one part; messages cost nothing. A whole backward takes `whole`, a half one unit. */
static int makespan(const struct el_schedule *schedule, int whole)
{
    int next[DEVICES] = {0}, time[DEVICES] = {0}, last = 0;
    memset(ends, 0xff, sizeof ends);
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < schedule->n_devices; d++) {
            if (next[d] == schedule->n_actions[d]) continue;
            struct el_action action = schedule->actions[d][next[d]];
            int ready = ready_at(schedule, action);
            if (ready < 0) continue;
            time[d] = (ready > time[d] ? ready : time[d]) + (action.kind == EL_ACTION_BACKWARD ? whole : 1);
            ends[kind_of(action)][action.part][action.micro] = time[d];
            if (time[d] > last) last = time[d];
            next[d]++;
            moved = true;
        }
    }
    for (int d = 0; d < schedule->n_devices; d++) assert_int_equal(next[d], schedule->n_actions[d]);
    return last;
}

static int makespan_of(const char *name, int n_devices, int n_micro, int parts, int whole)
{
    struct el_schedule schedule = opened(name, n_devices, n_micro, parts);
    int time = makespan(&schedule, whole);
    el_schedule_close(&schedule);
    return time;
}

/* Of one part a device (p - 1) / (m + p - 1) of the time is idle: the whole takes 2 (m + p - 1). And how many sets of
 * activations a device holds. */
static void one_part_a_device_has_closed_forms(void **state)
{
    static const int device_counts[] = {1, 2, 4, 8}, micro_counts[] = {1, 2, 4, 5, 8};
    static const char *const names[] = {"gpipe", "1f1b", "zero-bubble"};
    for (int i = 0; i < 4 * 5 * 3; i++) {
        int devices = device_counts[i / 15], micro = micro_counts[i / 3 % 5], kind = i % 3;
        struct el_schedule schedule = opened(names[kind], devices, micro, 0);
        if (kind < 2) assert_int_equal(makespan(&schedule, 1), 2 * (micro + devices - 1));
        for (int d = 0; d < devices; d++) {
            int most[] = {micro, devices - d, devices};
            assert_int_equal(el_schedule_in_flight(&schedule, d), most[kind] < micro ? most[kind] : micro);
        }
        el_schedule_close(&schedule);
    }
}

/* With v parts a device the bubble is a v-th of that; with its weights apart, in thirds of a step, a third. */
static void several_parts_and_parted_backwards_wait_less(void **state)
{
    for (int p = 2; p <= DEVICES; p *= 2)
        for (int rounds = 1; rounds < 4; rounds++) {
            int m = p * rounds;
            assert_int_equal(makespan_of("interleaved", p, m, 2, 1), 2 * (2 * m + p - 1));
            assert_int_equal(makespan_of("1f1b", p, m, 0, 2), 3 * (m + p - 1));
            assert_int_equal(makespan_of("zero-bubble", p, m, 0, 2), 3 * m + p - 1);
        }
}

/* ---- files ---- */

/* An action that PyTorch overlaps with another stands beside it. */
static void every_table_of_pytorch_can_be_run(void **state)
{
    static const struct {
        const char *file;
        int devices, micro, in_flight;
        const char *words; /* of device 0's row */
    } tables[] = {
        {TABLES "ZBVZeroBubble-2x2-4.csv", 2, 4, 4, ""},
        {TABLES "ZBVZeroBubble-2x4-8.csv", 4, 8, 8, ""},
        {TABLES "DualPipeV-2x2-6.csv", 2, 6, 5, "3F1 0F3 3B1 3F2 0B0 0F4 3B2"},
        {TABLES "LoopedBFS-2x2-4.csv", 2, 4, 8, ""},
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        int n = tables[i].devices;
        struct el_schedule schedule = opened(tables[i].file, n, 0, 0);
        assert_int_equal(schedule.n_micro, tables[i].micro);
        assert_int_equal(schedule.n_parts, 2 * n);
        bool is_v = !strstr(tables[i].file, "Looped");
        for (int k = 0; k < 2 * n; k++) assert_int_equal(schedule.device[k], k < n ? k : is_v ? 2 * n - 1 - k : k - n);
        assert_int_equal(el_schedule_in_flight(&schedule, 0), tables[i].in_flight);
        assert_int_equal(schedule.room, 2);
        assert_non_null(strstr(row(&schedule, 0), tables[i].words));
        el_schedule_close(&schedule);
    }
}

static char path[] = "/tmp/evenload-schedule-XXXXXX.csv";

static int make_file(void **state)
{
    int file = mkstemps(path, 4);
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state)
{
    return unlink(path);
}

static void write_table(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Where device 1 waits for device 2, which waits for device 0, whose messages to device 1 come before. */
static void a_mailbox_has_the_room_that_is_needed(void **state)
{
    write_table("0F0,0F1,0F2,0F3,2F0,2F1,2F2,2F3,2B0,2B1,2B2,2B3,0B0,0B1,0B2,0B3\n"
                "1F0,4F0,1F1,4F1,1F2,4F2,1F3,4F3,4B0,4B1,4B2,4B3,1B0,1B1,1B2,1B3\n"
                "3F0,3F1,3F2,3F3,3B0,3B1,3B2,3B3\n");
    struct el_schedule schedule = opened(path, 3, 0, 0);
    assert_int_equal(schedule.room, 3);
    el_schedule_close(&schedule);
}

static void what_is_wrong_with_a_file_is_said(void **state)
{
    static const struct {
        const char *text, *why;
        int devices;
    } rows[] = {
        {"0F0,0B0\n1F0\n", "stage 1 has no backward of micro-batch 0 (of 1)", 2},
        {"0F0,0I0,0W0\n1F0,1I0\n", "stage 1 has no backward for weights of micro-batch 0 (of 1)", 2},
        {"0F0,0W0\n", "stage 0 has no backward for inputs of micro-batch 0 (of 1)", 1},
        {"0F1,0B1\n", "stage 0 has no forward of micro-batch 0 (of 2)", 1},
        {"0F0,0F0,0B0\n", "stage 0 has more than one forward of micro-batch 0", 1},
        {"0F0,0I0,0B0\n", "stage 0 has a whole backward of micro-batch 0, and a half", 1},
        {"0F0,0B0\n1B0,1F0\n", "deadlock: device 0 would wait for ever before 0B0 for 1B0, which cannot come before it",
         2},
        {"0F0,3F0,3B0,0B0\n1F0,2F0,1B0,2B0\n",
         "deadlock: device 0 would wait for ever before 0B0 for 1B0, which cannot come before it", 2},
        {"0F0,0W0,0I0\n", "deadlock: device 0 would wait for ever before 0W0 for 0I0, which cannot come before it", 1},
        {"0F0,0SEND_F0,0B0\n",
         "row 1, cell 2: '0SEND_F0': no action that computes (F, B, I, W, OVERLAP_F_B): write the file with "
         "format=\"compute_only\"",
         1},
        {"0F0,,0B0,0REDUCE_GRAD\n",
         "row 1, cell 4: '0REDUCE_GRAD': no action that computes (F, B, I, W, OVERLAP_F_B): write the file with "
         "format=\"compute_only\"",
         1},
        {"0F0,(0B0;)OVERLAP\n", "row 1, cell 2: '(0B0;)OVERLAP': no action that computes (F, B, I, W, OVERLAP_F_B)", 1},
        {"0F0x,0B0\n", "row 1, cell 1: '0F0x': more than an action", 1},
        {"99999999999F0\n", "row 1, cell 1: '99999999999F0': stages go from 0 to 127", 1},
        {"0F512\n", "row 1, cell 1: '0F512': micro-batches go from 0 to 511", 1},
        {"0F0,0B0\n0F1,0B1\n", "row 2, cell 1: '0F1': this stage is in an earlier row too; each has one device", 2},
        {"0F0,0B0,2F0,2B0\n", "has stage 2, and no stage 1", 1},
        {"0F0,0B0\n,\n", "row 2: no action in it", 2},
        {"0F0,0B0\n", "has a row for each of 1 devices, and there are 2: change --devices", 2},
        {"0F0,0B0\n1F0,1B0\n2F0,2B0\n", "has a row for each of 3 devices, and there are 2: change --devices", 2},
        {"", "has a row for each of 0 devices, and there are 1: change --devices", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char wanted[300];
        struct el_schedule schedule;
        write_table(rows[i].text);
        assert_int_equal(open_schedule(path, rows[i].devices, 0, 0, &schedule), EL_ERR_INVALID);
        snprintf(wanted, sizeof wanted, "--schedule %s: %s", path, rows[i].why);
        assert_string_equal(el_error_message(), wanted);
        el_schedule_close(&schedule);
    }
}

static void options_that_do_not_fit_are_said(void **state)
{
    static const struct {
        const char *name, *why;
        int devices, micro, parts;
    } rows[] = {
        {"fifo", "--schedule fifo: no such schedule: give 1f1b, gpipe, interleaved, zero-bubble or a FILE.csv", 2, 2,
         0},
        {"missing.csv", "--schedule missing.csv: No such file or directory", 2, 0, 0},
        {"gpipe",
         "--schedule parts=2: --schedule gpipe has one part per device: leave it out, or give --schedule interleaved",
         2, 2, 2},
        {"interleaved",
         "--schedule micro=7: --schedule interleaved on 3 devices makes 2 rounds, which must have equally many "
         "micro-batches: "
         "give --schedule micro=6",
         3, 7, 2},
        {"interleaved", "--schedule parts=65: on 2 devices that makes more than 128 parts", 2, 2, 65},
        {TABLES "1F1B-1x4-6.csv",
         "--schedule micro=4: --schedule " TABLES "1F1B-1x4-6.csv has 6 micro-batches: leave --schedule micro out", 4,
         4, 0},
        {TABLES "1F1B-1x4-6.csv",
         "--schedule parts: --schedule " TABLES "1F1B-1x4-6.csv says how many there are: leave it out", 4, 0, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct el_schedule schedule;
        bool missing = strstr(rows[i].why, "No such file") != NULL;
        assert_int_equal(open_schedule(rows[i].name, rows[i].devices, rows[i].micro, rows[i].parts, &schedule),
                         missing ? EL_ERR_IO : EL_ERR_INVALID);
        assert_string_equal(el_error_message(), rows[i].why);
        el_schedule_close(&schedule);
    }
}

RUN_TESTS(make_file, remove_file, rows_are_those_of_the_papers, rows_are_those_of_pytorch,
          one_part_a_device_has_closed_forms, several_parts_and_parted_backwards_wait_less,
          every_table_of_pytorch_can_be_run, a_mailbox_has_the_room_that_is_needed, what_is_wrong_with_a_file_is_said,
          options_that_do_not_fit_are_said)
