/* A trace of anyone's, and the figures made of it. */
#include <stdio.h>
#include <stdlib.h>

#include "profiles/kineto.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct el_kineto_trace trace;
    FILE *file = fmemopen((uint8_t *)(uintptr_t)data, size, "r");
    if (!file) return 0;
    bool is_one = fuzz_status(el_kineto_read(file, UINT64_MAX, "trace", &trace));
    fclose(file);
    if (!is_one) return 0;
    for (size_t i = 0; i < trace.n_lanes; i++) {
        struct el_kineto_figures f;
        if (!fuzz_status(el_kineto_figures(&trace.lanes[i], &f))) continue;
        if (!(f.idle_s > -1e-6) || !(f.window_s + 1e-6 >= f.compute_s) || !(f.exposed_s > -1e-6)) abort();
    }
    el_kineto_free(&trace);
    return 0;
}
