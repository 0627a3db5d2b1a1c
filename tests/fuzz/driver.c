/* Runs a target without libFuzzer: every seed as it is, then seeds changed at random, in a process of its own, so that
 * an input that crashes or hangs is known. It is a test program (TAP), and takes libFuzzer's words:
 *
 *     build/tests/fuzz/fuzz_text [-runs=2000] [-seed=1] [-max_total_time=0.5] [CORPUS...]
 *
 * CORPUS is a file or a folder; without one it is tests/fuzz/corpus/<name>. What was wrong with is kept in
 * build/fuzz-<name>-input; given as the only argument with -runs=0 it is tried again. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { INPUT_BYTES = 1 << 16, SEEDS_MAX = 64, PATIENCE_S = 20, PATH_BYTES = 512 };

struct seed {
    uint8_t *data;
    size_t size;
};

/* What the two processes share: the input in work. */
struct shared {
    long done;
    size_t size;
    uint8_t data[INPUT_BYTES];
};

static struct seed seeds[SEEDS_MAX];
static size_t n_seeds;
static uint64_t state;

static size_t draw(size_t n)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return n ? (size_t)(state % n) : 0;
}

/* ---- changing an input ---- */

static const char *const tokens[] = {"0",
                                     "-1",
                                     "1e999",
                                     "nan",
                                     "inf",
                                     "18446744073709551616",
                                     "-9223372036854775809",
                                     "99999999999",
                                     "0x10",
                                     ",",
                                     ":",
                                     "=",
                                     "%s%n",
                                     "'",
                                     "\"",
                                     "\n",
                                     "\r\n",
                                     "\t",
                                     "\x1b[2J",
                                     "../",
                                     "/",
                                     " ",
                                     "{}",
                                     "[",
                                     "]",
                                     "null",
                                     "cpu:0",
                                     "--",
                                     "\xff\xfe",
                                     "\xc3\xa4"};

static size_t replace(uint8_t *data, size_t size, size_t at, size_t away, const void *by, size_t length,
                      size_t max_size)
{
    if (size - away + length > max_size) return size;
    memmove(data + at + length, data + at + away, size - at - away);
    memcpy(data + at, by, length);
    return size - away + length;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    uint8_t part[256];
    size_t at = draw(size + 1), length = draw(size - at + 1);
    if (length > sizeof part) length = 1 + draw(sizeof part);
    const char *token = tokens[draw(sizeof tokens / sizeof tokens[0])];
    switch (draw(6)) {
    case 0:
        if (at < size) data[at] ^= (uint8_t)(1u << draw(8));
        return size;
    case 1:
        if (at < size) data[at] = (uint8_t)draw(256);
        return size;
    case 2:
        return replace(data, size, at, length, "", 0, max_size);
    case 3:
        return replace(data, size, at, draw(length + 1), token, strlen(token), max_size);
    case 4:
        return replace(data, size, at, 0, token, strlen(token), max_size);
    default:
        memcpy(part, data + at, length);
        return replace(data, size, draw(size + 1), 0, part, length, max_size);
    }
}

static void make_input(struct shared *shared)
{
    const struct seed *seed = &seeds[draw(n_seeds)];
    memcpy(shared->data, seed->data, seed->size);
    shared->size = seed->size;
    shared->size = LLVMFuzzerCustomMutator(shared->data, shared->size, INPUT_BYTES, (unsigned)draw(1u << 31));
}

/* ---- the seeds ---- */

static void read_seed(const char *path)
{
    struct seed *seed = &seeds[n_seeds];
    FILE *file = n_seeds < SEEDS_MAX ? fopen(path, "rb") : NULL;
    if (!file) return;
    seed->data = malloc(INPUT_BYTES);
    if (!seed->data) abort();
    seed->size = fread(seed->data, 1, INPUT_BYTES, file);
    fclose(file);
    n_seeds++;
}

static void read_seeds(const char *path)
{
    struct dirent **entries;
    char inner[2 * PATH_BYTES];
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0) read_seed(path);
    for (int i = 0; i < n; i++) {
        snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') read_seed(inner);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
}

/* ---- two processes ---- */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void work(struct shared *shared, long runs, double seconds)
{
    double end_s = now_s() + seconds;
    for (long i = 0; i < (long)n_seeds + runs && (i < (long)n_seeds || now_s() < end_s); i++) {
        if (i < (long)n_seeds) {
            memcpy(shared->data, seeds[i].data, seeds[i].size);
            shared->size = seeds[i].size;
        } else {
            make_input(shared);
        }
        LLVMFuzzerTestOneInput(shared->data, shared->size);
        shared->done = i + 1;
    }
    exit(0); /* not _exit: a sanitizer looks for leaks now */
}

/* Returns what ended it in words; "": nothing, all was done. */
static const char *wait_for(pid_t child, const volatile struct shared *shared)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    long seen = -1;
    int how;
    double since_s = now_s();
    while (waitpid(child, &how, WNOHANG) == 0) {
        if (shared->done != seen) seen = shared->done, since_s = now_s();
        if (now_s() - since_s > PATIENCE_S) {
            kill(child, SIGKILL);
            waitpid(child, &how, 0);
            return "hung";
        }
        nanosleep(&pause, NULL);
    }
    return WIFSIGNALED(how) ? "crashed" : WEXITSTATUS(how) ? "ended by a sanitizer" : "";
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static int report(const char *name, const char *fault, const struct shared *shared)
{
    char path[PATH_BYTES];
    printf("1..1\n%s 1 - %s: %zu seeds, %ld inputs\n", *fault ? "not ok" : "ok", name, n_seeds, shared->done);
    if (!*fault) return 0;
    snprintf(path, sizeof path, "build/fuzz-%s-input", name);
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(shared->data, 1, shared->size, file);
        fclose(file);
    }
    printf("# it was %s; the last input is %s\n", fault, path);
    return 1;
}

int main(int argc, char **argv)
{
    char folder[] = "/dev/shm/el-fuzz-XXXXXX", corpus[PATH_BYTES];
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    long runs = 2000;
    double seconds = 0.5;
    state = 1;
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "-runs=", 6))
            runs = atol(argv[i] + 6), seconds = 1e9;
        else if (!strncmp(argv[i], "-seed=", 6))
            state = strtoull(argv[i] + 6, NULL, 10) * 2 + 1;
        else if (!strncmp(argv[i], "-max_total_time=", 16))
            seconds = atof(argv[i] + 16);
        else if (argv[i][0] != '-')
            read_seeds(argv[i]);
    }
    snprintf(corpus, sizeof corpus, "tests/fuzz/corpus/%s", name + (strncmp(name, "fuzz_", 5) ? 0 : 5));
    if (!n_seeds) read_seeds(corpus);
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool ready = n_seeds && shared != MAP_FAILED && mkdtemp(folder);
    if (!ready) return printf("1..1\nnot ok 1 - %s: no seeds in %s, or no folder in /dev/shm\n", name, corpus), 1;
    setenv("EL_FUZZ_FOLDER", folder, 1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) work(shared, runs, seconds);
    const char *fault = child > 0 ? wait_for(child, shared) : "not started";
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    for (size_t i = 0; i < n_seeds; i++) free(seeds[i].data);
    return report(name, fault, shared);
}
