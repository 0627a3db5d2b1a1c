/* Readers and makers of JSON values: dotted paths, numbers that may be null. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/status.h"

/* "memory.peak_by_tag.param", "throughput.ci95.0"; NULL if a step is missing. Borrowed. */
json_t *el_json_at(const json_t *object, const char *path);
/* NAN: missing, null, text. */
double el_json_number(const json_t *object, const char *path);
/* Without fraction; -1: none, negative or too large. */
int64_t el_json_whole(const json_t *object, const char *path);
/* Borrowed. */
const char *el_json_text(const json_t *object, const char *path, const char *otherwise);
bool el_json_is(const json_t *object, const char *path, const char *word);
bool el_json_has(const json_t *array, const char *word);
/* Walks an array, or an object's keys in order: EL_EACH(row, rows) { ... } declares `row`, with index row_at.i. NULL is
 * empty. `break` and `continue` work. */
struct el_json_walk {
    json_t *of;
    size_t i;
    void *at;  /* in an object */
    int inner; /* inner loops begun and not ended, which tells a break */
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
/* null if not finite, as JSON has no such numbers. New reference. */
json_t *el_json_real(double value);
/* Rounded; null if not finite. New reference. */
json_t *el_json_rounded(double value);
/* null if negative. New reference. */
json_t *el_json_count(int64_t value);
/* null for NULL. Invalid UTF-8 is replaced (utf8.h). New reference. */
json_t *el_json_string(const char *text);
/* null for an empty text. New reference. */
json_t *el_json_filled(const char *text);
/* null if not finite. New reference. */
json_t *el_json_reals(const double *values, size_t n);
/* [low, high]; null if either is not finite. New reference. */
json_t *el_json_interval(double low, double high);
/* Sets or replaces. Steals `value`. */
void el_json_put(json_t *object, const char *key, json_t *value);
#define el_json_put_real(object, key, value) el_json_put(object, key, el_json_real(value))
#define el_json_put_text(object, key, text)  el_json_put(object, key, el_json_string(text))
/* Several keys: el_json_put_all(o, EL_KEY("pid", p->pid), EL_KEY("step_ms", 1e3 * s)); el_json_of makes an object (new
 * reference). By type: a double is a real or null, a text a string or null, integers and bools themselves, a json_t *
 * is stolen. A comparison is an int in C: json_boolean(a < b). */
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
json_t *el_json_put_keys(json_t *object, const struct el_json_key *keys /* ends with a NULL key */);
json_t *el_json_bool(bool value);
json_t *el_json_itself(json_t *value);
/* Copies the value at each of `paths` (ends with NULL) under the path's last name; null if missing. */
void el_json_copy(json_t *object, const json_t *from, const char *const *paths);
/* Numbers of an array, others skipped; *values_p is NULL for none; to be freed. Returns how many. */
size_t el_json_numbers(const json_t *array, double **values_p);
/* The numbers at `path` in its elements. */
size_t el_json_numbers_at(const json_t *array, const char *path, double **values_p);
/* Elements with a value other than null at `path`. New reference. */
json_t *el_json_with(const json_t *array, const char *path);
/* NAN: none. */
void el_json_range(const json_t *array, const char *path, double *low_p, double *high_p);
double el_json_highest(const json_t *array, const char *path);
/* Cleans all texts and names of foreign origin: none can end a line or control a terminal. */
void el_json_printable(json_t *value);
/* The shortest text that reads back as the same double. `text`: at least 32 bytes. */
const char *el_json_shortest(double value, char *text);
/* The same without rounding noise: 0.5541 for 0.5541000000000001. Uses a text of at most 12 digits if its double is
 * within EL_JSON_ULPS steps; other values read back exactly. */
enum { EL_JSON_ULPS = 8 };
const char *el_json_written(double value, char *text);
