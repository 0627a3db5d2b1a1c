/* Trials: from options to all that they ask for, from a trial to a command line and back. */
#include <stdlib.h>
#include <string.h>

#include "bench/machine/host.h"
#include "bench/trial/trial.h"
#include "tests/test.h"
#include "tests/unit/options_parse.h"

static struct el_trial_set resolve(unsigned command, const char *words)
{
    struct el_trial_set set = {0};
    assert_int_equal(parse(command, words), EL_OK);
    assert_int_equal(el_trials_resolve(command, &options, &set), EL_OK);
    return set;
}

/* Of ddp, unless the words say another mode. */
static struct el_trial_set resolve_ddp(const char *more)
{
    char words[160];
    snprintf(words, sizeof words, "--data dummy --mode ddp %s", more);
    return resolve(EL_CMD_RUN, words);
}

static void trials_are_modes_times_batches(void **state)
{
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
        struct el_trial_set set = resolve_ddp(cases[i].words);
        assert_int_equal(set.trials->procs, cases[i].procs);
        el_trials_free(&set);
    }
}

static void a_command_line_resolves_to_the_same_trial(void **state)
{
    static const char *const words[] = {
        "--data dummy",
        "--data dummy --mode ddp --devices cpu:1,cpu:0 --batch-per-device 9 --lr 0.1234567890123 --timeout 7",
        "--data dummy --mode dp --devices null:4 --model mlp --hidden none --features 33 --classes 3 --zero-grad keep",
        "--data dummy --mode ddp --procs 1 --devices mem=77MiB --optimizer adam --model dropout=0.25 --no-record",
        "--data dummy --mode ddp --procs 1 --bucket-mb 25 --optimizer adam,foreach=on",
        "--data dummy --mode ddp --procs 1 --bucket-mb 5,first=0.5 --lr 0",
        "--data dummy --mode ddp --procs 1 --bucket-mb first=2 --model max-norm=3",
        "--data dummy --optimizer adamw --clip 0.5",
        "--data dummy --optimizer adamw,weight-decay=0",
        "--data dummy --mode ddp --procs 1 --bucket-mb view --comm-timeout 90s --comm check",
        "--data dummy --mode manual --procs 1 --accumulate 3 --sync param",
        "--data dummy --mode ddp --procs 1 --find-unused on,once",
        "--data dummy --mode dp --devices null:3 --loss-in device=2 --loss-in replica",
        "--data dummy --mode spmg --devices 4 --procs 2 --batch 8",
        "--data dummy --mode spmg --devices 4 --procs 1 --mesh dp=2 --batch 8",
        "--data dummy --mode mp --model mlp --devices 2 --procs 2 --mesh dp=2",
        "--data dummy --mode pipeline --model mlp --devices 4 --procs 4 --mesh dp=4,pp=1 --schedule micro=2",
        "--data dummy --mode pipeline --model mlp --hidden 8,8,8 --devices 4 --procs 4 --mesh pp=2 --schedule "
        "micro=4,parts=2 "
        "--schedule interleaved"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char command[2048];
        struct el_trial_set first = resolve(EL_CMD_RUN, words[i]);
        assert_int_equal(el_trial_command(first.trials, command, sizeof command), EL_OK);
        assert_memory_equal(command, "evenload run ", 13);
        struct el_trial_set second = resolve(EL_CMD_RUN, command + 13);
        assert_string_equal(first.trials->id, second.trials->id);
        assert_int_equal(first.trials->train.mesh[EL_AXIS_DATA], second.trials->train.mesh[EL_AXIS_DATA]);
        assert_int_equal(first.trials->train.n_micro, second.trials->train.n_micro);
        el_trials_free(&first);
        el_trials_free(&second);
    }
}

