/* What did the user mean? The nearest known word to an unknown one, by edit distance.
 * It knows nothing of options: callers bring the words. */
#include <stdio.h>
#include <string.h>

#include "bench/base/text.h"
#include "bench/options/options.h"

enum { WORD_MAX = 48 };

/* Optimal string alignment: insertions, deletions, replacements and swaps of neighbours cost 1 each. */
static int distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b);
    int d[WORD_MAX + 1][WORD_MAX + 1];
    if (n > WORD_MAX || m > WORD_MAX) return WORD_MAX;
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = 1 + (d[i - 1][j] < d[i][j - 1] ? d[i - 1][j] : d[i][j - 1]);
            if (replaced < d[i][j]) d[i][j] = replaced;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[n][m];
}

const char *el_suggest(const char *word, const char *const *names)
{
    const char *best = NULL;
    int length = (int)strlen(word), least = length / 3 < 1 ? 1 : length / 3;
    if (least > 3) least = 3;
    for (; *names; names++) {
        int far = distance(word, *names);
        if (far < least || (far == least && !best)) best = *names, least = far;
    }
    return best;
}

enum el_status el_fail_unknown(const char *what, const char *word, const char *const *names)
{
    const char *near = el_suggest(word, names);
    char list[256] = "";
    for (const char *const *name = names; *name; name++)
        el_text_append(list, sizeof list, "%s%s", *list ? ", " : "", *name);
    if (near) return el_fail(EL_ERR_INVALID, "unknown %s '%s': did you mean '%s'? (%s)", what, word, near, list);
    return el_fail(EL_ERR_INVALID, "unknown %s '%s' (there is: %s)", what, word, list);
}
