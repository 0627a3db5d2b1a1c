/* The table of the module el_mpi.so: all that the program knows of MPI. mpi/ fills it, bootstrap.c and comm.c use it.
 * The program itself is not linked to MPI and starts where there is none. */
#pragma once

#include "runtime/comm/bootstrap_ops.h"
#include "runtime/comm/comm_ops.h"

struct el_mpi_module {
    /* Initialises MPI; once per process. */
    enum el_status (*bootstrap_open)(struct el_bootstrap **bootstrap_p);
    const struct el_comm_backend *comm;
};

/* Opens the module at first use. Errors: EL_ERR_ABSENT with what to install. */
enum el_status el_mpi_module_open(const struct el_mpi_module **module_p);

/* The module's one symbol. */
const struct el_mpi_module *el_mpi_module(void);
