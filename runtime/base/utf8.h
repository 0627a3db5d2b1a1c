/* Texts of others (commands, names, units) as UTF-8, which JSON and XML must be. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many of the first `left` bytes are the character that begins at `at`, and its number; 0: there is none. */
int el_utf8_next(const char *at, size_t left, uint32_t *code_p);
/* In place: a byte that belongs to no character becomes '?'; a character that was cut off at the end is left out. What
 * is valid stays as it is. */
void el_utf8_mend(char *text);
/* For lines that people, terminals, CI logs and spreadsheets read: with invalid bytes replaced, and '?' for each
 * control character (a newline and an escape sequence's first too), for each character that is not seen or changes the
 * direction of text, and for the first character of a CI system's command ("::error::", "##[error]"). So foreign text
 * ends no line, moves no cursor, shows what it is and commands nothing. In place. */
void el_utf8_printable(char *text);
/* Whether that would leave it as it is. */
bool el_utf8_is_printable(const char *text);
