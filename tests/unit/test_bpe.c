/* Byte pairs: where a text is cut, which pair is merged first, bytes that are no characters, and files that are not
 * GPT-2's. Against Hugging Face's tokenizers: tests/torch/pairs.py. */
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/data/bpe.h"
#include "runtime/data/data.h"
#include "tests/unit/error_words.h"
#include "tests/unit/own_folder.h"
#include "tests/unit/whole_files.h"

enum { TEXT_BYTES = 1 << 14, SPACE = 220, FIRST = 256 /* the first of `made` */ };

/* Ids are in GPT-2's order: bytes that are seen, then those that are not (a space is 220), then what merges make. */
static const char *const made[] = {"ab", "bc", "abc", "\u0120a", "\u0120\u0120", "'s", "12", "\u00C3\u00A9"};
static const char *const merges = "#version: 0.2\nb c\na b\na bc\n\u0120 a\n\u0120 \u0120\n' s\n1 2\n\u00C3 \u00A9\n";

static char vocab_path[64], merges_path[64];

static int make_files(void **state)
{
    if (make_folder(state) != 0) return -1;
    snprintf(vocab_path, sizeof vocab_path, "%s/vocab.json", folder);
    snprintf(merges_path, sizeof merges_path, "%s/merges.txt", folder);
    return 0;
}

static size_t put_token(char *text, size_t at, unsigned code, int id)
{
    if (code == '"' || code == '\\') return at + (size_t)sprintf(text + at, ",\"\\%c\":%d", (char)code, id);
    if (code < 0x80) return at + (size_t)sprintf(text + at, ",\"%c\":%d", (char)code, id);
    return at + (size_t)sprintf(text + at, ",\"%c%c\":%d", (char)(0xC0 | code >> 6), (char)(0x80 | (code & 0x3F)), id);
}

/* vocab.json as it should be; `more` behind it, before the bracket. */
static void put_vocabulary(const char *more)
{
    static char text[TEXT_BYTES];
    size_t at = 0;
    int id = 0;
    for (unsigned b = 0; b < 256; b++)
        if ((b > ' ' && b < 0x7F) || (b > 0xA0 && b != 0xAD)) at = put_token(text, at, b, id++);
    for (unsigned unseen = 0; id < 256; unseen++) at = put_token(text, at, 256 + unseen, id++);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        at += (size_t)sprintf(text + at, ",\"%s\":%d", made[i], id++);
    at += (size_t)sprintf(text + at, "%s}", more);
    text[0] = '{'; /* for the first comma */
    put_file(folder, vocab_path, text, at);
}

static void put_merges(const char *text)
{
    put_file(folder, merges_path, text, strlen(text));
}

static int32_t byte(char c)
{
    return c == ' ' ? SPACE : c - '!';
}

/* `wanted`: a word a token: its number in `made`, or the byte. */
static void encodes(const struct el_bpe *bpe, const char *text, size_t length, const int32_t *wanted, int64_t n)
{
    int32_t *ids;
    int64_t got;
    assert_int_equal(el_bpe_encode(bpe, text, length, &ids, &got), EL_OK);
    for (int64_t i = 0; i < got && i < n; i++)
        if (ids[i] != wanted[i]) fail_msg("'%s': token %d is %d, not %d", text, (int)i, ids[i], wanted[i]);
    assert_int_equal(got, n);
    free(ids);
}
#define ENCODES(bpe, text, ...)                                                                                        \
    encodes(bpe, text, sizeof text - 1, (int32_t[]){__VA_ARGS__}, sizeof(int32_t[]){__VA_ARGS__} / sizeof(int32_t))

