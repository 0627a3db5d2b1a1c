/* A run's folder: names, reading, writing, locking. */
#include "bench/campaign/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "runtime/base/files.h"

enum { NAME_ROOM = 96 }; /* for the longest name below DIR */

enum { N_FOLDERS = 2 };
static const char *const folders[N_FOLDERS] = {"repeats", "logs"};

static const char advice[] = "give another --out";

size_t el_folder_existing(const char *path)
{
    char part[EL_PATH_BYTES];
    snprintf(part, sizeof part, "%s", path);
    while (access(part, F_OK) != 0) {
        char *slash = strrchr(part, '/');
        if (!slash) return 0;
        *slash = 0;
    }
    return strlen(part);
}

static bool exists(const struct el_store *store, const char *name)
{
    char path[EL_PATH_BYTES];
    el_store_path(store, path, "%s", name);
    return access(path, F_OK) == 0;
}

/* results/20260131-142501-compare; -2, -3 ... if taken. */
static enum el_status make_named(const char *command, struct el_store *store)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    store->existing = el_folder_existing("results");
    EL_TRY(el_folder_make("results", advice));
    for (int i = 1; i < 1000; i++) {
        snprintf(store->dir, sizeof store->dir, "results/%s-%s", stamp, command);
        if (i > 1) snprintf(store->dir, sizeof store->dir, "results/%s-%s-%d", stamp, command, i);
        if (mkdir(store->dir, 0777) == 0) return EL_OK;
        if (errno != EEXIST) break;
    }
    return el_fail_errno("%s: cannot make this folder; %s", store->dir, advice);
}

static enum el_status check_folder(const struct el_store *store)
{
    struct stat info;
    if (stat(store->dir, &info) != 0) return el_fail_errno("%s", store->dir);
    if (!S_ISDIR(info.st_mode)) return el_fail(EL_ERR_IO, "%s: not a folder; give another --out", store->dir);
    if (access(store->dir, W_OK | X_OK) != 0) return el_fail_errno("%s: cannot write into this folder", store->dir);
    return EL_OK;
}

static enum el_status name_folder(const char *dir, struct el_store *store)
{
    size_t length = strlen(dir);
    *store = (struct el_store){.existing = 0};
    if (length + NAME_ROOM >= sizeof store->dir) return el_fail(EL_ERR_INVALID, "--out: the name is too long");
    while (length > 1 && dir[length - 1] == '/') length--;
    memcpy(store->dir, dir, length);
    return EL_OK;
}

static enum el_status check_fresh(const struct el_store *store)
{
    if (!exists(store, "command.json") && !exists(store, "results.json") && !exists(store, "regress.json"))
        return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s holds a run already: give another --out", store->dir);
}

/* Locks the folder itself, so no file is left behind; the descriptor holds the lock until the process ends. Some file
 * systems have no locks: the run goes on without. */
