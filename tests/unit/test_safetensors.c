/* The safetensors reader and writer: files made by hand, byte by byte, in every type; what is refused, and in which
 * words; what is written reads back. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/data/safetensors.h"
#include "tests/unit/whole_files.h"

static char folder[] = "/tmp/el-test-safetensors-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/w.safetensors", folder);
    return 0;
}

static int remove_folder(void **state)
{
    unlink(path);
    return rmdir(folder); /* nothing else was left in it */
}

/* A header of `claimed` bytes, as it says (0: as many as it has), and n bytes of data. */
static void put(const char *header, uint64_t claimed, const void *data, size_t n)
{
    static const char zeros[64];
    uint64_t length = claimed ? claimed : strlen(header);
    char bytes[2048];
    size_t at = sizeof length;
    memcpy(bytes, &length, sizeof length);
    memcpy(bytes + at, header, strlen(header));
    at += strlen(header);
    memcpy(bytes + at, data ? data : zeros, n);
    put_file(folder, path, bytes, at + n);
}

static void check_values(const struct el_safetensors *file, const char *name, const double *wanted, int64_t n)
{
    double values[8];
    const struct el_stored_array *array = el_safetensors_find(file, name);
    assert_non_null(array);
    assert_int_equal(array->count, n);
    assert_int_equal(el_safetensors_read(file, array, values), EL_OK);
    for (int64_t i = 0; i < n; i++)
        if (!(values[i] == wanted[i] || (isnan(values[i]) && isnan(wanted[i]))))
            fail_msg("%s[%d]: %.17g, not %.17g", name, (int)i, values[i], wanted[i]);
}

/* binary16: 1, -2, the largest, the least, infinity, no number, -0, 1/3 rounded. */
static void test_types(void **state)
{
    struct __attribute__((packed)) {
        uint16_t f16[8], bf16[2];
        int64_t i64;
        double f64;
        float f32[2];
    } data = {{0x3C00, 0xC000, 0x7BFF, 0x0001, 0x7C00, 0x7E00, 0x8000, 0x3555},
              {0x3F80, 0xC2F7},
              1234567,
              0.1,
              {1.5F, -3e-40F}};
    struct el_safetensors *file;
    put("{\"h\":{\"dtype\":\"F16\",\"shape\":[2,4],\"data_offsets\":[0,16]},"
        "\"__metadata__\":{\"format\":\"pt\"},"
        "\"count\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[20,28]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[16,20]},"
        "\"none\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[28,28]},"
        "\"d\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[28,36]},"
        "\"f\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[36,44]}}   ",
        0, &data, sizeof data);
    assert_int_equal(el_safetensors_open(path, &file), EL_OK);
    assert_int_equal(el_safetensors_count(file), 6);
    assert_string_equal(el_safetensors_array(file, 0)->name, "h");
    assert_string_equal(el_safetensors_array(file, 5)->name, "f");
    assert_null(el_safetensors_find(file, "__metadata__"));
    check_values(file, "h", (double[]){1, -2, 65504, 0x1p-24, INFINITY, NAN, 0, 0.333251953125}, 8);
    check_values(file, "b", (double[]){1, -123.5}, 2);
    check_values(file, "count", (double[]){1234567}, 1);
    check_values(file, "none", NULL, 0);
    check_values(file, "d", (double[]){0.1}, 1);
    check_values(file, "f", (double[]){1.5, -3e-40F}, 2);
    el_safetensors_close(file);
}

#define ENTRY(name, dtype, shape, begin, end)                                                                          \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]}"

