/* Opens the module that knows protobuf-c. */
#include "profiles/chakra.h"

#include <string.h>

#include "profiles/chakra/module.h"
#include "runtime/base/module.h"

static enum el_status open_module(el_chakra_writer **write_p)
{
    void *symbol;
    struct el_error error;
    enum el_status status = el_module_open("chakra", "el_chakra_module", &symbol);
    if (status != EL_OK) {
        el_error_take(status, &error);
        return el_fail(status, "%.200s; install libprotobuf-c-dev and protobuf-c-compiler and build again", error.text);
    }
    memcpy(write_p, &symbol, sizeof symbol); /* C has no conversion from an object's to a function's pointer */
    return EL_OK;
}

enum el_status el_chakra_check(void)
{
    el_chakra_writer *write;
    return open_module(&write);
}

enum el_status el_chakra_write(const struct el_trace_rank *rank, int64_t cycle, const char *path)
{
    el_chakra_writer *write;
    EL_TRY(open_module(&write));
    return write(rank, cycle, path);
}
