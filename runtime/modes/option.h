/* Options of some modes. A mode's row lists them (mode_info.h) for the command line, trials, the record and `verify`.
 * Equal names in several modes are one option; options.c has shared rows. An option that makes several trials or lays
 * out devices also has a row in bench/options/rows.c, which is read first.
 *
 *     el_mode_option_set(&config, "sync", "param");       for the configuration's mode
 *     el_mode_option_show(row, &config, text, bytes);     its resolved value
 *
 * A value is a field of struct el_train_config, or one of the mode's own settings, declared by EL_MODE_SETTING(struct
 * settings, field) and read by el_mode_settings(config). Settings start as 0, the usual value. */
#pragma once

#include <stddef.h>

#include "runtime/layout/config.h"

enum el_mode_option_kind {
    EL_MODE_SWITCH, /* bool, the index in two choices */
    EL_MODE_CHOICE, /* enum, the index in choices */
    EL_MODE_WORDS,  /* unsigned: a list of choices, each a bit by its index; "all", "none" */
    EL_MODE_INT,
    EL_MODE_COUNT,
    EL_MODE_TEXT,
    EL_MODE_FILE,     /* char[bytes]: a choice, or a file name, which contains . or / */
    EL_MODE_SHARES,   /* struct el_shares: "3,1" */
    EL_MODE_ELSEWHERE /* no value: see the command line's row */
};

struct el_mode_option {
    const char *name;     /* "find-unused" */
    const char *argument; /* "HOW" */
    const char *help;     /* printed after its modes' names */
    enum el_mode_option_kind kind;
    size_t offset, bytes; /* in struct el_train_config; size of texts */
    const char *choices;  /* "off|on"; NULL: none */
    const char *initial;  /* as text; NULL: none; 0 is the mode's choice */
    const char *absent;   /* a field's value in modes without the option; NULL: `initial` */
    double min, max;
    const char *key;   /* in the record; NULL: the name, with _ for - */
    const char *label; /* after the mode in tables if not the default; "": its value; NULL: nothing */
    bool of_copies;    /* for models in pieces: only matters with several copies of the model */
    bool of_stages;    /* only matters with stages */
};

enum { EL_MODE_OPTIONS_MAX = 32, EL_MODE_TEXT_BYTES = 256 };

#define EL_MODE_FIELD(field) .offset = offsetof(struct el_train_config, field)
/* `type`: all settings of a mode. */
#define EL_MODE_SETTING(type, field)                                                                                   \
    .offset = offsetof(struct el_train_config, settings) + offsetof(type, field) +                                     \
              0 * sizeof(char[sizeof(type) <= EL_MODE_SETTINGS_BYTES ? 1 : -1])

extern const struct el_mode_option el_mode_procs, el_mode_mesh, el_mode_bucket_mb, el_mode_first_bucket_mb,
    el_mode_shares, el_mode_share_weights, el_mode_comm_hook, el_mode_overlap, el_mode_accumulate, el_mode_find_unused,
    el_mode_broadcast_buffers, el_mode_cut, el_mode_micro, el_mode_schedule, el_mode_sequence_parallel, el_mode_graph;
/* Conflicts with --graph on. Errors: EL_ERR_INVALID. */
enum el_status el_mode_check_graph(const struct el_train_config *config);

/* Of all public modes, each name once (the first mode's row), ended by NULL. */
const struct el_mode_option *const *el_mode_options(void);
/* NULL: unknown mode or option. */
const struct el_mode_option *el_mode_option_of(const char *mode, const char *name);
/* "micro_batches". At most EL_MODE_TEXT_BYTES. */
const char *el_mode_option_key(const struct el_mode_option *row, char *key);

/* Errors: EL_ERR_INVALID: no such option in the mode, or no such value. */
enum el_status el_mode_option_set(struct el_train_config *config, const char *name, const char *text);
/* The value as text; if the mode lacks the option, the field's value then. */
void el_mode_option_show(const struct el_mode_option *row, const struct el_train_config *config, char *text,
                         size_t bytes);
/* "a,c" of "a|b|c" by bits; "all", "none". */
void el_mode_words_show(const char *choices, unsigned bits, char *text, size_t bytes);
/* Resets fields that belong to options of other modes. */
void el_mode_options_reset(struct el_train_config *config);

/* The mode's own; 0 until set. */
const void *el_mode_settings(const struct el_train_config *config);
void el_mode_change(struct el_train_config *config, const char *mode);
