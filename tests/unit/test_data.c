/* Text files and the data set made of them: what is tolerated, what is refused and in which words, how words are
 * numbered and samples split. Batches are test_data_loader.c, the synthetic and dummy sets test_data_synthetic.c. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/data.h"
#include "tests/unit/error_words.h"
#include "tests/unit/own_folder.h"
#include "tests/unit/whole_files.h"

enum { SEQ = 4 };
static char train_path[64], test_path[64];

static int name_files(void **state)
{
    if (make_folder(state) != 0) return -1;
    snprintf(train_path, sizeof train_path, "%s/train.txt", folder);
    snprintf(test_path, sizeof test_path, "%s/test.txt", folder);
    return 0;
}

static void put(const char *path, const char *text)
{
    put_file(folder, path, text, strlen(text));
}

static struct el_dataset *open_good(const struct el_dataset_spec *spec)
{
    struct el_dataset *set = NULL;
    enum el_status status = el_dataset_open(spec, &set);
    if (status != EL_OK) fail_msg("%s", el_error_message());
    return set;
}

/* Opening fails with `status`, and the message has all of `words` (separated by |) in it. */
static void expect_refusal(const struct el_dataset_spec *spec, enum el_status status, const char *words)
{
    struct el_dataset *set = NULL;
    assert_int_equal(el_dataset_open(spec, &set), status);
    assert_null(set);
    expect_words(words);
}

#define BYTES(text) text, sizeof(text) - 1
static const struct {
    const char *bytes;
    size_t length;
    const char *words;
} malformed[] = {
    {BYTES(""), "train.txt|empty"},
    {BYTES(" \r\n\n"), "train.txt|empty"},
    {BYTES("0 a b\nWhat is it ?\n"), "train.txt, line 2|'What'|label"},
    {BYTES("0 a b\n\n1 c\n"), "train.txt, line 2|empty line"},
    {BYTES("0 a b\n  \n1 c\n"), "train.txt, line 2|empty line"},
    {BYTES("0 a\n1 b\n-1 c\n"), "train.txt, line 3|'-1'"},
    {BYTES("1.5 a\n"), "train.txt, line 1|'1.5'"},
    {BYTES("1:a b\n"), "train.txt, line 1|'1:a'"},
    {BYTES("0x1 a\n"), "train.txt, line 1|'0x1'"},
    {BYTES("9999 a\n10000 b\n"), "train.txt, line 2|10000|too large"},
    {BYTES("99999999999999999999999999999999 b\n"), "train.txt, line 1|too large"},
    {BYTES("0 a\n1\n"), "train.txt, line 2|label 1 without a sentence"},
    {BYTES("0 a\n1 \t \n2 b\n"), "train.txt, line 2|label 1 without a sentence"},
    {BYTES("0 a\n1 b\0c\n"), "train.txt, line 2|0x00|binary"},
    {BYTES("\x7F"
           "ELF\x02\x01"),
     "train.txt, line 1|binary"},
    {BYTES("0 a\n1 b\x1A"), "train.txt, line 2|0x1A|binary"},
    {BYTES("0 a\n1 b\x7F\n"), "train.txt, line 2|0x7F|binary"},
    {BYTES("0 a\r1 b\r"), "train.txt, line 1|carriage return"},
    {BYTES("\xEF\xBB\xBF"), "train.txt, line 1|empty line"},
};

static void refuses_malformed_lines(void **state)
{
    const struct el_dataset_spec spec = {.source = train_path};
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        put_file(folder, train_path, malformed[i].bytes, malformed[i].length);
        expect_refusal(&spec, EL_ERR_INVALID, malformed[i].words);
    }
    put(train_path, "0 a\n");
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) { /* the test file just the same */
        put_file(folder, test_path, malformed[i].bytes, malformed[i].length);
        assert_int_equal(el_dataset_open(&(struct el_dataset_spec){.source = train_path, .test_path = test_path},
                                         &(struct el_dataset *){NULL}),
                         EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(), "test.txt"));
    }
}

