/* A streaming JSON scanner. */
#include "profiles/json_scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/grow.h"

/* ---- characters ---- */

enum el_status el_scan_fail(const struct el_scan *scan, uint64_t position, const char *what)
{
    if (scan->failed) return EL_ERR_INVALID;
    return el_fail(EL_ERR_INVALID, "%s: %s at byte %" PRIu64 ": the file is damaged, cut off, or no trace", scan->name,
                   what, position);
}

/* false: the end, a read error, or the limit. */
static bool fill(struct el_scan *scan)
{
    uint64_t left = scan->most - scan->position;
    char one;
    if (scan->at < scan->filled) return true;
    if (scan->failed) return false;
    scan->at = scan->filled = 0;
    size_t want = left < sizeof scan->chunk ? (size_t)left : sizeof scan->chunk;
    size_t got = fread(want ? scan->chunk : &one, 1, want ? want : 1, scan->file);
    if (got == 0 && ferror(scan->file)) {
        el_fail_errno("%s could not be read", scan->name);
        scan->failed = true;
    } else if (got > 0 && want == 0) {
        el_fail(EL_ERR_INVALID,
                "%s: unpacks to more than 50 times its size, or 4 GiB, which no profiler's trace does: unpack it first "
                "if you trust it",
                scan->name);
        scan->failed = true;
    } else if (want > 0) {
        scan->filled = got;
    }
    return scan->at < scan->filled;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

char el_scan_look(struct el_scan *scan)
{
    while (fill(scan)) {
        if (!is_blank(scan->chunk[scan->at])) return scan->chunk[scan->at];
        scan->at++;
        scan->position++;
    }
    return 0;
}

char el_scan_take(struct el_scan *scan)
{
    char next = el_scan_look(scan);
    if (scan->at < scan->filled) {
        scan->at++;
        scan->position++;
    }
    return next;
}

bool el_scan_rest(struct el_scan *scan)
{
    while (fill(scan)) {
        scan->position += scan->filled - scan->at;
        scan->at = scan->filled;
    }
    return !scan->failed;
}

/* ---- where a value ends ---- */

struct walk {
    int64_t depth;
    bool quoted, escaped, scalar;
};

/* NULL: the value has not ended before `end`. */
static const char *walk(struct walk *w, const char *at, const char *end)
{
    for (; at < end; at++) {
        char c = *at;
        if (w->quoted) {
            if (!w->escaped && c == '"') w->quoted = false;
            w->escaped = !w->escaped && c == '\\';
            if (!w->quoted && w->depth == 0) return at + 1;
        } else if (c == '"') {
            w->quoted = true;
        } else if (c == '{' || c == '[') {
            w->depth++;
        } else if (w->scalar && (c == ',' || c == '}' || c == ']' || c == ':' || is_blank(c))) {
            return at;
        } else if ((c == '}' || c == ']') && --w->depth <= 0) {
            return at + 1;
        }
    }
    return NULL;
}

static bool begins_value(char c)
{
    return c && strchr("]},:", c) == NULL; /* NaN, inf and words without quotes are legal: few values are needed */
}

static struct walk walk_from(char c)
{
    return (struct walk){.scalar = c != '{' && c != '[' && c != '"'};
}

enum el_status el_scan_value(struct el_scan *scan)
{
    char first = el_scan_look(scan);
    uint64_t begin = scan->position;
    struct walk state = walk_from(first);
    const char *end = NULL;
    scan->n = 0;
    while (begins_value(first) && !end && fill(scan)) {
        const char *from = scan->chunk + scan->at;
        end = walk(&state, from, scan->chunk + scan->filled);
        size_t n = end ? (size_t)(end - from) : scan->filled - scan->at;
        if (scan->n + n >= EL_SCAN_VALUE_BYTES_MAX) return el_scan_fail(scan, begin, "a value of more than 8 MiB");
        if (!EL_GROW(scan->value, scan->room, scan->n + n + 1))
            return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for a value", scan->name);
        memcpy(scan->value + scan->n, from, n);
        scan->n += n;
        scan->at += n;
        scan->position += n;
    }
    if (!end && !(state.scalar && scan->n > 0 && !scan->failed)) return el_scan_fail(scan, begin, "no JSON");
    scan->value[scan->n] = 0;
    return EL_OK;
}

void el_scan_free(struct el_scan *scan)
{
    free(scan->value);
    scan->value = NULL;
}

/* ---- pieces of a value ---- */

static void skip(struct el_scan_text *rest, size_t n)
{
    rest->at += n;
    rest->n -= n;
    for (; rest->n > 0 && is_blank(*rest->at); rest->n--) rest->at++;
}

/* false: no value at the begin. */
static bool cut(struct el_scan_text *rest, struct el_scan_text *value)
{
    if (rest->n == 0 || !begins_value(*rest->at)) return false;
    struct walk state = walk_from(*rest->at);
    const char *end = walk(&state, rest->at, rest->at + rest->n);
    if (!end) return false;
    *value = (struct el_scan_text){rest->at, (size_t)(end - rest->at)};
    skip(rest, value->n);
    return true;
}

int el_scan_member(struct el_scan_text *rest, struct el_scan_text *key, struct el_scan_text *value)
{
    skip(rest, 0);
    if (rest->n == 0 || (*rest->at != '{' && *rest->at != ',')) return rest->n > 0 && *rest->at == '}' ? 0 : -1;
    skip(rest, 1);
    if (rest->n > 0 && *rest->at == '}') return 0;
    if (rest->n == 0 || *rest->at != '"' || !cut(rest, key)) return -1;
    *key = el_scan_string(*key);
    if (rest->n == 0 || *rest->at != ':') return -1;
    skip(rest, 1);
    return cut(rest, value) ? 1 : -1;
}

bool el_scan_is(struct el_scan_text text, const char *word)
{
    return strlen(word) == text.n && memcmp(text.at, word, text.n) == 0;
}

bool el_scan_begins(struct el_scan_text text, const char *word)
{
    size_t n = strlen(word);
    return n <= text.n && memcmp(text.at, word, n) == 0;
}

struct el_scan_text el_scan_string(struct el_scan_text value)
{
    bool is_string = value.n >= 2 && *value.at == '"';
    return is_string ? (struct el_scan_text){value.at + 1, value.n - 2} : (struct el_scan_text){"", 0};
}

struct el_scan_text el_scan_unquoted(struct el_scan_text value)
{
    return value.n >= 2 && *value.at == '"' ? el_scan_string(value) : value;
}

bool el_scan_whole(struct el_scan_text value, int64_t *whole_p)
{
    char *end;
    if (value.n == 0 || value.n > 19 || !strchr("-0123456789", *value.at)) return false;
    long long whole = strtoll(value.at, &end, 10);
    if (end != value.at + value.n) return false;
    *whole_p = whole;
    return true;
}

bool el_scan_thousandths(struct el_scan_text value, int64_t *thousandths_p)
{
    char *end;
    int64_t whole = 0;
    size_t i = 0;
    while (i < value.n && i < 16 && value.at[i] >= '0' && value.at[i] <= '9')
        whole = whole * 10 + (value.at[i++] - '0');
    bool plain = i > 0 && (i == value.n || (value.at[i] == '.' && value.n - i <= 4 && value.n - i > 1));
    plain = plain && whole < INT64_C(2200000000000000);
    for (size_t k = 1; k <= 3 && plain; k++) {
        bool digit = i + k < value.n && value.at[i + k] >= '0' && value.at[i + k] <= '9';
        plain = digit || i + k >= value.n;
        whole = whole * 10 + (digit ? value.at[i + k] - '0' : 0);
    }
    if (value.n == 0 || !strchr("-0123456789", *value.at)) return false;
    if (!plain) {
        double number = strtod(value.at, &end);
        if (end != value.at + value.n || !(fabs(number) < 2.2e15)) return false;
        whole = llround(number * 1e3);
    }
    *thousandths_p = whole;
    return true;
}
