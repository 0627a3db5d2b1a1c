/* One option's value: "name" in the first line, the value in the rest (lists of modes, devices, batches, buckets;
 * sizes, seconds, per cents; --inject). What is shown of a value that was taken reads as the same value. */
#include <stdlib.h>
#include <string.h>

#include "bench/options/options.h"
#include "bench/trial/trial.h"
#include "tests/fuzz/fuzz.h"

enum { SHOWN_BYTES = 4096, DEVICES = 4 };

static void take(const struct el_option_row *row, const char *value)
{
    struct el_options *options = calloc(2, sizeof *options);
    char shown[SHOWN_BYTES] = "", again[SHOWN_BYTES] = "";
    if (!options) abort();
    if (fuzz_status(el_option_set(row, value, &options[0]))) {
        el_option_show(row, &options[0], shown, sizeof shown);
        if (shown[0] && strlen(shown) < sizeof shown - 1) {
            fuzz_expect(el_option_set(row, shown, &options[1]) == EL_OK, "a value that is shown can be read");
            el_option_show(row, &options[1], again, sizeof again);
            fuzz_expect(strcmp(shown, again) == 0, "a value that is shown reads as the same value");
        }
    }
    free(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct el_inject injects[DEVICES];
    char *text = fuzz_text(data, size), *value = strchr(text, '\n');
    if (value) {
        *value++ = 0;
        for (const struct el_option_row *row = el_option_rows(); row->name; row++)
            if (!strcmp(row->name, text)) take(row, value);
        if (!strcmp(text, "inject")) fuzz_status(el_inject_parse(value, DEVICES, injects));
    }
    free(text);
    return 0;
}
