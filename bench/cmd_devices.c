/* `evenload devices`: opens modules without starting anything: no MPI_Init, no device. */
#include <limits.h>
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

enum { BACKENDS_MAX = 16, TEXT_BYTES = 2048 };

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

/* " from FILE, FILE": the loader's files. */
static void append_files(char *text, size_t bytes, const char *const begins[], size_t n)
{
    char path[PATH_MAX];
    const char *before = " from ";
    for (size_t i = 0; i < n; i++) {
        if (!el_library_path(begins[i], path, sizeof path)) continue;
        el_text_append(text, bytes, "%s%s", before, path);
        before = ", ";
    }
}

static json_t *libraries(void)
{
    static const char *const cuda_files[] = {"libcudart.so", "libcublas.so", "libcudnn.so"}, *nccl_file = "libnccl.so";
    json_t *rows = json_array();
    const char *missing = el_kernels_cpu_missing(), *gpu = "";
    char text[TEXT_BYTES] = "", *mpirun = NULL, *gnuplot = NULL;
    void *found;
    add(rows, "oneDNN", !missing, missing ? missing : el_kernels_cpu_library());
    el_kernels_cpu_blas(text, sizeof text);
    add(rows, "BLAS", *text, *text ? text : "none besides oneDNN: --products has no choice (MKL, OpenBLAS, BLIS)");
    bool usable = el_device_gpu_libraries(&gpu, &missing) == EL_OK;
    if (usable) snprintf(text, sizeof text, "%s", gpu);
    if (usable) append_files(text, sizeof text, cuda_files, sizeof cuda_files / sizeof cuda_files[0]);
    if (usable && missing) el_text_append(text, sizeof text, "; %s", missing);
    add(rows, "CUDA", usable, usable ? text : el_error_message());
    usable = el_nccl_version(text, sizeof text) == EL_OK;
    if (usable) append_files(text, sizeof text, &nccl_file, 1);
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
        el_text_wrap(el_json_text(row, "detail", ""), head, "                ", stdout);
    }
}

static const char *number(const json_t *object, const char *path, char text[EL_FIGURE_BYTES])
{
    double value = el_json_number(object, path);
    snprintf(text, EL_FIGURE_BYTES, isnan(value) ? "?" : "%.0f", value);
    return text;
}

static void print_gpus(const json_t *gpus)
{
    char f[4][EL_FIGURE_BYTES], text[TEXT_BYTES];
    size_t n = json_array_size(gpus);
    EL_EACH(gpu, gpus)
        el_text_line(stdout, "  GPU%-7zu %s, PCIe %s x%s, NUMA %s, NVLinks %s", gpu_at.i,
                     el_json_text(gpu, "name", "?"), number(gpu, "pcie.generation", f[0]),
                     number(gpu, "pcie.width", f[1]), number(gpu, "numa_node", f[2]),
                     number(gpu, "nvlinks.active", f[3]));
    for (size_t row = 0; row <= n && n > 1; row++) {
        *text = '\0';
        for (size_t column = 0; column <= n; column++) {
            const json_t *to = json_object_get(json_array_get(gpus, row - 1), "to");
            const char *word = json_string_value(json_array_get(to, column - 1));
            snprintf(f[0], sizeof f[0], row + column ? "GPU%zu" : "", row + column - 1);
            el_text_append(text, sizeof text, column ? " %5s" : "  %-10s", !row || !column ? f[0] : word ? word : "?");
        }
        el_text_line(stdout, "%s", text);
    }
}

static void print_links(const json_t *host, const json_t *gpus)
{
    static const char *const kinds[][3] = {{"interfaces", "speed_mbit_s", "Mbit/s"},
                                           {"infiniband", "rate_gbit_s", "Gbit/s"}};
    char text[EL_FIGURE_BYTES];
    printf("Links\n");
    EL_EACH(node, json_object_get(host, "numa"))
        el_text_line(stdout, "  NUMA %-5s cores %s, %s MiB", el_json_text(node, "name", "?"),
                     el_json_text(node, "cores", "?"), el_text_mib(el_json_number(node, "memory_bytes"), text));
    for (int k = 0; k < 2; k++)
        EL_EACH(row, json_object_get(host, kinds[k][0]))
            if (!el_json_is(row, "state", "down") && !el_json_is(row, "name", "lo"))
                el_text_line(stdout, "  %-10s %s, %s %s, driver %s", el_json_text(row, "name", "?"),
                             el_json_text(row, "state", "?"), number(row, kinds[k][1], text), kinds[k][2],
                             el_json_text(row, "driver", "none"));
    print_gpus(gpus);
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
        el_json_of(EL_KEY("backends", backends()), EL_KEY("libraries", libraries()), EL_KEY("ranks", ranks()),
                   EL_KEY("cores", cpus), EL_KEY("quota_cpus", cores.quota > 0 ? cores.quota : NAN),
                   EL_KEY("links", el_links_host("")), EL_KEY("gpu_links", el_links_gpus_here()));
    if (options->json) {
        status = el_print_json(document, stdout);
    } else {
        print_rows("Backends", json_object_get(document, "backends"));
        print_rows("Libraries", json_object_get(document, "libraries"));
        print_rows("Ranks", json_object_get(document, "ranks"));
        el_cores_describe(&cores, text, sizeof text);
        printf("Cores\n  %s: %d cpu device%s without sharing\n", text, cores.n, cores.n == 1 ? "" : "s");
        print_links(json_object_get(document, "links"), el_json_at(document, "gpu_links.gpus"));
    }
    json_decref(document);
    return status;
}
