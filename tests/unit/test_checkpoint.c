/* Checkpoints from others: links, pipes and what has only the name of a checkpoint; and files whose hashes are right
 * and whose content is not. */
#include "tests/test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "bench/trial/events.h"
#include "tests/checkpoint_text.h"
#include "tests/unit/own_folder.h"
#include "tests/unit/whole_files.h"

static char path[EL_PATH_BYTES];

/* folder/NAME */
static const char *in(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name)
{
    FILE *file = fopen(in(name), "w");
    assert_true(file && fclose(file) == 0);
}

static bool is_there(const char *name)
{
    struct stat info;
    return lstat(in(name), &info) == 0;
}

static void what_links_lead_to_stays(void **state)
{
    static const char *const links[] = {"ck/step-5.part", "ck/step-6", "ck/step-7"};
    assert_true(mkdir(in("precious"), 0777) == 0 && mkdir(in("ck"), 0777) == 0 && mkdir(in("ck/step-8"), 0777) == 0);
    put("precious/thesis.txt"), put("precious/index.json"), put("precious/rank-0.safetensors");
    put("ck/step-8/thesis.txt"), put("ck/step-8/index.json"), put("ck/step-8/rank-0.safetensors.tmp.0123456789abcdef");
    for (int i = 0; i < 3; i++) assert_int_equal(symlink("../precious", in(links[i])), 0);
    char ck[EL_PATH_BYTES];
    snprintf(ck, sizeof ck, "%s", in("ck"));
    el_checkpoint_remove_parts(ck);
    el_checkpoint_tidy(ck, 8, 0);
    for (int i = 0; i < 3; i++) assert_false(is_there(links[i]));
    assert_true(is_there("precious/thesis.txt") && is_there("precious/index.json"));
    assert_true(is_there("precious/rank-0.safetensors") && is_there("ck/step-8/thesis.txt"));
    assert_false(is_there("ck/step-8/index.json") || is_there("ck/step-8/rank-0.safetensors.tmp.0123456789abcdef"));
}

static void only_a_folder_with_an_index_is_one(void **state)
{
    static const char *const others[] = {"step-9999", "step-040", "step-30x", "step-20.part", "step--1"};
    for (int i = 0; i < 5; i++) assert_int_equal(mkdir(in(others[i]), 0777), 0);
    put("step-040/index.json"), put("step-30x/index.json"), put("step-20.part/index.json"), put("step-50");
    assert_int_equal(el_checkpoint_last(folder), -1);
    assert_int_equal(mkdir(in("step-10"), 0777), 0);
    put("step-10/index.json");
    assert_int_equal(el_checkpoint_last(folder), 10);
}

static void events_go_into_a_file_of_the_folder_alone(void **state)
{
    struct stat info;
    put("letter");
    assert_int_equal(symlink("letter", in("events.csv")), 0);
    assert_int_equal(el_events_open(folder), -1);
    assert_true(stat(in("letter"), &info) == 0 && info.st_size == 0);
    assert_int_equal(unlink(in("events.csv")), 0);
    assert_int_equal(mkfifo(in("events.csv"), 0666), 0);
    assert_int_equal(el_events_open(folder), -1); /* nobody reads it */
}

static void a_path_is_never_cut(void **state)
{
    char longest[2 * EL_PATH_BYTES];
    struct el_checkpoint *checkpoint;
    memset(longest, 'x', sizeof longest);
    longest[EL_CHECKPOINT_BYTES] = 0;
    assert_int_equal(el_checkpoint_open(longest, &checkpoint), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "the path is too long"));
    longest[EL_CHECKPOINT_BYTES - 1] = 0;
    el_checkpoint_folder(longest, INT64_MAX, false, path);
    assert_int_equal(strlen(path), EL_CHECKPOINT_BYTES - 1 + strlen("/step-9223372036854775807.part"));
}

/* ---- what is in one ---- */

static struct el_train_config config = {.dtype = EL_F64, .optimizer = EL_OPT_MOMENTUM, .seed = 1, .global_batch = 2};

static void build_model(struct el_graph **graph_p)
{
    config.model = (struct el_model_config){
        .name = "mlp", .classes = 2, .dropout = -1, .sizes = {{"features", 1, {3}}, {"hidden", 1, {2}}}};
    config.steps = 6;
    assert_int_equal(el_model_resolve(&config.model), EL_OK);
    assert_int_equal(el_model_build(&config.model, graph_p), EL_OK);
}

/* A seed of the fuzz target's, in which the first `from` is `to`, at folder/NAME. */
static void make(const char *seed, const char *from, const char *to, const char *name)
{
    char file[128];
    snprintf(file, sizeof file, "tests/fuzz/corpus/checkpoint/%s.json", seed);
    char *text = read_whole(file, NULL), *at = strstr(text, from), *changed;
    assert_non_null(at);
    assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
    json_t *document = json_loads(changed, 0, NULL);
    mkdir(in(name), 0777);
    if (!document || !write_checkpoint(in(name), document)) fail_msg("not written: %s", changed);
    json_decref(document);
    free(changed), free(text);
}

