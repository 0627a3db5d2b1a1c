/* A wait that is missing is found: one wait of each step is left out by the fake run time, as if the program had not
 * asked for it, and within three seeds of delays a loss is wrong. Others may imply a wait: a test names how many have
 * to be found.
 *
 * Under the thread sanitizer a race would be told as what it is, and the program would fail: it has only what is well.
 */
#include "tests/cards/cards_cases.h"

enum { SEEDS = 3, STEPS = 5 };

/* How batches come to the cards. */
static struct el_loading copies;

static void train_mlp(const char *mode, const char *failures, uint64_t seed, struct trained *trained)
{
    struct el_train_config config;
    configure("mlp", mode, strcmp(mode, "single") ? 2 : 1, EL_F64, &config);
    config.steps = STEPS;
    config.loading = copies;
    cards_set_failures(failures);
    cards_set_seed(seed);
    train_on("cuda", false, &config, trained);
    cards_set_failures(NULL);
    assert_nothing_left();
}

/* Waits that a card gets in one step: those of a run less those of one with a step less. */
static int waits_in_a_step(const char *mode, int device)
{
    struct cards_counts counts[3];
    cards_count(device, &counts[0]);
    for (int steps = STEPS - 1; steps <= STEPS; steps++) {
        struct el_train_config config;
        struct trained trained;
        configure("mlp", mode, 2, EL_F64, &config);
        config.steps = steps;
        train_on("cuda", false, &config, &trained);
        assert_int_equal(trained.status, EL_OK);
        el_train_result_free(&trained.result);
        cards_count(device, &counts[steps - STEPS + 2]);
    }
    return (counts[2].waits - counts[1].waits) - (counts[1].waits - counts[0].waits);
}

/* The first seed under which the losses are others; 0: none of them. */
static int seed_that_shows(const char *mode, const char *failures, const struct el_train_result *wanted)
{
    for (int seed = 1; seed <= SEEDS; seed++) {
        struct trained trained;
        train_mlp(mode, failures, (uint64_t)seed, &trained);
        if (trained.status != EL_OK) return seed;
        double difference = el_case_difference(&trained.result, wanted);
        el_train_result_free(&trained.result);
        if (difference != 0) return seed;
    }
    return 0;
}

/* Leaves out each wait of a step in turn, until enough are found; with --long all. */
static void check_mode(const char *mode, int least_found)
{
    struct trained wanted;
    int found = 0, planted = 0;
    train_mlp(mode, NULL, 0, &wanted);
    assert_int_equal(wanted.status, EL_OK);
    for (int device = 0; device < 2; device++) {
        int waits = waits_in_a_step(mode, device);
        for (int wait = 1; wait <= waits && (found < least_found || is_long()); wait++) {
            char failures[64];
            snprintf(failures, sizeof failures, "wait:%d:%d/%d", device, wait, waits);
            planted++;
            found += seed_that_shows(mode, failures, &wanted.result) > 0;
        }
    }
    print_message("# %s: %d of %d planted waits found\n", mode, found, planted);
    el_train_result_free(&wanted.result);
    assert_true(found >= least_found);
}

static void leave_out_to_sanitizer(void)
{
    if (is_sanitized()) skip();
}

static void missing_in_dp(void **state)
{
    leave_out_to_sanitizer();
    check_mode("dp", 6);
}

static void missing_in_ddp(void **state)
{
    leave_out_to_sanitizer();
    check_mode("ddp", 3);
}

static void missing_in_a_pipeline(void **state)
{
    leave_out_to_sanitizer();
    check_mode("pipeline", 3);
}

/* A step ahead the next batch comes to the card beside the step: the one wait of a step on one card is that its own
 * batch has been taken from there. */
static void missing_before_the_next_batch(void **state)
{
    leave_out_to_sanitizer();
    struct trained wanted;
    train_mlp("single", NULL, 0, &wanted);
    copies.transfer = EL_TRANSFER_AHEAD;
    int found = seed_that_shows("single", "wait:0:1/1", &wanted.result);
    copies.transfer = EL_TRANSFER_NON_BLOCKING;
    el_train_result_free(&wanted.result);
    assert_true(found > 0);
}

int main(void)
{
    set_up_cards();
    return RUN(open_all, close_all, missing_in_dp, missing_in_ddp, missing_in_a_pipeline,
               missing_before_the_next_batch);
}
