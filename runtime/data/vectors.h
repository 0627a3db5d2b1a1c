/* Word vectors in word2vec's and GloVe's text form: a line a word, the word and its numbers, separated by blanks; a
 * first line of two whole numbers is word2vec's: how many lines there are, and how many numbers a word has.
 *
 *     el_vectors_read(path, &vocabulary, vocab, &vectors);        of the words that the vocabulary has
 *     el_vectors_put(&vectors, rows);                             over those words' rows of a table
 *
 * If a word is there twice, its first line counts. Words with blanks are skipped.
 * Timing: blocking; a file is read line by line, and only what is wanted is kept. Threads: any, once read.
 * Errors: EL_ERR_INVALID with file, line and reason, also where none of the words is there; EL_ERR_IO.
 */
#ifndef EL_DATA_VECTORS_H
#define EL_DATA_VECTORS_H

#include <stdint.h>

#include "runtime/base/status.h"

struct el_vocabulary;

struct el_vectors {
    int64_t dim, n;
    int32_t *ids;   /* [n] of the words */
    double *values; /* [n, dim] */
};

/* `vocab`: ids are below it. */
enum el_status el_vectors_read(const char *path, const struct el_vocabulary *vocabulary, int64_t vocab,
                               struct el_vectors *vectors_p);
void el_vectors_free(struct el_vectors *vectors);
/* rows: [vocab, dim]. */
void el_vectors_put(const struct el_vectors *vectors, double *rows);

#endif
