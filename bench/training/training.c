/* The hook's environment, and what it recorded. */
#include "bench/training/training.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/program.h"
#include "bench/base/text.h"
#include "profiles/intervals.h"
#include "runtime/base/grow.h"

#define HOOK_FILE "sitecustomize.py"
enum {
    RECORDED_CALLS = 4000,
    LINE_BYTES = 192,
    STEPS_MAX = 10000000,
    TROUBLE_MAX = 16,
    KEPT = 4096,
    DISK_LOW_BYTES = 65536
};

void el_python_hook_folder(const struct el_python_hook *hook, int host, char folder[EL_PATH_BYTES + 16])
{
    snprintf(folder, EL_PATH_BYTES + 16, "%s", hook->folder);
    if (hook->n_hosts > 1) snprintf(folder, EL_PATH_BYTES + 16, "%s/%d", hook->folder, host);
}

int64_t el_python_hook_time(const struct el_python_hook *hook, int host, int64_t ns)
{
    return hook->clocks ? el_clock_common(&hook->clocks[host].begin, &hook->clocks[host].end, ns) : ns;
}

void el_python_hook_of_host(struct el_python_hook *hook, int host, int n_hosts)
{
    char folder[EL_PATH_BYTES + 16];
    hook->host = host;
    hook->n_hosts = n_hosts;
    if (!hook->folder[0]) return;
    el_python_hook_folder(hook, host, folder);
    snprintf(hook->variables[0], sizeof hook->variables[0], "EVENLOAD_HOOK=%s", folder);
}

void el_python_hook_begin(const char *store_dir, const char *profile, struct el_python_hook *hook_p)
{
    struct el_python_hook hook = {.n_hosts = 1};
    char own[EL_PATH_BYTES], whole[PATH_MAX];
    const char *before = getenv("PYTHONPATH");
    const size_t bytes = sizeof hook.variables[0];
    if (el_shared_folder("hook", HOOK_FILE, own) && realpath(store_dir, whole) &&
        strlen(whole) + sizeof "/traces" <= sizeof hook.folder) {
        el_text_append(hook.folder, sizeof hook.folder, "%s/hook", whole);
        if (*profile) el_text_append(hook.traces, sizeof hook.traces, "%s/traces", whole);
        snprintf(hook.variables[0], bytes, "EVENLOAD_HOOK=%s", hook.folder);
        snprintf(hook.variables[1], bytes, "PYTHONPATH=%s%s%s", own, before && *before ? ":" : "",
                 before ? before : "");
        snprintf(hook.variables[2], bytes, "EVENLOAD_TRACES=%s", hook.traces);
        snprintf(hook.variables[3], bytes, "EVENLOAD_PROFILE=%s", profile);
        if (!getenv("TORCH_FR_BUFFER_SIZE"))
            snprintf(hook.variables[4], bytes, "TORCH_FR_BUFFER_SIZE=%d", RECORDED_CALLS);
    }
    *hook_p = hook;
}

void el_python_hook_environment(const struct el_python_hook *hook, const char *list[EL_HOOK_VARIABLES + 1])
{
    int n = 0;
    for (int i = 0; i < EL_HOOK_VARIABLES; i++)
        if (*hook->variables[i]) list[n++] = hook->variables[i];
    list[n] = NULL;
}

/* ---- a process' steps ---- */

enum { END_NS, DATA_NS, SAMPLES, NUMBERS, COLLECTING_NS, DELAY_NS, STEP_FIGURES }; /* of a line */

struct steps {
    double *ms;
    size_t n, room;
};

/* Also its time in the sums, and in `steps`, which are of this process alone. */
static bool add_step(const struct el_python_hook *hook, int64_t end_ns, struct el_trainer *trainer,
                     struct el_training *training, struct steps *steps)
{
    if (trainer->n_kept == 2 * (size_t)KEPT) {
        memmove(trainer->ends_ns, trainer->ends_ns + KEPT, KEPT * sizeof *trainer->ends_ns);
        trainer->n_kept = KEPT;
    }
    if (!EL_GROW(trainer->ends_ns, trainer->room, trainer->n_kept + 1)) return false;
    trainer->ends_ns[trainer->n_kept++] = el_python_hook_time(hook, trainer->host, end_ns);
    if (trainer->n++ == 0) return true;
    if (!EL_GROW(steps->ms, steps->room, steps->n + 1)) return false;
    const int64_t *ends = trainer->ends_ns + trainer->n_kept - 2;
    const double ms = (double)(ends[1] - ends[0]) * 1e-6;
    if (steps->n == training->n_sums) {
        if (!EL_GROW(training->sums_ms, training->sums_room, steps->n + 1)) return false;
        training->sums_ms[training->n_sums++] = 0;
    }
    training->sums_ms[steps->n] += ms;
    trainer->lived_s += 1e-3 * ms;
    steps->ms[steps->n++] = ms;
    return true;
}