static void test_refused(void **state)
{
    static const struct {
        const char *header;
        uint64_t claimed;
        size_t data;
        const char *words;
    } cases[] = {
        {"{" ENTRY("a", "F32", "2", "0", "8") "}", 0, 7, "'a': its data_offsets lie outside the file"},
        {"{" ENTRY("a", "F32", "2", "0", "8") "}", 0, 12, "more behind the last array"},
        {"{" ENTRY("a", "F32", "2", "4", "12") "}", 0, 12, "'a': there is a gap before its data"},
        {"{" ENTRY("a", "F32", "2", "0", "8") "," ENTRY("b", "F32", "1", "4", "8") "}", 0, 8, "'b': its data overlap"},
        {"{" ENTRY("a", "F32", "2", "0", "8") "," ENTRY("a", "F32", "2", "8", "16") "}", 0, 16, "duplicate"},
        {"{" ENTRY("a", "F32", "2", "0", "4") "}", 0, 4, "'a': its data_offsets do not fit its shape and dtype"},
        {"{" ENTRY("a", "F32", "2", "8", "0") "}", 0, 8, "outside"},
        {"{" ENTRY("a", "F32", "2", "-8", "0") "}", 0, 8, "outside"},
        {"{" ENTRY("a", "F32", "2", "0", "99999999999999999999") "}", 0, 8, "no JSON"},
        {"{" ENTRY("a", "F32", "2", "0.0", "8") "}", 0, 8, "'a': has no data_offsets"},
        {"{" ENTRY("a", "F32", "-2", "0", "8") "}", 0, 8, "'a': its shape"},
        {"{" ENTRY("a", "F32", "4294967296,4294967296", "0", "0") "}", 0, 0, "'a': its shape is larger than the file"},
        {"{" ENTRY("a", "F32", "0,9223372036854775807,4", "0", "4") "}", 0, 4, "do not fit"},
        {"{" ENTRY("a", "F32", "1,1,1,1,1,1,1,1,1", "0", "4") "}", 0, 4, "'a': has too many dimensions"},
        {"{" ENTRY("a", "U8", "2", "0", "2") "}", 0, 2, "'a' is of type U8: F64, F32, F16, BF16 and I64 are read"},
        {"{\"a\":3}", 0, 0, "'a': has no dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 0, 4, "'a': has no shape"},
        {"[1]", 0, 0, "does not begin with '{'"},
        {"{\"a\":", 0, 4, "no JSON"},
        {"{}", 400, 0, "longer than the file"},
        {"{}", UINT64_MAX, 0, "longer than the file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_safetensors *file = NULL;
        put(cases[i].header, cases[i].claimed, NULL, cases[i].data);
        enum el_status status = el_safetensors_open(path, &file);
        if (status != EL_ERR_INVALID || !strstr(el_error_message(), cases[i].words) ||
            !strstr(el_error_message(), "w.safetensors"))
            fail_msg("%s: status %d, '%s'", cases[i].header, status, el_error_message());
    }
}

static void refuse_file(const char *name, const char *words)
{
    struct el_safetensors *file;
    assert_int_not_equal(el_safetensors_open(name, &file), EL_OK);
    if (!strstr(el_error_message(), words)) fail_msg("%s: '%s'", name, el_error_message());
}

static void test_no_such_format(void **state)
{
    char shards[96];
    put_file(folder, path, "", 0);
    refuse_file(path, "fewer than 8 bytes");
    put_file(folder, path, "PK\x03\x04 and so on", 15);
    refuse_file(path, "what torch.save writes: give one safetensors file");
    put_file(folder, path, "just a text, whatever it says", 29);
    refuse_file(path, "longer than the file");
    snprintf(shards, sizeof shards, "%s/model.safetensors.index.json", folder);
    assert_int_equal(rename(path, shards), 0);
    refuse_file(shards, "a list of shards");
    assert_int_equal(unlink(shards), 0);
    refuse_file(path, "No such file");
    refuse_file(folder, "is a directory");
    refuse_file("/dev/null", "not a regular file");
}

/* More than a buffer of the writer's, so that it writes in pieces. */
enum { MANY = 10000 };

static void test_round_trip(void **state)
{
    static double many[MANY], read[MANY];
    const struct el_stored_array arrays[] = {{.name = "count", .type = EL_STORED_I64},
                                             {.name = "a.b", .type = EL_STORED_F64, .n_dims = 2, .dims = {MANY / 4, 4}},
                                             {.name = "f", .type = EL_STORED_F32, .n_dims = 1, .dims = {3}}};
    struct el_safetensors_writer *writer;
    struct el_safetensors *file;
    for (int i = 0; i < MANY; i++) many[i] = i / 3.0;
    assert_int_equal(el_safetensors_begin(path, arrays, 3, &writer), EL_OK);
    el_safetensors_write(writer, (double[]){42});
    el_safetensors_write(writer, many);
    el_safetensors_write(writer, (double[]){1.5, -2, 0});
    assert_int_equal(access(path, F_OK), -1); /* not before it is whole */
    assert_int_equal(el_safetensors_end(writer, NULL), EL_OK);
    assert_int_equal(el_safetensors_open(path, &file), EL_OK);
    assert_int_equal(el_safetensors_array(file, 1)->begin % sizeof(double), 0);
    check_values(file, "count", (double[]){42}, 1);
    check_values(file, "f", (double[]){1.5, -2, 0}, 3);
    assert_int_equal(el_safetensors_read(file, el_safetensors_find(file, "a.b"), read), EL_OK);
    assert_memory_equal(many, read, sizeof many);
    /* One that is given up leaves what was there; so does one that cannot be written. */
    assert_int_equal(el_safetensors_begin(path, arrays, 3, &writer), EL_OK);
    el_safetensors_write(writer, (double[]){43});
    el_safetensors_drop(writer);
    check_values(file, "count", (double[]){42}, 1);
    el_safetensors_close(file);
    assert_int_equal(el_safetensors_open(path, &file), EL_OK);
    check_values(file, "count", (double[]){42}, 1);
    el_safetensors_close(file);
    assert_int_equal(el_safetensors_begin("/nowhere/at/all", arrays, 3, &writer), EL_ERR_IO);
}

/* A file that becomes shorter while it is open is a failure, and nothing else. */
static void test_cut_off(void **state)
{
    struct el_safetensors *file;
    double value;
    put("{" ENTRY("a", "F64", "1", "0", "8") "}", 0, NULL, 8);
    assert_int_equal(el_safetensors_open(path, &file), EL_OK);
    assert_int_equal(truncate(path, 60), 0);
    assert_int_equal(el_safetensors_read(file, el_safetensors_array(file, 0), &value), EL_ERR_IO);
    el_safetensors_close(file);
}

RUN_TESTS(make_folder, remove_folder, test_no_such_format, test_round_trip, test_types, test_refused, test_cut_off)
