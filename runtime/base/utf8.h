/* Foreign texts (commands, names, units) as UTF-8, for JSON and XML. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the character at `at` within `left` bytes, and its code; 0: invalid. */
int el_utf8_next(const char *at, size_t left, uint32_t *code_p);
/* In place: invalid bytes become '?'; a truncated character at the end is dropped. */
void el_utf8_mend(char *text);
/* In place, for terminals, CI logs and spreadsheets: also '?' for control characters, invisible or direction-changing
 * characters, and the first character of a CI command ("::error::", "##[error]"). */
void el_utf8_printable(char *text);
/* Whether el_utf8_printable would change nothing. */
bool el_utf8_is_printable(const char *text);