static enum el_status take(const char *name, const struct el_graph *model)
{
    struct el_checkpoint *checkpoint;
    enum el_status status = el_checkpoint_open(in(name), &checkpoint);
    if (status != EL_OK) return status;
    status = el_checkpoint_check(checkpoint, &config, model);
    el_checkpoint_close(checkpoint);
    return status;
}

static void every_field_is_checked(void **state)
{
    static const struct {
        const char *seed, *from, *to, *wanted;
    } cases[] = {
        {"whole", "\"mode\":\"single\",", "", "'mode' is not"},
        {"whole", "\"mode\":\"single\"", "\"mode\":5", "'mode' is not"},
        {"whole", "\"model\":\"mlp\"", "\"model\":[]", "'model' is not"},
        {"whole", "\"step\":2", "\"step\":-5", "'step' is not"},
        {"whole", "\"step\":2", "\"step\":\"2\"", "'step' is not"},
        {"whole", "\"step\":2", "\"step\":2.5", "'step' is not"},
        {"whole", "\"step\":2", "\"step\":9223372036854775807", "'step' is not"},
        {"whole", "\"samples\":0", "\"samples\":-2", "'data' is not"},
        {"whole", "\"epoch\":1,", "", "'data' is not"},
        {"whole", "\"global_batch\":2", "\"global_batch\":0", "'global_batch' is not"},
        {"whole", "\"workers\":1", "\"workers\":2", "'files' is not"},
        {"whole", "rank-0.safetensors", "../rank-0.safetensors", "'files' is not"},
        {"pieces", "rank-1.safetensors", "rank-0.safetensors", "'files' is not"},
        {"whole", "\"epochs\":[]", "\"epochs\":{}", "'epochs' is not"},
        {"epochs", "\"samples\":2", "\"samples\":1e300", "'epochs' is not"},
        {"epochs", "[1.0,2.0,null,0.0]", "[1.0,2.0,null]", "'epochs' is not"},
        {"epochs", "\"epoch\":1", "\"epoch\":0", "'epochs' is not"}, /* more of them than were trained */
        {"epochs", "\"best_epoch\":0", "\"best_epoch\":1", "'best_epoch' is not"},
        {"whole", "\"best_epoch\":-1", "\"best_epoch\":0", "'best_epoch' is not"},
        {"epochs", "best.out.bias", "last.out.bias", "best.out.bias: a piece of it is missing"},
        {"whole", "\"model.out.bias\"", "\"other.out.bias\"", "model.out.bias: a piece of it is missing"},
        {"whole", "momentum_buffer.out.bias", "exp_avg.out.bias", "momentum_buffer.out.bias: a piece of it is missing"},
        {"whole", "[2,3]", "[3,2]", "is not as large as the model's"},
        {"pieces", "[0,0,2,1,-1]", "[null,0,2,1,-1]", "says wrongly where it belongs"},
        {"pieces", "[0,0,2,1,-1]", "[0,0.5,2,1,-1]", "says wrongly where it belongs"},
        {"pieces", "[0,0,2,1,-1]", "[2,0,2,1,-1]", "says wrongly where it belongs"},
        {"pieces", "[0,0,2,1,-1]", "[0,0,2,1,-2]", "is not as large as the model's"},
        {"pieces", "[0,0,2,1,-1]", "[0,9223372036854775807,2,1,-1]", "says wrongly where it belongs"},
        {"pieces", "[0,0,2,1,-1]", "[0,0,3,1,-1]", "is not as large as the model's"},
        {"pieces", "[0,0,2,1,-1]", "[0,1,2,1,-1]", "has elements that another piece has too"},
        {"pieces", "[0,0,0,0,0]", "[0,0,0,0,1]", "has elements that another piece has too"},
        {"pieces", "[0,2]", "[0,4]", "says wrongly where it belongs"},
        {"pieces", "[0,2]", "[0,0.5]", "says wrongly where it belongs"},
        {"pieces", "[0,2]", "[0,0]", "has elements that another piece has too"},
        {"pieces", "\"model.hidden1.bias\"", "\"other\"", "model.hidden1.bias: a piece of it is missing"},
    };
    struct el_graph *model;
    build_model(&model);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make(cases[i].seed, cases[i].from, cases[i].to, "one");
        const enum el_status status = take("one", model);
        if (status != EL_ERR_INVALID || !strstr(el_error_message(), cases[i].wanted))
            fail_msg("%s: %s: %s", cases[i].from, cases[i].to, status == EL_OK ? "it is taken" : el_error_message());
    }
    el_graph_destroy(model);
}

