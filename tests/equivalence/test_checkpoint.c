/* A job that goes on from a checkpoint is the one that nobody disturbed: to the bit in the same mode on as many
 * devices, and in any other one as near as modes are to each other. What is not whole is refused. */
#include "tests/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/rng.h"
#include "runtime/state/checkpoint.h"
#include "runtime/train/forecast.h"
#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

enum { STEPS = 8, AT = 4, DEVICES = 4, MUTATED = 3000, MUTATED_LONG = 1000000, INDEX_MAX = 8192 };

static const struct el_case cases[] = {{"textcnn", EL_OPT_ADAM, 0.5, 24}, {"mlp", EL_OPT_MOMENTUM, 0, 24}};
static char folder[] = "/tmp/el-test-checkpoint-XXXXXX";

static int devices_for(const struct el_case *c, const char *mode)
{
    int n = el_mode_devices_for(mode, c->model, DEVICES);
    while (n > 1 && !el_case_can_be_cut(c, mode, n)) n--;
    return n;
}

static void configure(const struct el_case *c, const char *mode, int n_devices, struct el_train_config *config)
{
    if (el_case_config(c, mode, n_devices, config) != EL_OK) fail_msg("%s: %s", mode, el_error_message());
    config->steps = STEPS;
}

/* `dir`: where to write, or NULL; `resume`: from where to go on, or NULL. */
static void train(const struct el_train_config *config, const char *dir, const char *resume, int stop,
                  struct el_train_result *result)
{
    struct own_place own;
    struct el_layout layout;
    struct el_graph *graph;
    struct el_checkpoint *from = NULL;
    struct el_train_config until = *config;
    el_layout_of(config, 1, &layout);
    open_place("cpu", layout.n_devices, el_kernels_reference(), dataset, &own);
    if (resume) {
        if (el_checkpoint_open(resume, &from) != EL_OK) fail_msg("%s: %s", config->mode, el_error_message());
        assert_int_equal(el_model_build(&config->model, &graph), EL_OK);
        if (el_checkpoint_check(from, config, graph) != EL_OK || el_checkpoint_check_data(from, dataset) != EL_OK)
            fail_msg("%s: %s", config->mode, el_error_message());
        el_graph_destroy(graph);
    }
    until.steps = stop;
    own.place.checkpoint =
        (struct el_checkpoint_spec){.dir = dir, .every = AT, .keep = 1, .async = true, .resume = from};
    if (el_train(&until, &own.place, NULL, result) != EL_OK) fail_msg("%s: %s", config->mode, el_error_message());
    el_checkpoint_close(from);
    close_place(&own);
}

static double worst(const struct el_train_result *whole, const struct el_train_result *rest)
{
    double far = 0;
    assert_int_equal(rest->start, AT);
    assert_int_equal(rest->n_warmup + rest->n_steps, STEPS - AT);
    for (int i = AT; i < STEPS; i++) far = fmax(far, fabs(whole->loss[i] - rest->loss[i - AT]));
    return far;
}

static void any_mode_goes_on_to_the_bit_and_in_any_other(void **state)
{
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
            struct el_train_config config;
            struct el_train_result whole, first, rest;
            struct el_memory_forecast forecasts[DEVICES];
            const int n = devices_for(&cases[k], mode->name);
            configure(&cases[k], mode->name, n, &config);
            train(&config, NULL, NULL, STEPS, &whole);
            train(&config, folder, NULL, AT, &first);
            assert_true(el_train_forecast(&config, el_kernels_reference(), forecasts) == EL_OK);
            assert_true(forecasts[0].kept_bytes == (size_t)first.checkpoints.copied);
            assert_int_equal(first.checkpoints.n, 1);
            assert_int_equal(first.checkpoints.n_failed, 0);
            train(&config, NULL, folder, STEPS, &rest);
            if (worst(&whole, &rest) != 0) fail_msg("%s: %g", mode->name, worst(&whole, &rest));
            el_train_result_free(&rest);
            for (const struct el_mode_info *other = el_mode_list(); other->name; other++) {
                configure(&cases[k], other->name, devices_for(&cases[k], other->name), &config);
                train(&config, NULL, folder, STEPS, &rest);
                if (!(worst(&whole, &rest) < 1e-9))
                    fail_msg("%s, on in %s: %g", mode->name, other->name, worst(&whole, &rest));
                el_train_result_free(&rest);
                if (is_sanitized() && other - el_mode_list() > 2) break;
            }
            el_train_result_free(&whole);
            el_train_result_free(&first);
        }
    }
}

