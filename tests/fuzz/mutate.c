/* How an input is changed where it is JSON, or where one of its lines is: as a tree of values, so that most of what
 * comes of it is JSON again and gets past the reader of JSON to the code behind it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static uint64_t state;

static size_t draw(size_t n)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return n ? (size_t)(state % n) : 0;
}

static const char *const texts[] = {"",
                                    "?",
                                    "ok",
                                    "failed",
                                    "../../x",
                                    "x','<id>PWNED;:\"",
                                    "|id",
                                    "<id",
                                    "$(id)",
                                    "%s%n",
                                    "a\nb",
                                    "\x1b[31m\x1b]0;x",
                                    "\t\r",
                                    "'\"`",
                                    "1e999",
                                    "-1",
                                    "\xc3\xa4",
                                    "single",
                                    "ddp",
                                    "cpu:0",
                                    "null",
                                    "\xf0\x9f\x98\x80",
                                    "comma,colon:"};
static const double numbers[] = {0,      -0.0, 1,    -1,  0.5,          2,    255,  256,   1e-300,       1e300,
                                 -1e300, 64,   4096, 1e9, 2147483648.0, 1e16, 1e19, -1e19, 4294967296.0, 1e-9};
static const json_int_t wholes[] = {0, 1, -1, 7, 64, 65, 256, 257, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1 << 20};

static json_t *long_text(void)
{
    char text[2001];
    size_t n = 1 + draw(sizeof text - 1);
    memset(text, "x%\"-\n"[draw(5)], n);
    return json_stringn(text, n);
}

static json_t *any_value(void)
{
    switch (draw(9)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(draw(2));
    case 2:
        return json_array();
    case 3:
        return json_object();
    case 4:
        return json_integer(wholes[draw(sizeof wholes / sizeof wholes[0])]);
    case 5:
        return json_real(numbers[draw(sizeof numbers / sizeof numbers[0])]);
    case 6:
        return long_text();
    case 7:
        return json_pack("[[], {s:[i]}]", "a", 1);
    default:
        return json_string(texts[draw(sizeof texts / sizeof texts[0])]);
    }
}

static size_t count(const json_t *value)
{
    size_t n = 1, i;
    json_t *part, *object = (json_t *)(uintptr_t)value;
    const char *key;
    json_array_foreach(object, i, part) n += count(part);
    json_object_foreach(object, key, part) n += count(part);
    return n;
}

/* The container of value number `at` of the tree, in the order of count(), and its place there. */
static json_t *find(json_t *value, size_t *at, const char **key_p, size_t *index_p)
{
    size_t i;
    json_t *part, *found;
    const char *key;
    json_array_foreach(value, i, part)
    {
        *key_p = NULL, *index_p = i;
        if ((*at)-- == 0) return value;
        if ((found = find(part, at, key_p, index_p))) return found;
    }
    json_object_foreach(value, key, part)
    {
        *key_p = key;
        if ((*at)-- == 0) return value;
        if ((found = find(part, at, key_p, index_p))) return found;
    }
    return NULL;
}

static void change_one(json_t *root)
{
    const char *key = NULL;
    size_t n = count(root) - 1, index = 0, at = draw(n), other_at = draw(n), other_index = 0;
    const char *other_key = NULL;
    json_t *in = n ? find(root, &at, &key, &index) : NULL,
           *other = n ? find(root, &other_at, &other_key, &other_index) : NULL;
    if (!in || !other) return;
    json_t *copy = json_deep_copy(other_key ? json_object_get(other, other_key) : json_array_get(other, other_index));
    size_t way = draw(10);
    json_t *put = way < 6 ? any_value() : json_incref(copy);
    if (way == 0 && key)
        json_object_del(in, key);
    else if (way == 1 && key)
        json_object_set(in, texts[draw(sizeof texts / sizeof texts[0])], put);
    else if (key)
        json_object_set(in, key, put);
    else if (way == 0)
        json_array_remove(in, index);
    else if (way == 1 || way == 9)
        json_array_insert(in, index, put);
    else
        json_array_set(in, index, put);
    json_decref(put);
    json_decref(copy);
}

/* Replaces data[from .. to) by the document changed; 0: there is no room. */
static size_t put_back(const json_t *root, uint8_t *data, size_t size, size_t from, size_t to, size_t max_size)
{
    char *text = json_dumps(root, JSON_COMPACT | JSON_ENCODE_ANY);
    size_t length = text ? strlen(text) : 0, now = size - (to - from) + length;
    bool fits = text && now <= max_size;
    if (fits) {
        memmove(data + from + length, data + to, size - to);
        memcpy(data + from, text, length); /* NOLINT(bugprone-not-null-terminated-result): bytes, not a text */
    }
    free(text);
    return fits ? now : 0;
}

/* The whole input, or one of its lines; 0: that is no JSON. */
static size_t change_json(uint8_t *data, size_t size, size_t max_size)
{
    size_t from = 0, to = size;
    json_t *root = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    if (!root && size) {
        size_t at = draw(size);
        for (from = at; from > 0 && data[from - 1] != '\n';) from--;
        for (to = at; to < size && data[to] != '\n';) to++;
        if (to > from && data[from] == '{')
            root = json_loadb((const char *)data + from, to - from, JSON_ALLOW_NUL, NULL);
    }
    if (!root) return 0;
    for (size_t n = 1 + draw(3); n > 0; n--) change_one(root);
    size = put_back(root, data, size, from, to, max_size);
    json_decref(root);
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    size_t changed = draw(8) ? change_json(data, size, max_size) : 0;
    return changed ? changed : LLVMFuzzerMutate(data, size, max_size);
}