/* Rows, ranges and elements at places of their own. */
static void pieces_make_the_whole(void **state)
{
    struct el_checkpoint *checkpoint;
    struct el_graph *model;
    build_model(&model);
    make("pieces", "{", "{", "one");
    assert_int_equal(el_checkpoint_open(in("one"), &checkpoint), EL_OK);
    if (el_checkpoint_check(checkpoint, &config, model) != EL_OK) fail_msg("%s", el_error_message());
    static const double wanted[4][6] = {{.1, .2, .3, .4, .5, .6}, {.1, .2}, {.1, .3, .2, .4}, {.3, .4}};
    for (int p = 0; p < model->n_params; p++) {
        double values[6] = {0};
        bool found;
        assert_int_equal(el_checkpoint_read(checkpoint, "model", &model->params[p], -1, values, &found), EL_OK);
        assert_true(found && memcmp(values, wanted[p], sizeof values) == 0);
    }
    el_checkpoint_close(checkpoint);
    el_graph_destroy(model);
}

static void of_a_damaged_one_an_earlier_one_is_taken(void **state)
{
    struct el_checkpoint *checkpoint;
    assert_int_equal(mkdir(in("many"), 0777), 0);
    make("whole", "\"step\":2", "\"step\":1", "many/step-1");
    make("whole", "\"step\":2", "\"step\":2", "many/step-2");
    make("whole", "\"step\":2", "\"step\":3", "many/step-3");
    put("many/step-3/index.json"); /* cut off */
    assert_int_equal(unlink(in("many/step-2/rank-0.safetensors")), 0);
    assert_int_equal(el_checkpoint_open(in("many"), &checkpoint), EL_OK);
    assert_int_equal(el_checkpoint_step(checkpoint), 1);
    el_checkpoint_close(checkpoint);
    assert_int_equal(unlink(in("many/step-1/rank-0.safetensors")), 0);
    assert_int_equal(el_checkpoint_open(in("many"), &checkpoint), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "no checkpoint is whole: "));
    assert_non_null(strstr(el_error_message(), "many/step-3/index.json: damaged"));
}

static void open_data(const char *text, bool in_files, double held_out, struct el_dataset **data_p)
{
    char file[EL_PATH_BYTES];
    snprintf(file, sizeof file, "%s", in("data.txt"));
    put_file(folder, file, text, strlen(text));
    const struct el_dataset_spec spec = {
        .source = file, .input = EL_INPUT_FEATURES, .held_out = held_out, .in_files = in_files};
    assert_int_equal(el_dataset_open(&spec, data_p), EL_OK);
}

static uint64_t hash_of(const char *text, bool in_files, double held_out)
{
    uint64_t hash;
    struct el_dataset *data;
    open_data(text, in_files, held_out, &data);
    assert_int_equal(el_dataset_hash(data, &hash), EL_OK);
    el_dataset_close(data);
    return hash;
}

static void it_goes_on_with_its_own_data_alone(void **state)
{
    static const char text[] = "0 one two\n1 three\n0 four\n1 five six\n";
    char found[64];
    struct el_dataset *data;
    struct el_checkpoint *checkpoint;
    const uint64_t hash = hash_of(text, false, 0);
    assert_true(hash_of(text, true, 0) == hash && hash_of(text, false, 0.5) == hash);
    assert_true(hash_of("0 one two\n1 three\n1 four\n1 five six\n", false, 0) != hash);
    assert_true(hash_of("0 one two\n1 three\n0 four\n1 five one\n", false, 0) != hash);
    assert_true(hash_of("0 one two\n1 three\n0 four\n", false, 0) != hash);
    open_data(text, false, 0, &data);
    snprintf(found, sizeof found, "\"samples\":4,\"hash\":\"%016llx\"", (unsigned long long)hash);
    const char *const places[] = {"\"samples\":4", found, "\"samples\":4,\"hash\":\"0123456789abcdef\"",
                                  "\"samples\":5"},
                      *const wanted[] = {NULL, NULL, "it was trained on other samples than those of",
                                         "has taken more samples"};
    for (int i = 0; i < 4; i++) {
        make("whole", "\"samples\":0", places[i], "one");
        assert_int_equal(el_checkpoint_open(in("one"), &checkpoint), EL_OK);
        const enum el_status status = el_checkpoint_check_data(checkpoint, data);
        assert_int_equal(status, wanted[i] ? EL_ERR_INVALID : EL_OK);
        if (wanted[i]) assert_non_null(strstr(el_error_message(), wanted[i]));
        el_checkpoint_close(checkpoint);
    }
    el_dataset_close(data);
}

RUN_TESTS(make_folder, remove_folder, what_links_lead_to_stays, only_a_folder_with_an_index_is_one,
          events_go_into_a_file_of_the_folder_alone, a_path_is_never_cut, every_field_is_checked, pieces_make_the_whole,
          of_a_damaged_one_an_earlier_one_is_taken, it_goes_on_with_its_own_data_alone)
