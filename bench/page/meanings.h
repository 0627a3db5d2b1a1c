/* What a table's head and a picture mean, in a sentence. docs/metrics.md has the definitions in full. */
#ifndef EL_BENCH_MEANINGS_H
#define EL_BENCH_MEANINGS_H

/* Of a column's head or a picture's name; NULL: it says it itself. */
const char *el_page_meaning(const char *head);

#endif
