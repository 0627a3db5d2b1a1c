/* Options: the parser, defaults, suggestions, devices by name, and the way from a trial to a command line and back.
 * What the program prints for a bad use is in tests/cli. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "bench/machine/cores.h"
#include "bench/options/options.h"
#include "bench/trial/trial.h"
#include "tests/unit/words.h"

static struct el_options options;

/* Parses words after a command with its defaults. */
static enum el_status parse(unsigned command, const char *words)
{
    static char text[1024];
    static char *argv[64];
    snprintf(text, sizeof text, "%s", words);
    int argc = words_of("command", text, argv, sizeof argv / sizeof argv[0]);
    el_options_defaults(command, &options);
    return el_options_parse(command, argc, argv, &options);
}

static void defaults_of_compare(void **state)
{
    (void)state;
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
    assert_true(options.train.overlap && options.train.capture && options.record);
    assert_true(options.train.model.dropout < 0);
    assert_null(options.train.model.sizes[0].name);
}

static void defaults_of_run(void **state)
{
    (void)state;
    assert_int_equal(parse(EL_CMD_RUN, ""), EL_OK);
    assert_int_equal(options.n_devices, 0);
    assert_int_equal(options.repeats, 1);
    assert_int_equal(options.batches[0], 64);
    assert_string_equal(options.modes[0], "single");
}

/* What is given is told from what has its default. */
static void what_was_given(void **state)
{
    (void)state;
    assert_int_equal(parse(EL_CMD_RUN, "--batch 64 --seed=1"), EL_OK);
    assert_true(el_option_given(&options, "batch") && el_option_given(&options, "seed"));
    assert_false(el_option_given(&options, "steps") || el_option_given(&options, "no-such"));
    assert_int_equal(parse(EL_CMD_RUN, ""), EL_OK);
    assert_false(el_option_given(&options, "batch"));
}

static void each_kind_is_read(void **state)
{
    (void)state;
    assert_int_equal(parse(EL_CMD_RUN,
                           "--mode ddp --devices null:3 --procs 1 --batch-per-device 7 --optimizer adam "
                           "--lr 0.5 --zero-grad keep --dtype f64 --overlap off --seed 18446744073709551615 "
                           "--device-mem 1.5MiB --hidden 4,5 --no-record --comm shm --launch self --json"),
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
    assert_false(options.train.overlap);
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
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } sizes[] = {{"1000", 1000}, {"1000B", 1000}, {"2K", 2048}, {"2KiB", 2048}, {"3m", 3 << 20}, {"1GiB", 1 << 30}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char words[64];
        snprintf(words, sizeof words, "--device-mem %s", sizes[i].text);
        assert_int_equal(parse(EL_CMD_RUN, words), EL_OK);
        assert_int_equal(options.device_mem_bytes, sizes[i].bytes);
    }
    assert_int_equal(parse(EL_CMD_RUN, "--device-mem 5 --device-mem lots"), EL_ERR_INVALID);
}

static void devices_by_name(void **state)
{
    (void)state;
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
    (void)state;
    static const char *const names[] = {"single", "dp", "ddp", NULL};
    assert_string_equal(el_suggest("dpp", names), "dp");
    assert_string_equal(el_suggest("dddp", names), "ddp");
    assert_string_equal(el_suggest("sinlge", names), "single");
    assert_null(el_suggest("pipeline", names));
    assert_null(el_suggest("a-word-that-is-much-longer-than-anything-that-could-be-meant-here", names));
}

static void batch_is_global_or_local(void **state)
{
    (void)state;
    assert_int_equal(parse(EL_CMD_COMPARE, "--batch 64 --batch-per-device 32"), EL_ERR_INVALID);
    assert_int_equal(parse(EL_CMD_COMPARE, "--batch-per-device 32,64"), EL_OK);
    assert_true(options.batch_is_per_device);
    assert_int_equal(options.n_batches, 2);
}

