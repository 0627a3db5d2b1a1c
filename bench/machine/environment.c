/* The environment of a run, from /proc, /sys and uname; null: unreadable. */
#include "bench/machine/host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "kernels/kernels.h"
#include "runtime/base/files.h"
#include "runtime/launch/launch.h"

#ifndef EL_BUILD_COMMIT
#define EL_BUILD_COMMIT "unknown"
#endif
#ifndef EL_BUILD_FLAGS
#define EL_BUILD_FLAGS "unknown"
#endif
#ifndef EL_BUILD_MPI
#define EL_BUILD_MPI ""
#endif
#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

static json_t *first_line(const char *path)
{
    char line[512];
    return el_json_string(el_file_line(path, "", line, sizeof line) ? line : NULL);
}

static json_t *cpuinfo(const char *key)
{
    char line[512];
    bool found = el_file_line("/proc/cpuinfo", key, line, sizeof line);
    return el_json_string(found ? line + strspn(line, "\t :") : NULL);
}

static json_t *affinity(void)
{
    int allowed[EL_ALLOWED_MAX], n = el_cores_allowed(allowed);
    json_t *cores = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(cores, json_integer(allowed[i]));
    return cores;
}

static json_t *read_switch(const char *path, char yes)
{
    char line[16];
    el_file_line(path, "", line, sizeof line);
    return *line != '0' && *line != '1' ? json_null() : json_boolean(*line == yes);
}

/* Intel's driver reports "off", the others "on". */
static json_t *turbo(void)
{
    json_t *on = read_switch("/sys/devices/system/cpu/intel_pstate/no_turbo", '0');
    return json_is_null(on) ? read_switch("/sys/devices/system/cpu/cpufreq/boost", '1') : on;
}

static json_t *load_average(void)
{
    double load[3];
    json_t *array = json_array();
    int n = getloadavg(load, 3);
    for (int i = 0; i < n; i++) json_array_append_new(array, json_real(load[i]));
    return array;
}

static json_t *program_path(const char *name)
{
    char *path;
    if (el_launch_find_program(name, &path) != EL_OK) return json_null();
    json_t *value = el_json_string(path);
    free(path);
    return value;
}

json_t *el_machine(void)
{
    struct utsname names;
    bool named = uname(&names) == 0;
    json_t *e = json_object();
    el_json_put_text(e, "hostname", named ? names.nodename : NULL);
    el_json_put(e, "kernel", named ? json_sprintf("%s %s", names.sysname, names.release) : json_null());
    el_json_put_text(e, "machine", named ? names.machine : NULL);
    el_json_put(e, "cpu_model", cpuinfo("model name"));
    el_json_put(e, "cores_online", el_json_count(sysconf(_SC_NPROCESSORS_ONLN)));
    el_json_put(e, "memory_bytes", el_json_count((int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE)));
    el_json_put(e, "boot_id", first_line("/proc/sys/kernel/random/boot_id"));
    return e;
}

static void put_state(json_t *e)
{
    double quota = el_cores_quota("");
    el_json_put(e, "cpu_stepping", cpuinfo("stepping"));
    el_json_put(e, "cpu_microcode", cpuinfo("microcode"));
    el_json_put(e, "smt", read_switch("/sys/devices/system/cpu/smt/active", '1'));
    el_json_put(e, "turbo", turbo());
    json_t *links = el_links_host("");
    size_t n_nodes = json_array_size(json_object_get(links, "numa"));
    el_json_put_all(e, EL_KEY("numa_nodes", n_nodes ? json_integer((json_int_t)n_nodes) : json_null()),
                    EL_KEY("links", links));
    el_json_put(e, "affinity", affinity());
    el_json_put_real(e, "cgroup_cores", quota > 0 ? quota : NAN); /* no limit, or unreadable */
    el_json_put(e, "governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    el_json_put(e, "load_average", load_average());
}

static void put_build(json_t *e)
{
    const char *library = el_kernels_cpu_library();
    el_json_put_all(e, EL_KEY("commit", EL_BUILD_COMMIT), EL_KEY("compiler", COMPILER),
                    EL_KEY("compiler_flags", EL_BUILD_FLAGS), EL_KEY("mpi", *EL_BUILD_MPI ? EL_BUILD_MPI : NULL),
                    EL_KEY("cpu_library", library == NULL || *library == '\0' ? NULL : library),
                    EL_KEY("cpu_library_reason", el_kernels_cpu_missing()));
}

json_t *el_environment(void)
{
    json_t *e = json_object(), *machine = el_machine();
    char utc[32];
    struct tm parts;
    time_t now = time(NULL);
    gmtime_r(&now, &parts);
    strftime(utc, sizeof utc, "%Y-%m-%dT%H:%M:%SZ", &parts);
    el_json_put_text(e, "time_utc", utc);
    json_object_update(e, machine);
    json_decref(machine);
    put_state(e);
    put_build(e);
    el_json_put(e, "mpirun", program_path("mpirun"));
    el_json_put(e, "gnuplot", program_path("gnuplot"));
    el_json_put(e, "warnings", json_array());
    return e;
}
