/* The table of the module el_mpi.so, the program's only access to MPI. */
#pragma once

#include "runtime/comm/bootstrap_ops.h"
#include "runtime/comm/comm_ops.h"

struct el_mpi_module {
    /* Once per process. */
    enum el_status (*bootstrap_open)(struct el_bootstrap **bootstrap_p);
    const struct el_comm_backend *comm;
};

/* Errors: EL_ERR_ABSENT with what to install. */
enum el_status el_mpi_module_open(const struct el_mpi_module **module_p);

const struct el_mpi_module *el_mpi_module(void);