/* Slots differ from rank to rank. */
static void ranks_go_on_with_what_is_their_own(void **state)
{
    struct el_train_config config;
    struct el_train_result whole, first, rest;
    configure(&cases[1], "manual", 3, &config);
    config.sync_params = true;
    train(&config, NULL, NULL, STEPS, &whole);
    train(&config, folder, NULL, AT, &first);
    train(&config, NULL, folder, STEPS, &rest);
    assert_true(worst(&whole, &rest) == 0);
    el_train_result_free(&whole);
    el_train_result_free(&first);
    el_train_result_free(&rest);
}

/* Of two in a folder the earlier one is removed, and a folder that nobody completed goes when a job begins. */
static void the_last_ones_are_kept(void **state)
{
    struct el_train_config config;
    struct el_train_result result;
    char path[EL_PATH_BYTES];
    struct stat info;
    configure(&cases[1], "ddp", 2, &config);
    el_checkpoint_folder(folder, 3, false, path);
    assert_int_equal(mkdir(path, 0777), 0);
    train(&config, folder, NULL, STEPS, &result);
    assert_int_equal(result.checkpoints.n, STEPS / AT);
    assert_true(result.checkpoints.bytes > 0 && result.checkpoints.write_ns > 0);
    assert_int_not_equal(stat(path, &info), 0);
    el_checkpoint_folder(folder, AT, true, path);
    assert_int_not_equal(stat(path, &info), 0);
    el_checkpoint_folder(folder, STEPS, true, path);
    assert_int_equal(stat(path, &info), 0);
    el_train_result_free(&result);
}

/* `same`: it may be taken where its index says this all the same (a blank, the 17th digit of a number); NULL: never. */
static void refused(const char *wanted, const json_t *same)
{
    struct el_checkpoint *checkpoint;
    const enum el_status status = el_checkpoint_open(folder, &checkpoint);
    const bool taken = status == EL_OK, equal = taken && json_equal(el_checkpoint_index(checkpoint), same);
    if (taken) el_checkpoint_close(checkpoint);
    if (taken && !equal) fail_msg("it is taken: %s", wanted);
    if (taken) return;
    if (!strstr(el_error_message(), wanted)) fail_msg("'%s' has no '%s'", el_error_message(), wanted);
}

