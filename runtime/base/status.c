/* Status texts and each thread's message. */
#include "runtime/base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/utf8.h"

static _Thread_local char message[EL_ERROR_TEXT_BYTES];

enum el_status el_fail(enum el_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    el_utf8_printable(message); /* it may contain foreign names */
    return status;
}

enum el_status el_fail_errno(const char *format, ...)
{
    int number = errno;
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    el_utf8_printable(message);
    size_t used = strlen(message);
    snprintf(message + used, sizeof message - used, ": %s", strerror(number));
    if (number == ENOSPC || number == EDQUOT) return EL_ERR_NO_ROOM;
    return number == ENOMEM ? EL_ERR_HOST_MEMORY : EL_ERR_IO;
}

const char *el_error_message(void)
{
    return message;
}

const char *el_status_text(enum el_status status)
{
    static const char *const text[] = {
#define EL_STATUS_TEXT(name, words) [name] = (words),
        EL_STATUS_LIST(EL_STATUS_TEXT)
#undef EL_STATUS_TEXT
    };
    return (size_t)status < sizeof text / sizeof text[0] ? text[status] : "unknown status";
}

void el_error_take(enum el_status status, struct el_error *error_p)
{
    error_p->status = status;
    memcpy(error_p->text, message, sizeof message);
}

enum el_status el_error_give(const struct el_error *error)
{
    memcpy(message, error->text, sizeof message);
    return error->status;
}