/* torch.optim's learning rate for Adam; torch's buckets, whose given cap is the first one's limit too. */
static void what_is_not_given_is_as_in_pytorch(void **state)
{
    static const struct {
        const char *words;
        double lr, first_mib, cap_mib;
    } cases[] = {{"--optimizer sgd", 0.01, 1, 25},
                 {"--optimizer momentum", 0.01, 1, 25},
                 {"--optimizer adamw", 0.001, 1, 25},
                 {"--optimizer adam", 0.001, 1, 25},
                 {"--optimizer adam --lr 0.01", 0.01, 1, 25},
                 {"--lr 0 --bucket-mb 5", 0, 5, 5},
                 {"--bucket-mb 0.5", 0.01, 0.5, 0.5},
                 {"--bucket-mb 25", 0.01, 25, 25},
                 {"--bucket-mb 5,first=1", 0.01, 1, 5},
                 {"--bucket-mb first=30", 0.01, 30, 25}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_trial_set set = resolve_ddp(cases[i].words);
        const struct el_train_config *train = &set.trials->train;
        assert_true(train->lr == cases[i].lr && train->weight_decay == (strstr(cases[i].words, "adamw") ? 0.01 : 0));
        assert_true((double)train->bucket_first_bytes == cases[i].first_mib * (1 << 20));
        assert_true((double)train->bucket_cap_bytes == cases[i].cap_mib * (1 << 20));
        el_trials_free(&set);
    }
}

/* torch.optim's default is on for parameters on GPUs, off for those on the CPU. */
static void foreach_follows_the_device(void **state)
{
    static const struct {
        const char *words;
        enum el_foreach foreach;
    } cases[] = {{"--devices cpu:0,", EL_FOREACH_OFF},
                 {"--devices cuda:0,", EL_FOREACH_ON},
                 {"--devices cpu:0, --optimizer foreach=on", EL_FOREACH_ON},
                 {"--devices cuda:0, --optimizer foreach=off", EL_FOREACH_OFF}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_trial_set set = resolve_ddp(cases[i].words);
        assert_int_equal(set.trials->train.foreach, cases[i].foreach);
        el_trials_free(&set);
    }
}

/* In compare a list of sizes is a trial each of a mode that has buckets, and one of any other. */
static void sizes_of_buckets_are_trials(void **state)
{
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

/* Each option is right, and together they are not. */
static void refuses_together(const char *words, const char *reason)
{
    assert_int_equal(parse(EL_CMD_RUN, words), EL_OK);
    assert_int_equal(el_options_check_together(&options), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), reason));
}

/* In compare both ways of a mode that has buckets; alone only where there are buckets. */
static void views_of_buckets_are_a_trial_of_their_own(void **state)
{
    struct el_trial_set set =
        resolve(EL_CMD_COMPARE, "--data dummy --devices null:2 --batch 8,16 --bucket-mb view=off,on");
    bool views[] = {false, false, false, true}; /* single, dp, ddp, ddp */
    assert_int_equal(set.n, 8);
    for (int t = 0; t < set.n; t++) assert_int_equal(set.trials[t].train.bucket_view, views[t % 4]);
    assert_string_not_equal(set.trials[2].id, set.trials[3].id);
    el_trials_free(&set);
    refuses_together("--mode dp --bucket-mb view", "--bucket-mb view: mode dp does not take it, ddp does");
    assert_int_equal(parse(EL_CMD_RUN, "--mode ddp --bucket-mb view=off,on"), EL_ERR_INVALID);
}

/* Any option of a trial takes a list where there are several trials; what a mode makes nothing of is no trial of its
 * own. */
static void a_list_is_a_trial_for_each_value(void **state)
{
    struct el_trial_set set =
        resolve(EL_CMD_COMPARE, "--modes dp,ddp --data dummy --devices null:2 --batch 8 --overlap "
                                "off,on --precision f32,bf16 --workers 0,1,prefetch=1,2");
    assert_int_equal(set.n, 6 + 12); /* dp has no --overlap, and 0 workers nothing ahead */
    assert_string_equal(set.trials[0].chosen, "f32 workers 0 prefetch 1");
    assert_string_equal(set.trials[6].chosen, "f32 overlap off workers 0 prefetch 1");
    assert_string_equal(set.trials[17].chosen, "bf16 overlap on workers 1 prefetch 2");
    assert_int_equal(set.trials[17].train.model.precision, EL_PRECISION_BF16);
    assert_int_equal(set.trials[17].train.loading.prefetch, 2);
    for (int i = 0; i < set.n; i++)
        for (int j = 0; j < i; j++) assert_string_not_equal(set.trials[i].id, set.trials[j].id);
    el_trials_free(&set);
    assert_int_equal(parse(EL_CMD_COMPARE, "--lr 0.1,0.2 --lr 0.3"), EL_OK);
    assert_int_equal(el_option_combinations(&options), 1);
    assert_int_equal(parse(EL_CMD_COMPARE, "--lr 0.1,x"), EL_ERR_INVALID);
    assert_int_equal(parse(EL_CMD_RUN, "--lr 0.1,0.2"), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "'run' takes one value; 'evenload compare' takes a list"));
    assert_int_equal(parse(EL_CMD_COMPARE, "--repeats 1,2"), EL_ERR_INVALID);
}

