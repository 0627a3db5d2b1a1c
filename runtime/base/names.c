/* Names of phases and tags, and sizes in words. */
#include <stdio.h>

#include "runtime/base/probe.h"

const char *el_phase_name(enum el_phase phase)
{
    static const char *const names[] = {
#define EL_PHASE_TEXT(name, text) [name] = (text),
        EL_PHASE_LIST(EL_PHASE_TEXT)
#undef EL_PHASE_TEXT
    };
    return (unsigned)phase < EL_PHASE_COUNT ? names[phase] : "unknown";
}

const char *el_tag_name(enum el_tag tag)
{
    static const char *const names[] = {
#define EL_TAG_TEXT(name, text) [name] = (text),
        EL_TAG_LIST(EL_TAG_TEXT)
#undef EL_TAG_TEXT
    };
    return (unsigned)tag < EL_TAG_COUNT ? names[tag] : "unknown";
}

const char *el_bytes_text(size_t bytes, char text[EL_BYTES_TEXT])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    int unit = 0;
    for (size_t rest = bytes; rest >= 1024 && unit < 3; rest /= 1024) unit++;
    snprintf(text, EL_BYTES_TEXT, "%.*f %s", unit ? 2 : 0, (double)bytes / (double)((size_t)1 << (10 * unit)),
             units[unit]);
    return text;
}
