/* The libraries' calls as the program finds them (calls.h). Each takes whatever it is given as so many words, and hands
 * them on: where an argument is a word, in a register or on the stack, as on 64-bit Linux, that is any prototype with
 * so many arguments, by value too. Words behind the last argument are somebody's, and are not looked at. */
#define CARDS_CALLS
#include "tests/cards/calls.h"

#include <stdio.h>
#include <stdlib.h>

enum { CARDS = 8 };

#define TAKEN                                                                                                          \
    long a0, long a1, long a2, long a3, long a4, long a5, long a6, long a7, long a8, long a9, long a10, long a11,      \
        long a12, long a13, long a14, long a15, long a16, long a17, long a18, long a19, long a20, long a21, long a22,  \
        long a23
#define GIVEN                                                                                                          \
    a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23

#define CALL(name, ends)                                                                                               \
    static atomic_int calls_##name[CARDS];                                                                             \
    extern long fake_##name(TAKEN);                                                                                    \
    long name(TAKEN);                                                                                                  \
    long name(TAKEN)                                                                                                   \
    {                                                                                                                  \
        long code = 0;                                                                                                 \
        bool fails = cards_call_fails(#name, a0, a1, calls_##name, &code);                                             \
        long result = fails && !(ends) ? code : fake_##name(GIVEN);                                                    \
        return fails ? code : result;                                                                                  \
    }
CARDS_EACH_CALL(CALL)

/* For FAKE_CARDS_CALLS: "cudaMalloc 0 12" is 12 calls on card 0. */
__attribute__((destructor)) static void write_counts(void)
{
    static const struct {
        const char *name;
        atomic_int *counts;
    } all[] = {
#define ROW(name, ends) {#name, calls_##name},
        CARDS_EACH_CALL(ROW)};
    const char *path = getenv("FAKE_CARDS_CALLS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (int card = 0; card < CARDS; card++) {
            int n = atomic_load(&all[i].counts[card]);
            if (n > 0) fprintf(file, "%s %d %d\n", all[i].name, card, n);
        }
    fclose(file);
}
