/* Which card a rank takes that was not told: of what all ranks see. */
#include <string.h>

#include "bench/trial/trial.h"
#include "tests/test.h"

static int card_of(const struct el_devices_seen *ranks, int rank)
{
    int index = -1;
    if (el_devices_card(ranks, rank, &index) != EL_OK) fail_msg("%s", el_error_message());
    return index;
}

static void each_rank_takes_the_card_with_its_number_on_its_host(void **state)
{
    static const struct el_devices_seen ranks[] = {{2, "-", "a"}, {2, "-", "b"}, {2, "-", "a"}, {2, "-", "b"}};
    static const int cards[] = {0, 0, 1, 1};
    for (int r = 0; r < 4; r++) assert_int_equal(card_of(ranks, r), cards[r]);
}

/* Slurm's --gpus-per-task: each rank's only card is its cuda:0. */
static void a_rank_that_sees_one_card_takes_it(void **state)
{
    static const struct el_devices_seen ranks[] = {
        {1, "GPU-1", "a"}, {1, "GPU-2", "a"}, {1, "GPU-1", "b"}, {1, "-", "a"}, {1, "-", "a"}};
    for (int r = 0; r < 5; r++) assert_int_equal(card_of(ranks, r), 0);
}

static void ranks_that_see_the_same_one_card_are_told(void **state)
{
    static const struct el_devices_seen ranks[] = {{1, "GPU-1", "a"}, {1, "GPU-2", "a"}, {1, "GPU-1", "a"}};
    int index;
    assert_int_equal(el_devices_card(ranks, 2, &index), EL_ERR_ABSENT);
    assert_non_null(strstr(el_error_message(), "ranks 0 and 2 see the same one card (GPU-1)"));
}

RUN_TESTS(NULL, NULL, each_rank_takes_the_card_with_its_number_on_its_host, a_rank_that_sees_one_card_takes_it,
          ranks_that_see_the_same_one_card_are_told)
