/* The text reader. Lines end in LF or CRLF; blanks at the end of the file are dropped, a byte order mark is skipped,
 * bytes above 127 stay as they are (UTF-8, Latin-1). */
#include "runtime/data/samples.h"
#include "runtime/data/stored.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WORD_SHOWN_BYTES = 24 };
#define FILE_BYTES_MAX ((int64_t)2 << 30) /* samples are in memory, in every rank */

enum el_status el_samples_alloc(int64_t count, int64_t tokens, struct el_samples *samples_p)
{
    struct el_samples samples = {.count = count,
                                 .labels = malloc((size_t)(count + 1) * sizeof *samples.labels),
                                 .starts = malloc((size_t)(count + 1) * sizeof *samples.starts),
                                 .tokens = malloc((size_t)(tokens + 1) * sizeof *samples.tokens)};
    if (samples.labels && samples.starts && samples.tokens) {
        samples.starts[0] = 0;
        *samples_p = samples;
        return EL_OK;
    }
    el_samples_free(&samples);
    return el_fail(EL_ERR_HOST_MEMORY, "no memory for %lld samples of %lld words together", (long long)count,
                   (long long)tokens);
}

void el_samples_free(struct el_samples *samples)
{
    free(samples->labels);
    free(samples->starts);
    free(samples->tokens);
    free(samples->pixels);
    el_stored_free(samples->stored);
    *samples = (struct el_samples){0};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_space(char c)
{
    return is_blank(c) || c == '\n' || c == '\r';
}

static enum el_status check_bytes(const char *path, const struct el_text *text)
{
    long long line = 1;
    for (size_t i = 0; i < text->length; i++) {
        unsigned char c = (unsigned char)text->bytes[i];
        if (c == '\n') line++;
        if ((c >= ' ' && c != 0x7F) || c == '\n' || c == '\t') continue;
        bool crlf = c == '\r' && text->bytes[i + 1] == '\n';
        if (crlf) continue;
        if (c == '\r') return el_fail(EL_ERR_INVALID, "%s, line %lld: carriage return inside the line", path, line);
        return el_fail(EL_ERR_INVALID, "%s, line %lld: byte 0x%02X is not text; is this a binary file?", path, line, c);
    }
    return EL_OK;
}

enum el_status el_bytes_load(const char *path, struct el_text *text_p)
{
    struct stat info;
    FILE *file;
    EL_TRY(el_file_stream("data file ", path, FILE_BYTES_MAX, &file));
    struct el_text text = {.bytes = NULL};
    bool good = fstat(fileno(file), &info) == 0 && (text.bytes = malloc((size_t)info.st_size + 1)) != NULL;
    if (good) text.length = fread(text.bytes, 1, (size_t)info.st_size, file);
    good = good && !ferror(file);
    enum el_status status = good ? EL_OK : el_fail_errno("data file %s", el_path_tail(path));
    fclose(file);
    if (!good) {
        free(text.bytes);
        return status;
    }
    text.bytes[text.length] = 0;
    *text_p = text;
    return EL_OK;
}

enum el_status el_text_load(const char *path, struct el_text *text_p)
{
    struct el_text text = {0};
    EL_TRY(el_bytes_load(path, &text));
    while (text.length > 0 && is_space(text.bytes[text.length - 1])) text.length--;
    text.bytes[text.length] = 0;
    const char *shown = el_path_tail(path);
    enum el_status status = text.length ? check_bytes(shown, &text)
                                        : el_fail(EL_ERR_INVALID, "%s: empty file; a line is 'label sentence'", shown);
    if (status == EL_OK)
        *text_p = text;
    else
        free(text.bytes);
    return status;
}

/* Scripts without spaces: Chinese characters, kana, and their punctuation. */
static const struct {
    uint32_t first, last;
} unspaced[] = {{0x3000, 0x30FF}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF},
                {0xF900, 0xFAFF}, {0xFF00, 0xFFEF}, {0x20000, 0x3FFFF}};

/* Bytes of the character at `at` if its script has no spaces; else 0. */
static size_t unspaced_bytes(const char *at, const char *end)
{
    const unsigned char *c = (const unsigned char *)at;
    size_t length = *c >> 4 == 0xE ? 3 : *c >> 3 == 0x1E ? 4 : 0;
    if (length == 0 || (size_t)(end - at) < length) return 0;
    uint32_t point = *c & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if (c[i] >> 6 != 2) return 0;
        point = point << 6 | (c[i] & 0x3F);
    }
    for (size_t i = 0; i < sizeof unspaced / sizeof unspaced[0]; i++)
        if (point >= unspaced[i].first && point <= unspaced[i].last) return length;
    return 0;
}

struct cursor {
    const char *path;
    long long line;
    const char *at, *end; /* the rest of the line */
    bool characters;
};

static size_t next_word(struct cursor *cursor)
{
    while (cursor->at < cursor->end && is_blank(*cursor->at)) cursor->at++;
    const char *stop = cursor->at, *end = cursor->end;
    size_t alone = cursor->characters && stop < end ? unspaced_bytes(stop, end) : 0;
    if (alone) return alone;
    while (stop < end && !is_blank(*stop) && !(cursor->characters && unspaced_bytes(stop, end))) stop++;
    return (size_t)(stop - cursor->at);
}

