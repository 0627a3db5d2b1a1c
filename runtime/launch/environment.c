/* Environments: what they tell of this process, and what a job's processes are given. It starts nothing. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/launch/launch.h"

const char *el_launch_getenv(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

/* A launcher and the names it speaks by; `size` and `local` may be missing. SLURM_PROCID is not here: a batch script
 * has it too, and is no rank. */
static const struct {
    const char *launcher, *rank, *size, *local;
} launchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMIx", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
};

static enum el_status read_number(const char *(*get)(void *, const char *), void *context, const char *name,
                                  int *number_p)
{
    const char *text = get(context, name);
    if (!text || !text[0]) return EL_OK;
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (*end || errno || number < 0 || number > INT_MAX)
        return el_fail(EL_ERR_INVALID, "%s is '%s', which is not a number of a rank", name, text);
    *number_p = (int)number;
    return EL_OK;
}

enum el_status el_launch_environment(const char *(*get)(void *context, const char *name), void *context,
                                     struct el_launch_place *place_p)
{
    struct el_launch_place place = {.rank = -1, .size = -1, .local_rank = -1, .launcher = ""};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0] && !place.is_rank; i++) {
        EL_TRY(read_number(get, context, launchers[i].rank, &place.rank));
        if (place.rank < 0) continue;
        EL_TRY(read_number(get, context, launchers[i].size, &place.size));
        EL_TRY(read_number(get, context, launchers[i].local, &place.local_rank));
        place.is_rank = true;
        place.launcher = launchers[i].launcher;
        if (place.size >= 0 && place.rank >= place.size)
            return el_fail(EL_ERR_INVALID, "%s is %d, but %s is %d", launchers[i].rank, place.rank, launchers[i].size,
                           place.size);
    }
    *place_p = place;
    return EL_OK;
}

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* What mpirun itself tells its ranks as settings; a user never sets these. */
static bool is_identity_setting(const char *variable)
{
    static const char *const beginnings[] = {"OMPI_MCA_ess=",
                                             "OMPI_MCA_ess_",
                                             "OMPI_MCA_orte_",
                                             "OMPI_MCA_initial_wdir=",
                                             "OMPI_MCA_mpi_oversubscribe=",
                                             "OMPI_MCA_pmix=",
                                             "OMPI_MCA_plm=",
                                             "OMPI_MCA_shmem_RUNTIME_QUERY_hint=",
                                             "PRTE_MCA_ess_",
                                             "PRTE_MCA_prte_ess_",
                                             "PRTE_MCA_prte_",
                                             "PMIX_MCA_mca_base_component_show_load_errors="};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (begins_with(variable, beginnings[i])) return true;
    return false;
}

/* Whether a variable ties its process to the job it is in. Settings (MCA) are the user's, unless mpirun made them. */
static bool is_identity(const char *variable)
{
    static const char *const settings[] = {"OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "OMPI_ALLOW_RUN_AS_ROOT",
                                           "PRTE_ALLOW_RUN_AS_ROOT"};
    static const char *const beginnings[] = {"OMPI_",   "PMIX_",    "PMI_",      "PMI2_",  "PRTE_",           "SLURM_",
                                             "SLURMD_", "OPAL_JOB", "MPI_LOCAL", "HYDRA_", "EL_LAUNCH_TOKEN="};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (begins_with(variable, settings[i])) return is_identity_setting(variable);
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (begins_with(variable, beginnings[i])) return true;
    return false;
}

/* Why each: root in a container; our own waits sleep, and a library that yields inside MPI_Test loses a whole time
 * slice to the compute thread each time (measured: 35 times slower); process_vm_readv is often forbidden; warnings
 * about networks that are not there. Slots and binding are options of mpirun, in launch.c. */
static const char *const mpi_settings[] = {
    "OMPI_ALLOW_RUN_AS_ROOT=1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "PRTE_ALLOW_RUN_AS_ROOT=1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "OMPI_MCA_mpi_yield_when_idle=0",
    "OMPI_MCA_btl_vader_single_copy_mechanism=none",
    "OMPI_MCA_btl_base_warn_component_unused=0",
    "OMPI_MCA_btl_openib_warn_no_device_params_found=0",
    "OMPI_MCA_orte_base_help_aggregate=0",
    NULL,
};

static bool has_name(char *const *list, int n, const char *variable)
{
    size_t length = strcspn(variable, "=") + 1;
    for (int i = 0; i < n; i++)
        if (strncmp(list[i], variable, length) == 0) return true;
    return false;
}

static int count(const char *const *list)
{
    int n = 0;
    while (list && list[n]) n++;
    return n;
}

char **el_launch_make_environment(char *const *from, const char *const *extra, bool with_mpi)
{
    size_t most = (size_t)(count((const char *const *)from) + count(extra) + count(mpi_settings) + 1);
    char **list = malloc(most * sizeof *list);
    if (!list) return NULL;
    int n = 0;
    for (int i = 0; extra && extra[i]; i++) list[n++] = (char *)extra[i];
    for (int i = 0; from[i]; i++)
        if (!is_identity(from[i]) && !has_name(list, n, from[i])) list[n++] = from[i];
    for (int i = 0; with_mpi && mpi_settings[i]; i++)
        if (!has_name(list, n, mpi_settings[i])) list[n++] = (char *)mpi_settings[i];
    list[n] = NULL;
    return list;
}
