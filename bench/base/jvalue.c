/* Missing and null are alike: unknown. */
#include "bench/base/jvalue.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/utf8.h"

json_t *el_json_at(const json_t *object, const char *path)
{
    char key[64];
    while (object != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");
        if (length >= sizeof key) return NULL;
        memcpy(key, path, length);
        key[length] = '\0';
        object = json_is_array(object) ? json_array_get(object, strtoul(key, NULL, 10)) : json_object_get(object, key);
        path += path[length] == '.' ? length + 1 : length;
    }
    return (json_t *)(uintptr_t)object;
}

struct el_json_walk el_json_walk(const json_t *of)
{
    return (struct el_json_walk){.of = (json_t *)(uintptr_t)of, .i = SIZE_MAX};
}

bool el_json_next(struct el_json_walk *walk)
{
    if (walk->inner || ++walk->i >= json_array_size(walk->of)) return false;
    walk->inner = 1;
    return true;
}

bool el_json_next_key(struct el_json_walk *walk)
{
    if (walk->inner) return false;
    walk->at = walk->at ? json_object_iter_next(walk->of, walk->at) : json_object_iter(walk->of);
    walk->inner = 2;
    return walk->at != NULL;
}

double el_json_number(const json_t *object, const char *path)
{
    const json_t *value = el_json_at(object, path);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

int64_t el_json_whole(const json_t *object, const char *path)
{
    double number = el_json_number(object, path);
    return number >= 0 && number < 9e15 ? (int64_t)number : -1; /* false for NaN */
}

const char *el_json_text(const json_t *object, const char *path, const char *otherwise)
{
    const char *text = json_string_value(el_json_at(object, path));
    return text == NULL ? otherwise : text;
}

bool el_json_is(const json_t *object, const char *path, const char *word)
{
    return strcmp(el_json_text(object, path, ""), word) == 0;
}

bool el_json_has(const json_t *array, const char *word)
{
    EL_EACH(item, array)
        if (el_json_is(item, "", word)) return true;
    return false;
}

json_t *el_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *el_json_rounded(double value)
{
    return isfinite(value) ? json_integer(llround(value)) : json_null();
}

json_t *el_json_count(int64_t value)
{
    return value < 0 ? json_null() : json_integer(value);
}

json_t *el_json_string(const char *text)
{
    json_t *string = text == NULL ? NULL : json_string(text);
    char *copy = text == NULL || string != NULL ? NULL : strdup(text);
    if (copy != NULL) {
        el_utf8_mend(copy);
        string = json_string(copy);
        free(copy);
    }
    return string == NULL ? json_null() : string;
}

json_t *el_json_filled(const char *text)
{
    return el_json_string(*text ? text : NULL);
}

json_t *el_json_reals(const double *values, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(array, el_json_real(values[i]));
    return array;
}

json_t *el_json_interval(double low, double high)
{
    return isfinite(low) && isfinite(high) ? json_pack("[f, f]", low, high) : json_null();
}

void el_json_put(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

json_t *el_json_put_keys(json_t *object, const struct el_json_key *keys)
{
    for (; keys->key; keys++) json_object_set_new(object, keys->key, keys->value);
    return object;
}

json_t *el_json_bool(bool value)
{
    return json_boolean(value);
}

json_t *el_json_itself(json_t *value)
{
    return value;
}

void el_json_copy(json_t *object, const json_t *from, const char *const *paths)
{
    for (; *paths; paths++) {
        const char *dot = strrchr(*paths, '.');
        json_t *value = el_json_at(from, *paths);
        json_object_set_new(object, dot ? dot + 1 : *paths, value ? json_deep_copy(value) : json_null());
    }
}

size_t el_json_numbers_at(const json_t *array, const char *path, double **values_p)
{
    size_t n = json_array_size(array), kept = 0;
    double *values = n == 0 ? NULL : malloc(n * sizeof *values);
    EL_EACH(item, array) {
        const json_t *value = el_json_at(item, path);
        if (values && json_is_number(value)) values[kept++] = json_number_value(value);
    }
    *values_p = values;
    return kept;
}

size_t el_json_numbers(const json_t *array, double **values_p)
{
    return el_json_numbers_at(array, "", values_p);
}

json_t *el_json_with(const json_t *array, const char *path)
{
    json_t *found = json_array();
    EL_EACH(item, array) {
        const json_t *value = el_json_at(item, path);
        if (value && !json_is_null(value)) json_array_append(found, item);
    }
    return found;
}

void el_json_range(const json_t *array, const char *path, double *low_p, double *high_p)
{
    *low_p = *high_p = NAN;
    EL_EACH(item, array) {
        double number = el_json_number(item, path);
        *low_p = fmin(*low_p, number); /* fmin ignores NAN */
        *high_p = fmax(*high_p, number);
    }
}

double el_json_highest(const json_t *array, const char *path)
{
    double low, high;
    el_json_range(array, path, &low, &high);
    return high;
}

const char *el_json_shortest(double value, char *text)
{
    if (value == floor(value) && fabs(value) < 1e15) {
        snprintf(text, 32, "%.0f", value);
        return text;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    return text;
}

const char *el_json_written(double value, char *text)
{
    double near = EL_JSON_ULPS * (nextafter(fabs(value), INFINITY) - fabs(value));
    for (int digits = 6; digits <= 12; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (fabs(back - value) <= near) return el_json_shortest(back, text);
    }
    return el_json_shortest(value, text);
}

/* Order stays; of names that become equal the last one counts. */
static void clean_object(json_t *object)
{
    json_t *cleaned = json_object();
    EL_EACH_KEY(key, child, object) {
        el_json_printable(child);
        char *name = strdup(key);
        if (name == NULL) continue;
        el_utf8_printable(name);
        json_object_set(cleaned, name, child);
        free(name);
    }
    if (cleaned != NULL) json_object_clear(object);
    json_object_update(object, cleaned); /* NULL without memory: nothing changes */
    json_decref(cleaned);
}

void el_json_printable(json_t *value)
{
    if (json_is_object(value)) clean_object(value);
    EL_EACH(child, value) el_json_printable(child);
    char *text = json_is_string(value) ? strdup(json_string_value(value)) : NULL;
    if (text == NULL) return;
    el_utf8_printable(text);
    if (strcmp(text, json_string_value(value)) != 0) json_string_set(value, text);
    free(text);
}
