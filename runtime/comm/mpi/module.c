/* Finds MPI: the module, or what to install for it. */
#include "runtime/base/module.h"
#include "runtime/comm/mpi/module.h"

enum el_status el_mpi_module_open(const struct el_mpi_module **module_p)
{
    const void *table;
    struct el_error error;
    enum el_status status = el_module_table("mpi", "el_mpi_module", &table);
    if (status == EL_OK) {
        *module_p = table;
        return EL_OK;
    }
    el_error_take(status, &error);
    return el_fail(status, "%.380s; install libopenmpi-dev and openmpi-bin and build again", error.text);
}
