/* Held against NVIDIA's own headers when it is compiled (tests/cli/releases.bats), and never run: the layouts and
 * values that profiles/nvml.h gives in our words. CUDA's and NCCL's are asserted where they are used. */
#include <nvml.h>
#include <stddef.h>

#include "profiles/nvml.h"

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #theirs)
#define SAME_PLACE(ours, field, theirs, their_field)                                                                   \
    _Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field), #theirs "." #their_field);           \
    _Static_assert(sizeof((struct ours){0}.field) == sizeof((theirs){0}.their_field), #theirs "." #their_field)
#define SAME_VALUE(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs)

SAME_SIZE(el_nvml_utilization, nvmlUtilization_t);
SAME_PLACE(el_nvml_utilization, gpu_pct, nvmlUtilization_t, gpu);
SAME_PLACE(el_nvml_utilization, memory_pct, nvmlUtilization_t, memory);

SAME_SIZE(el_nvml_memory, nvmlMemory_t);
SAME_PLACE(el_nvml_memory, total_bytes, nvmlMemory_t, total);
SAME_PLACE(el_nvml_memory, free_bytes, nvmlMemory_t, free);
SAME_PLACE(el_nvml_memory, used_bytes, nvmlMemory_t, used);

SAME_SIZE(el_nvml_memory_v2, nvmlMemory_v2_t);
SAME_PLACE(el_nvml_memory_v2, version, nvmlMemory_v2_t, version);
SAME_PLACE(el_nvml_memory_v2, total_bytes, nvmlMemory_v2_t, total);
SAME_PLACE(el_nvml_memory_v2, reserved_bytes, nvmlMemory_v2_t, reserved);
SAME_PLACE(el_nvml_memory_v2, used_bytes, nvmlMemory_v2_t, used);
SAME_VALUE(EL_NVML_MEMORY_V2, nvmlMemory_v2);

SAME_SIZE(el_nvml_process, nvmlProcessInfo_t);
SAME_PLACE(el_nvml_process, pid, nvmlProcessInfo_t, pid);
SAME_PLACE(el_nvml_process, used_bytes, nvmlProcessInfo_t, usedGpuMemory);
SAME_PLACE(el_nvml_process, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
SAME_PLACE(el_nvml_process, compute_instance, nvmlProcessInfo_t, computeInstanceId);

SAME_SIZE(el_nvml_process_sample, nvmlProcessUtilizationSample_t);
SAME_PLACE(el_nvml_process_sample, pid, nvmlProcessUtilizationSample_t, pid);
SAME_PLACE(el_nvml_process_sample, time_us, nvmlProcessUtilizationSample_t, timeStamp);
SAME_PLACE(el_nvml_process_sample, sm_pct, nvmlProcessUtilizationSample_t, smUtil);
SAME_PLACE(el_nvml_process_sample, memory_pct, nvmlProcessUtilizationSample_t, memUtil);
SAME_PLACE(el_nvml_process_sample, encoder_pct, nvmlProcessUtilizationSample_t, encUtil);
SAME_PLACE(el_nvml_process_sample, decoder_pct, nvmlProcessUtilizationSample_t, decUtil);

SAME_SIZE(el_nvml_pci, nvmlPciInfo_t);
SAME_PLACE(el_nvml_pci, legacy_text, nvmlPciInfo_t, busIdLegacy);
SAME_PLACE(el_nvml_pci, domain, nvmlPciInfo_t, domain);
SAME_PLACE(el_nvml_pci, bus, nvmlPciInfo_t, bus);
SAME_PLACE(el_nvml_pci, device, nvmlPciInfo_t, device);
SAME_PLACE(el_nvml_pci, id, nvmlPciInfo_t, pciDeviceId);
SAME_PLACE(el_nvml_pci, text, nvmlPciInfo_t, busId);

SAME_SIZE(el_nvml_field, nvmlFieldValue_t);
SAME_PLACE(el_nvml_field, id, nvmlFieldValue_t, fieldId);
SAME_PLACE(el_nvml_field, scope, nvmlFieldValue_t, scopeId);
SAME_PLACE(el_nvml_field, time_us, nvmlFieldValue_t, timestamp);
SAME_PLACE(el_nvml_field, latency_us, nvmlFieldValue_t, latencyUsec);
SAME_PLACE(el_nvml_field, type, nvmlFieldValue_t, valueType);
SAME_PLACE(el_nvml_field, result, nvmlFieldValue_t, nvmlReturn);
SAME_PLACE(el_nvml_field, value, nvmlFieldValue_t, value);

SAME_VALUE(EL_NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(EL_NVML_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME_VALUE(EL_NVML_TOO_SMALL, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_VALUE(EL_NVML_CLOCK_SM, NVML_CLOCK_SM);
SAME_VALUE(EL_NVML_LINK_ERRORS, NVML_NVLINK_ERROR_DL_CRC_DATA + 1);
_Static_assert(EL_NVML_LINKS_MAX >= NVML_NVLINK_MAX_LINKS, "NVLinks");
SAME_VALUE(EL_NVML_PEER_SWITCH, NVML_NVLINK_DEVICE_TYPE_SWITCH);
SAME_VALUE(EL_NVML_LINKS_SPEED, NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON);
SAME_VALUE(EL_NVML_LINK_SPEED, NVML_FI_DEV_NVLINK_GET_SPEED);
SAME_VALUE(EL_NVML_UNSIGNED, NVML_VALUE_TYPE_UNSIGNED_INT);
#define OR(bit, text, name) | bit
SAME_VALUE(0 EL_NVML_THROTTLE_LIST(OR), nvmlClocksThrottleReasonSwPowerCap | nvmlClocksThrottleReasonHwSlowdown |
                                            nvmlClocksThrottleReasonSwThermalSlowdown |
                                            nvmlClocksThrottleReasonHwThermalSlowdown |
                                            nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