/* sscanf takes three times as long. */
static bool read_line(const char *line, int64_t values[STEP_FIGURES])
{
    char *end;
    for (int i = 0; i < STEP_FIGURES; i++, line = end) {
        values[i] = strtoll(line, &end, 10);
        if (end == line) return false;
    }
    return true;
}

static enum el_status read_steps(const struct el_python_hook *hook, const char *path, struct el_trainer *trainer,
                                 struct el_training *training)
{
    char line[LINE_BYTES];
    int64_t of[STEP_FIGURES];
    struct steps steps = {.n = 0};
    FILE *file;
    EL_TRY(el_file_stream("", path, INT64_MAX, &file));
    while (fgets(line, sizeof line, file) && trainer->n < STEPS_MAX) {
        if (!read_line(line, of) || of[END_NS] < 0) continue;
        if (!add_step(hook, of[END_NS], trainer, training, &steps)) break;
        if (trainer->n == 1) continue;
        trainer->data_ns += (double)of[DATA_NS];
        trainer->samples += (double)of[SAMPLES];
        trainer->numbers += (double)of[NUMBERS];
        trainer->collecting_ns += (double)of[COLLECTING_NS];
        trainer->delay_ns += of[DELAY_NS] < 0 ? NAN : (double)of[DELAY_NS];
    }
    fclose(file);
    trainer->median_ms = steps.n ? el_median(steps.ms, steps.n) : NAN;
    if (trainer->n < 2) trainer->lived_s = NAN;
    free(steps.ms);
    return EL_OK;
}

static void read_trouble(const char *path, json_t *trouble)
{
    char line[256];
    FILE *file;
    if (el_file_stream("", path, INT64_MAX, &file) != EL_OK) return;
    while (fgets(line, sizeof line, file) && json_array_size(trouble) < TROUBLE_MAX) {
        bool known = false;
        line[strcspn(line, "\n")] = 0;
        EL_EACH(item, trouble) known = known || !strcmp(json_string_value(item), line);
        if (!known && *line) json_array_append_new(trouble, el_json_string(line));
    }
    fclose(file);
}

/* "marks_4711_rank_3" is of process 4711. */
static int64_t rank_of(const char *folder, int64_t pid)
{
    long long its, rank;
    int64_t found = -1;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (sscanf(entry->d_name, "marks_%lld_rank_%lld", &its, &rank) == 2 && its == pid && rank >= 0) found = rank;
    if (dir) closedir(dir);
    return found;
}

static void read_memory(const char *folder, struct el_trainer *trainer)
{
    char path[2 * EL_PATH_BYTES], line[LINE_BYTES];
    long long allocated, reserved;
    FILE *file;
    trainer->allocated_bytes = trainer->reserved_bytes = NAN;
    snprintf(path, sizeof path, "%s/memory_%" PRId64 "_rank_%" PRId64, folder, trainer->pid, trainer->rank);
    if (el_file_stream("", path, INT64_MAX, &file) != EL_OK) return;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%*d %*s %lld %lld", &allocated, &reserved) != 2) continue;
        trainer->allocated_bytes = fmax(0, trainer->allocated_bytes) + (double)allocated;
        trainer->reserved_bytes = fmax(0, trainer->reserved_bytes) + (double)reserved;
    }
    fclose(file);
}

static int by_rank(const void *a, const void *b)
{
    const struct el_trainer *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void read_host(const struct el_python_hook *hook, int host, struct el_training *training)
{
    char folder[EL_PATH_BYTES + 16], path[2 * EL_PATH_BYTES];
    el_python_hook_folder(hook, host, folder);
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        long long pid;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!strncmp(entry->d_name, "trouble-", 8)) read_trouble(path, training->trouble);
        if (sscanf(entry->d_name, "steps-%lld", &pid) != 1) continue;
        if (!EL_GROW(training->list, training->room, training->n + 1)) break;
        struct el_trainer trainer = {.pid = pid, .rank = rank_of(folder, pid), .host = host};
        read_memory(folder, &trainer);
        if (read_steps(hook, path, &trainer, training) == EL_OK && trainer.n > 0)
            training->list[training->n++] = trainer;
    }
    if (dir) closedir(dir);
}

