/* Which bytes are characters: the table of RFC 3629, without overlong forms, surrogates and what lies above U+10FFFF.
 */
#include "runtime/base/utf8.h"

#include <stdbool.h>
#include <string.h>

/* How many bytes a character has by its first; 0: none begins so. */
static int length_by(unsigned char first)
{
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return 2;
    if (first >= 0xE0 && first <= 0xEF) return 3;
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

/* The second byte says whether it is overlong, a surrogate or too high. */
static bool may_follow(unsigned char first, unsigned char second)
{
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    return second >= low && second <= high;
}

void el_utf8_mend(char *text)
{
    unsigned char *at = (unsigned char *)text;
    while (*at) {
        int length = length_by(*at), have = 1;
        while (have < length && (have == 1 ? may_follow(at[0], at[1]) : (at[have] & 0xC0) == 0x80)) have++;
        if (have == length) {
            at += length;
        } else if (length && !at[have]) {
            *at = 0; /* cut off */
        } else {
            *at++ = '?';
        }
    }
}

/* Below a blank, DEL, and U+0080 to U+009F, in which a terminal may find the same commands. Returns how many bytes. */
static int control_bytes(const unsigned char *at)
{
    if (*at < 0x20 || *at == 0x7F) return 1;
    return at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0 ? 2 : 0;
}

void el_utf8_printable(char *text)
{
    el_utf8_mend(text);
    unsigned char *to = (unsigned char *)text, *at = to;
    while (*at) {
        int bytes = control_bytes(at);
        *to++ = bytes ? '?' : *at;
        at += bytes ? bytes : 1;
    }
    *to = 0;
}
