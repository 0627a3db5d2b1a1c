/* Opens the module with NVTX. */
#include "profiles/nvtx.h"

#include <string.h>

#include "runtime/base/module.h"

enum el_status el_nvtx_open(struct el_watch *watch_p)
{
    void *symbol;
    bool (*fill)(struct el_watch *);
    EL_TRY(el_module_open("nvtx", "el_nvtx_module", &symbol));
    memcpy(&fill, &symbol, sizeof fill); /* C cannot convert an object pointer to a function pointer */
    return fill(watch_p) ? EL_OK : el_fail(EL_ERR_ABSENT, "nvtx: built without NVTX's headers (nvtx3/nvToolsExt.h)");
}
