/* Status codes and the one place where a failure is described.
 *
 * Who detects a failure calls el_fail() with the object's name and what to do about it; callers pass the
 * status on (EL_TRY) and add nothing. main() prints el_error_message() and turns the status into an exit status.
 *
 * Threads: the message is kept a thread; el_error_take()/el_error_give() carry it from one thread to another.
 */
#pragma once

#include <stddef.h>

#define EL_STATUS_LIST(X)                                                                                              \
    X(EL_OK, "ok")                                                                                                     \
    X(EL_ERR_INVALID, "invalid argument")                                                                              \
    X(EL_ERR_OOM, "out of device memory")                                                                              \
    X(EL_ERR_HOST_MEMORY, "out of host memory")                                                                        \
    X(EL_ERR_IO, "input or output failed")                                                                             \
    X(EL_ERR_NO_ROOM, "no room on the disk")                                                                           \
    X(EL_ERR_ABSENT, "not available here")                                                                             \
    X(EL_ERR_PEER, "a peer failed")                                                                                    \
    X(EL_ERR_TIMEOUT, "timed out")                                                                                     \
    X(EL_ERR_INTERNAL, "internal error")

enum el_status {
#define EL_STATUS_ENUM(name, text) name,
    EL_STATUS_LIST(EL_STATUS_ENUM)
#undef EL_STATUS_ENUM
};

enum { EL_ERROR_TEXT_BYTES = 512 };

/* A failure on its way from one thread to another. */
struct el_error {
    enum el_status status;
    char text[EL_ERROR_TEXT_BYTES];
};

/* Keeps the message for this thread and returns `status`, so that `return el_fail(...)` reads as one act. A message is
 * one line: control characters of what it names become '?'. */
enum el_status el_fail(enum el_status status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* As el_fail with EL_ERR_IO (EL_ERR_HOST_MEMORY for ENOMEM, EL_ERR_NO_ROOM for ENOSPC and EDQUOT); appends ": " and the
 * text of errno. */
enum el_status el_fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* The last message of this thread; "" if there was none. Ownership: the thread's, until its next failure. */
const char *el_error_message(void);

/* The status' own words, "out of device memory". */
const char *el_status_text(enum el_status status);

/* Carries a failure between threads: take in the one that failed, give in the one that reports. */
void el_error_take(enum el_status status, struct el_error *error_p);
enum el_status el_error_give(const struct el_error *error);

#define EL_TRY(call)                                                                                                   \
    do {                                                                                                               \
        enum el_status el_try_status = (call);                                                                         \
        if (el_try_status != EL_OK) return el_try_status;                                                              \
    } while (0)

/* For functions with a cleanup ladder: sets the local `status` and jumps. */
#define EL_TRY_GOTO(call, label)                                                                                       \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != EL_OK) goto label;                                                                               \
    } while (0)