/* ---- its figures ---- */

static double samples_per_s(const struct el_trainer *trainer)
{
    return trainer->samples > 0 ? trainer->samples / trainer->lived_s : NAN;
}

/* Of the mean over the ranks of each step that all have. */
json_t *el_training_step_ms(const struct el_training *training)
{
    size_t least = SIZE_MAX;
    double sum = 0;
    for (size_t i = 0; i < training->n; i++)
        if (training->list[i].n < least) least = training->list[i].n;
    double *steps = calloc(least + 1, sizeof *steps);
    const size_t n = least - 1;
    for (size_t s = 0; s < n && steps; s++) sum += steps[s] = training->sums_ms[s] / (double)training->n;
    const double median = steps && n ? el_median(steps, n) : NAN; /* sorts */
    json_t *json = el_json_of(EL_KEY("median", median), EL_KEY("mean", n ? sum / (double)n : NAN),
                              EL_KEY("p95", steps && n ? steps[(n - 1) * 95 / 100] : NAN));
    free(steps);
    return json;
}

double el_training_samples_per_s(const struct el_training *training)
{
    double sum = 0;
    for (size_t i = 0; i < training->n; i++) sum += fmax(0, samples_per_s(&training->list[i]));
    return sum > 0 ? sum : NAN;
}

json_t *el_training_ranks(const struct el_training *training)
{
    json_t *list = json_array();
    for (size_t i = 0; i < training->n; i++) {
        const struct el_trainer *t = &training->list[i];
        const double n = t->n > 1 ? (double)(t->n - 1) : NAN;
        json_array_append_new(
            list,
            el_json_of(EL_KEY("rank", el_json_count(t->rank)), EL_KEY("pid", t->pid), EL_KEY("steps", t->n),
                       EL_KEY("step_ms", t->median_ms), EL_KEY("data_ms", t->data_ns * 1e-6 / n),
                       EL_KEY("samples_per_s", samples_per_s(t)), EL_KEY("numbers", t->numbers / n),
                       EL_KEY("collecting_ms", t->collecting_ns * 1e-6 / n), EL_KEY("delay_ms", t->delay_ns * 1e-6 / n),
                       EL_KEY("allocated_bytes", t->allocated_bytes), EL_KEY("reserved_bytes", t->reserved_bytes)));
    }
    return list;
}

static bool is_ours(const char *name)
{
    static const char *const begins[] = {"steps-", "trouble-", "flight_", "marks_", "memory_"};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (!strncmp(name, begins[i], strlen(begins[i]))) return true;
    return false;
}

/* A process that cannot write says so nowhere. */
static void look_at_disk(const char *folder, json_t *trouble)
{
    struct statvfs disk;
    if (statvfs(folder, &disk) == 0 && (double)disk.f_bavail * (double)disk.f_frsize < DISK_LOW_BYTES)
        json_array_append_new(trouble, json_string("the disk is full: what could not be written there is missing"));
}

enum el_status el_training_read(const struct el_python_hook *hook, struct el_training *training_p)
{
    struct el_training training = {.trouble = json_array()};
    for (int h = 0; hook->folder[0] && h < hook->n_hosts; h++)
        if (h == hook->host || hook->clocks) read_host(hook, h, &training);
    if (training.n) qsort(training.list, training.n, sizeof *training.list, by_rank);
    if (hook->folder[0]) look_at_disk(hook->folder, training.trouble);
    if (training.n == 0) {
        const json_t *first = json_array_get(training.trouble, 0);
        enum el_status status = el_fail(EL_ERR_ABSENT, "%s", first ? json_string_value(first) : "");
        el_training_free(&training);
        return status;
    }
    *training_p = training;
    return EL_OK;
}

void el_training_free(struct el_training *training)
{
    for (size_t i = 0; i < training->n; i++) free(training->list[i].ends_ns);
    free(training->list);
    free(training->sums_ms);
    json_decref(training->trouble);
    *training = (struct el_training){.n = 0};
}

void el_python_hook_end(const struct el_python_hook *hook)
{
    char folder[EL_PATH_BYTES + 16];
    for (int h = 0; hook->folder[0] && h < hook->n_hosts; h++) {
        if (h != hook->host && !hook->clocks) continue;
        el_python_hook_folder(hook, h, folder);
        el_folder_remove(folder, is_ours);
    }
    if (hook->n_hosts > 1) rmdir(hook->folder);
}
