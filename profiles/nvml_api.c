/* A function's names, newest first: later drivers rename the same function. */
#include "profiles/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "runtime/base/module.h"

struct row {
    const char *names[2];
    bool required;
    size_t offset; /* of the pointer in the table */
};

#define ROW(field, required_, ...)                                                                                     \
    {                                                                                                                  \
        .names = {__VA_ARGS__}, .required = required_, .offset = offsetof(struct el_nvml_api, field)                   \
    }

static const struct row rows[] = {
    ROW(handle_by_uuid, true, "nvmlDeviceGetHandleByUUID"),
    ROW(error_text, false, "nvmlErrorString"),
    ROW(utilization, false, "nvmlDeviceGetUtilizationRates"),
    ROW(memory, false, "nvmlDeviceGetMemoryInfo"),
    ROW(memory_v2, false, "nvmlDeviceGetMemoryInfo_v2"),
    ROW(clock, false, "nvmlDeviceGetClockInfo"),
    ROW(power, false, "nvmlDeviceGetPowerUsage"),
    ROW(energy, false, "nvmlDeviceGetTotalEnergyConsumption"),
    ROW(throttle, false, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
    ROW(processes, false, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),
    ROW(process_utilization, false, "nvmlDeviceGetProcessUtilization"),
    ROW(count, false, "nvmlDeviceGetCount_v2"),
    ROW(handle_by_index, false, "nvmlDeviceGetHandleByIndex_v2"),
    ROW(uuid, false, "nvmlDeviceGetUUID"),
    ROW(name, false, "nvmlDeviceGetName"),
    ROW(pci, false, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"),
    ROW(pcie[0], false, "nvmlDeviceGetCurrPcieLinkGeneration"),
    ROW(pcie[1], false, "nvmlDeviceGetMaxPcieLinkGeneration"),
    ROW(pcie[2], false, "nvmlDeviceGetCurrPcieLinkWidth"),
    ROW(pcie[3], false, "nvmlDeviceGetMaxPcieLinkWidth"),
    ROW(pcie_replays, false, "nvmlDeviceGetPcieReplayCounter"),
    ROW(nvlink_state, false, "nvmlDeviceGetNvLinkState"),
    ROW(nvlink_version, false, "nvmlDeviceGetNvLinkVersion"),
    ROW(nvlink_peer, false, "nvmlDeviceGetNvLinkRemoteDeviceType"),
    ROW(nvlink_peer_pci, false, "nvmlDeviceGetNvLinkRemotePciInfo_v2"),
    ROW(nvlink_errors, false, "nvmlDeviceGetNvLinkErrorCounter"),
    ROW(fields, false, "nvmlDeviceGetFieldValues"),
    ROW(ancestor, false, "nvmlDeviceGetTopologyCommonAncestor"),
};

enum el_status el_nvml_bind(void *(*find)(void *context, const char *symbol), void *context, struct el_nvml_api *api_p)
{
    struct el_nvml_api api = {NULL};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        void *symbol = find(context, row->names[0]);
        if (!symbol && row->names[1]) symbol = find(context, row->names[1]);
        if (!symbol && row->required)
            return el_fail(EL_ERR_ABSENT, "NVML: no %s in the driver's library: the driver is too old", row->names[0]);
        memcpy((char *)&api + row->offset, &symbol, sizeof symbol); /* C cannot convert to a function pointer */
    }
    *api_p = api;
    return EL_OK;
}

bool el_nvml_memory(const struct el_nvml_api *api, void *device, struct el_nvml_memory *memory_p)
{
    struct el_nvml_memory_v2 all = {.version = EL_NVML_MEMORY_V2};
    if (!api->memory_v2 || api->memory_v2(device, &all) != 0) return api->memory && api->memory(device, memory_p) == 0;
    const bool twice =
        all.used_bytes >= all.reserved_bytes && all.used_bytes + all.reserved_bytes + all.free_bytes > all.total_bytes;
    *memory_p = (struct el_nvml_memory){.total_bytes = all.total_bytes,
                                        .free_bytes = all.free_bytes,
                                        .used_bytes = all.used_bytes - (twice ? all.reserved_bytes : 0)};
    return true;
}

const char *el_nvml_text(const struct el_nvml_api *api, int result)
{
    return api->error_text ? api->error_text(result) : "an error";
}

static void *find_in_library(void *library, const char *symbol)
{
    return dlsym(library, symbol);
}

enum el_status el_nvml_load(struct el_nvml_api *api_p)
{
    void *library;
    EL_TRY(el_nvml_library(&library));
    return el_nvml_bind(find_in_library, library, api_p);
}
