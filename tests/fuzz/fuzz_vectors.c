/* A file of word vectors, for the words of a small set. */
#include "runtime/data/data.h"
#include "runtime/data/vectors.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char sentences[] = "0 one two three four\n1 five six seven eight nine\n";
    static char own[512];
    struct el_dataset *set;
    if (!own[0]) snprintf(own, sizeof own, "%s", fuzz_file("sentences", sentences, sizeof sentences - 1));
    const char *path = fuzz_file("vectors.txt", data, size);
    const struct el_dataset_spec spec = {.source = own, .vectors = path, .vocab = size % 3 ? 0 : 6};
    if (!fuzz_status(el_dataset_open(&spec, &set))) return 0;
    const struct el_vectors *vectors = el_dataset_vectors(set);
    fuzz_expect(vectors && vectors->n > 0 && vectors->dim > 0, "there is a vector");
    for (int64_t i = 0; i < vectors->n; i++)
        fuzz_expect(vectors->ids[i] >= 2 && vectors->ids[i] < el_dataset_vocab(set), "a word of the set has it");
    el_dataset_close(set);
    return 0;
}
