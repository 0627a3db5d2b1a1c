/* Scaling: what is asked for, and the trials that it takes. */
#include "tests/test.h"

#include <stdio.h>

#include "bench/options/options.h"
#include "bench/scale/scale.h"
#include "bench/trial/trial.h"
#include "tests/unit/words.h"

static struct el_options asked, options;

/* What `scale` makes of these words on two cores and so many GPUs. */
static enum el_status choose(const char *words, int gpus)
{
    static char text[512];
    static char *argv[32];
    snprintf(text, sizeof text, "%s", words);
    int argc = words_of("scale", text, argv, sizeof argv / sizeof argv[0]);
    el_options_defaults(EL_CMD_SCALE, &asked);
    enum el_status status = el_options_parse(EL_CMD_SCALE, argc, argv, &asked);
    return status == EL_OK ? el_scale_options(&asked, 6, gpus, &options) : status;
}

static void counts_are_chosen_and_one_is_among_them(void **state)
{
    static const struct {
        const char *words;
        int gpus;
        const char *backend;
        int n, counts[4];
    } cases[] = {{"", 0, "cpu", 4, {1, 2, 4, 6}},
                 {"", 2, "cuda", 2, {1, 2}},
                 {"--devices 4,2", 0, "cpu", 3, {1, 2, 4}},
                 {"--devices null:3,1", 2, "null", 2, {1, 3}},
                 {"--devices cuda:1,2", 0, "cuda", 2, {1, 2}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(choose(cases[i].words, cases[i].gpus), EL_OK);
        assert_string_equal(options.counts_backend, cases[i].backend);
        assert_int_equal(options.n_counts, cases[i].n);
        assert_memory_equal(options.counts, cases[i].counts, sizeof(int) * (size_t)cases[i].n);
    }
}

static void a_batch_belongs_to_weak_or_strong(void **state)
{
    assert_int_equal(choose("", 0), EL_OK);
    assert_true(options.weak && !options.strong && options.batch_is_per_device && options.batches[0] == 64);
    assert_int_equal(choose("--batch-per-device 7", 0), EL_OK);
    assert_true(options.batch_is_per_device && options.batches[0] == 7);
    assert_int_equal(choose("--strong --batch 96", 0), EL_OK);
    assert_true(options.strong && !options.batch_is_per_device && options.batches[0] == 96);
    assert_int_equal(choose("--strong", 0), EL_OK);
    assert_true(!options.batch_is_per_device && options.batches[0] == 64);
    static const char *const bad[] = {
        "--weak --strong",      "--batch 64",           "--weak --batch 64", "--strong --batch-per-device 8",
        "--strong --batch 8,9", "--modes single",       "--bucket-mb 1,5",   "--devices 2,2",
        "--devices 0",          "--devices cpu:0,cpu:1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_int_equal(choose(bad[i], 0), EL_ERR_INVALID);
}

/* single once, every mode at every count. */
static void trials_are_counts_times_modes(void **state)
{
    struct el_trial_set set = {0};
    assert_int_equal(choose("--data dummy --devices null:1,2,4 --procs 1", 0), EL_OK);
    assert_int_equal(el_trials_resolve(EL_CMD_SCALE, &options, &set), EL_OK);
    static const struct {
        const char *mode;
        int devices;
    } wanted[] = {{"single", 1}, {"dp", 1}, {"dp", 2}, {"dp", 4}, {"ddp", 1}, {"ddp", 2}, {"ddp", 4}};
    assert_int_equal(set.n, sizeof wanted / sizeof wanted[0]);
    for (int i = 0; i < set.n; i++) {
        const struct el_trial *trial = &set.trials[i];
        assert_string_equal(trial->train.mode, wanted[i].mode);
        assert_int_equal(trial->n_devices, wanted[i].devices);
        assert_int_equal(trial->train.global_batch, 64 * wanted[i].devices);
        for (int j = 0; j < i; j++) assert_string_not_equal(trial->id, set.trials[j].id);
    }
    el_trials_free(&set);
}

RUN_TESTS(NULL, NULL, counts_are_chosen_and_one_is_among_them, a_batch_belongs_to_weak_or_strong,
          trials_are_counts_times_modes)
