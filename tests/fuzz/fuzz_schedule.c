/* A table of torch.distributed.pipelining as a pipeline's schedule: what is taken can be run. */
#include "runtime/layout/schedule.h"
#include "runtime/train/train.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct el_train_config config = {.parts = 0};
    struct el_schedule schedule;
    snprintf(config.schedule, sizeof config.schedule, "%s", fuzz_file("schedule.csv", data, size));
    for (int n = 1; n <= 4; n++) {
        if (fuzz_status(el_schedule_open(&config, n, &schedule))) {
            fuzz_expect(schedule.room >= 2 && schedule.n_parts >= n, "each device has a part");
            for (int d = 0; d < n; d++)
                fuzz_expect(el_schedule_in_flight(&schedule, d) > 0, "each device goes forward");
        }
        el_schedule_close(&schedule);
    }
    return 0;
}
