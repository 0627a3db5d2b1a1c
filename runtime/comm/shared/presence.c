/* A word in shared memory tells that a rank has stopped; a pidfd per process tells when it is gone. */
#include "runtime/comm/shared/presence.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/process.h"
#include "runtime/comm/share.h"

/* Each rank's text: "pid path-of-the-word host". */
enum { TEXT_BYTES = EL_HOST_IDENTITY_BYTES + 96, PATH_BYTES = 64 };

struct other {
    int pid;  /* 0: on another host, or this rank */
    int file; /* pidfd; -1 where the kernel has none */
};

struct el_presence {
    int rank, size;
    _Atomic int *stopped; /* shared: 1 + the rank that stopped first; NULL: unavailable */
    struct other others[];
};

/* Every rank offers a word; the lowest rank's of each host is used. */
static int make_word(void)
{
    int file = memfd_create("evenload", MFD_CLOEXEC);
    if (file >= 0 && posix_fallocate(file, 0, sizeof(int)) == 0) return file;
    if (file >= 0) close(file);
    return -1;
}

static void map_word(struct el_presence *presence, const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *word = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (word != MAP_FAILED) presence->stopped = word;
    close(file);
}

/* Returns whether the rank is on this host. */
static bool take(struct el_presence *presence, int rank, const char *text, const char *host, char *path)
{
    int pid, at = 0;
    if (sscanf(text, "%d %63s %n", &pid, path, &at) < 2 || at == 0 || strcmp(text + at, host) != 0) return false;
    if (rank == presence->rank) return true;
    presence->others[rank] = (struct other){.pid = pid, .file = el_process_file(pid)};
    return true;
}

/* The files stay open until all have opened them. */
static enum el_status meet(struct el_presence *presence, struct el_bootstrap *bootstrap, char *texts)
{
    char host[EL_HOST_IDENTITY_BYTES], mine[TEXT_BYTES], path[PATH_BYTES] = "", first[PATH_BYTES] = "";
    int word = make_word();
    el_share_host(host);
    snprintf(mine, sizeof mine, "%d /proc/%d/fd/%d %s", (int)getpid(), (int)getpid(), word, host);
    enum el_status status = el_share_texts(bootstrap, mine, TEXT_BYTES, texts);
    for (int r = 0; status == EL_OK && r < presence->size; r++)
        if (take(presence, r, texts + (size_t)r * TEXT_BYTES, host, path) && !*first) memcpy(first, path, sizeof first);
    if (status == EL_OK) map_word(presence, first);
    if (status == EL_OK) status = el_bootstrap_barrier(bootstrap);
    if (word >= 0) close(word);
    return status;
}

enum el_status el_presence_open(struct el_bootstrap *bootstrap, struct el_presence **presence_p)
{
    int size = el_bootstrap_size(bootstrap);
    struct el_presence *presence = calloc(1, sizeof *presence + (size_t)size * sizeof *presence->others);
    char *texts = calloc((size_t)size, TEXT_BYTES);
    bool made = presence && texts;
    enum el_status status =
        el_bootstrap_agree(bootstrap, made ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory to watch %d ranks", size));
    if (made) {
        presence->rank = el_bootstrap_rank(bootstrap);
        presence->size = size;
        if (status == EL_OK) status = meet(presence, bootstrap, texts);
    }
    free(texts);
    if (status == EL_OK)
        *presence_p = presence;
    else
        el_presence_close(presence);
    return status;
}

void el_presence_close(struct el_presence *presence)
{
    if (!presence) return;
    for (int r = 0; r < presence->size; r++)
        if (presence->others[r].pid && presence->others[r].file >= 0) close(presence->others[r].file);
    if (presence->stopped) munmap((void *)presence->stopped, sizeof(int));
    free(presence);
}

/* Ranks that are gone come first: others stopped because of them. The word is read before the processes are checked,
 * so that a rank that died before another stopped is found gone. */
enum el_status el_presence_check(struct el_presence *presence)
{
    int stopped = presence->stopped ? atomic_load(presence->stopped) : 0;
    for (int r = 0; r < presence->size; r++)
        if (presence->others[r].pid && el_process_is_gone(presence->others[r].pid, presence->others[r].file))
            return el_fail(EL_ERR_PEER, "rank %d (process %d) is gone", r, presence->others[r].pid);
    if (stopped == 0) return EL_OK;
    return el_fail(EL_ERR_PEER, "rank %d has failed, and takes no part in collectives any more", stopped - 1);
}

void el_presence_raise(struct el_presence *presence)
{
    int nobody = 0;
    if (presence->stopped) atomic_compare_exchange_strong(presence->stopped, &nobody, presence->rank + 1);
}

bool el_presence_is_raised(const struct el_presence *presence)
{
    return presence->stopped && atomic_load(presence->stopped) != 0;
}

/* "4711 (name) T ...", where the name may contain anything. "T": stopped by a signal; "t": by a tracer. */
static bool is_held(int pid, const char *states)
{
    char path[32], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const char *state = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    return state && state[1] && state[2] && strchr(states, state[2]);
}

bool el_presence_is_stopped(const struct el_presence *presence, int rank)
{
    return presence->others[rank].pid && is_held(presence->others[rank].pid, "T");
}

bool el_presence_find_stopped(const struct el_presence *presence, char *text, size_t bytes)
{
    for (int r = 0; r < presence->size; r++) {
        if (!presence->others[r].pid || !is_held(presence->others[r].pid, "Tt")) continue;
        snprintf(text, bytes, "rank %d (process %d) is stopped", r, presence->others[r].pid);
        return true;
    }
    return false;
}
