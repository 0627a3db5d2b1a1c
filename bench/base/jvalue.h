/* Small readers and makers of JSON values: dotted paths, numbers that may be null. Knows no record. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/status.h"

/* The value at "memory.peak_by_tag.param" or "throughput.ci95.0"; NULL if any step is missing. Borrowed. */
json_t *el_json_at(const json_t *object, const char *path);
/* A number there, or NAN (missing, null, text). */
double el_json_number(const json_t *object, const char *path);
/* A number there as a count or a place, without its fraction; -1 where there is none, or it is negative or too large.
 */
int64_t el_json_whole(const json_t *object, const char *path);
/* A text there, or `otherwise`. Borrowed. */
const char *el_json_text(const json_t *object, const char *path, const char *otherwise);
/* Whether there is a text there, and it is `word`. */
bool el_json_is(const json_t *object, const char *path, const char *word);
/* Whether an array of texts has this one. */
bool el_json_has(const json_t *array, const char *word);
/* Walk an array, or an object's keys in their order: EL_EACH(row, rows) { ... } declares `row`, whose place is
 * row_at.i. NULL has nothing in it. `break` and `continue` are a loop's. */
struct el_json_walk {
    json_t *of;
    size_t i;
    void *at;  /* in an object */
    int inner; /* loops begun and not ended: what is left after a break */
};
bool el_json_next(struct el_json_walk *walk);
bool el_json_next_key(struct el_json_walk *walk);
struct el_json_walk el_json_walk(const json_t *of);
#define EL_EACH(item, array)                                                                                           \
    for (struct el_json_walk item##_at = el_json_walk(array); el_json_next(&item##_at);)                               \
        for (json_t *item = json_array_get(item##_at.of, item##_at.i); item##_at.inner; item##_at.inner = 0)
#define EL_EACH_KEY(key, item, object)                                                                                 \
    for (struct el_json_walk item##_at = el_json_walk(object); el_json_next_key(&item##_at);)                          \
        for (const char *key = json_object_iter_key(item##_at.at); key && item##_at.inner == 2; item##_at.inner--)     \
            for (json_t *item = json_object_iter_value(item##_at.at); item && item##_at.inner == 2; item##_at.inner--)
/* A real; null for what is not finite, for JSON has no such numbers. New reference. */
json_t *el_json_real(double value);
/* The nearest whole number; null for what is not finite. New reference. */
json_t *el_json_rounded(double value);
/* A whole number; null if negative. New reference. */
json_t *el_json_count(int64_t value);
/* A text; null for NULL. Invalid UTF-8 is replaced (utf8.h). New reference. */
json_t *el_json_string(const char *text);
/* A text; null for an empty one. New reference. */
json_t *el_json_filled(const char *text);
/* [n] numbers, null for what is not finite. New reference. */
json_t *el_json_reals(const double *values, size_t n);
/* [low, high]; null where either is not finite. New reference. */
json_t *el_json_interval(double low, double high);
/* Into an object, in place of what had that key. Steals `value`. */
void el_json_put(json_t *object, const char *key, json_t *value);
#define el_json_put_real(object, key, value) el_json_put(object, key, el_json_real(value))
#define el_json_put_text(object, key, text)  el_json_put(object, key, el_json_string(text))
/* Several keys, in their order: el_json_put_all(o, EL_KEY("pid", p->pid), EL_KEY("step_ms", 1e3 * s)); el_json_of makes
 * an object of them (new reference). The type of a value decides: a double is a real or null, a text a string or null,
 * an integer and a bool themselves; a json_t * is stolen. A comparison is an int in C: json_boolean(a < b). */
struct el_json_key {
    const char *key;
    json_t *value;
};
/* clang-format off */
#define EL_KEY(key, value) {key, _Generic((value), double: el_json_real, char *: el_json_string, \
    const char *: el_json_string, bool: el_json_bool, int: json_integer, int64_t: json_integer, \
    uint64_t: json_integer, json_t *: el_json_itself)(value)}
/* clang-format on */
#define el_json_put_all(object, ...)                                                                                   \
    ((void)el_json_put_keys(object, (const struct el_json_key[]){__VA_ARGS__, {NULL, NULL}}))
#define el_json_of(...) el_json_put_keys(json_object(), (const struct el_json_key[]){__VA_ARGS__, {NULL, NULL}})
json_t *el_json_put_keys(json_t *object, const struct el_json_key *keys /* ended by a key of NULL */);
json_t *el_json_bool(bool value);
json_t *el_json_itself(json_t *value);
/* A copy of what lies in `from` at each of `paths` (ended by NULL), under the path's last name; null where there is
 * nothing. */
void el_json_copy(json_t *object, const json_t *from, const char *const *paths);
/* Numbers of an array (what is not a number is left out); *values_p is NULL for none; to be freed. Returns how many. */
size_t el_json_numbers(const json_t *array, double **values_p);
/* The same of the numbers at `path` in its elements. */
size_t el_json_numbers_at(const json_t *array, const char *path, double **values_p);
/* Its elements that have something other than null at `path`. New reference. */
json_t *el_json_with(const json_t *array, const char *path);
/* The lowest and the highest of those numbers; NAN: there is none. */
void el_json_range(const json_t *array, const char *path, double *low_p, double *high_p);
double el_json_highest(const json_t *array, const char *path);
/* What is read may be anyone's: cleans every text and name in it, so that none ends a line or moves a terminal's cursor
 * wherever it is shown. */
void el_json_printable(json_t *value);
/* The shortest text that reads back as the same double. `text` has at least 32 bytes. */
const char *el_json_shortest(double value, char *text);
/* The same, without what arithmetic leaves in the last bits: 0.5541 for 0.5541000000000001. A text of 12 digits or
 * fewer is taken where its double is at most EL_JSON_ULPS steps away; all other values read back as they are. */
enum { EL_JSON_ULPS = 8 };
const char *el_json_written(double value, char *text);
