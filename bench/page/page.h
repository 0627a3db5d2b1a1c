/* A run as one page: what `evenload report` writes. Made from the run's folder alone, results.json and plots/.
 *
 * The HTML needs nothing beside it: pictures, style and sorting are inside, and it loads nothing. Every text of the
 * record is escaped. The Markdown is the short form, for a pull request: what it comes to, the rows, the warnings.
 */
#ifndef EL_BENCH_PAGE_H
#define EL_BENCH_PAGE_H

#include <jansson.h>
#include <stdio.h>

#include "runtime/base/status.h"

/* More than this a page never has: a picture that does not fit is left out, and named. */
enum { EL_PAGE_BYTES_MAX = 2 << 20 };

/* `dir`: the run's folder, as the user gave it. Errors: EL_ERR_ABSENT: the program's own folder plots/ is not there;
 * EL_ERR_HOST_MEMORY. What cannot be written is for the caller of `out` to see. */
enum el_status el_page_html(const json_t *run, const char *dir, FILE *out);
enum el_status el_page_markdown(const json_t *run, FILE *out);

#endif
