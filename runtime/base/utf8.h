/* Texts of others (commands, names, units) as UTF-8, which JSON and XML must be. */
#ifndef EL_UTF8_H
#define EL_UTF8_H

/* In place: a byte that belongs to no character becomes '?'; a character that was cut off at the end is left out. What
 * is valid stays as it is. */
void el_utf8_mend(char *text);
/* For lines that people, terminals, CI logs and spreadsheets read: mended, and each control character (a newline and an
 * escape sequence's first too) becomes '?'. So foreign text ends no line and moves no cursor. In place. */
void el_utf8_printable(char *text);

#endif
