/* What environments tell about this process, and what a job's processes get. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/launch/children.h"
#include "runtime/launch/launch.h"

const char *el_launch_getenv(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

/* A launcher's variables; `size`, `local`, `local_size` may be missing. */
struct launcher {
    const char *name, *rank, *size, *local, *local_size;
};

static const struct launcher mpi_launchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMIx", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

/* Also our own launcher, which adds a listener. */
static const struct launcher torchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

/* If torchrun's agent keeps its store at MASTER_PORT, rank 0 takes a port behind it. */
enum { PORTS_BEHIND_AGENT = 16, PORT_MAX = 65535, NAMES_BYTES = 64 };
static const char MASTER_PORT[] = "MASTER_PORT";
static const char *const needed[] = {"RANK", "WORLD_SIZE", "MASTER_ADDR", MASTER_PORT, NULL};

static enum el_status read_number(const char *(*get)(void *, const char *), void *context, const char *name,
                                  int *number_p)
{
    const char *text = get(context, name);
    if (!text || !text[0]) return EL_OK;
    bool port = strcmp(name, MASTER_PORT) == 0;
    const int min = port ? 1 : 0, max = port ? PORT_MAX : INT_MAX;
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (*end || errno || number < min || number > max)
        return el_fail(EL_ERR_INVALID, "%s is '%.40s': it must be %s, from %d to %d", name, text,
                       port ? "a port" : "a whole number", min, max);
    *number_p = (int)number;
    return EL_OK;
}

static enum el_status read_launcher(const char *(*get)(void *, const char *), void *context,
                                    const struct launcher *launcher, struct el_launch_place *place)
{
    EL_TRY(read_number(get, context, launcher->rank, &place->rank));
    if (place->rank < 0) return EL_OK;
    EL_TRY(read_number(get, context, launcher->size, &place->size));
    EL_TRY(read_number(get, context, launcher->local, &place->local_rank));
    EL_TRY(read_number(get, context, launcher->local_size, &place->local_size));
    place->is_rank = true;
    place->launcher = launcher->name;
    if (place->size < 0 || place->rank < place->size) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s is %d, but %s is %d", launcher->rank, place->rank, launcher->size, place->size);
}

static const char *text_of(const char *(*get)(void *, const char *), void *context, const char *name)
{
    const char *text = get(context, name);
    return text ? text : "";
}

static enum el_status read_meeting(const char *(*get)(void *, const char *), void *context,
                                   struct el_launch_place *place)
{
    EL_TRY(read_number(get, context, MASTER_PORT, &place->port));
    EL_TRY(read_number(get, context, EL_LAUNCH_LISTENER, &place->listener));
    place->host = get(context, "MASTER_ADDR");
    place->n_ports = 1;
    place->secret = text_of(get, context, EL_LAUNCH_SECRET);
    place->token = text_of(get, context, EL_LAUNCH_TOKEN);
    if (place->token[0]) {
        place->launcher = "evenload";
        return EL_OK;
    }
    place->token = text_of(get, context, "TORCHELASTIC_RUN_ID");
    if (strcmp(text_of(get, context, "TORCHELASTIC_USE_AGENT_STORE"), "True") == 0) {
        place->port = place->port < PORT_MAX - PORTS_BEHIND_AGENT ? place->port + 1 : PORT_MAX - PORTS_BEHIND_AGENT;
        place->n_ports = PORTS_BEHIND_AGENT;
    }
    return EL_OK;
}

/* Lists those set, or not set; returns their number. */
static int list_variables(const char *(*get)(void *, const char *), void *context, const char *const *names, bool set,
                          char text[NAMES_BYTES])
{
    int n = 0, found = 0;
    text[0] = '\0';
    for (int i = 0; names[i]; i++) found += (*text_of(get, context, names[i]) != '\0') == set;
    for (int i = 0; names[i]; i++) {
        if ((*text_of(get, context, names[i]) != '\0') != set) continue;
        size_t used = strlen(text);
        snprintf(text + used, NAMES_BYTES - used, "%s%s", n == 0 ? "" : n + 1 < found ? ", " : " and ", names[i]);
        n++;
    }
    return n;
}

