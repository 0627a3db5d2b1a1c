/* A list of arguments that never loses one: a worker without one of its options would measure another trial. */
#include "bench/campaign/arguments.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum el_status el_arguments_add(struct el_arguments *arguments, const char *format, ...)
{
    char *text = NULL;
    va_list list;
    if (arguments->n == EL_ARGUMENTS_MAX)
        return el_fail(EL_ERR_INTERNAL, "a worker's command line has no place for more than %d arguments",
                       EL_ARGUMENTS_MAX);
    va_start(list, format);
    int length = vasprintf(&text, format, list);
    va_end(list);
    if (length < 0) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a worker's command line");
    arguments->list[arguments->n++] = text;
    return EL_OK;
}

void el_arguments_free(struct el_arguments *arguments)
{
    for (int i = 0; i < arguments->n; i++) free(arguments->list[i]);
    *arguments = (struct el_arguments){.n = 0};
}
