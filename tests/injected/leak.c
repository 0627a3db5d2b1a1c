/* An injected leak: the address sanitizer's job must fail on it, with the flags and suppressions of all the others, or
 * that job proves nothing. No test of evenload; scripts/test runs it and expects a failure. */
#include <stdio.h>
#include <stdlib.h>

static void *volatile held;

int main(void)
{
    held = malloc(4096);
    held = NULL;
    puts("1..1");
    puts("ok 1 - 4096 bytes nobody frees");
    return 0;
}
