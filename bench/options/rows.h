/* How rows of options are written; of rows.c and rows_after.c alone. */
#pragma once

#include <stddef.h>

#include "bench/options/options.h"

/* Group, name, what its value is called (NULL: a flag), kind and field, the commands that take it, help. Then what only
 * some have. */
#define AT(kind_, field) .kind = EL_OPTION_##kind_, .offset = offsetof(struct el_options, field)
#define CHOICES(words)   .choices = (words)
#define DEFAULT(text)    .initial = (text)
#define OTHERWISE(...)   .otherwise = {__VA_ARGS__}
#define RANGE(low, high) .min = (low), .max = (high)
#define LETTER(c)        .letter = (c)
#define PER_RANK         .per_rank = true
#define COMMON           .common = true

#define OF_COMMAND(bit, function, name) bit = EL_CMD_##bit,
enum { EL_COMMANDS(OF_COMMAND) OF_TRIALS = EL_CMD_OF_TRIALS, OF_MODES = EL_CMD_OF_MODES };

/* Groups that both files have. */
#define SIZES "Sizes of the model"
#define GATE  "What is compared"
#define RULE  "Decision rule"

/* Behind the models' sizes. */
enum { EL_OPTION_AFTER_MAX = 90 };
extern const struct el_option_row el_option_rows_after[];
extern const int el_option_n_after;
