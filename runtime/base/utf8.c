/* Valid sequences by RFC 3629 (no overlong forms, surrogates, or above U+10FFFF); invisible are Unicode's Cc, Cf, Zl
 * and Zp. */
#include "runtime/base/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* By the first byte; 0: invalid. */
static int length_by(unsigned char first)
{
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return 2;
    if (first >= 0xE0 && first <= 0xEF) return 3;
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

/* Rejects overlong forms, surrogates and too high codes. */
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
            *at = 0; /* truncated */
        } else {
            *at++ = '?';
        }
    }
}

/* `at`: valid UTF-8. */
static uint32_t code_of(const unsigned char *at, int length)
{
    uint32_t code = length == 1 ? at[0] : at[0] & (0x7FU >> length);
    for (int i = 1; i < length; i++) code = code << 6 | (at[i] & 0x3F);
    return code;
}

int el_utf8_next(const char *at, size_t left, uint32_t *code_p)
{
    const unsigned char *bytes = (const unsigned char *)at;
    const int length = left ? length_by(bytes[0]) : 0;
    if (!length || (size_t)length > left) return 0;
    for (int i = 1; i < length; i++)
        if (i == 1 ? !may_follow(bytes[0], bytes[1]) : (bytes[i] & 0xC0) != 0x80) return 0;
    *code_p = code_of(bytes, length);
    return length;
}

/* Controls (terminal commands), invisible and direction-changing characters: "gpj.exe" may show as "exe.jpg". */
static bool is_unseen(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } unseen[] = {{0x00, 0x1F},       {0x7F, 0x9F},       {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},
                  {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},     {0x180E, 0x180E},
                  {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},   {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},
                  {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
                  {0xE0000, 0xE007F}};
    for (size_t i = 0; i < sizeof unseen / sizeof unseen[0]; i++)
        if (code >= unseen[i].first && code <= unseen[i].last) return true;
    return false;
}

/* CI commands: "::error::" after blanks of any script only (GitHub trims them), "##[error]" and "##vso[...]" anywhere.
 * A line may later be broken at any blank. */
static bool is_command(const unsigned char *text, const unsigned char *at)
{
    if (at[0] == ':') return at[1] == ':' && isalpha(at[2]) && (at == text || at[-1] <= ' ' || at[-1] >= 0x80);
    if (at[0] != '#' || at[1] != '#') return false;
    for (at += 2; isalpha(*at);) at++;
    return *at == '[';
}

void el_utf8_printable(char *text)
{
    el_utf8_mend(text);
    unsigned char *begin = (unsigned char *)text, *to = begin, *at = begin;
    while (*at) {
        int length = length_by(*at);
        bool replaced = is_unseen(code_of(at, length)) || is_command(begin, at);
        if (replaced)
            *to++ = '?';
        else
            to = (unsigned char *)memmove(to, at, (size_t)length) + length;
        at += length;
    }
    *to = 0;
}

bool el_utf8_is_printable(const char *text)
{
    char *copy = strdup(text);
    if (!copy) return false;
    el_utf8_printable(copy);
    bool same = strcmp(copy, text) == 0;
    free(copy);
    return same;
}
