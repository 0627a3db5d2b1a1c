/* A run's folder.
 *
 *     DIR/command.json              the command's options
 *     DIR/repeats/<trial>-<k>.json  one launch each, by its rank 0 or the parent
 *     DIR/logs/<trial>-<k>/rank-N.log, <trial>-gate
 *     DIR/results.json and the .csv files, rewritten after every repeat; DIR/plots/
 *
 * Files are written to a temporary name and renamed, so they are never partial. */
#pragma once

#include "bench/trial/trial.h"

struct el_store {
    char dir[EL_PATH_BYTES];
    size_t existing; /* letters of `dir` that were a folder before; all: nothing was made */
    bool locked;     /* by this process */
};

/* Makes and locks the folder `out`; "": results/<time>-<command>. Errors: EL_ERR_INVALID (holds a run, or another
 * program writes there), EL_ERR_IO; empty folders it made are removed. */
enum el_status el_store_create(const char *out, const char *command, struct el_store *store_p);
/* Whether the folder holds a run for el_store_open. */
bool el_store_holds(const char *dir);
/* Finds a run's folder without locking it. Errors: EL_ERR_INVALID, EL_ERR_IO. */
enum el_status el_store_open(const char *dir, struct el_store *store_p);
/* Locks the folder against other programs until this process ends, and makes its parts. Idempotent. Errors:
 * EL_ERR_INVALID, EL_ERR_IO. */
enum el_status el_store_lock(struct el_store *store);
/* Removes this process's folders, and parents, that are still empty. Needs the lock: another program's may be empty
 * too. */
void el_store_discard(const struct el_store *store);

/* The same after a failure or an interruption without a result: removes the command too; logs stay. */
void el_store_forget(const struct el_store *store);
/* DIR/<format...>. Longer paths are cut; el_store_create refuses names that allow them. */
void el_store_path(const struct el_store *store, char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A launch's document and log folder. Each launch has its own logs, so that a later repeat keeps an earlier failure's.
 * `repeat`: EL_STORE_GATE for the gate. */
enum { EL_STORE_GATE = -1 };
void el_store_repeat_path(const struct el_store *store, const struct el_trial *trial, int repeat, char *path);
void el_store_log_path(const struct el_store *store, const struct el_trial *trial, int repeat, char *path);

/* Writes {option: text}. */
enum el_status el_store_save_command(const struct el_store *store, unsigned command, const struct el_options *options);
/* New reference, or NULL: missing or unreadable. */
json_t *el_store_load_repeat(const struct el_store *store, const struct el_trial *trial, int repeat);
enum el_status el_store_save_repeat(const struct el_store *store, const struct el_trial *trial, int repeat,
                                    const json_t *document);
/* results.json and the .csv files. */
enum el_status el_store_save_run(const struct el_store *store, const json_t *run);

/* Letters of the longest existing prefix of a/b/c. */
size_t el_folder_existing(const char *path);
/* Removes empty folders of `path` beyond that many letters. */
void el_folder_unmake(const char *path, size_t existing);

/* The synthetic set's files in DIR/data. */
struct el_data_files {
    char dir[EL_PATH_BYTES + 8], train[EL_PATH_BYTES], test[EL_PATH_BYTES];
    size_t existing;            /* letters of `dir` that were a folder before */
    bool made_train, made_test; /* by el_data_files_write */
};

/* Writes missing files. Errors: EL_ERR_IO, EL_ERR_INVALID; nothing is left then. */
enum el_status el_data_files_write(const struct el_options *options, struct el_data_files *files_p);
/* Removes what was made, and empty folders. All zeros: nothing. */
void el_data_files_take_back(const struct el_data_files *files);
