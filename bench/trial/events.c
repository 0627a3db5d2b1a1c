/* Lines of DIR/events.csv; see events.h. Each is one write to the file's end, so that those of several processes do not
 * mix. */
#include "bench/trial/events.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/files.h"

/* A file of that folder itself: no link is followed, and no pipe waited for. -1: there is none. */
static int open_own(const char *dir, const char *name, struct stat *info)
{
    char path[EL_PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (file < 0 || (fstat(file, info) == 0 && S_ISREG(info->st_mode))) return file;
    close(file);
    return -1;
}

int el_events_open(const char *dir)
{
    struct stat info;
    static const char head[] = "event,step,unix_s,monotonic_s\n";
    const int file = *dir ? open_own(dir, "events.csv", &info) : -1;
    if (file >= 0 && info.st_size == 0 && write(file, head, sizeof head - 1) < 0) return file;
    return file;
}

void el_events_add(int file, const char *event, int64_t step)
{
    char line[96];
    struct timespec now;
    if (file < 0) return;
    clock_gettime(CLOCK_REALTIME, &now);
    const int n = snprintf(line, sizeof line, "%s,%" PRId64 ",%lld.%06ld,%.6f\n", event, step, (long long)now.tv_sec,
                           now.tv_nsec / 1000, (double)el_clock_ns() / 1e9);
    if (write(file, line, (size_t)n) < 0) return;
}

void el_events_come(const char *dir)
{
    struct stat info;
    const int file = open_own(dir, "come", &info);
    if (file >= 0) close(file);
}
