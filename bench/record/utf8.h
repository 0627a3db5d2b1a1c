/* Texts of others (commands, names, units) as UTF-8, which JSON and XML must be. */
#ifndef EL_BENCH_UTF8_H
#define EL_BENCH_UTF8_H

/* In place: a byte that belongs to no character becomes '?'; a character that was cut off at the end is left out. What
 * is valid stays as it is. */
void el_utf8_mend(char *text);

#endif
