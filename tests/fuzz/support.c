/* Files in memory, and what every target asks of what it calls. */
#include <ctype.h>
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/options/options.h"
#include "tests/fuzz/fuzz.h"

enum { PATH_BYTES = 512 };
static char own_folder[PATH_BYTES];
static char *printed;
static size_t n_printed;

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) abort();
    memcpy(text, data, size);
    text[size] = 0;
    return text;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(own_folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* EL_FUZZ_FOLDER: one that is there, and removed by who made it, whatever ends this process. */
const char *fuzz_folder(void)
{
    const char *given = getenv("EL_FUZZ_FOLDER");
    if (given) return given;
    if (own_folder[0]) return own_folder;
    snprintf(own_folder, sizeof own_folder, "%s/el-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(own_folder)) abort();
    atexit(remove_folder);
    return own_folder;
}

const char *fuzz_file(const char *name, const void *data, size_t size)
{
    static char path[2 * PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/", fuzz_folder());
    snprintf(path + length, sizeof path - (size_t)length, "%s", name);
    FILE *file = fopen(path, "wb");
    for (char *at = path + length; !file && *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        mkdir(path, 0777);
        *at = '/';
    }
    if (!file) file = fopen(path, "wb");
    fuzz_expect(file && fwrite(data, 1, size, file) == size && fclose(file) == 0, "the target's own file is written");
    return path;
}

void fuzz_own_data(struct el_options *options)
{
    static const char data[] = "0 one two three four\n1 five six seven eight nine\n";
    static char path[2 * PATH_BYTES];
    if (!path[0]) snprintf(path, sizeof path, "%s", fuzz_file("own-data", data, sizeof data - 1));
    snprintf(options->data, sizeof options->data, "%s", path);
    options->test[0] = 0;
}

void fuzz_expect(bool holds, const char *words)
{
    if (holds) return;
    fprintf(stderr, "fuzz: this does not hold: %s\n", words);
    abort();
}

static bool has_control(const char *text, size_t n, const char *allowed)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)text[i] < ' ' || text[i] == 127) && (!text[i] || !strchr(allowed, text[i]))) return true;
    return false;
}

/* A line that a CI system would take for a command: "::error::" behind blanks, "##[error]" anywhere. */
static bool has_command(const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *at = line + strspn(line, " \t");
        if (at[0] == ':' && at[1] == ':' && isalpha((unsigned char)at[2])) return true;
    }
    return text && (strstr(text, "##[") || strstr(text, "##vso["));
}

bool fuzz_status(enum el_status status)
{
    if (status == EL_OK) return true;
    const char *message = el_error_message();
    fuzz_expect(message[0] != 0, "a failure has a message");
    fuzz_expect(strchr(message, '\n') == NULL, "a failure's message is one line");
    return false;
}

FILE *fuzz_print_begin(void)
{
    FILE *out = open_memstream(&printed, &n_printed);
    if (!out) abort();
    return out;
}

static void end_print(FILE *out, bool commands)
{
    fclose(out);
    bool raw = has_control(printed, n_printed, "\n\t") || (!commands && has_command(printed));
    if (raw) fwrite(printed, 1, n_printed, stderr);
    fuzz_expect(!raw, "no control character and no command is printed");
    free(printed);
}

void fuzz_print_end(FILE *out)
{
    end_print(out, false);
}

void fuzz_print_end_commands(FILE *out)
{
    end_print(out, true);
}