static void every_default_is_shown_as_it_is_read(void **state)
{
    (void)state;
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
    static const struct {
        const char *name, *why;
        unsigned commands;
    } reasons[] = {
        {"epochs", "learning is not what is looked at", EL_CMD_SCALE | EL_CMD_IMBALANCE | EL_CMD_DATA},
        {"load", "learning is not what is looked at", EL_CMD_SCALE | EL_CMD_IMBALANCE | EL_CMD_DATA},
        {"save", "of several trials each has its own", EL_CMD_COMPARE | EL_CMD_SCALE | EL_CMD_IMBALANCE | EL_CMD_DATA},
        {"beside", "it is asked of one trial", EL_CMD_COMPARE | EL_CMD_SCALE | EL_CMD_IMBALANCE | EL_CMD_DATA},
        {"profile", "it is asked of one trial", EL_CMD_COMPARE | EL_CMD_SCALE | EL_CMD_IMBALANCE | EL_CMD_DATA},
        {"sort", "it is asked of one trial", EL_CMD_COMPARE | EL_CMD_SCALE | EL_CMD_IMBALANCE | EL_CMD_DATA},
        {"no-record", "what is shown is what was recorded", EL_CMD_SCALE | EL_CMD_IMBALANCE | EL_CMD_DATA},
        {"launch", "it starts its own processes", EL_CMD_SCALE | EL_CMD_IMBALANCE | EL_CMD_DATA}};
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
    (void)state;
    static const char *const groups[] = {"Training", "Sizes of the model", "Data and weights", "Measuring"};
    static const unsigned commands[] = {EL_CMD_RUN, EL_CMD_COMPARE, EL_CMD_SCALE, EL_CMD_IMBALANCE, EL_CMD_DATA};
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

static struct el_trial_set resolve(unsigned command, const char *words)
{
    struct el_trial_set set = {0};
    assert_int_equal(parse(command, words), EL_OK);
    assert_int_equal(el_trials_resolve(command, &options, &set), EL_OK);
    return set;
}

static void trials_are_modes_times_batches(void **state)
{
    (void)state;
    struct el_trial_set set = resolve(EL_CMD_COMPARE, "--data dummy --batch-per-device 8,16 --devices 3 --procs 1");
    assert_int_equal(set.n, 6);
    assert_int_equal(set.trials[0].n_devices, 1); /* single */
    assert_int_equal(set.trials[0].train.global_batch, 8);
    assert_int_equal(set.trials[5].n_devices, 3);
    assert_int_equal(set.trials[5].train.global_batch, 48);
    for (int i = 0; i < set.n; i++)
        for (int j = 0; j < i; j++) assert_string_not_equal(set.trials[i].id, set.trials[j].id);
    el_trials_free(&set);
}

static void processes_follow_the_mode(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int procs;
    } cases[] = {{"--mode single", 1},
                 {"--mode dp --devices 3", 1},
                 {"--mode ddp --devices 3", 3},
                 {"--mode ddp --procs 1", 1},
                 {"--mode ddp --devices 1", 1},
                 {"--mode ddp --devices sim:3", 1},
                 {"--mode ddp --devices null:2", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[128];
        snprintf(words, sizeof words, "--data dummy --mode ddp %s", cases[i].words);
        struct el_trial_set set = resolve(EL_CMD_RUN, words);
        assert_int_equal(set.trials->procs, cases[i].procs);
        el_trials_free(&set);
    }
}

static void a_command_line_resolves_to_the_same_trial(void **state)
{
    (void)state;
    static const char *const words[] = {
        "--data dummy",
        "--data dummy --mode ddp --devices cpu:1,cpu:0 --batch-per-device 9 --lr 0.1234567890123 --timeout 7",
        "--data dummy --mode dp --devices null:4 --model mlp --hidden none --features 33 --classes 3 --zero-grad keep",
        "--data dummy --mode ddp --procs 1 --device-mem 77MiB --optimizer adam --dropout 0.25 --no-record",
        "--data dummy --mode ddp --procs 1 --bucket-mb 25 --optimizer adam --foreach on",
        "--data dummy --mode ddp --procs 1 --bucket-mb 5 --first-bucket-mb 0.5 --lr 0",
        "--data dummy --mode ddp --procs 1 --first-bucket-mb 2 --max-norm 3",
        "--data dummy --mode ddp --procs 1 --bucket-view on --comm-algorithm ps --comm-timeout 90s",
        "--data dummy --mode manual --procs 1 --accumulate 3 --sync param",
        "--data dummy --mode ddp --procs 1 --find-unused on --static-graph on",
        "--data dummy --mode dp --devices null:3 --output-device 2 --loss-in replica",
        "--data dummy --mode spmg --devices 4 --procs 2 --batch 8",
        "--data dummy --mode spmg --devices 4 --procs 1 --mesh dp=2 --batch 8",
        "--data dummy --mode mp --model mlp --devices 2 --procs 2 --mesh dp=2",
        "--data dummy --mode pipeline --model mlp --devices 4 --procs 4 --mesh dp=4,pp=1 --micro 2",
        "--data dummy --mode pipeline --model mlp --hidden 8,8,8 --devices 4 --procs 4 --mesh pp=2 --micro 4 --parts 2 "
        "--schedule interleaved"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char command[2048];
        struct el_trial_set first = resolve(EL_CMD_RUN, words[i]);
        assert_int_equal(el_trial_command(first.trials, command, sizeof command), EL_OK);
        assert_memory_equal(command, "evenload run ", 13);
        struct el_trial_set second = resolve(EL_CMD_RUN, command + 13);
        assert_string_equal(first.trials->id, second.trials->id);
        assert_int_equal(first.trials->train.n_ranks, second.trials->train.n_ranks);
        assert_int_equal(first.trials->train.n_micro, second.trials->train.n_micro);
        el_trials_free(&first);
        el_trials_free(&second);
    }
}

/* torch.optim's learning rate for Adam; torch's buckets, whose given cap is the first one's limit too. */
static void what_is_not_given_is_as_in_pytorch(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        double lr, first_mib, cap_mib;
    } cases[] = {{"--optimizer sgd", 0.01, 1, 25},      {"--optimizer momentum", 0.01, 1, 25},
                 {"--optimizer adam", 0.001, 1, 25},    {"--optimizer adam --lr 0.01", 0.01, 1, 25},
                 {"--lr 0 --bucket-mb 5", 0, 5, 5},     {"--bucket-mb 0.5", 0.01, 0.5, 0.5},
                 {"--bucket-mb 25", 0.01, 25, 25},      {"--bucket-mb 5 --first-bucket-mb 1", 0.01, 1, 5},
                 {"--first-bucket-mb 30", 0.01, 30, 25}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[128];
        snprintf(words, sizeof words, "--data dummy --mode ddp %s", cases[i].words);
        struct el_trial_set set = resolve(EL_CMD_RUN, words);
        const struct el_train_config *train = &set.trials->train;
        assert_true(train->lr == cases[i].lr);
        assert_true((double)train->bucket_first_bytes == cases[i].first_mib * (1 << 20));
        assert_true((double)train->bucket_cap_bytes == cases[i].cap_mib * (1 << 20));
        el_trials_free(&set);
    }
}

