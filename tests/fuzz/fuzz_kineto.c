/* A trace of anyone's, and the figures made of it. */
#include <math.h>
#include <stdlib.h>

#include "profiles/kineto.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct el_kineto_trace trace;
    if (!fuzz_status(el_kineto_read((const char *)data, size, "trace", &trace))) return 0;
    for (size_t i = 0; i < trace.n_lanes; i++) {
        struct el_kineto_figures f;
        if (!fuzz_status(el_kineto_figures(&trace.lanes[i], &f))) continue;
        if (!(f.idle_s > -1e-6) || !(f.window_s + 1e-6 >= f.compute_s) || !(f.exposed_s > -1e-6)) abort();
    }
    el_kineto_free(&trace);
    return 0;
}
