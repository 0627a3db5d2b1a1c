/* A checkpoint whose hashes are right: opened, held against a small model, and, where it is taken, trained on. */
#include <sys/stat.h>

#include "runtime/train/train.h"
#include "tests/checkpoint_text.h"
#include "tests/fuzz/fuzz.h"

enum { STEPS = 6, EPOCHS = 3, STEP_MAX = 1000 };

static struct el_dataset *data;
static struct el_graph *model;
static struct el_train_config config = {.mode = "single",
                                        .dtype = EL_F64,
                                        .lr = 0.01,
                                        .momentum = 0.9,
                                        .capture = true,
                                        .seed = 1,
                                        .global_batch = 2,
                                        .n_devices = 1,
                                        .steps = STEPS};

static void set_up(void)
{
    static const char text[] = "0 one two\n1 three four\n0 five six\n1 seven eight\n0 nine ten\n1 two three\n";
    char path[EL_PATH_BYTES];
    if (model) return;
    snprintf(path, sizeof path, "%s", fuzz_file("data.txt", text, sizeof text - 1));
    const struct el_dataset_spec spec = {.source = path, .input = EL_INPUT_FEATURES, .held_out = 0.34};
    config.model = (struct el_model_config){
        .name = "mlp", .classes = 2, .dropout = -1, .sizes = {{"features", 1, {3}}, {"hidden", 1, {2}}}};
    config.optimizer = EL_OPT_MOMENTUM;
    fuzz_expect(el_model_resolve(&config.model) == EL_OK && el_train_check(&config) == EL_OK &&
                    el_model_build(&config.model, &model) == EL_OK && el_dataset_open(&spec, &data) == EL_OK,
                "the target's own configuration");
}

static void read_all(const struct el_checkpoint *checkpoint)
{
    double values[64];
    for (int p = 0; p < model->n_params; p++) {
        bool found = false;
        fuzz_expect(el_checkpoint_read(checkpoint, "model", &model->params[p], -1, values, &found) == EL_OK && found,
                    "what was checked can be read");
        found = false;
        fuzz_expect(el_checkpoint_read(checkpoint, "optimizer.momentum_buffer", &model->params[p], 0, values, &found) ==
                            EL_OK &&
                        found,
                    "the optimizer's state too");
    }
}

static void train_on(const struct el_checkpoint *checkpoint, bool by_epochs)
{
    const struct el_device_spec spec = {.backend = "cpu", .kernels = el_kernels_reference()};
    struct el_device *device;
    struct el_bootstrap *self;
    struct el_train_config own = config;
    struct el_train_result result;
    if (by_epochs) own.epochs = EPOCHS;
    if (by_epochs) own.min_time_s = 0;
    if (el_bootstrap_open("self", &self) != EL_OK || el_device_open(&spec, &device) != EL_OK) abort();
    const struct el_train_place place = {
        .devices = &device, .n_devices = 1, .bootstrap = self, .dataset = data, .checkpoint.resume = checkpoint};
    if (fuzz_status(el_train(&own, &place, NULL, &result))) {
        fuzz_expect(result.start == el_checkpoint_step(checkpoint), "it goes on behind the checkpoint's step");
        el_train_result_free(&result);
    }
    el_device_close(device);
    el_bootstrap_close(self);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct el_checkpoint *checkpoint;
    char folder[EL_PATH_BYTES], *text = fuzz_text(bytes, size);
    json_t *document = json_loads(text, 0, NULL);
    set_up();
    snprintf(folder, sizeof folder, "%s/step-1", fuzz_folder());
    mkdir(folder, 0777);
    if (document && write_checkpoint(folder, document) && fuzz_status(el_checkpoint_open(folder, &checkpoint))) {
        const bool by_epochs = json_is_true(json_object_get(document, "by_epochs"));
        struct el_train_config own = config;
        if (by_epochs) own.epochs = EPOCHS;
        if (fuzz_status(el_checkpoint_check(checkpoint, &own, model)) &&
            fuzz_status(el_checkpoint_check_data(checkpoint, data))) {
            read_all(checkpoint);
            if (el_checkpoint_step(checkpoint) < STEP_MAX) train_on(checkpoint, by_epochs);
        }
        el_checkpoint_close(checkpoint);
    }
    el_checkpoint_remove(folder);
    json_decref(document);
    free(text);
    return 0;
}
