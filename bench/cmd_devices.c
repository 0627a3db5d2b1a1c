/* `evenload devices`: backends and libraries, and why one is missing. It opens modules but starts nothing in them: no
 * MPI_Init, no device. */
#include <math.h>
#include <stdlib.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/machine/host.h"
#include "runtime/base/module.h"
#include "runtime/comm/nccl/api.h"
#include "runtime/launch/mpirun.h"

enum { BACKENDS_MAX = 16, TEXT_BYTES = 512 };

static void add(json_t *rows, const char *name, bool usable, const char *detail)
{
    json_array_append_new(
        rows, json_pack("{s:s, s:b, s:o}", "name", name, "usable", (int)usable, "detail", el_json_string(detail)));
}

static json_t *backends(void)
{
    struct el_backend_info infos[BACKENDS_MAX];
    json_t *rows = json_array();
    for (int i = 0, n = el_device_backends(infos, BACKENDS_MAX); i < n; i++)
        add(rows, infos[i].name, infos[i].usable, infos[i].detail);
    return rows;
}

static json_t *libraries(void)
{
    json_t *rows = json_array();
    const char *missing = el_kernels_cpu_missing(), *gpu = "";
    char text[TEXT_BYTES] = "no toolkit at build", *mpirun = NULL, *gnuplot = NULL;
    void *found;
    add(rows, "oneDNN", !missing, missing ? missing : el_kernels_cpu_library());
    bool usable = el_device_gpu_libraries(&gpu, &missing) == EL_OK;
    if (usable) snprintf(text, sizeof text, "%s%s%s", gpu, missing ? "; " : "", missing ? missing : "");
    add(rows, "CUDA", usable, text);
    usable = el_nccl_version(text, sizeof text) == EL_OK;
    add(rows, "NCCL", usable, usable ? text : el_error_message());
    usable = el_runner_check_mpi() == EL_OK && el_mpirun_find(&mpirun) == EL_OK;
    add(rows, "MPI", usable, usable ? mpirun : el_error_message());
    usable = el_module_open("png", "el_png_decode", &found) == EL_OK;
    add(rows, "PNG", usable, usable ? "libpng: images in PNG are read" : el_error_message());
    usable = el_module_open("jpeg", "el_jpeg_decode", &found) == EL_OK;
    add(rows, "JPEG", usable, usable ? "libjpeg: images in JPEG are read" : el_error_message());
    usable = el_launch_find_program("gnuplot", &gnuplot) == EL_OK;
    add(rows, "gnuplot", usable, usable ? gnuplot : "not found on PATH: plots stay data files (install gnuplot-nox)");
    free(mpirun);
    free(gnuplot);
    return rows;
}

/* Ways in which processes are started and talk to each other. */
static json_t *ranks(void)
{
    bool mpi = el_runner_check_mpi() == EL_OK;
    json_t *rows = json_array();
    add(rows, "own", true, "launcher: starts the ranks of this host itself");
    add(rows, "mpirun", mpi, mpi ? "launcher: starts the ranks of this host through Open MPI" : el_error_message());
    add(rows, "torchrun", true, "launcher, or whoever sets its variables: on any hosts; ranks meet over tcp");
    add(rows, "shm", true, "communicator: between processes of one host, through shared memory");
    add(rows, "tcp", true, "communicator: between processes of any hosts, over sockets");
    return rows;
}

static void print_rows(const char *heading, const json_t *rows)
{
    printf("%s\n", heading);
    EL_EACH(row, rows) {
        bool usable = json_is_true(json_object_get(row, "usable"));
        char head[32];
        snprintf(head, sizeof head, "  %-8s %-4s ", el_json_text(row, "name", ""), usable ? "yes" : "no");
        el_text_wrap(el_json_text(row, "detail", ""), head, "                ", EL_REPORT_COLUMNS, stdout);
    }
}

enum el_status el_cmd_devices(struct el_options *options, int *exit_status_p)
{
    (void)exit_status_p;
    struct el_cores cores;
    char text[TEXT_BYTES];
    enum el_status status = EL_OK;
    json_t *cpus = json_array();
    el_cores_find("", &cores);
    for (int i = 0; i < cores.n; i++) json_array_append_new(cpus, json_integer(cores.cpus[i]));
    json_t *document =
        json_pack("{s:o, s:o, s:o, s:o, s:o}", "backends", backends(), "libraries", libraries(), "ranks", ranks(),
                  "cores", cpus, "quota_cpus", el_json_real(cores.quota > 0 ? cores.quota : NAN));
    if (options->json) {
        status = el_print_json(document, stdout);
    } else {
        print_rows("Backends", json_object_get(document, "backends"));
        print_rows("Libraries", json_object_get(document, "libraries"));
        print_rows("Ranks", json_object_get(document, "ranks"));
        el_cores_describe(&cores, text, sizeof text);
        printf("Cores\n  %s: %d cpu device%s without sharing\n", text, cores.n, cores.n == 1 ? "" : "s");
    }
    json_decref(document);
    return status;
}