enum el_status el_store_lock(struct el_store *store)
{
    if (store->locked) return EL_OK;
    int folder = open(store->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return el_fail_errno("%s", store->dir);
    if (flock(folder, LOCK_EX | LOCK_NB) != 0) {
        bool taken = errno == EWOULDBLOCK;
        close(folder);
        if (taken)
            return el_fail(EL_ERR_INVALID,
                           "%s: another evenload writes into this folder: wait for it, or give another --out",
                           store->dir);
    }
    store->locked = true;
    for (size_t i = 0; i < N_FOLDERS; i++) {
        char path[EL_PATH_BYTES];
        el_store_path(store, path, "%s", folders[i]);
        EL_TRY(el_folder_make(path, advice));
    }
    return EL_OK;
}

enum el_status el_store_create(const char *out, const char *command, struct el_store *store_p)
{
    struct el_store store;
    EL_TRY(name_folder(out, &store));
    if (*out) store.existing = el_folder_existing(store.dir);
    EL_TRY(*out ? el_folder_make(store.dir, advice) : make_named(command, &store));
    if (*out) EL_TRY(check_folder(&store));
    enum el_status status = el_store_lock(&store);
    if (status == EL_OK) status = check_fresh(&store); /* nobody else can begin one now */
    if (status == EL_OK) {
        *store_p = store;
        return EL_OK;
    }
    struct el_error error;
    el_error_take(status, &error);
    el_store_discard(&store);
    return el_error_give(&error);
}

bool el_store_holds(const char *dir)
{
    struct el_store store;
    char path[EL_PATH_BYTES];
    if (name_folder(dir, &store) != EL_OK || !exists(&store, "command.json")) return false;
    el_store_path(&store, path, "command.json");
    json_t *document = NULL;
    if (el_read_json(path, &document) != EL_OK) return false;
    bool trials = !el_json_is(document, "command", "comm");
    json_decref(document);
    return trials;
}

enum el_status el_store_open(const char *dir, struct el_store *store_p)
{
    struct el_store store;
    EL_TRY(name_folder(dir, &store));
    EL_TRY(check_folder(&store));
    store.existing = strlen(store.dir);
    *store_p = store;
    return EL_OK;
}

void el_folder_unmake(const char *path, size_t existing)
{
    char made[EL_PATH_BYTES];
    snprintf(made, sizeof made, "%s", path);
    while (strlen(made) > existing && (rmdir(made) == 0 || errno == ENOENT)) {
        char *slash = strrchr(made, '/');
        if (!slash) return;
        *slash = 0;
    }
}

void el_store_discard(const struct el_store *store)
{
    if (!store->locked) return; /* another program's files */
    for (size_t i = 0; i < N_FOLDERS; i++) {
        char path[EL_PATH_BYTES];
        el_store_path(store, path, "%s", folders[i]);
        rmdir(path); /* fails if not empty */
    }
    el_folder_unmake(store->dir, store->existing);
}

void el_store_forget(const struct el_store *store)
{
    char path[EL_PATH_BYTES];
    el_store_path(store, path, "command.json");
    if (store->locked) unlink(path);
    el_store_discard(store);
}

void el_store_path(const struct el_store *store, char *path, const char *format, ...)
{
    int used = snprintf(path, EL_PATH_BYTES, "%s/", store->dir);
    va_list list;
    va_start(list, format);
    vsnprintf(path + used, EL_PATH_BYTES - (size_t)used, format, list);
    va_end(list);
}

static void launch_path(const struct el_store *store, const char *folder, const struct el_trial *trial, int repeat,
                        const char *suffix, char *path)
{
    char name[16] = "gate";
    if (repeat != EL_STORE_GATE) snprintf(name, sizeof name, "%d", repeat);
    el_store_path(store, path, "%s/%s-%s%s", folder, trial->id, name, suffix);
}

void el_store_repeat_path(const struct el_store *store, const struct el_trial *trial, int repeat, char *path)
{
    launch_path(store, "repeats", trial, repeat, ".json", path);
}

void el_store_log_path(const struct el_store *store, const struct el_trial *trial, int repeat, char *path)
{
    launch_path(store, "logs", trial, repeat, "", path);
}

enum el_status el_store_save_command(const struct el_store *store, unsigned command, const struct el_options *options)
{
    char path[EL_PATH_BYTES];
    json_t *document = el_json_of(EL_KEY("schema", EL_SCHEMA), EL_KEY("command", el_command_name(command)),
                                  EL_KEY("options", el_options_echo(command, options)));
    el_store_path(store, path, "command.json");
    enum el_status status = el_write_json(document, path);
    json_decref(document);
    return status;
}

json_t *el_store_load_repeat(const struct el_store *store, const struct el_trial *trial, int repeat)
{
    char path[EL_PATH_BYTES];
    el_store_repeat_path(store, trial, repeat, path);
    json_t *document = NULL;
    if (el_read_json(path, &document) != EL_OK) return NULL;
    if (json_is_string(json_object_get(document, "status"))) return document;
    json_decref(document);
    return NULL;
}

enum el_status el_store_save_repeat(const struct el_store *store, const struct el_trial *trial, int repeat,
                                    const json_t *document)
{
    char path[EL_PATH_BYTES];
    el_store_repeat_path(store, trial, repeat, path);
    return el_write_json(document, path);
}

enum el_status el_store_save_run(const struct el_store *store, const json_t *run)
{
    char path[EL_PATH_BYTES];
    el_store_path(store, path, "results.json");
    EL_TRY(el_write_json(run, path));
    return el_write_csv(run, store->dir);
}

enum el_status el_data_files_write(const struct el_options *options, struct el_data_files *files_p)
{
    struct el_data_files files = {.existing = 0};
    const struct el_synthetic_spec spec = {.input = el_model_find(options->train.model.name)->input,
                                           .seed = options->train.seed,
                                           .shortest = options->lengths.shortest,
                                           .longest = options->lengths.longest};
    snprintf(files.dir, sizeof files.dir, "%s/data", *options->out ? options->out : "results");
    files.existing = el_folder_existing(files.dir);
    EL_TRY(el_synthetic_paths(files.dir, &spec, files.train, files.test, sizeof files.train));
    files.made_train = access(files.train, F_OK) != 0;
    files.made_test = access(files.test, F_OK) != 0;
    enum el_status status = el_synthetic_write(files.dir, &spec, files.train, files.test, sizeof files.train);
    if (status != EL_OK) el_data_files_take_back(&files);
    if (status == EL_OK) *files_p = files;
    return status;
}

void el_data_files_take_back(const struct el_data_files *files)
{
    if (files->made_train) unlink(files->train);
    if (files->made_test) unlink(files->test);
    if (files->made_train || files->made_test) el_folder_unmake(files->dir, files->existing);
}