/* A byte of a file is another one, the file is shorter, or is not there. */
static void mutated_ones_are_refused(void **state)
{
    static const char *const names[] = {"index.json", "rank-0.safetensors", "rank-1.safetensors"};
    struct el_train_config config;
    struct el_train_result result;
    char step[EL_PATH_BYTES], path[EL_PATH_BYTES + 32], moved[EL_PATH_BYTES + 40];
    const struct el_rng_key key = {.seed = 5, .use = EL_RNG_INIT};
    const int n = getenv("EVENLOAD_LONG") && !is_sanitized() ? MUTATED_LONG : MUTATED;
    configure(&cases[1], "zero3", 2, &config);
    train(&config, folder, NULL, AT, &result);
    el_train_result_free(&result);
    el_checkpoint_folder(folder, AT, true, step);
    struct el_checkpoint *checkpoint;
    assert_int_equal(el_checkpoint_open(folder, &checkpoint), EL_OK);
    json_t *index = json_deep_copy(el_checkpoint_index(checkpoint));
    el_checkpoint_close(checkpoint);
    for (int f = 0; f < 3; f++) {
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", step, names[f]);
        const int file = open(path, O_RDWR | O_CLOEXEC);
        assert_true(file >= 0 && fstat(file, &info) == 0);
        for (int i = 0; i < n / 3; i++) {
            uint32_t drawn[4];
            char was, is;
            el_rng_draw4(&key, (uint64_t)f, (uint64_t)i, drawn);
            const off_t at = (off_t)(drawn[0] % (uint64_t)info.st_size);
            assert_int_equal(pread(file, &was, 1, at), 1);
            is = (char)(was ^ (1 + (int)(drawn[1] % 255)));
            assert_int_equal(pwrite(file, &is, 1, at), 1);
            refused(names[f], f == 0 ? index : NULL);
            assert_int_equal(pwrite(file, &was, 1, at), 1);
        }
        close(file);
        snprintf(moved, sizeof moved, "%s.moved", path);
        assert_int_equal(rename(path, moved), 0);
        refused(f == 0 ? "no step-N with an index.json" : "No such file", NULL);
        assert_int_equal(rename(moved, path), 0);
        char *bytes = malloc((size_t)info.st_size);
        FILE *whole = fopen(path, "rb");
        assert_true(bytes && whole && fread(bytes, 1, (size_t)info.st_size, whole) == (size_t)info.st_size);
        fclose(whole);
        for (off_t cut = 0; cut < info.st_size; cut += 1 + info.st_size / 20) {
            assert_int_equal(truncate(path, cut), 0);
            refused(names[f], NULL);
            whole = fopen(path, "wb");
            assert_true(fwrite(bytes, 1, (size_t)info.st_size, whole) == (size_t)info.st_size && fclose(whole) == 0);
        }
        free(bytes);
    }
    json_decref(index);
    assert_int_equal(el_checkpoint_open(folder, &checkpoint), EL_OK); /* as it was */
    assert_int_equal(el_checkpoint_step(checkpoint), AT);
    el_checkpoint_close(checkpoint);
}

static void check_is(const struct el_train_config *config, const char *wanted)
{
    struct el_checkpoint *checkpoint;
    struct el_graph *graph;
    assert_int_equal(el_checkpoint_open(folder, &checkpoint), EL_OK);
    assert_int_equal(el_model_build(&config->model, &graph), EL_OK);
    assert_int_equal(el_checkpoint_check(checkpoint, config, graph), EL_ERR_INVALID);
    if (!strstr(el_error_message(), wanted)) fail_msg("'%s' has no '%s'", el_error_message(), wanted);
    el_graph_destroy(graph);
    el_checkpoint_close(checkpoint);
}

static void of_another_training_it_says_what_differs(void **state)
{
    struct el_train_config config, other;
    struct el_train_result result;
    const int64_t hidden[] = {12, 8};
    configure(&cases[1], "ddp", 2, &config);
    train(&config, folder, NULL, AT, &result);
    el_train_result_free(&result);
    other = config, other.optimizer = EL_OPT_ADAM;
    check_is(&other, "with --optimizer momentum, and now it is adam");
    other = config, other.seed = 8;
    check_is(&other, "a seed of 7, and now it is 8");
    other = config, el_model_set(&other.model, "hidden", hidden, 2);
    check_is(&other, "not as large as the model's");
    configure(&cases[0], "ddp", 2, &other);
    check_is(&other, "with --model mlp, and now it is textcnn");
}

static int open_folder(void **state)
{
    return mkdtemp(folder) ? open_all(state) : -1;
}

static int close_folder(void **state)
{
    el_checkpoint_tidy(folder, 0, 0);
    el_checkpoint_remove_parts(folder);
    rmdir(folder);
    return close_all(state);
}

RUN_TESTS(open_folder, close_folder, any_mode_goes_on_to_the_bit_and_in_any_other, ranks_go_on_with_what_is_their_own,
          the_last_ones_are_kept, mutated_ones_are_refused, of_another_training_it_says_what_differs)
