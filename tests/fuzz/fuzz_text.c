/* A file of `label sentence` lines: as the training set and as the test set, and a batch of it; and the end of a log.
 */
#include <stdlib.h>

#include "runtime/data/data.h"
#include "runtime/launch/launch.h"
#include "tests/fuzz/fuzz.h"

enum { BATCH = 4, SEQ_MAX = 4096 };

static void fill(const struct el_dataset *set)
{
    static int32_t ids[BATCH * SEQ_MAX], labels[BATCH];
    const struct el_loader_spec spec = {
        .split = EL_SPLIT_TEST, .global_batch = BATCH, .ranks = 1, .input = EL_INPUT_IDS};
    struct el_loader *loader;
    if (el_dataset_info(set)->seq > SEQ_MAX || !fuzz_status(el_loader_open(set, &spec, &loader))) return;
    fuzz_status(el_loader_fill(loader, 0, ids, labels));
    for (int64_t i = 0; i < BATCH * el_dataset_info(set)->seq; i++)
        fuzz_expect(ids[i] >= 0 && ids[i] < el_dataset_info(set)->vocab, "ids are below the vocabulary's size");
    for (int i = 0; i < BATCH; i++)
        fuzz_expect(labels[i] >= -1 && labels[i] < el_dataset_info(set)->classes,
                    "labels are below the number of classes");
    el_loader_close(loader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char tail[256];
    const char *path = fuzz_file("rank-0.log", data, size);
    const struct el_dataset_spec spec = {.source = path, .test_path = path, .held_out = size % 2 ? 0.25 : 0};
    struct el_dataset *set;
    if (fuzz_status(el_dataset_open(&spec, &set))) {
        fill(set);
        el_dataset_close(set);
    }
    el_launch_log_tail(fuzz_folder(), 0, 5, tail, sizeof tail);
    return 0;
}
