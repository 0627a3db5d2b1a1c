/* Finds the driver's library, the module and the cards, and says what is missing. Loads nothing before a GPU is asked
 * for. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/module.h"
#include "runtime/device/cuda_api.h"

static const char NO_DRIVER[] = "cuda: no NVIDIA driver found: install one, or let the container have the GPUs "
                                "(docker run --gpus all)";

/* The library stays open: CUDA loads it anyway. */
static bool has_driver_library(void)
{
    return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != NULL;
}

static const char *advice_of(int code)
{
    switch (code) {
    case EL_CUDA_ERROR_MEMORY:
        return "; take a smaller batch or model, or end other processes on the card";
    case EL_CUDA_ERROR_BUSY:
        return "; another process has the card for itself (nvidia-smi -q -d COMPUTE): end it or take another card";
    case EL_CUDA_ERROR_SYSTEM_NOT_READY:
        return "; start the fabric manager (nvidia-fabricmanager), which cards with NVSwitch need";
    case EL_CUDA_ERROR_DRIVER_MISMATCH:
        return "; the driver's library and its kernel module differ: load the module again, or start the machine again";
    case EL_CUDA_ERROR_COMPATIBILITY:
        return "; the container's own libcuda.so (cuda-compat) does not go with this card: leave its folder out of "
               "LD_LIBRARY_PATH, or update the driver";
    case EL_CUDA_ERROR_UNKNOWN:
        return "; load the kernel module nvidia_uvm again, or start the machine again";
    default:
        return "";
    }
}

enum el_status el_cuda_status(const struct el_cuda_api *api, const char *who, const char *call, int code)
{
    if (code == EL_CUDA_SUCCESS) return EL_OK;
    enum el_status status = EL_ERR_INTERNAL;
    const char *advice = advice_of(code);
    if (code == EL_CUDA_ERROR_MEMORY) status = EL_ERR_OOM;
    if (code == EL_CUDA_ERROR_NO_DEVICE || code == EL_CUDA_ERROR_OLD_DRIVER || code == EL_CUDA_ERROR_BUSY)
        status = EL_ERR_ABSENT;
    api->GetLastError();
    return el_fail(status, "%s: cuda%s: %s (%s)%s", who, call, api->GetErrorString(code), api->GetErrorName(code),
                   advice);
}

static int driver_version(const struct el_cuda_api *api)
{
    int version = 0;
    api->DriverGetVersion(&version);
    return version;
}

/* A driver reports its highest CUDA version; older drivers of the same major version serve newer run times. */
static enum el_status old_driver(const struct el_cuda_api *api)
{
    int driver = driver_version(api), runtime = 0;
    api->RuntimeGetVersion(&runtime);
    return el_fail(EL_ERR_ABSENT,
                   "cuda: the NVIDIA driver knows CUDA up to %d.%d, evenload was built with CUDA %d.%d: update the "
                   "driver, or build with an older toolkit; --devices cpu:2 trains without GPUs",
                   driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

enum el_status el_cuda_count(const struct el_cuda_module *module, int *n_devices_p)
{
    const struct el_cuda_api *api = module->api;
    int n = 0, code = api->GetDeviceCount(&n);
    if (code != EL_CUDA_SUCCESS) api->GetLastError();
    bool old = code == EL_CUDA_ERROR_OLD_DRIVER || code == EL_CUDA_ERROR_STUB_LIBRARY;
    if (code == EL_CUDA_ERROR_NO_DEVICE || (old && driver_version(api) == 0)) code = n = 0;
    if (old && code) return old_driver(api);
    if (code != EL_CUDA_SUCCESS)
        return el_fail(EL_ERR_ABSENT,
                       "cuda: there is a driver, and it fails: cudaGetDeviceCount: %s (%s)%s; --devices cpu:2 trains "
                       "without GPUs",
                       api->GetErrorString(code), api->GetErrorName(code), advice_of(code));
    *n_devices_p = n;
    return EL_OK;
}

const char *el_cuda_visible(char text[EL_CUDA_VISIBLE_BYTES])
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES"), *at = list;
    bool read = true;
    text[0] = '\0';
    if (!list) return text;
    while (read && *at) {
        size_t whole = strcspn(at, ",");
        read = strspn(at, "0123456789") == whole || !strncmp(at, "GPU-", 4) || !strncmp(at, "MIG-", 4);
        if (read) at += whole + (at[whole] == ',');
    }
    if (*at)
        snprintf(text, EL_CUDA_VISIBLE_BYTES, " (it is '%.80s', and CUDA takes '%.*s' for no GPU)", list,
                 (int)strcspn(at, ","), at);
    else
        snprintf(text, EL_CUDA_VISIBLE_BYTES, " (it is '%.80s')", list);
    return text;
}

enum el_status el_cuda_find(const struct el_cuda_module *module, int *n_devices_p)
{
    char visible[EL_CUDA_VISIBLE_BYTES];
    int n;
    EL_TRY(el_cuda_count(module, &n));
    if (n == 0 && driver_version(module->api) == 0) return el_fail(EL_ERR_ABSENT, "%s", NO_DRIVER);
    if (n == 0)
        return el_fail(EL_ERR_ABSENT,
                       "cuda: there is a driver and no GPU that this process may use: see nvidia-smi and "
                       "CUDA_VISIBLE_DEVICES%s",
                       el_cuda_visible(visible));
    *n_devices_p = n;
    return EL_OK;
}

enum el_status el_cuda_module_load(const struct el_cuda_module **module_p)
{
    const void *table;
    if (!el_module_exists("cuda"))
        return el_fail(EL_ERR_ABSENT, "cuda: built without CUDA: no toolkit was found (install nvcc and cuBLAS, or set "
                                      "CUDA_HOME, and build again)");
    EL_TRY(el_module_table("cuda", "el_cuda_module", &table));
    *module_p = table;
    return EL_OK;
}

enum el_status el_cuda_module_open(const struct el_cuda_module **module_p, int *n_devices_p)
{
    const struct el_cuda_module *module = NULL;
    if (el_module_exists("cuda") && !has_driver_library()) return el_fail(EL_ERR_ABSENT, "%s", NO_DRIVER);
    EL_TRY(el_cuda_module_load(&module));
    EL_TRY(el_cuda_find(module, n_devices_p));
    *module_p = module;
    return EL_OK;
}

enum el_status el_cuda_cards(int *n_devices_p)
{
    const struct el_cuda_module *module = NULL;
    *n_devices_p = 0;
    if (!el_module_exists("cuda") || !has_driver_library()) return EL_OK;
    EL_TRY(el_cuda_module_load(&module));
    return el_cuda_count(module, n_devices_p);
}
