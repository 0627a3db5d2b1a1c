/* Probe: is cmocka there? The header carries no version, so that the Makefile asks pkg-config for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return puts("yes") < 0;
}