static void refuses_what_is_no_file(void **state)
{
    char pipe_path[80], long_path[600];
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    memset(long_path, 'x', sizeof long_path);
    memcpy(long_path + sizeof long_path - 12, "/absent.txt", 12);
    expect_refusal(&(struct el_dataset_spec){.source = "/absent/set.txt"}, EL_ERR_IO, "/absent/set.txt|No such file");
    expect_refusal(&(struct el_dataset_spec){.source = folder}, EL_ERR_IO, "evenload-test|is a directory");
    expect_refusal(&(struct el_dataset_spec){.source = pipe_path}, EL_ERR_IO, "/pipe|regular file");
    expect_refusal(&(struct el_dataset_spec){.source = long_path}, EL_ERR_IO, "absent.txt|too long");
    expect_refusal(&(struct el_dataset_spec){.source = ""}, EL_ERR_INVALID, "no data");
    put(train_path, "0 a\n");
    expect_refusal(&(struct el_dataset_spec){.source = train_path, .test_path = "/absent/test.txt"}, EL_ERR_IO,
                   "/absent/test.txt");
    if (geteuid() != 0) {
        chmod(train_path, 0);
        expect_refusal(&(struct el_dataset_spec){.source = train_path}, EL_ERR_IO, "train.txt|denied");
        chmod(train_path, 0600);
    }
    unlink(pipe_path);
}