static bool has_all(const char *(*get)(void *, const char *), void *context)
{
    char missing[NAMES_BYTES];
    return list_variables(get, context, needed, false, missing) == 0;
}

/* Some of torchrun's variables without the rest are an error: each process would train a job of its own. MASTER_ADDR
 * and MASTER_PORT alone do not count, since shells and batch scripts export them. */
static enum el_status check_part(const char *(*get)(void *, const char *), void *context)
{
    static const char *const of_ranks[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", NULL};
    char set[NAMES_BYTES], missing[NAMES_BYTES];
    int n_missing = list_variables(get, context, needed, false, missing);
    int n_set = list_variables(get, context, of_ranks, true, set);
    if (n_missing == 0 || n_set == 0) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "%s %s set, as torchrun does for a rank, but %s %s not: set RANK, WORLD_SIZE, MASTER_ADDR and "
                   "MASTER_PORT, or unset %s, or give --launcher self",
                   set, n_set == 1 ? "is" : "are", missing, n_missing == 1 ? "is" : "are", n_set == 1 ? "it" : "them");
}

/* "node[007-012,20],other": node007; "r1i[0-1]n[0-17]": r1i0n0. */
static bool first_node(const char *list, char *name, size_t bytes)
{
    size_t n = 0;
    for (const char *at = list; *at && *at != ',' && n + 1 < bytes; at += *at != 0) {
        if (*at != '[') {
            name[n++] = *at;
            continue;
        }
        for (at++; *at && !strchr("-,]", *at) && n + 1 < bytes; at++) name[n++] = *at;
        at += strcspn(at, "]");
    }
    name[n] = 0;
    return n > 0 && n + 1 < bytes;
}

/* A task of `srun` without MPI: a step of several tasks, which a batch script is not. They meet at the first node, at a
 * port of the step's number. */
static enum el_status read_srun(const char *(*get)(void *, const char *), void *context, struct el_launch_place *place)
{
    enum { FIRST_PORT = 20000, PORTS = 20000, NODE_BYTES = 256 };
    static const struct launcher srun = {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""};
    static char node[NODE_BYTES], token[NAMES_BYTES];
    int job = 0, step = -1, tasks = 0;
    EL_TRY(read_number(get, context, srun.size, &tasks));
    if (tasks < 2) return EL_OK; /* a shell's step has a number that is too large for an int */
    EL_TRY(read_number(get, context, "SLURM_JOB_ID", &job));
    EL_TRY(read_number(get, context, "SLURM_STEP_ID", &step));
    if (step < 0 || !first_node(text_of(get, context, "SLURM_STEP_NODELIST"), node, sizeof node)) return EL_OK;
    EL_TRY(read_launcher(get, context, &srun, place));
    snprintf(token, sizeof token, "slurm %d.%d", job, step);
    place->host = node;
    place->port = FIRST_PORT + (int)(((int64_t)job * 64 + step) % PORTS);
    place->n_ports = PORTS_BEHIND_AGENT;
    place->token = token;
    place->secret = text_of(get, context, EL_LAUNCH_SECRET);
    return EL_OK;
}

/* Ranks of a torchrun that srun or mpirun started inherit those variables, so torchrun wins if TORCHELASTIC_RUN_ID
 * confirms it, else MPI. */
