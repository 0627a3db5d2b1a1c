/* NVML is initialized once, which takes tens of milliseconds, and kept: it makes no context and takes no card
 * memory. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "runtime/base/module.h"

static enum el_status start(void **library_p)
{
    int (*init)(void);
    const char *(*text)(int);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return el_fail(EL_ERR_ABSENT, "NVML: no libnvidia-ml.so.1: no NVIDIA driver here");
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&text = dlsym(library, "nvmlErrorString");
    if (!init) return el_fail(EL_ERR_ABSENT, "NVML: no nvmlInit_v2 in the driver's library: the driver is too old");
    int result = init();
    if (result == 0) *library_p = library;
    return result == 0 ? EL_OK : el_fail(EL_ERR_ABSENT, "NVML does not start: %s", text ? text(result) : "an error");
}

enum el_status el_nvml_library(void **library_p)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *library;
    pthread_mutex_lock(&lock);
    enum el_status status = library ? EL_OK : start(&library);
    *library_p = library;
    pthread_mutex_unlock(&lock);
    return status;
}