static enum el_status read_label(struct cursor *cursor, int32_t *label_p)
{
    size_t length = next_word(cursor);
    const char *word = cursor->at;
    int shown = length < WORD_SHOWN_BYTES ? (int)length : WORD_SHOWN_BYTES;
    if (length == 0)
        return el_fail(EL_ERR_INVALID, "%s, line %lld: empty line; a line is 'label sentence'", cursor->path,
                       cursor->line);
    int32_t label = 0;
    for (size_t i = 0; i < length; i++) {
        if (word[i] < '0' || word[i] > '9')
            return el_fail(EL_ERR_INVALID, "%s, line %lld: '%.*s' is not a label (a whole number from 0 to %d)",
                           cursor->path, cursor->line, shown, word, EL_LABEL_MAX);
        if (label <= EL_LABEL_MAX) label = label * 10 + (word[i] - '0');
    }
    if (label > EL_LABEL_MAX)
        return el_fail(EL_ERR_INVALID, "%s, line %lld: label %.*s is too large (at most %d)", cursor->path,
                       cursor->line, shown, word, EL_LABEL_MAX);
    cursor->at += length;
    *label_p = label;
    return EL_OK;
}

static enum el_status read_line(struct cursor *cursor, struct el_vocabulary *vocabulary, bool grow,
                                struct el_samples *samples)
{
    int64_t first = samples->starts[samples->count], at = first;
    int32_t label = 0;
    EL_TRY(read_label(cursor, &label));
    cursor->characters = vocabulary->characters;
    for (size_t length; (length = next_word(cursor)) > 0; cursor->at += length) {
        samples->tokens[at] = el_vocabulary_find(vocabulary, cursor->at, length);
        if (grow) EL_TRY(el_vocabulary_add(vocabulary, cursor->at, length, &samples->tokens[at]));
        at++;
    }
    if (at == first)
        return el_fail(EL_ERR_INVALID, "%s, line %lld: label %d without a sentence", cursor->path, cursor->line, label);
    samples->labels[samples->count++] = label;
    samples->starts[samples->count] = at;
    if (at - first > samples->longest) samples->longest = at - first;
    return EL_OK;
}

int64_t el_text_ids(const char *line, size_t length, const struct el_vocabulary *vocabulary, int64_t vocab,
                    int64_t most, int32_t *ids)
{
    while (length > 0 && is_space(line[length - 1])) length--;
    struct cursor cursor = {.at = line, .end = line + length};
    int64_t n = 0;
    cursor.at += next_word(&cursor); /* skips the label */
    cursor.characters = vocabulary->characters;
    for (size_t word; n < most && (word = next_word(&cursor)) > 0; cursor.at += word) {
        ids[n] = el_vocabulary_find(vocabulary, cursor.at, word);
        if (ids[n] >= vocab) ids[n] = EL_ID_UNKNOWN;
        n++;
    }
    return n;
}

/* The sentence is one word with a character of a script without spaces. */
static bool is_unspaced(const char *at, const char *end)
{
    struct cursor cursor = {.at = at, .end = end};
    cursor.at += next_word(&cursor);
    size_t length = next_word(&cursor);
    const char *stop = cursor.at + length;
    bool found = false;
    for (const char *c = cursor.at; c < stop && !found; c++) found = unspaced_bytes(c, stop) > 0;
    cursor.at = stop;
    return found && next_word(&cursor) == 0;
}

int64_t el_text_unspaced(const struct el_text *text, int64_t *lines_p)
{
    const char *at = text->bytes, *end = text->bytes + text->length;
    int64_t n = 0;
    for (*lines_p = 0; at < end; ++*lines_p) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        n += is_unspaced(at, stop > at && stop[-1] == '\r' ? stop - 1 : stop);
        at = stop + 1;
    }
    return n;
}

enum el_status el_text_parse(const char *path, const struct el_text *text, struct el_vocabulary *vocabulary, bool grow,
                             struct el_samples *samples_p)
{
    static const char order_mark[] = "\xEF\xBB\xBF";
    const char *at = text->bytes, *end = text->bytes + text->length;
    int64_t lines = 1;
    for (const char *c = at; c < end; c++) lines += *c == '\n';
    struct el_samples samples = {0};
    EL_TRY(el_samples_alloc(lines, (int64_t)text->length / 2 + 1, &samples));
    samples.count = 0;
    if (strncmp(at, order_mark, sizeof order_mark - 1) == 0) at += sizeof order_mark - 1;
    enum el_status status = EL_OK;
    for (long long line = 1; line <= lines && status == EL_OK; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        const char *last = stop > at && stop[-1] == '\r' ? stop - 1 : stop;
        struct cursor cursor = {.path = el_path_tail(path), .line = line, .at = at, .end = last};
        status = read_line(&cursor, vocabulary, grow, &samples);
        at = stop < end ? stop + 1 : end;
    }
    if (status == EL_OK)
        *samples_p = samples;
    else
        el_samples_free(&samples);
    return status;
}
