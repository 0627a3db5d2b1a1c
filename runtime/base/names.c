/* The words of the probe's lists. */
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
