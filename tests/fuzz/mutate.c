/* How an input is changed where it is JSON: value by value, so that most of what comes of it is JSON again and gets
 * past the reader of JSON to the code behind it. Values are found in the text itself, which takes microseconds: a tree
 * of them would take longer to make and to write than most parsers take. */
#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { SPANS_MAX = 4096, DEPTH_MAX = 64, PART_BYTES = 4096, LONG_BYTES = 2000 };

/* A value: data[from .. to), and where its member begins: at its key, or where it begins itself. */
struct span {
    size_t member, from, to;
};

static struct span spans[SPANS_MAX];
static size_t n_spans;
static uint64_t state;

static size_t draw(size_t n)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return n ? (size_t)(state % n) : 0;
}

/* ---- where the values are ---- */

static void found(size_t member, size_t from, size_t to)
{
    if (n_spans < SPANS_MAX) spans[n_spans++] = (struct span){member, from, to};
}

static size_t end_of_text(const uint8_t *data, size_t size, size_t at)
{
    for (at++; at < size && data[at] != '"'; at++)
        if (data[at] == '\\') at++;
    return at < size ? at + 1 : size;
}

static size_t skip(const uint8_t *data, size_t size, size_t at, const char *what, bool while_among)
{
    while (at < size && data[at] && (strchr(what, data[at]) != NULL) == while_among) at++;
    return at;
}

/* All values from the first line on that begins as JSON does; none: it is something else. */
static void find_values(const uint8_t *data, size_t size)
{
    struct span open[DEPTH_MAX];
    size_t depth = 0, at = 0, end, key = size; /* size: no key has come */
    n_spans = 0;
    while (at < size && data[at] != '{' && data[at] != '[') {
        const uint8_t *line = memchr(data + at, '\n', size - at);
        at = line ? (size_t)(line - data) + 1 : size;
    }
    for (; at < size; at = end) {
        size_t member = key < size ? key : at;
        bool text = data[at] == '"', opens = data[at] == '{' || data[at] == '[';
        end = text ? end_of_text(data, size, at) : at + 1;
        if (strchr(" \t\r\n,:", data[at])) continue;
        if (text && end < size && data[skip(data, size, end, " ", true) % size] == ':') {
            key = at;
            continue;
        }
        key = size;
        if (opens && depth < DEPTH_MAX) {
            open[depth++] = (struct span){member, at, 0};
        } else if ((data[at] == '}' || data[at] == ']') && depth > 0) {
            depth--;
            found(open[depth].member, open[depth].from, end);
        } else if (!opens) {
            if (!text) end = skip(data, size, end, ",]} \t\r\n", false);
            found(member, at, end);
        }
    }
}

/* ---- what comes in their place ---- */

static const char *const texts[] = {"\"\"",
                                    "\"?\"",
                                    "\"ok\"",
                                    "\"failed\"",
                                    "\"../../x\"",
                                    "\"x','<id>PWNED;:\\\"\"",
                                    "\"|id\"",
                                    "\"<id\"",
                                    "\"$(id)\"",
                                    "\"%s%n\"",
                                    "\"a\\nb\"",
                                    "\"\\u001b[31m\\u001b]0;x\"",
                                    "\"\\t\\r\"",
                                    "\"'\\\"`\"",
                                    "\"1e999\"",
                                    "\"-1\"",
                                    "\"\xc3\xa4\"",
                                    "\"single\"",
                                    "\"ddp\"",
                                    "\"cpu:0\"",
                                    "\"null\"",
                                    "\"\xf0\x9f\x98\x80\"",
                                    "\"comma,colon:\""};
static const char *const others[] = {"null",
                                     "true",
                                     "false",
                                     "[]",
                                     "{}",
                                     "[[],{\"a\":[1]}]",
                                     "0",
                                     "-0.0",
                                     "1",
                                     "-1",
                                     "0.5",
                                     "2",
                                     "7",
                                     "64",
                                     "65",
                                     "255",
                                     "256",
                                     "257",
                                     "4096",
                                     "1048576",
                                     "2147483647",
                                     "-2147483648",
                                     "2147483648.0",
                                     "4294967296.0",
                                     "9223372036854775807",
                                     "-9223372036854775808",
                                     "1e9",
                                     "1e16",
                                     "1e19",
                                     "-1e19",
                                     "1e300",
                                     "-1e300",
                                     "1e-300",
                                     "1e-9"};

static const char *any_text(void)
{
    return texts[draw(sizeof texts / sizeof texts[0])];
}

static const char *any_value(void)
{
    static char text[LONG_BYTES + 8];
    size_t way = draw(9), n = 1 + draw(LONG_BYTES);
    if (way < 5) return others[draw(sizeof others / sizeof others[0])];
    if (way < 8) return any_text();
    memset(text, "xy%-_"[draw(5)], n + 1);
    text[0] = text[n] = '"';
    text[n + 1] = 0;
    return text;
}

/* Bytes for data[from .. to); returns the new size, or the old one where there is no room. */
static size_t put(uint8_t *data, size_t size, size_t from, size_t to, const void *by, size_t length, size_t max_size)
{
    if (size - (to - from) + length > max_size) return size;
    memmove(data + from + length, data + to, size - to);
    memcpy(data + from, by, length);
    return size - (to - from) + length;
}

static size_t put_text(uint8_t *data, size_t size, size_t from, size_t to, const char *by, size_t max_size)
{
    return put(data, size, from, to, by, strlen(by), max_size);
}

/* Takes a member away, with one of the commas beside it. */
static size_t take_away(uint8_t *data, size_t size, const struct span *span)
{
    size_t from = span->member, to = span->to;
    if (to < size && data[to] == ',')
        to++;
    else if (from > 0 && data[from - 1] == ',')
        from--;
    return put(data, size, from, to, "", 0, size);
}

static size_t change_one(uint8_t *data, size_t size, size_t max_size)
{
    static uint8_t part[PART_BYTES + 1];
    find_values(data, size);
    if (n_spans == 0) return size;
    const struct span *span = &spans[draw(n_spans)], *other = &spans[draw(n_spans)];
    bool keyed = span->member < span->from, again = (other->member < other->from) == keyed;
    size_t way = draw(10), from = way == 8 && again ? other->member : other->from, length = other->to - from;
    if (way < 6) return put_text(data, size, span->from, span->to, any_value(), max_size);
    if (way == 6) return take_away(data, size, span);
    if (way == 9 && keyed) {
        size_t end = end_of_text(data, size, span->member);
        return put_text(data, size, span->member, end, any_text(), max_size);
    }
    if (length > PART_BYTES) return size;
    memcpy(part, data + from, length);
    if (way != 8 || !again) return put(data, size, span->from, span->to, part, length, max_size);
    part[length] = ',';
    return put(data, size, span->member, span->member, part, length + 1, max_size);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    bool bytes = draw(8) == 0;
    find_values(data, size);
    for (size_t n = 1 + draw(4); n > 0; n--)
        size = bytes || n_spans == 0 ? LLVMFuzzerMutate(data, size, max_size) : change_one(data, size, max_size);
    return size;
}
