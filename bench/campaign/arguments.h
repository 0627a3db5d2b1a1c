/* The command line of a worker, argument by argument.
 *
 *     struct el_arguments arguments = {.n = 0};
 *     el_arguments_add(&arguments, "--%s", name); ...
 *     arguments.list                                 argv: ended by NULL
 *     el_arguments_free(&arguments);
 */
#ifndef EL_BENCH_ARGUMENTS_H
#define EL_BENCH_ARGUMENTS_H

#include "bench/options/config.h"
#include "runtime/base/status.h"

/* The program, what it is to do, and each option that there may be, with a value. */
enum { EL_ARGUMENTS_FIXED = 8, EL_ARGUMENTS_MAX = EL_ARGUMENTS_FIXED + 2 * EL_OPTIONS_MAX };

struct el_arguments {
    char *list[EL_ARGUMENTS_MAX + 1]; /* owned; the last is NULL */
    int n;
};

/* Adds one at the end. Errors: EL_ERR_INTERNAL: there is no place for it, and nothing is added; EL_ERR_HOST_MEMORY. */
enum el_status el_arguments_add(struct el_arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void el_arguments_free(struct el_arguments *arguments);

#endif
