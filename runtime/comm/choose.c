/* Opens the MPI module, and chooses between the ways ranks can reach each other. Apart from comm.c because it deals in
 * hosts and modules, not in operations. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/module.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/mpi/module.h"

enum { IDENTITY_BYTES = 256 };

enum el_status el_mpi_module_open(const struct el_mpi_module **module_p)
{
    void *symbol;
    enum el_status status = el_module_open("mpi", "el_mpi_module", &symbol);
    if (status != EL_OK) {
        struct el_error error;
        el_error_take(status, &error);
        return el_fail(status, "%.380s; install libopenmpi-dev and openmpi-bin and build again", error.text);
    }
    const struct el_mpi_module *(*get)(void);
    memcpy(&get, &symbol, sizeof get); /* C has no conversion from an object's to a function's pointer */
    *module_p = get();
    return EL_OK;
}

/* Name, boot and process namespace: two containers of one host share no memory and do not see each other's pids. */
static void describe_host(char identity[IDENTITY_BYTES])
{
    char host[64] = "", boot[64] = "", names[64] = "";
    gethostname(host, sizeof host - 1);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(boot, sizeof boot, file)) boot[0] = 0;
        fclose(file);
    }
    boot[strcspn(boot, "\n")] = 0;
    ssize_t length = readlink("/proc/self/ns/pid", names, sizeof names - 1);
    names[length < 0 ? 0 : length] = 0;
    memset(identity, 0, IDENTITY_BYTES);
    snprintf(identity, IDENTITY_BYTES, "%s %s %s", host, boot, names);
}

const char *el_comm_choose(struct el_bootstrap *bootstrap)
{
    char mine[IDENTITY_BYTES], first[IDENTITY_BYTES];
    describe_host(mine);
    memcpy(first, mine, sizeof first);
    if (el_bootstrap_broadcast(bootstrap, first, sizeof first) != EL_OK) return "mpi";
    bool same = memcmp(first, mine, sizeof first) == 0;
    enum el_status answer = same ? EL_OK : el_fail(EL_ERR_ABSENT, "another host");
    return el_bootstrap_agree(bootstrap, answer) == EL_OK ? "shm" : "mpi";
}