/* What no mode of the command takes would change nothing; with one that does, the others do without. */
static void what_no_mode_takes_is_refused(void **state)
{
    static const char *const none[] = {"--mode single --schedule micro=4", "--mode dp --cut x",
                                       "--mode mp --schedule gpipe",       "--mode single --bucket-mb 5",
                                       "--mode dp --bucket-mb first=5",    "--mode manual --overlap off",
                                       "--mode mp --accumulate 2",         "--mode single --find-unused on",
                                       "--mode dp --find-unused once",     "--mode ddp --sync param",
                                       "--mode ddp --loss-in device=1",    "--mode single --loss-in replica"};
    static const char *const of_one_copy[] = {"--mode mp --bucket-mb 5",
                                              "--mode pipeline --overlap off",
                                              "--mode mp --mesh dp=1,pp=2 --bucket-mb first=1",
                                              "--mode pipeline --devices 2 --mesh pp=2 --broadcast-buffers off",
                                              "--mode tp --bucket-mb 5",
                                              "--mode tp --devices 2 --mesh tp=2 --overlap off"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) refuses_together(none[i], "does not take it, ");
    for (size_t i = 0; i < sizeof of_one_copy / sizeof of_one_copy[0]; i++)
        refuses_together(of_one_copy[i], "with one copy of the model has no use for it: leave it out");
    assert_int_equal(parse(EL_CMD_RUN, "--mode pipeline --devices 4 --mesh pp=2 --overlap off"), EL_OK);
    assert_int_equal(el_options_check_together(&options), EL_OK);
    assert_int_equal(
        parse(EL_CMD_COMPARE, "--modes single,ddp,pipeline --schedule micro=2 --bucket-mb 5 --overlap off"), EL_OK);
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
    assert_non_null(strstr(command, "--bucket-mb 5 --overlap off"));
    el_trials_free(&set);
}

static void the_id_is_of_what_is_measured(void **state)
{
    static const struct {
        const char *words;
        bool same;
    } cases[] = {{"--timeout 5", true},
                 {"--quiet", true},
                 {"--repeats 3", true},
                 {"--seed 2", false},
                 {"--lr 0.02", false},
                 {"--steps 11", false},
                 {"--precision f64", false},
                 {"--vocab 99", false},
                 {"--no-record", false},
                 {"--lr 0.01", true},
                 {"--optimizer foreach=off", true},
                 {"--optimizer foreach=on", false},
                 {"--bucket-mb 25", false},
                 {"--bucket-mb first=1", true}};
    struct el_trial_set plain = resolve(EL_CMD_RUN, "--data dummy --mode ddp");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_trial_set other = resolve_ddp(cases[i].words);
        assert_int_equal(strcmp(plain.trials->id, other.trials->id) == 0 ? 1 : 0, cases[i].same ? 1 : 0);
        el_trials_free(&other);
    }
    el_trials_free(&plain);
}

RUN_TESTS(NULL, NULL, trials_are_modes_times_batches, processes_follow_the_mode,
          a_command_line_resolves_to_the_same_trial, what_is_not_given_is_as_in_pytorch, foreach_follows_the_device,
          sizes_of_buckets_are_trials, views_of_buckets_are_a_trial_of_their_own, a_list_is_a_trial_for_each_value,
          what_no_mode_takes_is_refused, the_id_is_of_what_is_measured)
