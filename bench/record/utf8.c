/* Which bytes are characters: the table of RFC 3629, without overlong forms, surrogates and what lies above U+10FFFF.
 */
#include "bench/record/utf8.h"

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
