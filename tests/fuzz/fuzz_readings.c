/* What a program printed, for `regress --ab`: lines 'metric value unit', or a record of ours. */
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/regress/launches.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct el_readings readings;
    if (fuzz_status(el_readings_parse(text, &readings))) {
        fuzz_expect(readings.n > 0, "what was read has a metric");
        for (size_t i = 0; i < readings.n; i++) {
            const struct el_reading *row = &readings.rows[i];
            fuzz_expect(strlen(row->name) < sizeof row->name && strlen(row->unit) < sizeof row->unit, "names end");
            json_t *name = json_string(row->name);
            fuzz_expect(name != NULL, "a name can be written as JSON");
            json_decref(name);
        }
    }
    el_readings_free(&readings);
    free(text);
    return 0;
}
