/* Read before every file by clang-tidy's analyzer, which sees one file at a time: tells it what status.h and
 * bootstrap.h promise, that a failure is never EL_OK and that a member who failed does not hear EL_OK from the others.
 * Without it each failed allocation seems to go on with a null pointer. */
#pragma once

#include "runtime/base/status.h"
#include "runtime/comm/bootstrap.h"

#define el_fail(status, ...) ((void)(el_fail)(status, __VA_ARGS__), (status))
#define el_fail_errno(...)   ((void)(el_fail_errno)(__VA_ARGS__), EL_ERR_IO)

static inline enum el_status el_agreed(struct el_bootstrap *bootstrap, enum el_status mine)
{
    enum el_status all = el_bootstrap_agree(bootstrap, mine);
    return mine == EL_OK ? all : mine;
}
#define el_bootstrap_agree(bootstrap, mine) el_agreed(bootstrap, mine)
