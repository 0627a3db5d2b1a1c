/* Status codes and error messages. The detecting function calls el_fail() with the object's name and what to do;
 * callers pass the status on (EL_TRY). Messages are per thread. */
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

struct el_error {
    enum el_status status;
    char text[EL_ERROR_TEXT_BYTES];
};

/* Stores the thread's message and returns `status`. Control characters become '?'. */
enum el_status el_fail(enum el_status status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* EL_ERR_IO (ENOMEM: EL_ERR_HOST_MEMORY; ENOSPC, EDQUOT: EL_ERR_NO_ROOM); appends ": " and errno's text. */
enum el_status el_fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* This thread's last message, valid until its next failure; "": none. */
const char *el_error_message(void);

/* "out of device memory". */
const char *el_status_text(enum el_status status);

/* Moves a failure between threads: take where it failed, give where it is reported. */
void el_error_take(enum el_status status, struct el_error *error_p);
enum el_status el_error_give(const struct el_error *error);

#define EL_TRY(call)                                                                                                   \
    do {                                                                                                               \
        enum el_status el_try_status = (call);                                                                         \
        if (el_try_status != EL_OK) return el_try_status;                                                              \
    } while (0)

/* For cleanup ladders: sets the local `status` and jumps. */
#define EL_TRY_GOTO(call, label)                                                                                       \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != EL_OK) goto label;                                                                               \
    } while (0)
