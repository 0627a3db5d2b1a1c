/* Files that are there whole or not at all: what a writer replaces, links at names of temporary files, reasons. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "runtime/base/probe.h"
#include "tests/test.h"
#include "tests/unit/whole_files.h"

static void write_words(const char *path, int *failed_p)
{
    char temporary[EL_PATH_BYTES + 64];
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    *failed_p = file ? 0 : errno;
    if (!file) return;
    fputs("new", file);
    if (el_file_end(file, temporary, path) != EL_OK) *failed_p = -1;
}

static void holds(const char *path, const char *wanted)
{
    char *text = read_whole(path, NULL);
    assert_string_equal(text, wanted);
    free(text);
}

/* Only a regular file is replaced: not a link, not a device, not a folder. All of them are made here. */
static void test_what_a_writer_replaces(void **state)
{
    char folder[] = "/tmp/test_io.XXXXXX", path[5][64];
    static const char *const names[] = {"file", "link", "dangling", "folder", "pipe"};
    struct stat info;
    int failed;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 5; i++) snprintf(path[i], sizeof path[i], "%s/%s", folder, names[i]);
    write_words(path[0], &failed);
    assert_int_equal(failed, 0);
    FILE *old = fopen(path[0], "w");
    assert_non_null(old);
    assert_int_equal(fputs("old", old) < 0 || fclose(old) != 0, 0);
    assert_int_equal(
        symlink("file", path[1]) | symlink("later", path[2]) | mkdir(path[3], 0777) | mkfifo(path[4], 0666), 0);
    write_words(path[1], &failed);
    assert_true(failed == 0 && lstat(path[1], &info) == 0 && S_ISLNK(info.st_mode));
    holds(path[0], "new");
    write_words(path[2], &failed);
    assert_true(failed == 0 && lstat(path[2], &info) == 0 && S_ISLNK(info.st_mode));
    holds(path[2], "new");
    write_words(path[3], &failed);
    assert_int_equal(failed, EISDIR);
    write_words(path[4], &failed);
    assert_int_equal(failed, ENXIO); /* nobody reads it */
    int reader = open(path[4], O_RDONLY | O_NONBLOCK);
    char got[4] = "";
    write_words(path[4], &failed);
    assert_true(failed == 0 && read(reader, got, 3) == 3 && !strcmp(got, "new"));
    close(reader);
    assert_true(stat(path[4], &info) == 0 && S_ISFIFO(info.st_mode));
    snprintf(path[2], sizeof path[2], "%s/later", folder);
    for (int i = 0; i < 5; i++) remove(path[i]);
    snprintf(path[2], sizeof path[2], "%s/dangling", folder);
    assert_int_equal(remove(path[2]) | rmdir(folder), 0); /* and nothing else was left */
}

/* Whoever may write into the folder could lay links where a temporary file will be, if its name could be known. */
static void test_links_at_temporary_names(void **state)
{
    char folder[] = "/tmp/test_io.XXXXXX", path[64], link[96], victim[64];
    struct stat info;
    int failed;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(victim, sizeof victim, "%s/victim", folder);
    snprintf(link, sizeof link, "%s.tmp.%ld", path, (long)getpid());
    assert_int_equal(symlink("victim", link), 0);
    write_words(path, &failed);
    assert_int_equal(failed, 0);
    holds(path, "new");
    assert_true(lstat(victim, &info) != 0);
    mode_t mask = umask(022);
    umask(mask);
    assert_true(lstat(path, &info) == 0 && (info.st_mode & 0777) == (0666 & ~mask));
    assert_int_equal(remove(link) | remove(path) | rmdir(folder), 0); /* and nothing else was left */
}

