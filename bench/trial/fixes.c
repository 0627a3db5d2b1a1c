/* The words of --dp-fix. What a fix does is the mode's business. */
#include "bench/trial/fixes.h"

#include <stdio.h>
#include <string.h>

#include "bench/options/options.h"
#include "runtime/modes/dp/fix.h"

static enum el_status add(const char *word, unsigned *fixes)
{
    const char *names[EL_DP_FIXES + 2] = {NULL};
    for (int i = 0; i < EL_DP_FIXES; i++) {
        names[i] = el_dp_fix_rows()[i].name;
        if (strcmp(word, names[i]) == 0) *fixes |= el_dp_fix_rows()[i].fix;
        if (strcmp(word, names[i]) == 0) return EL_OK;
    }
    names[EL_DP_FIXES] = "all";
    return el_fail_unknown("fix", word, names);
}

enum el_status el_fixes_read(const char *text, unsigned *fixes_p)
{
    unsigned fixes = strcmp(text, "all") == 0 ? EL_DP_FIX_ALL : 0;
    for (const char *at = text; *text && fixes != EL_DP_FIX_ALL;) {
        char word[32];
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof word)
            return el_fail(EL_ERR_INVALID, "--dp-fix %.60s: give a list like inputs,overlap, or all", text);
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        EL_TRY(add(word, &fixes));
        at += length;
        if (!*at++) break;
    }
    *fixes_p = el_dp_fix_close(fixes);
    return EL_OK;
}
