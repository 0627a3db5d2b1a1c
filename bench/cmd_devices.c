/* `evenload devices`: backends and libraries, and what each lacks. It opens modules but starts nothing in them: no
 * MPI_Init, no device. */
#include <stdlib.h>

#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/machine/cores.h"
#include "runtime/comm/nccl/api.h"
#include "runtime/launch/mpirun.h"

enum { BACKENDS_MAX = 16, N_LIBRARIES = 5, RANK_LINES = 5, TEXT_BYTES = 512 };

struct line {
    const char *name;
    bool usable;
    char detail[TEXT_BYTES];
};

static struct line line_of(const char *name, bool usable, const char *detail)
{
    struct line line = {.name = name, .usable = usable};
    snprintf(line.detail, sizeof line.detail, "%s", detail);
    return line;
}

static struct line dnnl_line(void)
{
    const char *lack = el_kernels_cpu_lack();
    return line_of("oneDNN", !lack, lack ? lack : el_kernels_cpu_library());
}

static struct line cuda_line(void)
{
    const char *libraries, *lack;
    if (el_device_gpu_libraries(&libraries, &lack) != EL_OK) return line_of("CUDA", false, "no toolkit at build");
    struct line line = line_of("CUDA", true, libraries);
    if (lack) snprintf(line.detail, sizeof line.detail, "%s; %s", libraries, lack);
    return line;
}

static struct line nccl_line(void)
{
    char version[TEXT_BYTES];
    bool usable = el_nccl_version(version, sizeof version) == EL_OK;
    return line_of("NCCL", usable, usable ? version : el_error_message());
}

static struct line mpi_line(void)
{
    char *path = NULL;
    if (el_runner_check_mpi() != EL_OK) return line_of("MPI", false, el_error_message());
    if (el_mpirun_find(&path) != EL_OK) return line_of("MPI", false, el_error_message());
    struct line line = line_of("MPI", true, path);
    free(path);
    return line;
}

/* Ways in which processes are started and talk to each other. */
static int rank_lines(struct line lines[RANK_LINES])
{
    bool mpi = el_runner_check_mpi() == EL_OK;
    int n = 0;
    lines[n++] = line_of("own", true, "launcher: starts the ranks of this host itself");
    lines[n++] =
        line_of("mpirun", mpi, mpi ? "launcher: starts the ranks of this host through Open MPI" : el_error_message());
    lines[n++] =
        line_of("torchrun", true, "launcher, or whoever sets its variables: on any hosts; ranks meet over tcp");
    lines[n++] = line_of("shm", true, "communicator: between processes of one host, through shared memory");
    lines[n++] = line_of("tcp", true, "communicator: between processes of any hosts, a ring over sockets");
    return n;
}

static struct line gnuplot_line(void)
{
    char *path = NULL;
    if (el_launch_find_program("gnuplot", &path) != EL_OK)
        return line_of("gnuplot", false, "not found on PATH: plots stay data files (install gnuplot-nox)");
    struct line line = line_of("gnuplot", true, path);
    free(path);
    return line;
}

static json_t *json_lines(const struct line *lines, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:b, s:s}", "name", lines[i].name, "usable", (int)lines[i].usable,
                                              "detail", lines[i].detail));
    return list;
}

static void print_lines(const char *heading, const struct line *lines, int n)
{
    printf("%s\n", heading);
    for (int i = 0; i < n; i++)
        printf("  %-8s %-4s %s\n", lines[i].name, lines[i].usable ? "yes" : "no", lines[i].detail);
}

static int print_json(const struct el_cores *cores, const struct line *backends, int n_backends,
                      const struct line *libraries, int n_libraries)
{
    struct line ranks[RANK_LINES];
    int n_ranks = rank_lines(ranks);
    json_t *cpus = json_array();
    for (int i = 0; i < cores->n; i++) json_array_append_new(cpus, json_integer(cores->cpus[i]));
    json_t *document = json_pack("{s:o, s:o, s:o, s:o, s:o}", "backends", json_lines(backends, n_backends), "libraries",
                                 json_lines(libraries, n_libraries), "ranks", json_lines(ranks, n_ranks), "cores", cpus,
                                 "quota_cpus", cores->quota > 0 ? json_real(cores->quota) : json_null());
    json_dumpf(document, stdout, JSON_INDENT(1));
    printf("\n");
    json_decref(document);
    return el_exit_flush(0);
}

int el_cmd_devices(const struct el_options *options, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct el_backend_info infos[BACKENDS_MAX];
    struct line backends[BACKENDS_MAX],
        libraries[N_LIBRARIES] = {dnnl_line(), cuda_line(), nccl_line(), mpi_line(), gnuplot_line()};
    struct el_cores cores;
    char text[TEXT_BYTES];
    int n = el_device_backends(infos, BACKENDS_MAX);
    for (int i = 0; i < n; i++) backends[i] = line_of(infos[i].name, infos[i].usable, infos[i].detail);
    el_cores_find("", &cores);
    if (options->json) return print_json(&cores, backends, n, libraries, N_LIBRARIES);
    el_cores_describe(&cores, text, sizeof text);
    print_lines("Backends", backends, n);
    print_lines("Libraries", libraries, N_LIBRARIES);
    struct line ranks[RANK_LINES];
    print_lines("Ranks", ranks, rank_lines(ranks));
    printf("Cores\n  %s: %d cpu device%s without sharing\n", text, cores.n, cores.n == 1 ? "" : "s");
    return el_exit_flush(0);
}
