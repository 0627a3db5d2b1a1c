/* The communicators' test on GPUs, as it is, on two cards that are none: every verb, kind of number and layout over
 * NCCL between ranks of two processes, and dp's way of issuing for all members. Under the thread sanitizer threads of
 * one process alone, but with EVENLOAD_LONG=1. */
int check_on_cards(void);
#define main check_on_cards
#include "tests/gpu/test_comm_cuda.c"
#undef main

int main(void)
{
    setenv("FAKE_CARDS", "2", 1);
    setenv("FAKE_CARDS_SEED", "5", 0);
    const char *sanitizer = getenv("EVENLOAD_SANITIZER"), *all = getenv("EVENLOAD_LONG");
    if (sanitizer && strcmp(sanitizer, "thread") == 0 && !(all && strcmp(all, "1") == 0))
        cmocka_set_test_filter("*their_cards");
    printf("# FAKE_CARDS_SEED=%s\n", getenv("FAKE_CARDS_SEED"));
    return check_on_cards();
}
