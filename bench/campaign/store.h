/* A run's folder.
 *
 *     DIR/command.json              what was asked for
 *     DIR/repeats/<trial>-<k>.json  one launch each, written by its rank 0 or by the parent
 *     DIR/logs/<trial>-<k>/rank-N.log  of each launch; <trial>-gate of the gate's
 *     DIR/results.json and the .csv files written anew after every repeat; DIR/plots/
 *
 * Every file is written to a temporary name and renamed: whatever ends the program, a file is old or new, never half.
 */
#pragma once

#include "bench/trial/trial.h"

struct el_store {
    char dir[EL_PATH_BYTES];
    size_t existing; /* letters of `dir` that were a folder before: all of them where this process made none */
    bool locked;     /* by this process */
};

/* Makes the folder, `out`, or results/<time>-<command> where that is "", and locks it. Errors: EL_ERR_INVALID (holds a
 * run already, or another program writes into it), EL_ERR_IO; empty folders it made are gone again. */
enum el_status el_store_create(const char *out, const char *command, struct el_store *store_p);
/* Whether a run of trials was begun in this folder: el_store_open takes it. */
bool el_store_holds(const char *dir);
/* Finds the folder of such a run; to write into it, lock it. Errors: EL_ERR_INVALID, EL_ERR_IO. */
enum el_status el_store_open(const char *dir, struct el_store *store_p);
/* Keeps other programs from writing into the folder until this process ends, and makes its parts. Nothing where it is
 * locked by this process already. Errors: EL_ERR_INVALID: another program writes into it now; EL_ERR_IO. */
enum el_status el_store_lock(struct el_store *store);
/* Removes folders that this process made and that are still empty, parents too: nothing was begun. Nothing where it
 * never had the lock: another program's folders may be empty still. */
void el_store_discard(const struct el_store *store);

/* The same of a folder of el_store_create's after a failure or an interruption that leaves no result: its command goes
 * too, so that the folder may be used again. Logs stay. */
void el_store_forget(const struct el_store *store);
/* DIR/<format...>. Paths that are too long are cut: el_store_create refuses names that could come to that. */
void el_store_path(const struct el_store *store, char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A launch's document, and the folder of its logs: each launch has its own, so that a later repeat leaves an earlier
 * failure's words alone. `repeat`: EL_STORE_GATE for the gate's. */
enum { EL_STORE_GATE = -1 };
void el_store_repeat_path(const struct el_store *store, const struct el_trial *trial, int repeat, char *path);
void el_store_log_path(const struct el_store *store, const struct el_trial *trial, int repeat, char *path);

/* What was asked for, as {option: text}. */
enum el_status el_store_save_command(const struct el_store *store, unsigned command, const struct el_options *options);
/* A repeat that was written: new reference, or NULL where there is none that can be read. */
json_t *el_store_load_repeat(const struct el_store *store, const struct el_trial *trial, int repeat);
enum el_status el_store_save_repeat(const struct el_store *store, const struct el_trial *trial, int repeat,
                                    const json_t *document);
/* results.json and the .csv files. */
enum el_status el_store_save_run(const struct el_store *store, const json_t *run);

/* Letters of the longest part of a/b/c that is there, from the beginning on. */
size_t el_folder_existing(const char *path);
/* Removes the folders of `path` behind that many letters, those that are empty. */
void el_folder_unmake(const char *path, size_t existing);

/* The synthetic set's files, in DIR/data: for whoever wants to see what was trained on, or reads it from there. */
struct el_data_files {
    char dir[EL_PATH_BYTES + 8], train[EL_PATH_BYTES], test[EL_PATH_BYTES];
    size_t existing;            /* letters of `dir` that were a folder before */
    bool made_train, made_test; /* by el_data_files_write */
};

/* Where they are not there yet. A command that is refused later takes them back. Errors: EL_ERR_IO, EL_ERR_INVALID;
 * nothing is left then. */
enum el_status el_data_files_write(const struct el_options *options, struct el_data_files *files_p);
/* Removes what was made, with its folders where they are empty. Of zeros: nothing. */
void el_data_files_take_back(const struct el_data_files *files);
