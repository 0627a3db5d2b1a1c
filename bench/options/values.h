/* Between values.c and values_lists.c only: numbers with their range, and the kinds that are lists. */
#pragma once

#include "bench/options/options.h"

/* Errors: EL_ERR_INVALID naming the option and its range. */
enum el_status el_option_number(const struct el_option_row *row, const char *text, double *number_p);
enum el_status el_option_whole(const struct el_option_row *row, const char *text, int64_t *number_p);

/* Place of `text` among "a|b|c". */
enum el_status el_option_place(const struct el_option_row *row, const char *choices, const char *text, int *place_p);
enum el_status el_option_text(const struct el_option_row *row, const char *text, char *field, size_t bytes);

enum el_status el_option_set_list(const struct el_option_row *row, const char *text, struct el_options *options);
void el_option_show_list(const struct el_option_row *row, const struct el_options *options, char *text, size_t bytes);
