/* A checkpoint from a line of JSON, its hashes right whatever the line says:
 *
 *     {"index": {...}, "files": [{"model.out.bias": [0.5, null], "model.out.weight": {"shape": [2, 1], "values":
 * [...]}, "piece.model.out.bias": [0, 0, 2, 1, -1], ...}, ...]}
 *
 * An array is a row of values or has a shape and perhaps a dtype; else it is I64 if all its values are whole numbers,
 * and F64 if not; null is no number. The index's list of files gets the sizes and hashes of those that are written. */
#pragma once

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/state/checkpoint.h"

static inline bool are_whole(const json_t *values)
{
    for (size_t i = 0; i < json_array_size(values); i++)
        if (!json_is_integer(json_array_get(values, i))) return false;
    return true;
}

static inline void write_arrays(FILE *file, const json_t *arrays)
{
    json_t *header = json_object(), *array, *value;
    const char *name;
    char *bytes = NULL;
    size_t at = 0, i;
    json_object_foreach((json_t *)(uintptr_t)arrays, name, array)
    {
        json_t *values = json_is_array(array) ? array : json_object_get(array, "values"), *entry = json_object();
        const size_t n = json_array_size(values), end = at + 8 * n;
        const bool whole = are_whole(values);
        json_object_set_new(entry, "dtype", json_string(whole ? "I64" : "F64"));
        json_object_set_new(entry, "shape", json_pack("[I]", (json_int_t)n));
        json_object_update_existing(entry, array);
        json_object_set_new(entry, "data_offsets", json_pack("[I, I]", (json_int_t)at, (json_int_t)end));
        json_object_set_new(header, name, entry);
        bytes = realloc(bytes, end + 1);
        json_array_foreach(values, i, value)
        {
            const int64_t integer = json_integer_value(value);
            const double real = json_is_number(value) ? json_number_value(value) : NAN;
            memcpy(bytes + at, whole ? (const void *)&integer : (const void *)&real, 8);
            at += 8;
        }
    }
    char *text = json_dumps(header, JSON_COMPACT);
    const uint64_t length = strlen(text);
    fwrite(&length, sizeof length, 1, file), fwrite(text, 1, length, file), fwrite(bytes ? bytes : "", 1, at, file);
    free(text), free(bytes), json_decref(header);
}

/* Into the folder, which is there. false: the files could not be written. */
static inline bool write_checkpoint(const char *folder, const json_t *document)
{
    json_t *index = json_deep_copy(json_object_get(document, "index")), *list = json_object_get(index, "files"),
           *arrays;
    size_t i;
    json_array_foreach(json_object_get(document, "files"), i, arrays)
    {
        char path[2 * EL_PATH_BYTES], text[17];
        uint64_t hash;
        int64_t bytes;
        snprintf(path, sizeof path, "%s/rank-%zu.safetensors", folder, i);
        FILE *file = fopen(path, "wb");
        if (!file) return json_decref(index), false;
        write_arrays(file, arrays);
        if (fclose(file) != 0 || el_checkpoint_hash(path, &hash, &bytes) != EL_OK) return json_decref(index), false;
        snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
        json_object_set_new(json_array_get(list, i), "hash", json_string(text));
        json_object_set_new(json_array_get(list, i), "bytes", json_integer(bytes));
    }
    return index && el_checkpoint_write_index(folder, index) == EL_OK;
}
