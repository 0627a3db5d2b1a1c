/* An injected undefined behaviour (a signed overflow): the address job, which carries UBSan, must fail on it. */
#include <limits.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    (void)argv;
    puts("1..1");
    printf("ok 1 - %d\n", INT_MAX - 1 + argc + argc);
    return 0;
}