/* Killed while it wrote: only what was there is there. */
static void test_a_writer_that_is_killed_leaves_nothing(void **state)
{
    char folder[] = "/tmp/test_io.XXXXXX", path[64];
    int failed, ended;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    write_words(path, &failed);
    int nameless = open(folder, O_TMPFILE | O_WRONLY, 0666);
    pid_t writer = nameless < 0 ? -1 : fork();
    if (writer == 0) {
        char temporary[EL_PATH_BYTES + 64];
        FILE *file = el_file_begin(path, temporary, sizeof temporary);
        if (file && fputs("half", file) >= 0 && fflush(file) == 0) raise(SIGKILL);
        _exit(1);
    }
    if (nameless >= 0) {
        close(nameless);
        assert_true(waitpid(writer, &ended, 0) == writer && WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
        holds(path, "new");
    }
    assert_int_equal(remove(path) | rmdir(folder), 0);
    if (nameless < 0) skip(); /* /tmp's file system gives every file a name at once */
}

/* Said when it is begun, not when all has been written. */
static void test_a_name_that_is_too_long(void **state)
{
    char name[300] = "/tmp/", temporary[EL_PATH_BYTES + 64];
    memset(name + 5, 'x', 250);
    assert_null(el_file_begin(name, temporary, sizeof temporary));
    assert_int_equal(errno, ENAMETOOLONG);
}

static void test_sizes_in_words(void **state)
{
    static const struct {
        size_t bytes;
        const char *text;
    } cases[] = {{0, "0 bytes"},
                 {1023, "1023 bytes"},
                 {1024, "1.00 KiB"},
                 {1536, "1.50 KiB"},
                 {6 << 20, "6.00 MiB"},
                 {(size_t)3 << 29, "1.50 GiB"},
                 {SIZE_MAX, "17179869184.00 GiB"}};
    char text[EL_BYTES_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(el_bytes_text(cases[i].bytes, text), cases[i].text);
}

/* What arithmetic leaves in the last bits is not written; every other double reads back as it is. */
static void test_numbers_without_noise(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{5541e-7 * 1e3, "0.5541"},      {0.1 + 0.2, "0.3"},     {-14472e-9 * 1e3, "-0.014472"},
                 {0.1 * 3e7, "3000000"},         {1e-9 * 1e-9, "1e-18"}, {1.7917594909667969, "1.7917594909667969"},
                 {1.0 / 3, "0.3333333333333333"}};
    char text[32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(el_json_written(cases[i].value, text), cases[i].text);
    for (int i = 1; i < 2000; i++) {
        double value = strtod(el_json_written(sqrt(i) / 7, text), NULL);
        assert_true(fabs(value / (sqrt(i) / 7) - 1) < 1e-14);
        assert_true(strtod(el_json_written(value, text), NULL) == value);
    }
}

static int refuse_to_close(void *cookie)
{
    (void)cookie;
    errno = EDQUOT;
    return -1;
}

/* The type of each value decides; what is not known is null; the order is that of the keys. */
static void test_an_object_of_its_keys(void **state)
{
    char text[] = "a", *none = NULL;
    bool yes = true;
    size_t bytes = 7;
    int64_t ns = -1;
    json_t *object = el_json_of(EL_KEY("text", text), EL_KEY("word", "b"), EL_KEY("none", none), EL_KEY("yes", yes),
                                EL_KEY("bytes", bytes), EL_KEY("ns", ns), EL_KEY("n", 3), EL_KEY("half", 0.5),
                                EL_KEY("unknown", NAN + 0.0), EL_KEY("list", json_array()));
    el_json_put_all(object, EL_KEY("empty", el_json_filled("")), EL_KEY("near", el_json_rounded(2.6)),
                    EL_KEY("n", el_json_rounded(INFINITY)));
    char *written = json_dumps(object, JSON_COMPACT);
    assert_string_equal(written, "{\"text\":\"a\",\"word\":\"b\",\"none\":null,\"yes\":true,\"bytes\":7,\"ns\":-1,"
                                 "\"n\":null,\"half\":0.5,\"unknown\":null,\"list\":[],\"empty\":null,\"near\":3}");
    free(written);
    json_decref(object);
}

static void test_the_reason_is_that_of_the_call_that_failed(void **state)
{
    FILE *file = fopencookie(NULL, "w", (cookie_io_functions_t){.close = refuse_to_close});
    assert_non_null(file);
    errno = ENOENT; /* of some earlier call */
    assert_int_equal(el_file_end(file, "", "figures"), EL_ERR_NO_ROOM);
    assert_non_null(strstr(el_error_message(), "figures could not be written"));
    assert_non_null(strstr(el_error_message(), strerror(EDQUOT)));
}

RUN_TESTS(NULL, NULL, test_what_a_writer_replaces, test_links_at_temporary_names,
          test_a_writer_that_is_killed_leaves_nothing, test_a_name_that_is_too_long, test_sizes_in_words,
          test_numbers_without_noise, test_an_object_of_its_keys, test_the_reason_is_that_of_the_call_that_failed)
