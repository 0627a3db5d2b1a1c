/* How long threads of this process waited for a core that other programs had: by the scheduler's own nanoseconds
 * (/proc/self/task/N/schedstat), so in windows that are too short for ticks too.
 *
 * A thread that waits for a core waits for whoever runs there: another program, or another thread of its own process.
 * What the latter ran on that core is the most that they can account for; only what is beyond it is put down to others.
 * The kernel's pressure (/proc/pressure/cpu) does not tell the two apart, so it is not used. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/system.h"
#include "runtime/base/files.h"

/* A thread that wakes waits some microseconds, on an idle machine too. */
static const double SHORTEST_NS = 50e6;

enum { PATH_BYTES = 2048, STAT_BYTES = 1024, CPU_FIELD = 36 }; /* fields after the name, which may hold blanks */

/* The counters, and the CPU that it ran on last. */
static bool read_thread(const char *root, const char *id, struct el_system_thread *thread)
{
    char path[PATH_BYTES], text[STAT_BYTES];
    snprintf(path, sizeof path, "%s/proc/self/task/%s/schedstat", root, id);
    el_file_line(path, "", text, sizeof text);
    bool read = sscanf(text, "%" SCNu64 " %" SCNu64, &thread->ran_ns, &thread->waited_ns) == 2;
    snprintf(path, sizeof path, "%s/proc/self/task/%s/stat", root, id);
    el_file_line(path, "", text, sizeof text);
    char *at = strrchr(text, ')');
    for (int i = 0; at && i <= CPU_FIELD; i++) at = strchr(at + 1, ' ');
    thread->id = strtol(id, NULL, 10);
    thread->cpu = at ? (int)strtol(at, NULL, 10) : -1;
    return read && thread->cpu >= 0;
}

/* A kernel that does not count writes zeros. */
void el_system_read_threads(const char *root, struct el_system_reading *reading)
{
    char path[PATH_BYTES];
    bool counts = false;
    snprintf(path, sizeof path, "%s/proc/self/task", root);
    DIR *folder = opendir(path);
    reading->n_threads = 0;
    for (struct dirent *entry; folder && reading->n_threads >= 0 && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        if (reading->n_threads == EL_SYSTEM_THREADS_MAX) {
            reading->n_threads = -1;
        } else if (read_thread(root, entry->d_name, &reading->threads[reading->n_threads])) {
            counts |= reading->threads[reading->n_threads].ran_ns > 0;
            reading->n_threads++;
        }
    }
    if (folder) closedir(folder);
    if (!counts) reading->n_threads = -1;
}

/* Between the readings; a thread that began in between has no begin. */
static struct el_system_thread since(const struct el_system_reading *begin, struct el_system_thread thread)
{
    for (int i = 0; i < begin->n_threads; i++) {
        if (begin->threads[i].id != thread.id) continue;
        thread.ran_ns -= begin->threads[i].ran_ns < thread.ran_ns ? begin->threads[i].ran_ns : thread.ran_ns;
        thread.waited_ns -=
            begin->threads[i].waited_ns < thread.waited_ns ? begin->threads[i].waited_ns : thread.waited_ns;
        break;
    }
    return thread;
}

void el_system_compare_threads(const struct el_system_reading *begin, const struct el_system_reading *end,
                               struct el_system_figures *figures)
{
    struct el_system_thread threads[EL_SYSTEM_THREADS_MAX];
    double most_ns = 0, window_ns = (double)(end->clock_ns - begin->clock_ns);
    if (begin->n_threads < 0 || end->n_threads < 0 || !(window_ns >= SHORTEST_NS)) return;
    for (int c = 0; c < EL_SYSTEM_CPUS_MAX; c++) figures->ran_pct[c] = 0;
    for (int i = 0; i < end->n_threads; i++) {
        threads[i] = since(begin, end->threads[i]);
        if (threads[i].cpu < EL_SYSTEM_CPUS_MAX)
            figures->ran_pct[threads[i].cpu] += 100 * (double)threads[i].ran_ns / window_ns;
    }
    for (int i = 0; i < end->n_threads; i++) {
        double waited_ns = (double)threads[i].waited_ns;
        for (int k = 0; k < end->n_threads; k++)
            if (k != i && threads[k].cpu == threads[i].cpu) waited_ns -= (double)threads[k].ran_ns;
        most_ns = fmax(most_ns, waited_ns);
    }
    figures->waited_pct = fmin(100, 100 * most_ns / window_ns);
}