static void refuses_sizes_that_cannot_be(void **state)
{
    put(train_path, "0 a\n3 b\n");
    put(test_path, "0 a\n4 b\n");
    const struct {
        struct el_dataset_spec spec;
        const char *words;
    } cases[] = {{{.source = train_path, .classes = 3}, "train.txt, line 2|label 3|3 classes"},
                 {{.source = train_path, .test_path = test_path}, "test.txt, line 2|label 4|4 classes"},
                 {{.source = train_path, .vocab = 2}, "vocab 2"},
                 {{.source = train_path, .seq = -1}, "seq -1"},
                 {{.source = train_path, .classes = 10001}, "classes 10001"},
                 {{.source = train_path, .held_out = 0.6}, "held-out"},
                 {{.source = train_path, .held_out = NAN}, "held-out"},
                 {{.source = "dummy", .test_path = test_path}, "test file"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refusal(&cases[i].spec, EL_ERR_INVALID, cases[i].words);
}

/* Reads a split's samples in order: ids [size, seq], labels [size]. */
static void read_split(const struct el_dataset *set, enum el_data_split split, int32_t *ids, int32_t *labels)
{
    struct el_loader *loader = NULL;
    struct el_loader_spec spec = {.split = split, .global_batch = el_dataset_size(set, split), .ranks = 1};
    assert_int_equal(el_loader_open(set, &spec, &loader), EL_OK);
    assert_int_equal(el_loader_fill(loader, 0, ids, labels), EL_OK);
    el_loader_close(loader);
}

static void tolerates_other_habits(void **state)
{
    const char *const same[] = {"0 a b\n2 b c\n",           "0 a b\r\n2 b c\r\n",         "0 a b\n2 b c",
                                "0\ta  b \n 2 b\tc\n\n \n", "\357\273\2770 a b\n2 b c\n", "00 a b\n002 b c\n"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        int32_t ids[4], labels[2];
        put(train_path, same[i]);
        struct el_dataset *set = open_good(&(struct el_dataset_spec){.source = train_path});
        assert_int_equal(el_dataset_size(set, EL_SPLIT_TRAIN), 2);
        assert_int_equal(el_dataset_info(set)->classes, 3);
        read_split(set, EL_SPLIT_TRAIN, ids, labels);
        assert_memory_equal(ids, ((int32_t[]){2, 3, 3, 4}), sizeof ids);
        assert_memory_equal(labels, ((int32_t[]){0, 2}), sizeof labels);
        el_dataset_close(set);
    }
}

/* Words by first appearance from 2 up; others are 1; short sentences end in 0, long ones are cut. UTF-8 is just bytes.
 */
static void numbers_words(void **state)
{
    int32_t ids[3 * (SEQ + 1)], labels[3];
    put(train_path, "0 na\xC3\xAFve caf\xC3\xA9 na\xC3\xAFve\n1 x y z na\xC3\xAFve x\n");
    put(test_path, "1 x w\n0 caf\xC3\xA9\n1 y y y z x\n");
    struct el_dataset *set =
        open_good(&(struct el_dataset_spec){.source = train_path, .test_path = test_path, .seq = SEQ});
    assert_int_equal(el_dataset_info(set)->vocab, 7);
    assert_non_null(strstr(el_dataset_info(set)->description, "train.txt: 2 samples, 2 classes, 5 words, longest 5"));
    read_split(set, EL_SPLIT_TRAIN, ids, labels);
    assert_memory_equal(ids, ((int32_t[]){2, 3, 2, 0, 4, 5, 6, 2}), 2 * SEQ * sizeof *ids);
    read_split(set, EL_SPLIT_TEST, ids, labels);
    assert_memory_equal(ids, ((int32_t[]){4, 1, 0, 0, 3, 0, 0, 0, 5, 5, 5, 6}), 3 * SEQ * sizeof *ids);
    assert_memory_equal(labels, ((int32_t[]){1, 0, 1}), sizeof labels);
    el_dataset_close(set);

    /* A set's own length is at least what is asked for; a length that is given stands. */
    set = open_good(&(struct el_dataset_spec){.source = train_path, .seq_min = 9});
    assert_int_equal(el_dataset_info(set)->seq, 9);
    el_dataset_close(set);
    set = open_good(&(struct el_dataset_spec){.source = train_path, .seq = SEQ, .seq_min = 9});
    assert_int_equal(el_dataset_info(set)->seq, SEQ);
    el_dataset_close(set);

    set = open_good(&(struct el_dataset_spec){.source = train_path, .test_path = test_path, .vocab = 5, .seq = SEQ});
    assert_int_equal(el_dataset_info(set)->vocab, 5); /* 2, 3 and 4 are words; later ones are unknown */
    read_split(set, EL_SPLIT_TRAIN, ids, labels);
    assert_memory_equal(ids, ((int32_t[]){2, 3, 2, 0, 4, 1, 1, 2}), 2 * SEQ * sizeof *ids);
    read_split(set, EL_SPLIT_TEST, ids, labels);
    assert_memory_equal(ids, ((int32_t[]){4, 1, 0, 0, 3, 0, 0, 0, 1, 1, 1, 1}), 3 * SEQ * sizeof *ids);
    el_dataset_close(set);

    set =
        open_good(&(struct el_dataset_spec){.source = train_path, .test_path = test_path, .vocab = 900, .classes = 9});
    read_split(set, EL_SPLIT_TEST, ids, labels);
    assert_int_equal(ids[1], 1); /* a word of the test file alone stays unknown, though there is room */
    assert_int_equal(el_dataset_info(set)->vocab, 900);
    assert_int_equal(el_dataset_info(set)->classes, 9);
    assert_int_equal(el_dataset_info(set)->seq, 5);
    el_dataset_close(set);
}

/* 我喜欢北京 and 北京 GPU欢: where most sentences set no spaces each character is a word, whole or in files; words of
 * other scripts stay whole. Where most do, words are what spaces make of them, and the others are counted. */
static void unspaced_characters_are_words(void **state)
{
    int32_t ids[3 * 6], labels[3];
    const struct el_dataset_spec spec = {.source = train_path, .test_path = test_path, .seq = 6},
                                 in_files = {.source = train_path, .test_path = test_path, .seq = 6, .in_files = true};
    put(train_path, "0 \u6211\u559C\u6B22\u5317\u4EAC\r\n1 \u559C\u3042\n1 \u5317\u4EAC GPU\u6B22\n");
    put(test_path, "0 \u4EACGPU\u5F90 na\u00EFve\n");
    for (int i = 0; i < 2; i++) {
        struct el_dataset *set = open_good(i ? &in_files : &spec);
        assert_true(el_dataset_info(set)->characters);
        assert_non_null(strstr(el_dataset_info(set)->description, "7 words, longest 5 (few spaces: "));
        read_split(set, EL_SPLIT_TRAIN, ids, labels);
        assert_memory_equal(ids, ((int32_t[]){2, 3, 4, 5, 6, 0, 3, 7, 0, 0, 0, 0, 5, 6, 8, 4, 0, 0}), sizeof ids);
        read_split(set, EL_SPLIT_TEST, ids, labels);
        assert_memory_equal(ids, ((int32_t[]){6, 8, 1, 1, 0, 0}), 6 * sizeof *ids);
        el_dataset_close(set);
    }
    put(train_path, "0 \u6211 \u559C\u6B22\n1 \u5317\u4EAC\n1 na\u00EFve\n");
    struct el_dataset *set = open_good(&spec);
    assert_false(el_dataset_info(set)->characters);
    assert_non_null(strstr(el_dataset_info(set)->description,
                           "4 words, longest 2 (1 sentence without spaces is one word: segment it)"));
    el_dataset_close(set);
}

/* More words than the table begins with: every one keeps its number. */
static void numbers_many_words(void **state)
{
    enum { WORDS = 20000 };
    char *text = malloc(WORDS * 20), *at = text;
    int32_t *ids = malloc(2 * WORDS * sizeof *ids), *labels = malloc(2 * WORDS * sizeof *labels);
    for (int i = 0; i < 2 * WORDS; i++) at += sprintf(at, "1 w%d\n", i < WORDS ? i : 2 * WORDS - 1 - i);
    put(train_path, text);
    struct el_dataset *set = open_good(&(struct el_dataset_spec){.source = train_path});
    assert_int_equal(el_dataset_info(set)->vocab, WORDS + 2);
    read_split(set, EL_SPLIT_TRAIN, ids, labels);
    for (int i = 0; i < WORDS; i++) {
        assert_int_equal(ids[i], i + 2);
        assert_int_equal(ids[2 * WORDS - 1 - i], i + 2);
    }
    el_dataset_close(set);
    free(text), free(ids), free(labels);
}

/* Held out are samples k-1, 2k-1, ...; the two parts together are the file. */
static void holds_out_every_kth(void **state)
{
    const struct {
        double share;
        int every;
    } cases[] = {{0, 0}, {0.5, 2}, {0.3, 3}, {0.1, 10}, {0.01, 100}};
    char text[2048] = "", *at = text;
    for (int i = 0; i < 47; i++) at += sprintf(at, "%d w\n", i);
    put(train_path, text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t ids[47], labels[47], train = 0, held_out = 0, every = cases[i].every;
        struct el_dataset *set = open_good(&(struct el_dataset_spec){.source = train_path, .held_out = cases[i].share});
        int64_t apart = el_dataset_size(set, EL_SPLIT_HELD_OUT);
        assert_int_equal(apart, every ? 47 / every : 0);
        assert_int_equal(el_dataset_size(set, EL_SPLIT_TRAIN), 47 - apart);
        assert_int_equal(el_dataset_size(set, EL_SPLIT_TEST), 0);
        read_split(set, EL_SPLIT_TRAIN, ids, labels);
        for (int k = 0; k < 47; k++)
            if (!every || k % every != every - 1) assert_int_equal(labels[train++], k);
        if (apart) read_split(set, EL_SPLIT_HELD_OUT, ids, labels);
        for (int k = 0; apart && k < 47; k++)
            if (k % every == every - 1) assert_int_equal(labels[held_out++], k);
        assert_int_equal(held_out, apart);
        el_dataset_close(set);
    }
}

int main(void)
{
    el_dataset_close(NULL);
    return RUN(name_files, remove_folder, refuses_malformed_lines, refuses_what_is_no_file,
               refuses_sizes_that_cannot_be, tolerates_other_habits, numbers_words, unspaced_characters_are_words,
               numbers_many_words, holds_out_every_kth);
}
