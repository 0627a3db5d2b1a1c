/* The library that NVTX loads where NVTX_INJECTION64_PATH names it, as a profiler's would be: it hands the meeting over
 * to the program that it is loaded into (tests/unit/test_nvtx.c). */
#include <stdint.h>

int nvtx_be_injected(const void *(*get_export_table)(uint32_t id));
int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id));

int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id))
{
    return nvtx_be_injected(get_export_table);
}
