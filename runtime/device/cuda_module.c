/* Finds CUDA: the driver's library, the module, the cards; and says exactly what is missing. Nothing of it is loaded
 * before somebody asks for a GPU. */
#include <dlfcn.h>

#include "runtime/base/module.h"
#include "runtime/device/cuda_api.h"

static const char NO_DRIVER[] = "cuda: no NVIDIA driver found: install one, or let the container have the GPUs "
                                "(docker run --gpus all)";

/* The library stays open: CUDA loads it anyway. */
static bool has_driver_library(void)
{
    return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != NULL;
}

bool el_cuda_is_likely(void)
{
    return el_module_exists("cuda") && has_driver_library();
}

enum el_status el_cuda_status(const struct el_cuda_api *api, const char *who, const char *call, int code)
{
    if (code == EL_CUDA_SUCCESS) return EL_OK;
    enum el_status status = EL_ERR_INTERNAL;
    if (code == EL_CUDA_ERROR_MEMORY) status = EL_ERR_OOM;
    if (code == EL_CUDA_ERROR_NO_DEVICE || code == EL_CUDA_ERROR_OLD_DRIVER) status = EL_ERR_ABSENT;
    const char *advice =
        status == EL_ERR_OOM ? "; take a smaller batch or model, or end other processes on the card" : "";
    api->GetLastError();
    return el_fail(status, "%s: cuda%s: %s (%s)%s", who, call, api->GetErrorString(code), api->GetErrorName(code),
                   advice);
}

/* A driver tells up to which version of CUDA it goes; within a major version older ones serve newer run times. */
static enum el_status old_driver(const struct el_cuda_api *api)
{
    int driver = 0, runtime = 0;
    api->DriverGetVersion(&driver);
    api->RuntimeGetVersion(&runtime);
    if (driver == 0) return el_fail(EL_ERR_ABSENT, "%s", NO_DRIVER);
    return el_fail(EL_ERR_ABSENT,
                   "cuda: the NVIDIA driver knows CUDA up to %d.%d, evenload was built with CUDA %d.%d: update the "
                   "driver, or build with an older toolkit",
                   driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

enum el_status el_cuda_count(const struct el_cuda_module *module, int *n_devices_p)
{
    const struct el_cuda_api *api = module->api;
    int n = 0, code = api->GetDeviceCount(&n);
    if (code != EL_CUDA_SUCCESS) api->GetLastError();
    if (code == EL_CUDA_ERROR_OLD_DRIVER || code == EL_CUDA_ERROR_STUB_LIBRARY) return old_driver(api);
    if (code == EL_CUDA_ERROR_NO_DEVICE || (code == EL_CUDA_SUCCESS && n == 0))
        return el_fail(EL_ERR_ABSENT,
                       "cuda: there is a driver and no GPU that this process may use: see nvidia-smi and "
                       "CUDA_VISIBLE_DEVICES");
    EL_TRY(el_cuda_status(api, "cuda", "GetDeviceCount", code));
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
    EL_TRY(el_cuda_count(module, n_devices_p));
    *module_p = module;
    return EL_OK;
}
