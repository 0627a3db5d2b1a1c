/* GPT-2's vocabulary: vocab.json, merges.txt and a text, with zero bytes between them. */
#include <stdlib.h>
#include <string.h>

#include "runtime/data/bpe.h"
#include "tests/fuzz/fuzz.h"

static void encode(const struct el_bpe *bpe, const int32_t *token_bytes, const uint8_t *text, size_t size)
{
    int32_t *ids;
    int64_t n, bytes = 0;
    if (!fuzz_status(el_bpe_encode(bpe, (const char *)text, size, &ids, &n))) return;
    for (int64_t i = 0; i < n; i++) {
        fuzz_expect(ids[i] >= 0 && ids[i] < el_bpe_size(bpe), "ids are below the vocabulary's size");
        bytes += token_bytes[ids[i]];
    }
    fuzz_expect(bytes == (int64_t)size, "ids stand for all bytes of the text");
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *parts[3] = {data, data + size, data + size}, *const end = data + size;
    for (int i = 0; i < 2 && parts[i] < end; i++) {
        const uint8_t *stop = memchr(parts[i], 0, (size_t)(end - parts[i]));
        if (stop) parts[i + 1] = stop + 1;
    }
    const size_t vocabulary = (size_t)(parts[1] - parts[0]), merges = (size_t)(parts[2] - parts[1]);
    fuzz_file("merges.txt", parts[1], merges ? merges - 1 : 0);
    const char *path = fuzz_file("vocab.json", parts[0], vocabulary && parts[1] < end ? vocabulary - 1 : vocabulary);
    struct el_bpe *bpe;
    if (!fuzz_status(el_bpe_open(path, &bpe))) return 0;
    int32_t *token_bytes = el_bpe_take_token_bytes(bpe);
    encode(bpe, token_bytes, parts[2], (size_t)(end - parts[2]));
    free(token_bytes);
    el_bpe_close(bpe);
    return 0;
}
