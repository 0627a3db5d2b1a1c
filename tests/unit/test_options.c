/* Options: the parser, defaults, suggestions, devices by name. What the program prints for a bad use is in tests/cli.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/commands.h"
#include "bench/machine/host.h"
#include "tests/test.h"
#include "tests/unit/options_parse.h"

/* Of a mode's option, as it was given. */
static const char *given(const char *name)
{
    return (const char *)&options + el_option_find(name, strlen(name))->offset;
}

static void defaults_of_compare(void **state)
{
    assert_int_equal(parse(EL_CMD_COMPARE, ""), EL_OK);
    assert_int_equal(options.n_modes, 3);
    assert_string_equal(options.modes[2], "ddp");
    assert_int_equal(options.n_devices, 0); /* all GPUs, else two CPU devices: when a trial is made of it */
    assert_int_equal(options.n_batches, 3);
    assert_int_equal(options.batches[2], 256);
    assert_int_equal(options.repeats, 5);
    assert_string_equal(options.train.model.name, "textcnn");
    assert_int_equal(options.train.optimizer, EL_OPT_MOMENTUM);
    assert_false(options.train.keep_grads);
    assert_true(options.train.capture && options.record);
    assert_string_equal(given("overlap"), "on");
    assert_true(options.train.model.dropout < 0);
    assert_null(options.train.model.sizes[0].name);
}

static void defaults_of_run(void **state)
{
    assert_int_equal(parse(EL_CMD_RUN, ""), EL_OK);
    assert_int_equal(options.n_devices, 0);
    assert_int_equal(options.repeats, 1);
    assert_int_equal(options.batches[0], 64);
    assert_string_equal(options.modes[0], "single");
}

/* It takes fewer options, and what it trains is as usual all the same. */
static void defaults_of_explain(void **state)
{
    assert_int_equal(parse(EL_CMD_EXPLAIN, ""), EL_OK);
    assert_string_equal(given("accumulate"), "1");
    assert_int_equal(options.train.steps, 10);
    assert_int_equal(options.train.control_pairs, 4);
    assert_string_equal(given("schedule"), "1f1b");
    assert_int_equal(parse(EL_CMD_EXPLAIN, "--accumulate 2"), EL_ERR_INVALID);
}

/* What is given is told from what has its default. */
static void what_was_given(void **state)
{
    assert_int_equal(parse(EL_CMD_RUN, "--batch 64 --seed=1"), EL_OK);
    assert_true(el_option_given(&options, "batch") && el_option_given(&options, "seed"));
    assert_false(el_option_given(&options, "steps") || el_option_given(&options, "no-such"));
    assert_int_equal(parse(EL_CMD_RUN, ""), EL_OK);
    assert_false(el_option_given(&options, "batch"));
}

static void each_kind_is_read(void **state)
{
    assert_int_equal(
        parse(EL_CMD_RUN,
              "--mode ddp --devices null:3 --procs 1 --batch-per-device 7 --optimizer adam --lr 0.5 "
              "--zero-grad keep --precision f64 --overlap off --seed 18446744073709551615 --devices mem=1.5MiB "
              "--hidden 4,5 --no-record --comm shm --launcher self --json"),
        EL_OK);
    assert_int_equal(options.n_devices, 3);
    assert_string_equal(options.devices[2].backend, "null");
    assert_int_equal(options.devices[2].index, 2);
    assert_true(options.batch_is_per_device);
    assert_int_equal(options.batches[0], 7);
    assert_int_equal(options.train.optimizer, EL_OPT_ADAM);
    assert_true(options.train.lr == 0.5);
    assert_true(options.train.keep_grads);
    assert_int_equal(options.train.dtype, EL_F64);
    assert_string_equal(given("overlap"), "off");
    assert_true(options.train.seed == UINT64_MAX);
    assert_int_equal(options.device_mem_bytes, 1572864);
    assert_int_equal(el_model_values(&options.train.model, "hidden")->n, 2);
    assert_int_equal(el_model_values(&options.train.model, "hidden")->v[1], 5);
    assert_false(options.record);
    assert_string_equal(options.comm, "shm");
    assert_int_equal(options.launch, EL_LAUNCH_SELF);
    assert_true(options.json);
}

static void sizes_with_suffixes(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } sizes[] = {{"2000000", 2000000}, {"2000000B", 2000000}, {"2048K", 1 << 21},
                 {"2048KiB", 1 << 21}, {"3m", 3 << 20},       {"1GiB", 1 << 30}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char words[64];
        snprintf(words, sizeof words, "--devices mem=%s", sizes[i].text);
        assert_int_equal(parse(EL_CMD_RUN, words), EL_OK);
        assert_int_equal(options.device_mem_bytes, sizes[i].bytes);
    }
    assert_int_equal(parse(EL_CMD_RUN, "--devices mem=5m --devices mem=lots"), EL_ERR_INVALID);
    assert_int_equal(parse(EL_CMD_RUN, "--devices mem=80"), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "80 is less than 1 MiB: give a unit"));
}

static void devices_by_name(void **state)
{
    static const char *const texts[] = {"2",
                                        "64",
                                        "null:3",
                                        "sim:1",
                                        "cpu:1,",
                                        "cpu:0,cpu:0",
                                        "cpu:1,cpu:0,cpu:7",
                                        "cuda:4",
                                        "cuda:0,cuda:5",
                                        "cuda:0,cuda:0"};
    struct el_device_name devices[EL_MEMBERS_MAX];
    int n;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char shown[256];
        assert_int_equal(el_devices_parse(texts[i], devices, &n), EL_OK);
        el_devices_show(devices, n, shown, sizeof shown);
        assert_string_equal(shown, texts[i]);
    }
    assert_int_equal(el_devices_parse("cpu:2", devices, &n), EL_OK); /* one item: that many */
    assert_int_equal(n, 2);
    static const char *const bad[] = {"", "0", "65", "-1", "x", "cuda", "cpu", ":2", "cpu:", "cpu:1,sim:0", "1,2,"};
    for (size_t i = 0; i + 1 < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(el_devices_parse(bad[i], devices, &n), EL_ERR_INVALID);
}

