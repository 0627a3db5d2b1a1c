/* Every mode saves the same weights: those that a step changed, and those of parameters that no node uses, which keep
 * the values that were drawn or loaded. */
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/state/weights.h"
#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

enum { VALUES_MAX = 1024 };

static const struct el_case branch = {"branch", EL_OPT_SGD, 0, 24};
static char folder[] = "/tmp/el-test-saved-XXXXXX", path[64];

/* Trains for a step and saves; `loaded`: a file of the initial weights, or NULL. */
static void save(const char *mode, int n_devices, int n_ranks, const struct el_safetensors *loaded)
{
    struct own_place own;
    struct el_train_config config;
    struct el_train_result result;
    struct el_layout layout;
    assert_int_equal(el_case_config(&branch, "single", 1, &config), EL_OK);
    snprintf(config.mode, sizeof config.mode, "%s", mode);
    config.n_devices = n_devices;
    config.mesh[EL_AXIS_DATA] = n_ranks;
    config.steps = 1;
    config.find_unused = el_mode_option_of(mode, "find-unused");
    config.weights = loaded;
    if (el_train_check(&config) != EL_OK) fail_msg("%s: %s", mode, el_error_message());
    el_layout_of(&config, 1, &layout);
    open_place("cpu", layout.n_devices, el_kernels_reference(), dataset, &own);
    own.place.save = path;
    if (el_train(&config, &own.place, NULL, &result) != EL_OK) fail_msg("%s: %s", mode, el_error_message());
    el_train_result_free(&result);
    close_place(&own);
}

/* Of the file that was saved last; returns how many. */
static int64_t read_saved(const char *name, double values[VALUES_MAX])
{
    struct el_safetensors *file;
    assert_int_equal(el_safetensors_open(path, &file), EL_OK);
    const struct el_stored_array *array = el_safetensors_find(file, name);
    assert_non_null(array);
    assert_true(array->count <= VALUES_MAX);
    assert_int_equal(el_safetensors_read(file, array, values), EL_OK);
    int64_t n = array->count;
    el_safetensors_close(file);
    return n;
}

/* `used`, `side`: what single saved of a layer that the step changed, and of one that no node uses. */
static void compare(const char *mode, int n_devices, const double *used, const double *side)
{
    double values[VALUES_MAX];
    int64_t n = read_saved("side.weight", values);
    for (int64_t i = 0; i < n; i++)
        if (values[i] != side[i]) fail_msg("%s on %d: side.weight[%d] is %g", mode, n_devices, (int)i, values[i]);
    n = read_saved("out.weight", values);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(values[i] - used[i]) < 1e-12)) fail_msg("%s on %d: out.weight[%d]", mode, n_devices, (int)i);
}

static void hold_all(const struct el_safetensors *loaded)
{
    static const struct {
        const char *mode;
        int n_devices, n_ranks;
    } meshes[] = {{"mp", 4, 2}, {"pipeline", 4, 2}, {"spmg", 4, 2}, {"zero1", 4, 2}, {"zero3", 4, 2}, {"zero3", 3, 0}};
    double used[VALUES_MAX], side[VALUES_MAX];
    save("single", 1, 0, loaded);
    read_saved("out.weight", used);
    assert_true(read_saved("side.weight", side) == 28 && side[0] != 0);
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        const int n = el_mode_devices_for(mode->name, "branch", 2);
        save(mode->name, n, 0, loaded);
        compare(mode->name, n, used, side);
    }
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        save(meshes[i].mode, meshes[i].n_devices, meshes[i].n_ranks, loaded);
        compare(meshes[i].mode, meshes[i].n_devices, used, side);
    }
}

static void drawn_values_of_unused_parameters_are_saved(void **state)
{
    hold_all(NULL);
}

static void loaded_values_of_unused_parameters_are_saved(void **state)
{
    struct el_safetensors *loaded;
    double drawn[VALUES_MAX], kept[VALUES_MAX];
    char from[96];
    save("single", 1, 0, NULL);
    read_saved("side.weight", drawn);
    /* The same file with other values: those of `side` are the file's first, and the header says where. */
    snprintf(from, sizeof from, "%s/from.st", folder);
    FILE *file = fopen(path, "rb"), *changed = fopen(from, "wb");
    assert_true(file && changed);
    assert_int_equal(el_safetensors_open(path, &loaded), EL_OK);
    const struct el_stored_array *side = el_safetensors_find(loaded, "side.weight");
    uint64_t header;
    assert_int_equal(fread(&header, sizeof header, 1, file), 1);
    rewind(file);
    for (int c, at = 0; (c = fgetc(file)) != EOF; at++)
        fputc((uint64_t)at == 8 + header + side->begin ? c ^ 1 : c, changed); /* the last bit of its first value */
    fclose(file);
    assert_int_equal(fclose(changed), 0);
    el_safetensors_close(loaded);
    assert_int_equal(el_safetensors_open(from, &loaded), EL_OK);
    hold_all(loaded);
    read_saved("side.weight", kept);
    assert_true(kept[0] != drawn[0] && kept[1] == drawn[1]);
    el_safetensors_close(loaded);
    unlink(from);
}

static int open_folder(void **state)
{
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/w.st", folder);
    return open_all(state);
}

static int close_folder(void **state)
{
    unlink(path);
    rmdir(folder);
    return close_all(state);
}

RUN_TESTS(open_folder, close_folder, drawn_values_of_unused_parameters_are_saved,
          loaded_values_of_unused_parameters_are_saved)