static void texts_are_cut_and_pairs_are_merged(void **state)
{
    struct el_bpe *bpe;
    put_vocabulary("");
    put_merges(merges);
    if (el_bpe_open(vocab_path, &bpe) != EL_OK) fail_msg("%s", el_error_message());
    assert_int_equal(el_bpe_size(bpe), FIRST + 8);
    const int32_t ab = FIRST, abc = FIRST + 2, space_a = FIRST + 3, spaces = FIRST + 4, s = FIRST + 5,
                  twelve = FIRST + 6;
    ENCODES(bpe, "abc", abc); /* "bc" is first in merges.txt, so not "ab" and "c" */
    ENCODES(bpe, "abcab", abc, ab);
    ENCODES(bpe, "ababd", ab, ab, byte('d'));
    ENCODES(bpe, " a  a", space_a, SPACE, space_a); /* the last blank goes with the word */
    ENCODES(bpe, "a   ", byte('a'), spaces, SPACE); /* but at the end all are one piece */
    ENCODES(bpe, "a's", byte('a'), s);
    ENCODES(bpe, "''s", byte('\''), byte('\''), byte('s')); /* two apostrophes are a piece */
    ENCODES(bpe, "1 2 12", byte('1'), SPACE, byte('2'), SPACE, twelve);
    ENCODES(bpe, "a1b", byte('a'), byte('1'), byte('b'));
    ENCODES(bpe, "\xC3\xA9", FIRST + 7);
    ENCODES(bpe, "\xC3\xA9\xC3", FIRST + 7, 0xC3 - 0xAE + 106);
    ENCODES(bpe, "\xA9\xC3", 0xA9 - 0xA1 + 94, 0xC3 - 0xAE + 106); /* no characters */
    encodes(bpe, "", 0, NULL, 0);
    int32_t *bytes = el_bpe_take_token_bytes(bpe);
    assert_int_equal(bytes[SPACE], 1);
    assert_int_equal(bytes[abc], 3);
    assert_int_equal(bytes[space_a], 2);
    assert_int_equal(bytes[FIRST + 7], 2);
    free(bytes);
    el_bpe_close(bpe);
}

static void refuses(const char *path, enum el_status status, const char *words)
{
    struct el_bpe *bpe = NULL;
    assert_int_equal(el_bpe_open(path, &bpe), status);
    expect_words(words);
}

static void bad_files_are_one_line(void **state)
{
    static const char *const bad_merges[] = {"a  b\n", "a\n",   "ab\n",       "a b c\n",
                                             "a z\n",  "x y\n", "a b\na b\n", "a b\n\n#\n"};
    static const char *const bad_vocabularies[] = {",\"x1\":-1",    ",\"x1\":3", ",\"x1\":265",
                                                   ",\"x1\":\"1\"", ",\"\":264", ",\"x1\":1e3"};
    put_vocabulary("");
    for (size_t i = 0; i < sizeof bad_merges / sizeof *bad_merges; i++) {
        put_merges(bad_merges[i]);
        refuses(vocab_path, EL_ERR_INVALID, "merges.txt, line ");
    }
    put_merges("a b\r\nb c");
    struct el_bpe *bpe;
    assert_int_equal(el_bpe_open(vocab_path, &bpe), EL_OK);
    el_bpe_close(bpe);
    for (size_t i = 0; i < sizeof bad_vocabularies / sizeof *bad_vocabularies; i++) {
        put_vocabulary(bad_vocabularies[i]);
        refuses(vocab_path, EL_ERR_INVALID, "vocab.json: its 265 tokens must have the ids 0 to 264, each once");
    }
    put_vocabulary(",\"ab\":264");
    refuses(vocab_path, EL_ERR_INVALID, "vocab.json, line 1: no JSON object of tokens");
    put_file(folder, vocab_path, "[1]", 3);
    refuses(vocab_path, EL_ERR_INVALID, "vocab.json, line 1: no JSON object of tokens");
    put_file(folder, vocab_path, "{\"a\": 0}", 8);
    refuses(vocab_path, EL_ERR_INVALID, "vocab.json: no token for the byte 0x00");
    put_vocabulary("");
    unlink(merges_path);
    refuses(vocab_path, EL_ERR_IO, "merges.txt");
    put_merges("a b\n");
    char other[80];
    snprintf(other, sizeof other, "%s/other.json", folder);
    assert_int_equal(rename(vocab_path, other), 0);
    refuses(other, EL_ERR_INVALID, "a file vocab.json, with its merges.txt beside it");
    assert_int_equal(rename(other, vocab_path), 0);
}

RUN_TESTS(make_files, remove_folder, texts_are_cut_and_pairs_are_merged, bad_files_are_one_line)