enum el_status el_launch_environment(const char *(*get)(void *context, const char *name), void *context,
                                     struct el_launch_place *place_p)
{
    struct el_launch_place place = {.rank = -1,
                                    .size = -1,
                                    .local_rank = -1,
                                    .local_size = -1,
                                    .launcher = "",
                                    .port = -1,
                                    .listener = -1,
                                    .token = "",
                                    .secret = ""};
    bool torch = has_all(get, context), sure = torch && *text_of(get, context, "TORCHELASTIC_RUN_ID");
    for (size_t i = 0; !sure && i < sizeof mpi_launchers / sizeof mpi_launchers[0] && !place.is_rank; i++)
        EL_TRY(read_launcher(get, context, &mpi_launchers[i], &place));
    if (!place.is_rank) EL_TRY(check_part(get, context));
    if (torch && !place.is_rank) {
        EL_TRY(read_launcher(get, context, &torchrun, &place));
        EL_TRY(read_meeting(get, context, &place));
    }
    if (!place.is_rank) EL_TRY(read_srun(get, context, &place));
    *place_p = place;
    return EL_OK;
}

static bool is_listed(const char *words, const char *variable)
{
    for (size_t n; (n = strcspn(words, " ")) > 0; words += n + (words[n] == ' '))
        if (strncmp(variable, words, n) == 0) return true;
    return false;
}

/* Whether a variable belongs to the current MPI, Slurm or torchrun job. MCA settings are the user's, except those that
 * only mpirun sets. */
static bool is_identity(const char *variable)
{
    static const char settings[] = "OMPI_MCA_ PRTE_MCA_ PMIX_MCA_ OMPI_ALLOW_RUN_AS_ROOT PRTE_ALLOW_RUN_AS_ROOT";
    static const char of_mpirun[] =
        "OMPI_MCA_ess= OMPI_MCA_ess_ OMPI_MCA_orte_ OMPI_MCA_initial_wdir= OMPI_MCA_mpi_oversubscribe= OMPI_MCA_pmix= "
        "OMPI_MCA_plm= OMPI_MCA_shmem_RUNTIME_QUERY_hint= PRTE_MCA_ess_ PRTE_MCA_prte_ess_ PRTE_MCA_prte_ "
        "PMIX_MCA_mca_base_component_show_load_errors=";
    static const char of_jobs[] =
        "OMPI_ PMIX_ PMI_ PMI2_ PRTE_ SLURM_ SLURMD_ OPAL_JOB MPI_LOCAL HYDRA_ EL_LAUNCH_ RANK= WORLD_SIZE= "
        "LOCAL_RANK= "
        "LOCAL_WORLD_SIZE= GROUP_RANK= GROUP_WORLD_SIZE= ROLE_RANK= ROLE_WORLD_SIZE= ROLE_NAME= MASTER_ADDR= "
        "MASTER_PORT= TORCHELASTIC_";
    return is_listed(is_listed(settings, variable) ? of_mpirun : of_jobs, variable);
}

/* Reasons: root in a container; our waits sleep, and yielding inside MPI_Test loses a time slice to the compute thread
 * each time (measured: 35 times slower); process_vm_readv is often forbidden; all ranks are on this host, so TCP and
 * OFI are not needed; warnings about absent networks. Slots and binding: mpirun.c. */
static const char *const mpi_settings[] = {
    "OMPI_ALLOW_RUN_AS_ROOT=1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "PRTE_ALLOW_RUN_AS_ROOT=1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "OMPI_MCA_mpi_yield_when_idle=0",
    "OMPI_MCA_btl_vader_single_copy_mechanism=none",
    "OMPI_MCA_btl=^tcp,ofi",
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

char **el_launch_make_environment(char *const *from, const char *const *extra, bool with_mpi, bool is_ours)
{
    size_t most = (size_t)(count((const char *const *)from) + count(extra) + count(mpi_settings) + 1);
    char **list = malloc(most * sizeof *list);
    if (!list) return NULL;
    int n = 0;
    for (int i = 0; extra && extra[i]; i++) list[n++] = (char *)extra[i];
    for (int i = 0; from[i]; i++)
        if (!(is_ours && is_identity(from[i])) && !has_name(list, n, from[i])) list[n++] = from[i];
    for (int i = 0; with_mpi && mpi_settings[i]; i++)
        if (!has_name(list, n, mpi_settings[i])) list[n++] = (char *)mpi_settings[i];
    list[n] = NULL;
    return list;
}