/* torch.optim's default is on for parameters on GPUs, off for those on the CPU. */
static void foreach_follows_the_device(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        enum el_foreach foreach;
    } cases[] = {{"--devices cpu:0,", EL_FOREACH_OFF},
                 {"--devices cuda:0,", EL_FOREACH_ON},
                 {"--devices cpu:0, --foreach on", EL_FOREACH_ON},
                 {"--devices cuda:0, --foreach off", EL_FOREACH_OFF}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[128];
        snprintf(words, sizeof words, "--data dummy --mode ddp %s", cases[i].words);
        struct el_trial_set set = resolve(EL_CMD_RUN, words);
        assert_int_equal(set.trials->train.foreach, cases[i].foreach);
        el_trials_free(&set);
    }
}

/* In compare a list of sizes is a trial each of a mode that has buckets, and one of any other. */
static void sizes_of_buckets_are_trials(void **state)
{
    (void)state;
    static const size_t caps_mib[] = {1, 1, 3, 25};
    struct el_trial_set set =
        resolve(EL_CMD_COMPARE, "--data dummy --devices null:2 --batch 8 --modes single,ddp --bucket-mb 1,3,25");
    assert_int_equal(set.n, 4);
    for (int t = 0; t < set.n; t++) {
        assert_int_equal(set.trials[t].train.bucket_cap_bytes, caps_mib[t] << 20);
        for (int j = 0; j < t; j++) assert_string_not_equal(set.trials[t].id, set.trials[j].id);
    }
    el_trials_free(&set);
    assert_int_equal(parse(EL_CMD_COMPARE, "--bucket-mb 1,1"), EL_ERR_INVALID);
    assert_int_equal(parse(EL_CMD_RUN, "--mode ddp --bucket-mb 1,5"), EL_ERR_INVALID);
}

/* In compare both ways of a mode that has buckets; alone only where there are buckets. */
static void views_of_buckets_are_a_trial_of_their_own(void **state)
{
    (void)state;
    struct el_trial_set set = resolve(EL_CMD_COMPARE, "--data dummy --devices null:2 --batch 8,16 --bucket-view both");
    bool views[] = {false, false, false, true}; /* single, dp, ddp, ddp */
    assert_int_equal(set.n, 8);
    for (int t = 0; t < set.n; t++) assert_int_equal(set.trials[t].train.bucket_view, views[t % 4]);
    assert_string_not_equal(set.trials[2].id, set.trials[3].id);
    el_trials_free(&set);
    assert_int_equal(parse(EL_CMD_RUN, "--mode dp --bucket-view on"), EL_OK);
    assert_int_equal(el_options_check_together(&options), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "--bucket-view: mode dp does not take it, ddp does"));
    assert_int_equal(parse(EL_CMD_RUN, "--mode ddp --bucket-view both"), EL_ERR_INVALID);
}

