/* Reads /proc/PID. */
#include "profiles/process_tree.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/launch/launch.h"

/* STATUS: read whole, as parts read later may be of another moment; a user may have 65,536 groups, all in one line.
 * Untouched pages cost nothing. */
enum { PATH_BYTES = 512, STAT_BYTES = 1024, STATUS_BYTES = 1 << 20, ENVIRONMENT_BYTES = 131072, FEW_BYTES = 4096 };

static int open_file(const char *root, pid_t pid, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/%d/%s", root, (int)pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static size_t read_open(int file, char *text, size_t bytes)
{
    ssize_t got = file < 0 ? -1 : pread(file, text, bytes - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

static size_t read_file(const struct el_process *process, const char *name, char *text, size_t bytes)
{
    int file = open_file(process->root, process->pid, name);
    size_t got = 0;
    text[0] = '\0';
    for (ssize_t n = 1; file >= 0 && n > 0 && got + 1 < bytes; got += n > 0 ? (size_t)n : 0)
        n = pread(file, text + got, bytes - 1 - got, (off_t)got); /* /proc gives a page at a time */
    if (file >= 0) close(file);
    text[got] = '\0';
    return got;
}

static char *read_status(const struct el_process *process)
{
    char *text = malloc(STATUS_BYTES);
    if (text) read_open(process->status, text, STATUS_BYTES);
    return text;
}

/* "pid (name) state ppid ...": a name may contain blanks and brackets. Field 3 is the state (man proc). */
static bool parse_stat(const char *text, struct el_process_look *look)
{
    const char *from = strchr(text, '('), *to = strrchr(text, ')');
    uint64_t user, system, program;
    long threads, ticks_per_s = sysconf(_SC_CLK_TCK);
    int parent;
    if (!from || !to || to < from) return false;
    if (sscanf(to + 1,
               " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
               " %*d %*d %*d %*d %ld %*d %*u %*u %*d %*u %*u %*u %" SCNu64,
               &look->state, &parent, &user, &system, &threads, &program) != 6)
        return false;
    snprintf(look->name, sizeof look->name, "%.*s", (int)(to - from - 1), from + 1);
    look->parent = parent;
    look->n_threads = (int)threads;
    look->cpu_ns = (int64_t)((user + system) * (1000000000 / (uint64_t)(ticks_per_s > 0 ? ticks_per_s : 100)));
    look->program = program;
    return true;
}

/* More than any machine has, and sums of two do not overflow in bytes. */
#define KIB_MAX (INT64_MAX / 2048)

static int64_t number_after(const char *text, const char *name)
{
    const char *at = text ? strstr(text, name) : NULL;
    int64_t number = -1;
    return at && sscanf(at + strlen(name), "%" SCNd64, &number) == 1 && number <= KIB_MAX ? number : -1;
}

bool el_process_look(const struct el_process *process, struct el_process_look *look_p)
{
    char stat[STAT_BYTES];
    struct el_process_look look = {.resident_bytes = -1, .own_bytes = -1, .peak_bytes = -1};
    if (!read_open(process->stat, stat, sizeof stat) || !parse_stat(stat, &look)) return false;
    char *status = read_status(process);
    int64_t resident_kib = number_after(status, "\nVmRSS:"), peak_kib = number_after(status, "\nVmHWM:");
    int64_t private_kib = number_after(status, "\nRssAnon:"), shared_kib = number_after(status, "\nRssShmem:");
    if (private_kib >= 0 && shared_kib >= 0) look.own_bytes = (private_kib + shared_kib) * 1024;
    if (resident_kib > 0) look.resident_bytes = resident_kib * 1024;
    if (peak_kib > 0) look.peak_bytes = peak_kib * 1024;
    free(status);
    *look_p = look;
    return true;
}

pid_t el_process_parent(const char *root, pid_t pid)
{
    char stat[STAT_BYTES];
    struct el_process_look look;
    int file = open_file(root, pid, "stat");
    bool known = read_open(file, stat, sizeof stat) && parse_stat(stat, &look);
    if (file >= 0) close(file);
    return known ? look.parent : -1;
}

bool el_process_open(const char *root, pid_t pid, struct el_process *process_p)
{
    char status[FEW_BYTES];
    struct el_process process = {.pid = pid, .root = root};
    process.stat = open_file(root, pid, "stat");
    process.status = open_file(root, pid, "status");
    read_open(process.status, status, sizeof status);
    if (process.stat >= 0 && number_after(status, "\nTgid:") == pid) {
        *process_p = process;
        return true;
    }
    el_process_close(&process);
    return false;
}

void el_process_close(struct el_process *process)
{
    if (process->stat >= 0) close(process->stat);
    if (process->status >= 0) close(process->status);
    process->stat = process->status = -1;
}

struct environment {
    const char *text;
    size_t bytes;
};

static const char *get(void *context, const char *name)
{
    const struct environment *environment = context;
    size_t length = strlen(name);
    for (const char *at = environment->text; at < environment->text + environment->bytes; at += strlen(at) + 1)
        if (!strncmp(at, name, length) && at[length] == '=') return at + length + 1;
    return NULL;
}

/* Invalid variables give no rank. */
static void read_rank(const struct el_process *process, struct el_process_identity *identity)
{
    struct el_launch_place place;
    struct environment environment;
    char *text = malloc(ENVIRONMENT_BYTES);
    if (!text) return;
    environment = (struct environment){text, read_file(process, "environ", text, ENVIRONMENT_BYTES)};
    if (el_launch_environment(get, &environment, &place) == EL_OK && place.is_rank) {
        identity->rank = place.rank;
        snprintf(identity->launcher, sizeof identity->launcher, "%s", place.launcher);
    }
    free(text);
}

static int count_cpus(const char *list)
{
    int n = 0, from, to, used;
    while (sscanf(list, "%d%n", &from, &used) == 1) {
        to = from;
        list += used;
        if (sscanf(list, "-%d%n", &to, &used) == 1) list += used;
        n += to - from + 1;
        if (*list != ',') break;
        list++;
    }
    return n;
}

/* Counted on the whole list; the record's text is cut. */
static void read_cpus(const struct el_process *process, struct el_process_identity *identity)
{
    static const char name[] = "\nCpus_allowed_list:";
    char *status = read_status(process);
    const char *at = status ? strstr(status, name) : NULL;
    if (at) {
        at += strlen(name);
        at += strspn(at, " \t");
        size_t length = strcspn(at, "\n"), room = sizeof identity->cpus - 1;
        identity->n_cpus = count_cpus(at);
        snprintf(identity->cpus, sizeof identity->cpus, "%.*s%s", (int)(length <= room ? length : room - 3), at,
                 length <= room ? "" : "...");
    }
    free(status);
}

static void read_executable(const struct el_process *process, struct el_process_identity *identity)
{
    char path[PATH_BYTES], link[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/%d/exe", process->root, (int)process->pid);
    ssize_t got = readlink(path, link, sizeof link - 1);
    link[got > 0 ? got : 0] = '\0';
    const char *slash = strrchr(link, '/');
    snprintf(identity->executable, sizeof identity->executable, "%.15s", slash ? slash + 1 : link);
}

void el_process_identify(const struct el_process *process, struct el_process_identity *identity_p)
{
    struct el_process_identity *identity = identity_p;
    memset(identity, 0, sizeof *identity);
    identity->rank = -1;
    size_t got = read_file(process, "cmdline", identity->command, sizeof identity->command);
    while (got > 0 && identity->command[got - 1] == '\0') got--;
    for (size_t i = 0; i < got; i++) /* a line of a table: no control characters */
        if ((unsigned char)identity->command[i] < ' ' || identity->command[i] == 127) identity->command[i] = ' ';
    read_executable(process, identity);
    read_cpus(process, identity);
    read_rank(process, identity);
}

int64_t el_process_pss_bytes(const struct el_process *process)
{
    char text[FEW_BYTES];
    read_file(process, "smaps_rollup", text, sizeof text);
    int64_t kib = number_after(text, "\nPss:");
    return kib < 0 ? -1 : kib * 1024;
}
