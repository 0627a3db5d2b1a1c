/* The command that measures a trial again. */
#ifndef EL_PAGE_AGAIN_H
#define EL_PAGE_AGAIN_H

#include <jansson.h>

/* A cell of EL_CELL_BYTES. What a record has as a command may be anything, and whoever reads a page copies it into a
 * shell: its options are read, and a command of `run` is made of them, quoted. Where they are none of run's, or say
 * where to write, the cell says so instead. */
void el_page_command(const json_t *trial, const json_t *context, char *text);

#endif
