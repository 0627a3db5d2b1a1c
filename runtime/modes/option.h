/* Options that only some modes have. A mode's row lists them (mode_info.h); parser, help, man page, completion, trials'
 * ids and commands, the record, baselines' names and `verify` take them from there. Rows of several modes with one name
 * are one option of the command line; what several modes share stands in options.c, once. An option whose lists make
 * several trials, or which lays devices out, has a row of its own in bench/options/rows.c too, which goes first.
 *
 *     el_mode_option_set(&config, "sync", "param");       of the mode that config has
 *     el_mode_option_show(row, &config, text, bytes);     what it has been resolved to
 *
 * A value lies in struct el_train_config: in a field, where other rooms read it too, or in the mode's own settings. A
 * mode says so by EL_MODE_SETTING(struct settings, field), and reads them by el_mode_settings(config). Settings
 * are 0 at first: what is usual is 0.
 *
 * Ownership: constant. Threads: any.
 */
#pragma once

#include <stddef.h>

#include "runtime/layout/config.h"

enum el_mode_option_kind {
    EL_MODE_SWITCH,   /* bool, by place among two choices */
    EL_MODE_CHOICE,   /* enum, by place among the choices */
    EL_MODE_WORDS,    /* unsigned: a list of the choices, each a bit by its place; "all", "none" */
    EL_MODE_INT,      /* int */
    EL_MODE_COUNT,    /* int64_t */
    EL_MODE_TEXT,     /* char[bytes] */
    EL_MODE_FILE,     /* the same: one of the choices, or a file's name, which has a . or a / */
    EL_MODE_SHARES,   /* struct el_shares: "3,1" */
    EL_MODE_ELSEWHERE /* no value here: the row of the command line says where */
};

struct el_mode_option {
    const char *name;     /* "find-unused" */
    const char *argument; /* "HOW" */
    const char *help;     /* the names of its modes are put before it */
    enum el_mode_option_kind kind;
    size_t offset, bytes; /* in struct el_train_config; of texts their room */
    const char *choices;  /* "off|on"; NULL: none */
    const char *initial;  /* as text; NULL: none, and 0 is the mode's own choice */
    const char *absent;   /* of a field, in modes that have not this option; NULL: as `initial` */
    double min, max;      /* of numbers */
    const char *key;      /* in the record; NULL: the name, with _ for - */
    const char *label;    /* in tables, behind the mode, where it is not as usual; "": its value; NULL: nothing */
    bool listed;          /* one of the choices; compare takes a list of them */
    bool of_copies;       /* of a model in pieces: it matters only where the model is there several times */
    bool of_stages;       /* it matters only where the model is cut along its depth */
};

enum { EL_MODE_OPTIONS_MAX = 32, EL_MODE_TEXT_BYTES = 256 };

#define EL_MODE_FIELD(field) .offset = offsetof(struct el_train_config, field)
/* `type` holds all settings of a mode. */
#define EL_MODE_SETTING(type, field)                                                                                   \
    .offset = offsetof(struct el_train_config, settings) + offsetof(type, field) +                                     \
              0 * sizeof(char[sizeof(type) <= EL_MODE_SETTINGS_BYTES ? 1 : -1])

/* Those of several modes (options.c). */
extern const struct el_mode_option el_mode_procs, el_mode_mesh, el_mode_bucket_mb, el_mode_first_bucket_mb,
    el_mode_shares, el_mode_share_weights, el_mode_comm_hook, el_mode_overlap, el_mode_accumulate, el_mode_find_unused,
    el_mode_broadcast_buffers, el_mode_cut, el_mode_micro, el_mode_schedule, el_mode_sequence_parallel, el_mode_graph;
/* What goes with --graph on. Errors: EL_ERR_INVALID. */
enum el_status el_mode_check_graph(const struct el_train_config *config);

/* Of all modes that are offered, each name once (the first mode's row), ended by NULL. */
const struct el_mode_option *const *el_mode_options(void);
/* The mode's row of that name; NULL: it has none, or there is no such mode. */
const struct el_mode_option *el_mode_option_of(const char *mode, const char *name);
/* "micro_batches". At most EL_MODE_TEXT_BYTES. */
const char *el_mode_option_key(const struct el_mode_option *row, char *key);

/* Errors: EL_ERR_INVALID: the mode has no such option, or the text is no value of it. */
enum el_status el_mode_option_set(struct el_train_config *config, const char *name, const char *text);
/* The value as text; of an option that the mode has not, what it is then. */
void el_mode_option_show(const struct el_mode_option *row, const struct el_train_config *config, char *text,
                         size_t bytes);
/* "a,c" of "a|b|c" by bits; "all", "none". */
void el_mode_words_show(const char *choices, unsigned bits, char *text, size_t bytes);
/* Fields whose option the mode has not become what they are then. */
void el_mode_options_reset(struct el_train_config *config);

/* The mode's own; they are 0 until they are set. */
const void *el_mode_settings(const struct el_train_config *config);
/* To another mode, without the settings of the one before. */
void el_mode_change(struct el_train_config *config, const char *mode);