/* What no mode of the command takes would change nothing; with one that does, the others do without. */
static void what_no_mode_takes_is_refused(void **state)
{
    (void)state;
    static const char *const none[] = {"--mode single --micro 4",       "--mode dp --cut x",
                                       "--mode mp --schedule gpipe",    "--mode single --bucket-mb 5",
                                       "--mode dp --first-bucket-mb 5", "--mode manual --overlap off",
                                       "--mode mp --accumulate 2",      "--mode single --find-unused on",
                                       "--mode dp --static-graph on",   "--mode ddp --sync param",
                                       "--mode ddp --output-device 1",  "--mode single --loss-in replica"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_int_equal(parse(EL_CMD_RUN, none[i]), EL_OK);
        assert_int_equal(el_options_check_together(&options), EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(), "does not take it, "));
    }
    static const char *const of_one_copy[] = {"--mode mp --bucket-mb 5", "--mode pipeline --overlap off",
                                              "--mode mp --mesh dp=1,pp=2 --first-bucket-mb 1",
                                              "--mode pipeline --devices 2 --mesh pp=2 --broadcast-buffers off"};
    for (size_t i = 0; i < sizeof of_one_copy / sizeof of_one_copy[0]; i++) {
        assert_int_equal(parse(EL_CMD_RUN, of_one_copy[i]), EL_OK);
        assert_int_equal(el_options_check_together(&options), EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(), "with one copy of the model has no use for it: leave it out"));
    }
    assert_int_equal(parse(EL_CMD_RUN, "--mode pipeline --devices 4 --mesh pp=2 --overlap off"), EL_OK);
    assert_int_equal(el_options_check_together(&options), EL_OK);
    assert_int_equal(parse(EL_CMD_COMPARE, "--modes single,ddp,pipeline --micro 2 --bucket-mb 5 --overlap off"), EL_OK);
    assert_int_equal(el_options_check_together(&options), EL_OK);
    struct el_trial_set set = resolve(
        EL_CMD_COMPARE, "--data dummy --devices null:2 --batch 8 --modes single,mp,ddp --bucket-mb 5 --overlap off");
    char command[512];
    for (int t = 0; t < 2; t++) {
        assert_int_equal(el_trial_command(&set.trials[t], command, sizeof command), EL_OK);
        assert_null(strstr(command, "--bucket-mb"));
        assert_null(strstr(command, "--overlap"));
    }
    assert_int_equal(el_trial_command(&set.trials[2], command, sizeof command), EL_OK);
    assert_non_null(strstr(command, "--overlap off --bucket-mb 5"));
    el_trials_free(&set);
}

static void every_communicator_that_is_listed_is_taken(void **state)
{
    (void)state;
    assert_int_equal(parse(EL_CMD_RUN, "--comm hierarchical"), EL_OK);
    assert_string_equal(options.comm, "hierarchical");
    assert_int_equal(parse(EL_CMD_COMM, "--comm hierarchical"), EL_OK);
}

static void the_id_is_of_what_is_measured(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        bool same;
    } cases[] = {{"--timeout 5", true},     {"--quiet", true},
                 {"--repeats 3", true},     {"--seed 2", false},
                 {"--lr 0.02", false},      {"--steps 11", false},
                 {"--dtype f64", false},    {"--vocab 99", false},
                 {"--no-record", false},    {"--lr 0.01", true},
                 {"--foreach off", true},   {"--foreach on", false},
                 {"--bucket-mb 25", false}, {"--first-bucket-mb 1", true}};
    struct el_trial_set plain = resolve(EL_CMD_RUN, "--data dummy --mode ddp");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[128];
        snprintf(words, sizeof words, "--data dummy --mode ddp %s", cases[i].words);
        struct el_trial_set other = resolve(EL_CMD_RUN, words);
        assert_int_equal(strcmp(plain.trials->id, other.trials->id) == 0 ? 1 : 0, cases[i].same ? 1 : 0);
        el_trials_free(&other);
    }
    el_trials_free(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_of_compare),
        cmocka_unit_test(defaults_of_run),
        cmocka_unit_test(what_was_given),
        cmocka_unit_test(each_kind_is_read),
        cmocka_unit_test(sizes_with_suffixes),
        cmocka_unit_test(devices_by_name),
        cmocka_unit_test(suggestions),
        cmocka_unit_test(batch_is_global_or_local),
        cmocka_unit_test(every_default_is_shown_as_it_is_read),
        cmocka_unit_test(who_makes_trials_takes_every_row_of_them),
        cmocka_unit_test(trials_are_modes_times_batches),
        cmocka_unit_test(processes_follow_the_mode),
        cmocka_unit_test(a_command_line_resolves_to_the_same_trial),
        cmocka_unit_test(what_is_not_given_is_as_in_pytorch),
        cmocka_unit_test(foreach_follows_the_device),
        cmocka_unit_test(sizes_of_buckets_are_trials),
        cmocka_unit_test(views_of_buckets_are_a_trial_of_their_own),
        cmocka_unit_test(what_no_mode_takes_is_refused),
        cmocka_unit_test(every_communicator_that_is_listed_is_taken),
        cmocka_unit_test(the_id_is_of_what_is_measured),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