static void suggestions(void **state)
{
    static const char *const names[] = {"single", "dp", "ddp", NULL};
    assert_string_equal(el_suggest("dpp", names), "dp");
    assert_string_equal(el_suggest("dddp", names), "ddp");
    assert_string_equal(el_suggest("sinlge", names), "single");
    assert_null(el_suggest("pipeline", names));
    assert_null(el_suggest("a-word-that-is-much-longer-than-anything-that-could-be-meant-here", names));
}

static void batch_is_global_or_local(void **state)
{
    assert_int_equal(parse(EL_CMD_COMPARE, "--batch 64 --batch-per-device 32"), EL_ERR_INVALID);
    assert_int_equal(parse(EL_CMD_COMPARE, "--batch-per-device 32,64"), EL_OK);
    assert_true(options.batch_is_per_device);
    assert_int_equal(options.n_batches, 2);
}

static void every_default_is_shown_as_it_is_read(void **state)
{
    assert_int_equal(parse(EL_CMD_COMPARE, ""), EL_OK);
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        char text[256];
        if (!(row->commands & EL_CMD_COMPARE)) continue;
        el_option_show(row, &options, text, sizeof text);
        if (row->kind != EL_OPTION_BATCH_PER_DEVICE) assert_string_equal(text, row->initial);
    }
}

/* Why a command that makes trials does not take a row that says how they are trained or measured; NULL: no reason. */
static const char *why_without(const char *name, unsigned command)
{
    enum { SHOWING = EL_CMD_SCALE | EL_CMD_IMBALANCE, SEVERAL = SHOWING | EL_CMD_COMPARE };
    static const struct {
        const char *name, *why;
        unsigned commands;
    } reasons[] = {{"epochs", "learning is not what is looked at", SHOWING},
                   {"eval", "learning is not what is looked at", SHOWING},
                   {"load", "learning is not what is looked at", SHOWING},
                   {"save", "of several trials each has its own", SEVERAL},
                   {"checkpoint", "of several trials each has its own", SEVERAL},
                   {"checkpoint-every", "of several trials each has its own", SEVERAL},
                   {"checkpoint-keep", "of several trials each has its own", SEVERAL},
                   {"checkpoint-async", "of several trials each has its own", SEVERAL},
                   {"resume", "of several trials each has its own", SEVERAL},
                   {"elastic", "of several trials each has its own", SEVERAL},
                   {"elastic-batch", "of several trials each has its own", SEVERAL},
                   {"max-restarts", "of several trials each has its own", SEVERAL},
                   {"beside", "it is asked of one trial", SEVERAL},
                   {"profile", "it is asked of one trial", SEVERAL},
                   {"sort", "it is asked of one trial", SEVERAL},
                   {"no-record", "what is shown is what was recorded", SHOWING},
                   {"launch", "it starts its own processes", SHOWING}};
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (!strcmp(reasons[i].name, name) && (reasons[i].commands & command)) return reasons[i].why;
    return NULL;
}

/* A name may have several rows: another kind for another command. */
static bool takes(unsigned command, const char *name)
{
    for (const struct el_option_row *row = el_option_rows(); row->name; row++)
        if (!strcmp(row->name, name) && (row->commands & command)) return true;
    return false;
}

static void who_makes_trials_takes_every_row_of_them(void **state)
{
    static const char *const groups[] = {"Training", "Sizes of the model", "Data and weights", "Measuring"};
    static const unsigned commands[] = {EL_CMD_RUN, EL_CMD_COMPARE, EL_CMD_SCALE, EL_CMD_IMBALANCE};
    const unsigned theirs = EL_CMD_OF_TRIALS;
    int seen[4] = {0};
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        size_t g = 0;
        while (g < 4 && strcmp(groups[g], row->group) != 0) g++;
        if (g == 4 || !(row->commands & theirs)) continue; /* of watch or regress alone */
        seen[g]++;
        for (size_t c = 0; c < sizeof commands / sizeof commands[0]; c++) {
            bool taken = takes(commands[c], row->name), reasoned = why_without(row->name, commands[c]) != NULL;
            if (taken == reasoned)
                fail_msg("--%s: command %u %s", row->name, commands[c],
                         taken ? "takes it after all" : "does not take it, and nothing says why");
        }
    }
    for (size_t g = 0; g < 4; g++) assert_true(seen[g] >= 3);
}

/* A row says by bits which commands take it. */
static void each_command_has_a_bit_of_its_own(void **state)
{
    unsigned all = 0;
    for (const struct el_command_row *row = el_command_rows(); row->bit; row++) {
        assert_true(row->bit && !(row->bit & (row->bit - 1)) && !(row->bit & all));
        all |= row->bit;
    }
    assert_int_equal(all, EL_CMD_ALL);
}

RUN_TESTS(NULL, NULL, defaults_of_compare, defaults_of_run, defaults_of_explain, what_was_given, each_kind_is_read,
          sizes_with_suffixes, devices_by_name, suggestions, batch_is_global_or_local,
          every_default_is_shown_as_it_is_read, who_makes_trials_takes_every_row_of_them,
          each_command_has_a_bit_of_its_own)
