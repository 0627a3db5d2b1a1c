/* A safetensors file: as it is, or, where the input is an object of JSON, the header of one with a little data; held
 * against a model, and read. */
#include <stdlib.h>
#include <string.h>

#include "runtime/models/models.h"
#include "runtime/state/weights.h"
#include "tests/fuzz/fuzz.h"

enum { DATA_BYTES = 64, READ_MAX = 1 << 16 };

static const struct el_graph *linear_model(void)
{
    static struct el_graph *graph;
    struct el_model_config config = {.name = "linear", .dropout = -1};
    if (!graph && (el_model_resolve(&config) != EL_OK || el_model_build(&config, &graph) != EL_OK)) abort();
    return graph;
}

static void read_all(const struct el_safetensors *file)
{
    static double values[READ_MAX];
    for (int i = 0; i < el_safetensors_count(file); i++) {
        const struct el_stored_array *array = el_safetensors_array(file, i);
        fuzz_expect(el_safetensors_find(file, array->name) == array, "an array has its name alone");
        if (array->count > READ_MAX) continue;
        fuzz_expect(fuzz_status(el_safetensors_read(file, array, values)), "what the header has can be read");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const bool header = size > 0 && data[0] == '{';
    uint64_t length = size;
    struct el_safetensors *file;
    char *bytes = calloc(1, sizeof length + size + DATA_BYTES);
    if (!bytes) abort();
    memcpy(bytes, &length, sizeof length);
    memcpy(bytes + (header ? sizeof length : 0), data, size);
    const char *path = fuzz_file("w.safetensors", bytes, header ? sizeof length + size + DATA_BYTES : size);
    if (fuzz_status(el_safetensors_open(path, &file))) {
        read_all(file);
        fuzz_status(el_weights_check(file, linear_model()));
        el_safetensors_close(file);
    }
    free(bytes);
    return 0;
}
